package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/service/listener"
	"github.com/mlp-platform/platform/libs/service/otlp"
	"github.com/mlp-platform/platform/services/standalone/internal/access"
	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord"
	"github.com/mlp-platform/platform/services/standalone/internal/trackerd"
	"github.com/mlp-platform/platform/services/trainer"
)

// startStandIns starts the tracker and orchestrator stand-ins, and returns the trainer that carries out the
// orchestrator's runs. Both end with ctx, but the tracker serves until every run has ended, since a run
// reports its end there.
func (p *platform) startStandIns(ctx context.Context, g *errgroup.Group, ls *listeners) (_ *trainer.Trainer, err error) {
	var undo []func()
	defer func() {
		if err != nil {
			for _, fn := range slices.Backward(undo) {
				fn()
			}
		}
	}()
	trackerPool, err := postgres.Open(ctx, p.databaseURL, trackerd.Schema)
	if err != nil {
		return nil, fmt.Errorf("tracker: %w", err)
	}
	undo = append(undo, trackerPool.Close)
	tracker, err := trackerd.New(ctx, trackerPool, p.path("artifacts"), p.log)
	if err != nil {
		return nil, fmt.Errorf("tracker: %w", err)
	}
	closeTracker := func() {
		if err := tracker.Close(); err != nil {
			p.log.Warn("tracker did not close", slog.Any("err", err))
		}
	}
	undo = append(undo, closeTracker)
	orchestratorPool, err := postgres.Open(ctx, p.databaseURL, orchestratord.Schema)
	if err != nil {
		return nil, fmt.Errorf("orchestrator: %w", err)
	}
	undo = append(undo, orchestratorPool.Close)
	cfg, err := p.trainerConfig()
	if err != nil {
		return nil, fmt.Errorf("trainer: %w", err)
	}
	tr, err := trainer.New(cfg, p.log)
	if err != nil {
		return nil, fmt.Errorf("trainer: %w", err)
	}
	tracing, endTracing, err := otlp.Open(ctx, cfg.Tracing, "trainer", p.log)
	if err != nil {
		return nil, fmt.Errorf("trainer: %w", err)
	}
	undo = append(undo, endTracing)
	orch, err := orchestratord.New(ctx, orchestratorPool, &runner{trainer: tr, progress: &p.progress, tracing: tracing}, p.log, orchestratord.Concurrency(p.cfg.Concurrency))
	if err != nil {
		return nil, fmt.Errorf("orchestrator: %w", err)
	}
	if err := orch.EnsureDeployment(ctx, dispatchDeployment); err != nil {
		return nil, fmt.Errorf("orchestrator: %w", err)
	}
	trackerCtx, endTracker := context.WithCancel(context.WithoutCancel(ctx))
	p.serveHTTP(trackerCtx, g, ls.tracker, access.Require(p.creds.TrackerToken, "/health", tracker.Handler()), func() {
		closeTracker()
		trackerPool.Close()
	})
	served := p.serveHTTP(ctx, g, ls.orchestrator, access.Require(p.creds.OrchestratorKey, "/api/health", orch.Handler()), func() {})
	g.Go(func() error {
		defer func() { <-served; orchestratorPool.Close() }()
		defer endTracker()
		defer endTracing()
		return orch.Run(ctx)
	})
	return tr, nil
}

// serveHTTP serves until ctx ends, then calls after. The channel closes when all that is done.
func (p *platform) serveHTTP(ctx context.Context, g *errgroup.Group, l net.Listener, h http.Handler, after func()) <-chan struct{} {
	srv := listener.Server(h, p.log, slog.LevelWarn)
	done := make(chan struct{})
	g.Go(func() error {
		defer close(done)
		defer after()
		failed := make(chan error, 1)
		go func() { failed <- srv.Serve(listener.New(l, 0)) }()
		select {
		case err := <-failed:
			return fmt.Errorf("serve %s: %w", l.Addr(), err)
		case <-ctx.Done():
		}
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := srv.Shutdown(stop); err != nil {
			_ = srv.Close()
		}
		<-failed
		return nil
	})
	return done
}
