// Command trainer runs trainings and prints rows to try a model on.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/mlp-platform/platform/libs/cli/printable"
	"github.com/mlp-platform/platform/services/trainer/internal/commands"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	stderr := printable.NewWriter(os.Stderr) // progress and errors contain text of files and other services; answers are JSON
	err := commands.App(os.Environ(), os.Stdout, stderr).RunContext(ctx, os.Args)
	stop()
	if err != nil {
		fmt.Fprintln(stderr, "trainer:", err)
		os.Exit(commands.ExitCode(err))
	}
}
