// Command evidence-api serves the evidence read API as the environment tells. The
// command `svc control-tower` is the same server for people.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/mlp-platform/platform/libs/evidence/store"
	evidenceapi "github.com/mlp-platform/platform/services/evidence-api"
)

func main() { os.Exit(run()) }

// run gives the exit code: 0 after a drain, 2 if the server could not start or go on.
func run() int {
	cfg, err := evidenceapi.LoadConfig(os.Environ())
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		return 2
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	// The first signal drains, the second ends the drain.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	abort := make(chan struct{})
	cfg.Abort = abort
	go func() {
		<-signals
		stop()
		<-signals
		close(abort)
	}()
	if cfg.StorePath != "" {
		if err := store.Create(ctx, cfg.StorePath, store.WriterOptions{}); err != nil {
			log.Warn("the store could not be prepared; reads of it will fail", slog.Any("err", err))
		}
	}
	if err := evidenceapi.Run(ctx, cfg, log); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		return 2
	}
	return 0
}
