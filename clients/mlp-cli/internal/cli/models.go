package cli

import (
	"context"

	"github.com/urfave/cli/v2"
)

func modelsCommand(env *Env) *cli.Command { return &cli.Command{Name: "models"} }
func pipelineCommand(env *Env) *cli.Command { return &cli.Command{Name: "pipeline"} }
func completeModels(ctx context.Context, env *Env) []string { return nil }
