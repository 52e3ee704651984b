package marginal

import (
	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/gate"
)

// Commands is `svc gate-marginal`.
func Commands(e *command.Env) []*cli.Command { return []*cli.Command{newCommand(e)} }

func newCommand(e *command.Env) *cli.Command {
	return &cli.Command{
		Name: "gate-marginal", Category: gate.Category, Usage: "show what each further verifier would add to a panel", ArgsUsage: "INPUT",
		Description: "The verifiers after --current are the panel; those after --candidate, or all others, are each tried\n" +
			"as a further member. Options may be repeated, or take several ids in a row after INPUT.",
		Flags: append(append([]cli.Flag{
			newIDsFlag("current", "the verifier `ID` is in the panel"),
			newIDsFlag("candidate", "try the verifier `ID`"),
		}, gate.BootstrapFlags()...), gate.OutputFlags()...),
		Action: e.Action(command.Envelope, func(c *cli.Context) error {
			current := idsOf(c, "current")
			if len(current) == 0 {
				return command.Usagef("name the verifiers of the panel: --current ID")
			}
			b, err := gate.ReadBootstrap(c)
			if err != nil {
				return err
			}
			m, out, err := gate.ReadArgument(c)
			if err != nil {
				return err
			}
			r, err := Analyse(c.Context, m, Options{
				Current: current, Candidates: idsOf(c, "candidate"), Version: e.Version, Bootstrap: b, Progress: gate.ShowProgress(e),
			})
			if err != nil {
				return err
			}
			return out.Write(e, r, nil)
		}),
	}
}
