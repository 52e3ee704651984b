//go:build !urfave_cli_no_docs

// Command svc-man prints the manual page of svc, for a release.
package main

import (
	"fmt"
	"os"

	svccli "github.com/mlp-platform/platform/clients/svc-cli"
)

func main() {
	page, err := svccli.Man()
	if err == nil {
		_, err = fmt.Print(page)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "svc-man: %v\n", err)
		os.Exit(1)
	}
}
