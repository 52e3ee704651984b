// Command trainer runs trainings and prints rows to try a model on.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/mlp-platform/platform/services/trainer/internal/commands"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := commands.App(os.Environ(), os.Stdout, os.Stderr).RunContext(ctx, os.Args)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "trainer:", err)
		os.Exit(commands.ExitCode(err))
	}
}
