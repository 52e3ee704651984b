package gate

import (
	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
)

// Category groups the commands in the help of svc.
const Category = "Gates"

// Commands are those on one matrix.
func Commands(e *command.Env) []*cli.Command {
	return []*cli.Command{auditCommand(e), dependenceCommand(e), editorCommand(e)}
}

func auditCommand(e *command.Env) *cli.Command {
	return &cli.Command{
		Name: "gate-audit", Category: Category, Usage: "audit the verdicts of a gate's reviewers", ArgsUsage: "INPUT",
		Description: "INPUT is a matrix of verdicts on candidates whose truth is known. The report shows how often each\n" +
			"verifier and the panel are wrong, and how many independent votes the panel is worth.",
		Flags: append(append([]cli.Flag{
			&cli.StringFlag{Name: "markdown", Usage: "also write the report for people to `FILE`"},
		}, BootstrapFlags()...), OutputFlags()...),
		Action: e.Action(command.Envelope, func(c *cli.Context) error {
			b, err := ReadBootstrap(c)
			if err != nil {
				return err
			}
			m, out, err := ReadArgument(c)
			if err != nil {
				return err
			}
			r, err := m.Audit(c.Context, Options{Version: e.Version, Bootstrap: b, Progress: ShowProgress(e)})
			if err != nil {
				return err
			}
			return out.Write(e, r, r.Markdown())
		}),
	}
}

func dependenceCommand(e *command.Env) *cli.Command {
	return &cli.Command{
		Name: "gate-audit-dependence", Category: Category, Usage: "show which verifiers are wrong together", ArgsUsage: "INPUT",
		Flags: OutputFlags(),
		Action: e.Action(command.Envelope, func(c *cli.Context) error {
			m, out, err := ReadArgument(c)
			if err != nil {
				return err
			}
			return out.Write(e, m.Dependence(e.Version), nil)
		}),
	}
}

// ReadArgument reads the command's only argument, once its outputs are known to lie elsewhere.
func ReadArgument(c *cli.Context) (*Matrix, Outputs, error) {
	args, err := command.Arguments(c, "INPUT")
	if err != nil {
		return nil, Outputs{}, err
	}
	out, err := readOutputs(c)
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
	m, err := Read(doc)
	return m, out, err
}
