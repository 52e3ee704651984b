// Command svc audits runs: it stores them with their evidence, shows them and checks the stored
// records.
package main

import (
	"os"

	svccli "github.com/mlp-platform/platform/clients/svc-cli"
)

func main() { os.Exit(svccli.Main()) }
