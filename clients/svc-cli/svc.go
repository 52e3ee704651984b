// Package svccli is svc: it stores runs with their evidence, shows them and checks the stored records.
package svccli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/app"
)

// Main runs svc with the arguments, streams and environment of the process and returns its exit code: 0 done, 1 a check
// answered no, 2 an error.
func Main() int {
	// Otherwise a reader that goes away, as under `| head -1`, kills the process with that signal instead of
	// giving the write an error, which counts as success.
	signal.Ignore(syscall.SIGPIPE)
	return app.Main(context.Background(), app.System(), os.Args)
}
