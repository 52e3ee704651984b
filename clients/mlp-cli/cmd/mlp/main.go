// Command mlp operates the model platform from a terminal.
package main

import (
	"context"
	"os"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/cli"
)

func main() { os.Exit(cli.Main(context.Background(), cli.System(), os.Args)) }
