package app

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/services/control-plane/internal/alert"
	"github.com/mlp-platform/platform/services/control-plane/internal/autoretrain"
	"github.com/mlp-platform/platform/services/control-plane/internal/drift"
	"github.com/mlp-platform/platform/services/control-plane/internal/metrics"
	"github.com/mlp-platform/platform/services/control-plane/internal/promotion"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// driftParts act on what goes wrong by itself.
type driftParts struct {
	retrains autoretrain.API
	alerts   alert.API

	reconciler *alert.Reconciler
	forget     func()                 // what the metrics say of drift
	consumer   *outbox.ConsumerConfig // nil where events are only logged
	log        *slog.Logger
}

// wireAlerts makes the reconciler of alerts, and the reader of drift that it and
// the automatic retraining share.
func (p *parts) wireAlerts(db *store.Store, counted *metrics.Metrics, hc *http.Client, gate *promotion.Gate) (*drift.Reader, error) {
	reader, err := drift.NewReader(p.cfg.ServingURL, p.cfg.ServingToken.Reveal(), hc)
	if err != nil {
		return nil, err
	}
	sources := map[string]alert.Source{promotion.DeploySource: gate, "budget": p.budgets, "eval": p.governance.Evals}
	if p.cfg.ServingURL != "" {
		sources[drift.Source] = drift.Watch{Reader: reader, Observe: func(readings []drift.Reading) {
			counted.ForgetDrift()
			for _, r := range readings {
				counted.Drift(metrics.Drifted{Model: r.Model, Alias: r.Alias, Z: r.Z, Overall: r.Overall, Critical: r.Status == drift.Critical})
			}
		}}
	}
	p.drift = driftParts{
		alerts: alert.API{Store: db}, log: p.log, forget: counted.ForgetDrift,
		reconciler: alert.NewReconciler(db, sources, time.Duration(p.cfg.AlertSeconds)*time.Second, p.log),
	}
	return reader, nil
}

// wireDrift makes what retrains by drift, and the consumer of its events.
func (p *parts) wireDrift(db *store.Store, pool *pgxpool.Pool, nc *nats.Conn, reader *drift.Reader) error {
	s, err := autoretrain.New(autoretrain.Parts{
		Store: db, Drift: reader, Registry: p.registry, Retrain: p.retrain, Approvals: p.approvals.Service,
		ForceApproval: p.cfg.AutoRetrainGate == autoretrain.Approval, Every: time.Duration(p.cfg.AutoRetrainSeconds) * time.Second,
		Log: p.log, Now: time.Now,
	})
	if err != nil {
		return err
	}
	p.drift.retrains = autoretrain.API{Service: s}
	if nc != nil {
		p.drift.consumer = &outbox.ConsumerConfig{
			Conn: nc, Pool: pool, Name: DriftConsumer, Subjects: drift.Subjects,
			Stream: outbox.StreamConfig{Replicas: p.cfg.NATSReplicas, MaxBytes: p.cfg.NATSMaxBytes},
			Handle: func(ctx context.Context, tx pgx.Tx, e outbox.Envelope) error {
				return drift.Handle(ctx, store.In(tx), e, time.Now())
			},
		}
	}
	return nil
}

// DriftConsumer is the durable that reads changed levels of drift.
const DriftConsumer = "control-plane-drift"

// lead is the work of one replica at a time.
func (d driftParts) lead(ctx context.Context) error {
	defer d.forget() // another replica tells of drift now
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.retrains.Service.Run(ctx) })
	g.Go(func() error { return d.reconciler.Run(ctx) })
	if d.consumer != nil {
		g.Go(func() error { return outbox.Consume(ctx, *d.consumer, d.log) })
	}
	return g.Wait()
}
