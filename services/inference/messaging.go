package inference

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"

	"github.com/mlp-platform/platform/libs/coord"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/inference/internal/monitor"
	"github.com/mlp-platform/platform/services/inference/internal/store"
)

const (
	// aliasMoved is where the control plane tells of moved aliases, whatever the tenant.
	aliasMoved = "platform.*.deploy.alias_changed"
	// driftLease is held by the replica that evaluates drift; it outlives a restart of the store.
	driftLease = "inference:drift"
	leaseTime  = 3 * monitor.Every / 2
)

// messaging connects the service to broker and coordinator: events out, moved aliases in, one replica that
// watches drift. None of it keeps predictions from being answered.
func messaging(ctx context.Context, srv *service.Server, cfg Config, pool *pgxpool.Pool, c coord.Coordinator, watch *monitor.Monitor, changed chan<- string, log *slog.Logger) error {
	srv.Check("coordinator", warnIf(c.Ping))
	srv.Go("drift", func(ctx context.Context) error { return coord.Lead(ctx, c, driftLease, leaseTime, log, watch.Lead) })
	if cfg.EventPublisher != "nats" {
		log.WarnContext(ctx, "events are only logged and aliases are followed by poll alone: EVENT_PUBLISHER is not nats")
		relay := outbox.NewRelay(outbox.RelayConfig{Service: name, Schema: store.Schema, Pool: pool, LogOnly: true}, log, srv.Registry)
		if cfg.EventRelayEnabled {
			srv.Go("event log", relay.Run)
		}
		return nil
	}
	nc, err := nats.Connect(cfg.NATSURL.Reveal(), nats.Name(name), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1),
		nats.ReconnectWait(500*time.Millisecond), nats.ReconnectJitter(250*time.Millisecond, 250*time.Millisecond), nats.Timeout(5*time.Second))
	if err != nil {
		return fmt.Errorf("NATS: %w", err)
	}
	srv.OnClose(nc.Close)
	srv.Check("event_publisher", func(context.Context) service.Check {
		if !nc.IsConnected() {
			return service.Check{Status: service.Warn, Detail: "no connection to NATS; events wait, aliases are followed by poll"}
		}
		return service.Check{Status: service.OK}
	})
	srv.Go("alias events", func(ctx context.Context) error {
		return outbox.Subscribe(ctx, nc, []string{aliasMoved}, func(e outbox.Envelope) { follow(ctx, e, changed, log) })
	})
	// Made also where another replica does its work: its metrics tell of the rows.
	relay := outbox.NewRelay(outbox.RelayConfig{Service: name, Schema: store.Schema, Pool: pool, Conn: nc, MaxAttempts: cfg.EventMaxAttempts,
		Stream: outbox.StreamConfig{Replicas: cfg.NATSReplicas, MaxBytes: cfg.NATSMaxBytes}}, log, srv.Registry)
	if cfg.EventRelayEnabled {
		srv.Go("event relay", relay.Run)
	}
	return nil
}

func coordinator(cfg Config, pool *pgxpool.Pool) (coord.Coordinator, error) {
	if cfg.Coordinator == "redis" {
		return coord.NewRedis(cfg.RedisURL.Reveal(), "platform:")
	}
	return coord.NewPostgres(pool), nil
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
