package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/services/control-plane/internal/alert"
	"github.com/mlp-platform/platform/services/control-plane/internal/autoretrain"
	"github.com/mlp-platform/platform/services/control-plane/internal/drift"
	"github.com/mlp-platform/platform/services/control-plane/internal/guarded"
	"github.com/mlp-platform/platform/services/control-plane/internal/metrics"
	"github.com/mlp-platform/platform/services/control-plane/internal/promotion"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// driftParts hold retraining on drift and alerts.
type driftParts struct {
	retrains autoretrain.API
	alerts   alert.API

	reader     *drift.Reader
	reconciler *alert.Reconciler
	forget     func()                 // clears the drift gauges
	consumer   *outbox.ConsumerConfig // nil where events are only logged
	log        *slog.Logger
}

// connectAlerts builds the alert reconciler, and the drift reader that it shares with automatic retraining.
func (p *parts) connectAlerts() error {
	reader, err := drift.NewReader(p.cfg.ServingURL, p.cfg.ServingToken.Reveal(), p.http)
	if err != nil {
		return err
	}
	sources := map[string]alert.Source{promotion.DeploySource: p.gate, "budget": p.budgets, "eval": p.governance.Evals}
	if p.cfg.ServingURL != "" {
		sources[drift.Source] = drift.Watch{Reader: reader, Observe: observeDrift(p.metrics)}
	}
	p.drift = driftParts{
		alerts: alert.API{Store: p.store}, log: p.log, forget: p.metrics.ForgetDrift, reader: reader,
		reconciler: alert.NewReconciler(p.store, sources, time.Duration(p.cfg.AlertSeconds)*time.Second, p.log),
	}
	return nil
}

// observeDrift sets the drift gauges to the newest readings.
func observeDrift(m *metrics.Metrics) func([]drift.Reading) {
	return func(readings []drift.Reading) {
		m.ForgetDrift()
		for _, r := range readings {
			m.Drift(metrics.Drifted{Model: r.Model, Alias: r.Alias, Z: r.Z, Overall: r.Overall, Critical: r.Status == drift.Critical})
		}
	}
}

// connectAutoRetrain builds retraining on drift and the consumer of drift events.
func (p *parts) connectAutoRetrain() (err error) {
	if p.drift.retrains.Service, err = autoretrain.New(autoretrain.Parts{
		Store: p.store, Drift: p.drift.reader, Registry: p.registry, Retrain: p.retrain, Approvals: p.approvals.Service,
		Guard:         p.guarded,
		ForceApproval: func() bool { return p.guarded.Text(guarded.DriftGate, autoretrain.Approval) == autoretrain.Approval }, Every: time.Duration(p.cfg.AutoRetrainSeconds) * time.Second,
		Log: p.log, Now: time.Now,
	}); err != nil {
		return err
	}
	if p.nats != nil {
		p.drift.consumer = &outbox.ConsumerConfig{
			Conn: p.nats, Pool: p.pool, Name: DriftConsumer, Subjects: drift.Subjects, Stream: p.cfg.eventStream(),
			Handle: func(ctx context.Context, tx pgx.Tx, e outbox.Envelope) error {
				return drift.Handle(ctx, store.In(tx), e, time.Now())
			},
		}
	}
	return nil
}

// DriftConsumer is the durable consumer of changed drift levels.
const DriftConsumer = "control-plane-drift"

// lead runs the work that only one replica does at a time.
func (d driftParts) lead(ctx context.Context) error {
	defer d.forget() // another replica reports drift now
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.retrains.Service.Run(ctx) })
	g.Go(func() error { return d.reconciler.Run(ctx) })
	if d.consumer != nil {
		g.Go(func() error { return outbox.Consume(ctx, *d.consumer, d.log) })
	}
	return g.Wait()
}
