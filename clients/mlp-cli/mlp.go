// Package mlpcli is mlp: it operates the model platform from a terminal.
package mlpcli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/cli"
)

// Main runs mlp with the arguments, streams and environment of the process and returns its exit code: 0 done, 1 a
// failure, 2 a wrong command line.
func Main() int {
	// Otherwise a reader that closes its end, as under `| head -1`, kills the process with that signal instead of
	// giving the write an error, which counts as success.
	signal.Ignore(syscall.SIGPIPE)
	return cli.Main(context.Background(), cli.System(), os.Args)
}
