package synthesis

import (
	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/libs/evidence/canon"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/gate"
)

// Commands is `svc gate-marginal-synthesis`.
func Commands(e *command.Env) []*cli.Command { return []*cli.Command{newCommand(e)} }

func newCommand(e *command.Env) *cli.Command {
	return &cli.Command{
		Name: "gate-marginal-synthesis", Category: gate.Category, Usage: "put the reports of several benchmarks side by side", ArgsUsage: "CONFIG",
		Description: "CONFIG names two or more reports of gate-marginal-benchmark by paths within its folder.",
		Flags:       gate.OutputFlags(),
		Action: e.Action(command.Envelope, func(c *cli.Context) error {
			return gate.ReportOnConfig(e, c, func(doc canon.Value, in *gate.ConfigInputs) (any, error) {
				cfg, err := ReadConfig(doc)
				if err != nil {
					return nil, err
				}
				if err := in.Admit(cfg.Reports...); err != nil {
					return nil, err
				}
				return Run(c.Context, cfg, in.Read, e.Version)
			})
		}),
	}
}
