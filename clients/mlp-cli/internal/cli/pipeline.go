package cli

import "github.com/urfave/cli/v2"

func pipelineCommand(env *Env) *cli.Command { return &cli.Command{Name: "pipeline"} }

