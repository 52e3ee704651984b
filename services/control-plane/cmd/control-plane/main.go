// Command control-plane serves the control plane, migrates its schema, or verifies
// an exported audit bundle.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/mlp-platform/platform/libs/service"
	controlplane "github.com/mlp-platform/platform/services/control-plane"
	"github.com/mlp-platform/platform/services/control-plane/internal/audit/offline"
)

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	if len(args) > 0 && args[0] == "audit" {
		return offline.Run(args[1:], os.Stdin, os.Stdout, os.Stderr)
	}
	verb := "serve"
	if len(args) > 0 {
		verb = args[0]
	}
	if len(args) > 1 || (verb != "serve" && verb != "migrate") {
		fmt.Fprintf(os.Stderr, "usage: control-plane [serve|migrate]\n%s\n", offline.Usage)
		return 2
	}
	cfg, err := controlplane.LoadConfig(os.Environ())
	if err != nil {
		fmt.Fprintf(os.Stderr, "control-plane cannot start:\n%v\n", err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if verb == "migrate" {
		err = controlplane.Migrate(ctx, cfg)
	} else {
		err = controlplane.Run(ctx, cfg, service.NewLogger(os.Stderr, cfg.LogLevel))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "control-plane: %v\n", err)
		return 1
	}
	return 0
}
