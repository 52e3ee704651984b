// Command inference serves predictions. `inference migrate` prepares the database; without an argument,
// or with `serve`, it serves. Configuration comes from the environment, see docs/inference.md.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/inference"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "inference:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	command := "serve"
	if len(args) > 0 {
		command = args[0]
	}
	if len(args) > 1 || command != "serve" && command != "migrate" {
		return fmt.Errorf("unknown arguments %q; use serve or migrate", args)
	}
	cfg, err := inference.LoadConfig(os.Environ())
	if err != nil {
		return err
	}
	if command == "migrate" {
		return inference.Migrate(ctx, cfg)
	}
	return inference.Run(ctx, cfg, service.NewLogger(os.Stderr, cfg.LogLevel))
}
