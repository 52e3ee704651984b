//go:build !urfave_cli_no_docs

package mlpcli

import "github.com/mlp-platform/platform/clients/mlp-cli/internal/cli"

// Man returns the manual page of mlp. The programs of a release are built without the code that makes it.
func Man() (string, error) { return cli.Man() }
