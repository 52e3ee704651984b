package gatecmd

import (
	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/gate"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/marginal"
)

func audit(e *command.Env) *cli.Command {
	return &cli.Command{
		Name: "gate-audit", Category: Category, Usage: "audit the verdicts of a gate's reviewers", ArgsUsage: "INPUT",
		Description: "INPUT is a matrix of verdicts on candidates whose truth is known. The report tells how often each\n" +
			"verifier and the panel are wrong, and how many independent votes the panel is worth.",
		Flags: append(append([]cli.Flag{
			&cli.StringFlag{Name: "markdown", Usage: "also write the report for people to `FILE`"},
		}, bootstrapFlags()...), outputFlags()...),
		Action: e.Action(command.Envelope, func(c *cli.Context) error {
			b, err := bootstrap(c)
			if err != nil {
				return err
			}
			m, out, err := matrix(c)
			if err != nil {
				return err
			}
			r, err := m.Audit(c.Context, gate.Options{Version: e.Version, Bootstrap: b, Progress: progress(e)})
			if err != nil {
				return err
			}
			return out.write(e, r, r.Markdown())
		}),
	}
}

func dependence(e *command.Env) *cli.Command {
	return &cli.Command{
		Name: "gate-audit-dependence", Category: Category, Usage: "tell which verifiers are wrong together", ArgsUsage: "INPUT",
		Flags: outputFlags(),
		Action: e.Action(command.Envelope, func(c *cli.Context) error {
			m, out, err := matrix(c)
			if err != nil {
				return err
			}
			return out.write(e, m.Dependence(e.Version), nil)
		}),
	}
}

func marginalReport(e *command.Env) *cli.Command {
	return &cli.Command{
		Name: "gate-marginal", Category: Category, Usage: "tell what each further verifier would add to a panel", ArgsUsage: "INPUT",
		Description: "The verifiers after --current are the panel; those after --candidate, or all others, are each tried\n" +
			"as a further member. Options may be repeated, or take several ids in a row after INPUT.",
		Flags: append(append([]cli.Flag{
			newIDsFlag("current", "the verifier `ID` is in the panel"),
			newIDsFlag("candidate", "try the verifier `ID`"),
		}, bootstrapFlags()...), outputFlags()...),
		Action: e.Action(command.Envelope, func(c *cli.Context) error {
			current := idsOf(c, "current")
			if len(current) == 0 {
				return command.Usagef("name the verifiers of the panel: --current ID")
			}
			b, err := bootstrap(c)
			if err != nil {
				return err
			}
			m, out, err := matrix(c)
			if err != nil {
				return err
			}
			r, err := marginal.Analyse(c.Context, m, marginal.Options{
				Current: current, Candidates: idsOf(c, "candidate"), Version: e.Version, Bootstrap: b, Progress: progress(e),
			})
			if err != nil {
				return err
			}
			return out.write(e, r, nil)
		}),
	}
}

// matrix reads the command's only argument, once its outputs are known to lie elsewhere.
func matrix(c *cli.Context) (*gate.Matrix, outputs, error) {
	args, err := command.Arguments(c, "INPUT")
	if err != nil {
		return nil, outputs{}, err
	}
	out, err := outputsOf(c)
	if err != nil {
		return nil, out, err
	}
	if err := out.apartFrom(args[0]); err != nil {
		return nil, out, err
	}
	doc, err := command.ReadDocument(args[0])
	if err != nil {
		return nil, out, err
	}
	m, err := gate.Read(doc)
	return m, out, err
}
