//go:build !urfave_cli_no_docs

// Command mlp-man prints the manual page of mlp, for a release.
package main

import (
	"fmt"
	"os"

	mlpcli "github.com/mlp-platform/platform/clients/mlp-cli"
)

func main() {
	page, err := mlpcli.Man()
	if err == nil {
		_, err = fmt.Print(page)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "mlp-man: %v\n", err)
		os.Exit(1)
	}
}
