package app

import (
	"context"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"github.com/mlp-platform/platform/libs/coord"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/service/startup"
	"github.com/mlp-platform/platform/services/inference/internal/monitor"
)

const (
	// aliasMoved is the subject of the control plane's alias moves, for every tenant.
	aliasMoved = "platform.*.deploy.alias_changed"
	// driftLease is held by the replica that evaluates drift.
	driftLease = "inference:drift"
)

// connectEvents takes moved aliases in, and lets one replica watch drift. None of it keeps
// predictions from being answered.
func connectEvents(base *startup.Foundation, watches []*monitor.Monitor, changed chan<- string, log *slog.Logger) error {
	srv := base.Server
	srv.CheckOptional("coordinator", warnIf(base.Coordinator.Ping))
	srv.Go("drift", func(ctx context.Context) error {
		return coord.Lead(ctx, base.Coordinator, driftLease, coord.LeadTime, log, func(ctx context.Context) error {
			group, ctx := errgroup.WithContext(ctx)
			for _, w := range watches {
				group.Go(func() error { return w.Lead(ctx) })
			}
			return group.Wait()
		})
	})
	broker, err := base.ConnectNATS()
	if err != nil {
		return err
	}
	if broker == nil {
		log.Warn("events are only logged and aliases are followed by poll alone: EVENT_PUBLISHER is not nats")
		return nil
	}
	srv.CheckLocal("event_publisher", func() service.Check {
		if !broker.IsConnected() {
			return service.Check{Status: service.Warn, Detail: "no connection to NATS; events wait, aliases are followed by poll"}
		}
		return service.Check{Status: service.OK}
	})
	srv.Go("alias events", func(ctx context.Context) error {
		return outbox.Subscribe(ctx, broker, []string{aliasMoved}, func(ctx context.Context, e outbox.Envelope) { follow(ctx, e, changed, log) })
	})
	return nil
}

func warnIf(ping func(context.Context) error) func(context.Context) service.Check {
	return func(ctx context.Context) service.Check {
		if err := ping(ctx); err != nil {
			return service.Check{Status: service.Warn, Detail: err.Error()}
		}
		return service.Check{Status: service.OK}
	}
}

// follow passes on which model's aliases have moved. When many wait already, the poll will see this one.
func follow(ctx context.Context, e outbox.Envelope, changed chan<- string, log *slog.Logger) {
	var data struct {
		Model string `json:"model"`
	}
	if err := e.Decode(&data); err != nil || data.Model == "" {
		log.WarnContext(ctx, "alias event not understood", slog.String("event_id", e.ID.String()), slog.Any("err", err))
		return
	}
	select {
	case changed <- data.Model:
	default:
	}
}
