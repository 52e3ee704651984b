// Command mlp operates the model platform from a terminal.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/cli"
)

func main() {
	// Otherwise a reader that goes away, as under `| head -1`, kills the process with that signal instead of
	// giving the write an error, which counts as success.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(cli.Main(context.Background(), cli.System(), os.Args))
}
