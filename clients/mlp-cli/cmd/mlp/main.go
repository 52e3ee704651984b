// Command mlp operates the model platform from a terminal.
package main

import (
	"os"

	mlpcli "github.com/mlp-platform/platform/clients/mlp-cli"
)

func main() { os.Exit(mlpcli.Main()) }
