// Command assistant serves the cluster assistant, or migrates its schema.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant"
)

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	verb := "serve"
	if len(args) > 0 {
		verb = args[0]
	}
	if len(args) > 1 || (verb != "serve" && verb != "migrate") {
		fmt.Fprintln(os.Stderr, "usage: assistant [serve|migrate]")
		return 2
	}
	cfg, err := assistant.LoadConfig(os.Environ())
	if err != nil {
		fmt.Fprintf(os.Stderr, "assistant cannot start:\n%v\n", err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if verb == "migrate" {
		err = assistant.Migrate(ctx, cfg)
	} else {
		log := service.NewLogger(os.Stderr, cfg.LogLevel)
		klog.SetSlogLogger(log) // client-go's own lines become the log's
		err = assistant.Run(ctx, cfg, log)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "assistant: %v\n", err)
		return 1
	}
	return 0
}
