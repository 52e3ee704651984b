package benchmark

import (
	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/libs/evidence/canon"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/gate"
)

// Commands is `svc gate-marginal-benchmark`.
func Commands(e *command.Env) []*cli.Command { return []*cli.Command{newCommand(e)} }

func newCommand(e *command.Env) *cli.Command {
	return &cli.Command{
		Name: "gate-marginal-benchmark", Category: gate.Category, Usage: "compare ways to choose the next verifier", ArgsUsage: "CONFIG",
		Description: "Each strategy chooses on the design matrix; the choices are frozen and then measured on the holdout\n" +
			"matrix. CONFIG names both by paths within its folder.",
		Flags: gate.OutputFlags(),
		Action: e.Action(command.Envelope, func(c *cli.Context) error {
			return gate.ReportOnConfig(e, c, func(doc canon.Value, in *gate.ConfigInputs) (any, error) {
				cfg, err := ReadConfig(doc)
				if err != nil {
					return nil, err
				}
				if err := in.Admit(cfg.Design, cfg.Holdout); err != nil {
					return nil, err
				}
				return Run(c.Context, cfg, in.Read, Options{Version: e.Version, Progress: gate.ShowProgress(e)})
			})
		}),
	}
}
