// Command svc audits runs: it keeps them with their evidence, shows them and checks what is kept.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/app"
)

func main() {
	// Otherwise a reader that goes away, as under `| head -1`, kills the process with that signal instead of
	// giving the write an error, which counts as success.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(app.Main(context.Background(), app.System(), os.Args))
}
