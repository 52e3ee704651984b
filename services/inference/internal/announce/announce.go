// Package announce builds the service's events. It writes to the outbox those that belong to no other transaction:
// loading a model changes this process, not the database.
package announce

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/inference/internal/metrics"
)

// Tenant of facts that belong to no tenant; every tenant may read them.
const Tenant = "platform"

// Source names this service in the audit ledger.
const Source = "inference"

// System is the actor when no user made the request.
const System = "system:inference"

// Loaded is the data of deploy.model_loaded and, with a reason, deploy.load_failed.
type Loaded struct {
	Model   string `json:"model"`
	Alias   string `json:"alias"`
	Version string `json:"version"`
	Reason  string `json:"reason,omitempty"`
	Replica string `json:"replica"`
}

// Load is the event of a load or failed load.
func Load(l Loaded) outbox.Event {
	name := "model_loaded"
	if l.Reason != "" {
		name = "load_failed"
	}
	return outbox.Event{Tenant: Tenant, Namespace: "deploy", Name: name, SubjectID: l.Model, Payload: l, Actor: System}
}

// DriftStatus is the data of drift.status_changed.
type DriftStatus struct {
	Model    string `json:"model"`
	Alias    string `json:"alias"`
	Kind     string `json:"kind"`
	Status   string `json:"status"`
	Previous string `json:"previous"`
	// Overall is the worst measure's level, which alerts follow, and DecidedBy that measure; Status is that of
	// z_score alone.
	Overall         string   `json:"overall"`
	PreviousOverall string   `json:"previous_overall"`
	DecidedBy       string   `json:"decided_by,omitempty"`
	ZScore          *float64 `json:"z_score,omitempty"`
	N               int      `json:"n"`
}

// DriftSet is the data of drift.baseline_set and drift.reset.
type DriftSet struct {
	Model string `json:"model"`
	Alias string `json:"alias"`
	Kind  string `json:"kind"`
	N     int64  `json:"n"`
}

// Drift is an event of namespace drift.
func Drift(name, model, actor string, data any) outbox.Event {
	return outbox.Event{Tenant: Tenant, Namespace: "drift", Name: name, SubjectID: model, Payload: data, Actor: actor}
}

// TrafficChanged is the data of deploy.traffic_changed: percent by alias. None means that all requests without an
// alias get Production.
type TrafficChanged struct {
	Model    string         `json:"model"`
	Rules    map[string]int `json:"rules"`
	Previous map[string]int `json:"previous"`
}

// Traffic is the event of changed traffic rules.
func Traffic(model, actor string, rules, previous map[string]int) outbox.Event {
	return outbox.Event{
		Tenant: Tenant, Namespace: "deploy", Name: "traffic_changed", SubjectID: model, Actor: actor,
		Payload: TrafficChanged{Model: model, Rules: rules, Previous: previous},
	}
}

// Shadow is the event of a changed shadow rule: percent by alias, empty without one.
func Shadow(model, actor string, rules, previous map[string]int) outbox.Event {
	e := Traffic(model, actor, rules, previous)
	e.Name = "shadow_changed"
	return e
}

// Actor returns the sender of the request and the tenant of its effects; without credentials, the sender is any client
// of the loopback address.
func Actor(ctx context.Context) (name, tenant string) {
	if p, ok := auth.FromContext(ctx); ok {
		return p.Name, p.Tenant
	}
	return "anonymous", auth.LegacyTenant
}

// Audit is the fact of one act of this request's principal.
func Audit(ctx context.Context, action, target, outcome string, details map[string]any) outbox.Event {
	actor, tenant := Actor(ctx)
	return outbox.Audit(outbox.AuditFact{
		Tenant: tenant, Actor: actor, Action: action, Target: target, Outcome: outcome, Source: Source, Details: details,
		RequestID: service.RequestID(ctx),
	})
}

const (
	queued     = 1024 // events that may wait for the database
	together   = 100  // events of one transaction
	retryFirst = 200 * time.Millisecond
	retryMost  = 10 * time.Second
	lastTry    = 5 * time.Second
)

// Writer puts events into the outbox, later if the database is away.
type Writer struct {
	pool    *pgxpool.Pool
	metrics *metrics.Set
	log     *slog.Logger
	queue   chan outbox.Event
}

// NewWriter returns a writer, whose work is done by Run.
func NewWriter(pool *pgxpool.Pool, m *metrics.Set, log *slog.Logger) *Writer {
	return &Writer{pool: pool, metrics: m, log: log, queue: make(chan outbox.Event, queued)}
}

// Put queues an event. It never blocks; when the queue is full the event is dropped, counted and logged.
func (w *Writer) Put(e outbox.Event) {
	// The id is fixed now, so that a retry after a commit whose answer was lost is recognised.
	if e.ID == uuid.Nil {
		e.ID = uuid.Must(uuid.NewV7())
	}
	select {
	case w.queue <- e:
	default:
		w.metrics.EventsDropped.Inc()
		w.log.Error("event dropped: the database has been away too long", slog.String("event", e.Namespace+"."+e.Name), slog.String("subject", e.SubjectID))
	}
}

// Run inserts until ctx ends, then tries the queued events once more.
func (w *Writer) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return w.last(ctx)
		case e := <-w.queue:
			w.insert(ctx, w.more(e))
		}
	}
}

func (w *Writer) more(first outbox.Event) []outbox.Event {
	events := []outbox.Event{first}
	for len(events) < together {
		select {
		case e := <-w.queue:
			events = append(events, e)
		default:
			return events
		}
	}
	return events
}

// insert repeats until the database has taken the events or ctx ends; then they are tried by last.
func (w *Writer) insert(ctx context.Context, events []outbox.Event) {
	for delay := retryFirst; ; delay = min(2*delay, retryMost) {
		err := w.once(ctx, events)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			for _, e := range events {
				w.Put(e)
			}
			return
		}
		w.log.WarnContext(ctx, "events wait for the database", slog.Int("events", len(events)), slog.Any("err", err))
		t := time.NewTimer(delay)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
}

func (w *Writer) once(ctx context.Context, events []outbox.Event) error {
	ctx, cancel := context.WithTimeout(ctx, lastTry)
	defer cancel()
	err := postgres.InTx(ctx, w.pool, func(tx pgx.Tx) error { return Insert(ctx, tx, events...) })
	if postgres.IsUnique(err, "") {
		return nil // an earlier try was committed, only its answer was lost
	}
	return err
}

func (w *Writer) last(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTry)
	defer cancel()
	for {
		select {
		case e := <-w.queue:
			if err := w.once(ctx, w.more(e)); err != nil {
				w.log.ErrorContext(ctx, "events lost at the stop", slog.Int("events", 1+len(w.queue)), slog.Any("err", err))
				return nil
			}
		default:
			return nil
		}
	}
}
