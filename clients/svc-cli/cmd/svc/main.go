// Command svc audits runs: it keeps them with their evidence, shows them and checks what is kept.
package main

import (
	"os"

	svccli "github.com/mlp-platform/platform/clients/svc-cli"
)

func main() { os.Exit(svccli.Main()) }
