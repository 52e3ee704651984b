//go:build !urfave_cli_no_docs

package svccli

import "github.com/mlp-platform/platform/clients/svc-cli/internal/app"

// Man returns the manual page of svc. The programs of a release are built without the code that makes it.
func Man() (string, error) { return app.New(app.System()).ToManWithSection(1) }
