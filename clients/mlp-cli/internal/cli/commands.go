package cli

import "github.com/urfave/cli/v2"

// commands are all of mlp's, in the order of its help.
func commands(env *Env) []*cli.Command {
	return []*cli.Command{
		statusCommand(env),
		modelsCommand(env),
		predictCommand(env),
		retrainCommand(env),
		approvalsCommand(env),
		driftCommand(env),
		serveCommand(env),
		pipelineCommand(env),
		configCommand(env),
		completeCommand(env),
	}
}
