package cli

import (
	"bytes"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/argv"
	"github.com/mlp-platform/platform/libs/service"
)

// allCommands returns all commands of mlp, in the order of its help.
func allCommands(env *Env) []*cli.Command {
	return []*cli.Command{
		statusCommand(env),
		modelsCommand(env),
		predictCommand(env),
		retrainCommand(env),
		runsCommand(env),
		approvalsCommand(env),
		driftCommand(env),
		alertsCommand(env),
		costsCommand(env),
		serveCommand(env),
		modelrepoCommand(env),
		busCommand(env),
		scaffoldCommand(env),
		pipelineCommand(env),
		guardedCommand(env),
		auditCommand(env),
		chatCommand(env),
		stackCommand(env),
		authCommand(env),
		configCommand(env),
		helpCommand(env),
		versionCommand(env),
		completeCommand(env),
	}
}

// helpCommand prints the text of a help; in the structured formats, a document that holds it.
func helpCommand(env *Env) *cli.Command {
	command := argv.HelpCommand()
	show := command.Action
	command.Action = func(c *cli.Context) error {
		if !env.Format.Structured() {
			return show(c)
		}
		var text bytes.Buffer
		format, out := env.Format, c.App.Writer
		c.App.Writer = &text
		err := show(c)
		env.Format, c.App.Writer = format, out // show runs a line without this format
		if err != nil {
			return err
		}
		return env.Printer().Print(output.Grid{Columns: []string{"Help"}, Rows: [][]any{{text.String()}}, Doc: map[string]string{"help": text.String()}})
	}
	return command
}

func versionCommand(env *Env) *cli.Command {
	command := argv.VersionCommand()
	show := command.Action
	command.Action = func(c *cli.Context) error {
		if !env.Format.Structured() || c.Args().Present() {
			return show(c)
		}
		return env.showVersion()
	}
	return command
}

func (e *Env) showVersion() error {
	if e.Format.Structured() {
		return e.Printer().Print(output.Grid{Columns: []string{"Version"}, Rows: [][]any{{service.Version}}, Doc: map[string]string{"version": service.Version}})
	}
	_, err := fmt.Fprintf(e.Out, "mlp %s\n", service.Version)
	return err
}
