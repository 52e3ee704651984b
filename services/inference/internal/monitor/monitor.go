// Package monitor watches the drift of predictions and of inputs: it keeps baselines, compares recent requests with
// them, and reports changes of the result.
package monitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/services/inference/internal/announce"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/drift"
	"github.com/mlp-platform/platform/services/inference/internal/metrics"
	"github.com/mlp-platform/platform/services/inference/internal/store"
)

const (
	// DefaultWindow is how many of the newest requests are compared.
	DefaultWindow = 100
	// recentShown is how many values a status shows.
	recentShown = 24
	// Every is the leader's default evaluation interval, and the limit of one evaluation.
	Every = 30 * time.Second
)

// Monitor watches one kind of drift. It is safe for concurrent use.
type Monitor struct {
	pool    *pgxpool.Pool
	queries *store.Queries
	catalog *catalog.Catalog
	metrics *metrics.Set
	log     *slog.Logger
	every   time.Duration // between evaluations by the leader
	subject subject
	memo    memo
	reads   chan struct{} // one each that is being computed, see enter
	last    place         // the last that the leader evaluated; Lead's goroutine alone uses it
}

// subject is the kind of data watched at each place.
type subject interface {
	// kind is "prediction" or "input", in events and in the store.
	kind() string
	// baselines are those there are.
	baselines(ctx context.Context) (map[place]*baseline, error)
	// compare compares the newest requests of places with their baselines, and passes each on in the order of the
	// places until that fails or ctx ends.
	compare(ctx context.Context, places []place, baselines map[place]*baseline, window int, mode drift.Mode, each func(status) error) error
	// collect makes a baseline of the newest requests of a place.
	collect(ctx context.Context, q *store.Queries, p place) (store.SetBaselineParams, error)
	// forget excludes the requests so far from now on, and returns their number.
	forget(ctx context.Context, q *store.Queries, p place) (int64, error)
}

// New returns a monitor of predictions whose leader evaluates at that interval.
func New(pool *pgxpool.Pool, c *catalog.Catalog, m *metrics.Set, log *slog.Logger, every time.Duration) *Monitor {
	q := store.New(pool)
	return &Monitor{pool: pool, queries: q, catalog: c, metrics: m, log: log, every: every, subject: predictions{q}, reads: make(chan struct{}, maxReads)}
}

// NewInputs returns a monitor of inputs whose leader evaluates at that interval.
func NewInputs(pool *pgxpool.Pool, c *catalog.Catalog, m *metrics.Set, log *slog.Logger, every time.Duration) *Monitor {
	w := New(pool, c, m, log, every)
	w.subject = inputs{w.queries}
	return w
}

// place is one model and alias.
type place struct{ model, alias string }

func (p place) compare(o place) int {
	return strings.Compare(p.model+"\x00"+p.alias, o.model+"\x00"+o.alias)
}

// baseline is the reference for a place's requests.
type baseline struct {
	n      int
	setAt  time.Time
	sample drift.Sample // of predictions; the values of inputs are read when they are needed
}

// status is a report with its context.
type status struct {
	place
	drift.Report
	inputs    *drift.InputReport // of inputs alone
	version   string             // of the newest snapshot, else of the loaded copy
	snapshots int
	baseline  *baseline  // nil without one
	recent    []any      // oldest first
	newest    *time.Time // of the snapshots; nil without one
}

// places are all models and aliases that are loaded, have predictions or a baseline, in order. Bare
// versions are not watched: they have no alias whose behaviour could change.
func (m *Monitor) places(ctx context.Context, baselines map[place]*baseline) ([]place, error) {
	keys, err := m.queries.SnapshotKeys(ctx)
	if err != nil {
		return nil, err
	}
	set := map[place]bool{}
	for _, k := range keys {
		set[place{k.Model, k.Alias}] = k.Alias != ""
	}
	for p := range baselines {
		set[p] = true
	}
	for _, s := range m.catalog.Slots() {
		set[place{s.Name, s.Alias}] = true
	}
	var out []place
	for p, watched := range set {
		if watched {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, place.compare)
	return out, nil
}

// Lead evaluates every place each interval until ctx ends; run it in one replica at a time.
func (m *Monitor) Lead(ctx context.Context) error {
	t := time.NewTicker(m.every)
	defer t.Stop()
	for {
		if err := m.Evaluate(ctx); err != nil && ctx.Err() == nil {
			m.metrics.DriftEvaluations.WithLabelValues("failed").Inc()
			m.log.WarnContext(ctx, "drift not evaluated", slog.Any("err", err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// Evaluate reports each change of a place's level since the last evaluation, once.
func (m *Monitor) Evaluate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, Every)
	defer cancel()
	baselines, err := m.subject.baselines(ctx)
	if err != nil {
		return err
	}
	places, err := m.places(ctx, baselines)
	if err != nil {
		return err
	}
	states, err := m.queries.DriftStates(ctx, m.subject.kind())
	if err != nil {
		return err
	}
	told := make(map[place]store.DriftStateRow, len(states))
	for _, s := range states {
		told[place{s.Model, s.Alias}] = store.DriftStateRow{Status: s.Status, Overall: s.Overall}
	}
	var faults []error
	err = m.evaluate(ctx, m.rotate(places), baselines, DefaultWindow, drift.Spread, func(st status) error {
		m.last = st.place
		if told[st.place] == st.state() { // tell checks again, in its transaction
			return nil
		}
		if err := m.tell(ctx, st); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", st.target(), err))
		}
		return nil
	})
	if err := errors.Join(append(faults, err)...); err != nil {
		return err
	}
	m.metrics.DriftEvaluations.WithLabelValues("ok").Inc()
	return nil
}

// rotate begins with the place after the one that the last evaluation ended with: where one takes longer than it may,
// those at the end would otherwise never be reached.
func (m *Monitor) rotate(places []place) []place {
	i, _ := slices.BinarySearchFunc(places, m.last, func(p, last place) int { return cmp.Or(p.compare(last), -1) })
	return slices.Concat(places[i:], places[:i])
}

// state is the status's level as it is stored.
func (st *status) state() store.DriftStateRow {
	return store.DriftStateRow{Status: string(st.Status), Overall: string(st.Overall)}
}

// tell stores a changed level and its event together. A place without a stored level starts from NO_BASELINE, which is
// not worth an event.
func (m *Monitor) tell(ctx context.Context, st status) error {
	return postgres.InTx(ctx, m.pool, func(tx pgx.Tx) error {
		q := m.queries.WithTx(tx)
		previous, err := q.DriftState(ctx, store.DriftStateParams{Model: st.model, Alias: st.alias, Kind: m.subject.kind()})
		if errors.Is(err, pgx.ErrNoRows) {
			previous, err = store.DriftStateRow{Status: string(drift.NoBaseline), Overall: string(drift.NoBaseline)}, nil
		}
		if err != nil || previous == st.state() {
			return err
		}
		if err := q.SetDriftState(ctx, store.SetDriftStateParams{
			Model: st.model, Alias: st.alias, Kind: m.subject.kind(), Status: string(st.Status), Overall: string(st.Overall), ChangedAt: time.Now().UTC(),
		}); err != nil {
			return err
		}
		m.log.InfoContext(ctx, "drift status changed", slog.String("model", st.model), slog.String("alias", st.alias), slog.String("kind", m.subject.kind()),
			slog.String("status", string(st.Status)), slog.String("previous", previous.Status),
			slog.String("overall", string(st.Overall)), slog.String("previous_overall", previous.Overall), slog.String("decided_by", st.DecidedBy))
		return announce.Insert(ctx, tx, announce.Drift("status_changed", st.model, announce.System, announce.DriftStatus{
			Model: st.model, Alias: st.alias, Kind: m.subject.kind(), Status: string(st.Status), Previous: previous.Status,
			Overall: string(st.Overall), PreviousOverall: previous.Overall, DecidedBy: st.DecidedBy, ZScore: st.Z, N: st.snapshots,
		}))
	})
}
