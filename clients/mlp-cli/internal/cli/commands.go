package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/libs/cli/argv"
)

// allCommands are all of mlp's, in the order of its help.
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
		argv.HelpCommand(),
		argv.VersionCommand(),
		completeCommand(env),
	}
}
