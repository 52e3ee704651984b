// Package monitor watches the drift of predictions: it keeps baselines, answers how recent predictions
// compare with them, and tells when that changes.
package monitor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
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
	// kind of what is watched here; input drift has its own.
	kind = "prediction"
	// baselineRows is how many predictions a baseline keeps.
	baselineRows = 500
	// DefaultWindow is how many of the newest predictions are compared.
	DefaultWindow = 100
	// recentShown is how many predictions a status shows.
	recentShown = 24
	// Every is the leader's default evaluation interval, and the limit of one evaluation.
	Every = 30 * time.Second
)

// Monitor is safe for concurrent use.
type Monitor struct {
	pool    *pgxpool.Pool
	queries *store.Queries
	catalog *catalog.Catalog
	metrics *metrics.Set
	log     *slog.Logger
	every   time.Duration // between evaluations by the leader
	memo    memo
}

// New returns a monitor whose leader evaluates at that interval.
func New(pool *pgxpool.Pool, c *catalog.Catalog, m *metrics.Set, log *slog.Logger, every time.Duration) *Monitor {
	return &Monitor{pool: pool, queries: store.New(pool), catalog: c, metrics: m, log: log, every: every}
}

// place is one model and alias.
type place struct{ model, alias string }

func (p place) compare(o place) int {
	return strings.Compare(p.model+"\x00"+p.alias, o.model+"\x00"+o.alias)
}

// status is a report with what surrounds it.
type status struct {
	place
	drift.Report
	version   string // of the newest snapshot, else of the loaded copy
	snapshots int
	baseline  *store.BaselinesRow // nil without one
	recent    []any               // oldest first
	newest    *time.Time          // of the snapshots; nil without one
}

// places are all models and aliases that are loaded, have predictions or a baseline, in order. Bare
// versions are not watched: they have no alias whose behaviour could change.
func (m *Monitor) places(ctx context.Context, baselines map[place]*store.BaselinesRow) ([]place, error) {
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

func (m *Monitor) baselines(ctx context.Context) (map[place]*store.BaselinesRow, error) {
	rows, err := m.queries.Baselines(ctx)
	if err != nil {
		return nil, err
	}
	out := make(map[place]*store.BaselinesRow, len(rows))
	for i := range rows {
		out[place{rows[i].Model, rows[i].Alias}] = &rows[i]
	}
	return out, nil
}

// compare compares a place's newest predictions, newest first, with its baseline.
func (m *Monitor) compare(p place, rows []store.RecentSnapshotsRow, b *store.BaselinesRow, mode drift.Mode) status {
	st := status{place: p, snapshots: len(rows), baseline: b}
	if len(rows) > 0 {
		newest := rows[0].Ts.UTC()
		st.version, st.newest = rows[0].Version, &newest
	} else if e := m.catalog.Table().Model(p.model); e != nil && e.Aliases[p.alias] != nil {
		st.version = e.Aliases[p.alias].Version
	}
	base := drift.Sample{}
	if b != nil {
		base = drift.Sample{Values: b.Predictions, Labels: b.Labels}
	}
	st.Report = drift.Evaluate(splitSample(rows), base, mode)
	for _, r := range slices.Backward(rows[:min(len(rows), recentShown)]) {
		st.recent = append(st.recent, recentValue(r))
	}
	return st
}

// splitSample splits predictions into labels or numbers by what the newest is: a model may have changed from
// one to the other, and the two do not compare.
func splitSample(rows []store.RecentSnapshotsRow) drift.Sample {
	var s drift.Sample
	for _, r := range rows {
		switch {
		case (r.Label != nil) != (rows[0].Label != nil):
		case r.Label != nil:
			s.Labels = append(s.Labels, *r.Label)
		case r.Prediction != nil:
			s.Values = append(s.Values, *r.Prediction)
		}
	}
	return s
}

func recentValue(r store.RecentSnapshotsRow) any {
	switch {
	case r.Prediction != nil:
		return *r.Prediction
	case r.Label != nil:
		return *r.Label
	}
	return nil
}

// errNotEnough carries how many predictions there are.
type errNotEnough struct{ have int }

func (e errNotEnough) Error() string {
	return fmt.Sprintf("%d predictions, a baseline needs %d", e.have, drift.MinSnapshots)
}

// errUnusable is the reason why predictions cannot become a baseline.
var errUnusable = errors.New("a prediction is not finite")

// setBaseline keeps the newest predictions, with event and audit fact in the same transaction.
func (m *Monitor) setBaseline(ctx context.Context, p place) (store.SetBaselineParams, int, error) {
	var set store.SetBaselineParams
	n := 0
	err := postgres.InTx(ctx, m.pool, func(tx pgx.Tx) error {
		q := m.queries.WithTx(tx)
		rows, err := q.RecentSnapshots(ctx, store.RecentSnapshotsParams{Model: p.model, Alias: p.alias, Newest: baselineRows})
		if err != nil {
			return err
		}
		s := splitSample(rows)
		if n = s.Len(); n < drift.MinSnapshots {
			return errNotEnough{n}
		}
		if drift.Evaluate(s, drift.Sample{}, drift.Spread).Status == drift.Corrupt {
			return errUnusable
		}
		actor, _ := announce.Actor(ctx)
		set = store.SetBaselineParams{
			Model: p.model, Alias: p.alias, Version: rows[0].Version, Predictions: s.Values, Labels: s.Labels, SetAt: time.Now().UTC(), SetBy: actor,
		}
		if set.Predictions == nil {
			set.Predictions = []float64{}
		}
		set.Mean, set.Std = s.Moments()
		old, err := q.OldBaseline(ctx, store.OldBaselineParams{Model: p.model, Alias: p.alias})
		details := map[string]any{"new": auditMoments(n, set.Mean, set.Std), "old": nil}
		switch {
		case err == nil:
			details["old"] = auditMoments(int(max(old.NNumbers, old.NLabels)), old.Mean, old.Std)
		case !errors.Is(err, pgx.ErrNoRows):
			return err
		}
		if err := q.SetBaseline(ctx, set); err != nil {
			return err
		}
		return announce.Insert(ctx, tx,
			announce.Drift("baseline_set", p.model, actor, announce.DriftSet{Model: p.model, Alias: p.alias, Kind: kind, N: int64(n)}),
			announce.Audit(ctx, "drift.baseline_set", p.target(), "ok", details))
	})
	return set, n, err
}

func (p place) target() string { return "model:" + p.model + "@" + p.alias }

// auditMoments is for the audit ledger, which hashes canonical JSON: numbers as text say the same everywhere.
func auditMoments(n int, mean, std *float64) map[string]any {
	text := func(v *float64) any {
		if v == nil {
			return nil
		}
		return strconv.FormatFloat(*v, 'g', -1, 64)
	}
	return map[string]any{"n": n, "mean": text(mean), "std": text(std)}
}

// reset forgets the predictions of a place.
func (m *Monitor) reset(ctx context.Context, p place) (deleted int64, err error) {
	err = postgres.InTx(ctx, m.pool, func(tx pgx.Tx) error {
		if deleted, err = m.queries.WithTx(tx).DeleteSnapshots(ctx, store.DeleteSnapshotsParams{Model: p.model, Alias: p.alias}); err != nil {
			return err
		}
		actor, _ := announce.Actor(ctx)
		return announce.Insert(ctx, tx,
			announce.Drift("reset", p.model, actor, announce.DriftSet{Model: p.model, Alias: p.alias, Kind: kind, N: deleted}),
			announce.Audit(ctx, "drift.reset", p.target(), "ok", map[string]any{"deleted": deleted}))
	})
	return deleted, err
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
	baselines, err := m.baselines(ctx)
	if err != nil {
		return err
	}
	places, err := m.places(ctx, baselines)
	if err != nil {
		return err
	}
	states, err := m.queries.DriftStates(ctx)
	if err != nil {
		return err
	}
	told := make(map[place]store.DriftStateRow, len(states))
	for _, s := range states {
		told[place{s.Model, s.Alias}] = store.DriftStateRow{Status: s.Status, Overall: s.Overall}
	}
	var faults []error
	err = m.evaluate(ctx, places, baselines, DefaultWindow, drift.Spread, func(st status) error {
		if told[st.place] == st.state() { // tell looks again, in its transaction
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

// state is the status's level as it is stored.
func (st *status) state() store.DriftStateRow {
	return store.DriftStateRow{Status: string(st.Status), Overall: string(st.Overall)}
}

// tell stores a changed level and its event together. A place that was never told starts from
// NO_BASELINE, which is not worth an event.
func (m *Monitor) tell(ctx context.Context, st status) error {
	return postgres.InTx(ctx, m.pool, func(tx pgx.Tx) error {
		q := m.queries.WithTx(tx)
		previous, err := q.DriftState(ctx, store.DriftStateParams{Model: st.model, Alias: st.alias})
		if errors.Is(err, pgx.ErrNoRows) {
			previous, err = store.DriftStateRow{Status: string(drift.NoBaseline), Overall: string(drift.NoBaseline)}, nil
		}
		if err != nil || previous == st.state() {
			return err
		}
		if err := q.SetDriftState(ctx, store.SetDriftStateParams{
			Model: st.model, Alias: st.alias, Status: string(st.Status), Overall: string(st.Overall), ChangedAt: time.Now().UTC(),
		}); err != nil {
			return err
		}
		m.log.InfoContext(ctx, "drift status changed", slog.String("model", st.model), slog.String("alias", st.alias),
			slog.String("status", string(st.Status)), slog.String("previous", previous.Status),
			slog.String("overall", string(st.Overall)), slog.String("previous_overall", previous.Overall), slog.String("decided_by", st.DecidedBy))
		return announce.Insert(ctx, tx, announce.Drift("status_changed", st.model, announce.System, announce.DriftStatus{
			Model: st.model, Alias: st.alias, Kind: kind, Status: string(st.Status), Previous: previous.Status,
			Overall: string(st.Overall), PreviousOverall: previous.Overall, DecidedBy: st.DecidedBy, ZScore: st.Z, N: st.snapshots,
		}))
	})
}
