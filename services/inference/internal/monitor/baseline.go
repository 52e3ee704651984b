package monitor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/services/inference/internal/announce"
	"github.com/mlp-platform/platform/services/inference/internal/drift"
	"github.com/mlp-platform/platform/services/inference/internal/store"
)

// errNotEnough carries how many requests there are.
type errNotEnough struct{ have int }

func (e errNotEnough) Error() string {
	return fmt.Sprintf("%d predictions, a baseline needs %d", e.have, drift.MinSnapshots)
}

// errUnusable is the reason why requests cannot become a baseline.
var errUnusable = errors.New("a value is not finite")

// setBaseline keeps the newest requests, with event and audit fact in the same transaction.
func (m *Monitor) setBaseline(ctx context.Context, p place) (store.SetBaselineParams, int, error) {
	var set store.SetBaselineParams
	n := 0
	err := postgres.InTx(ctx, m.pool, func(tx pgx.Tx) (err error) {
		q := m.queries.WithTx(tx)
		if set, err = m.subject.collect(ctx, q, p); err != nil {
			return err
		}
		actor, _ := announce.Actor(ctx)
		n = max(len(set.Predictions), len(set.Labels))
		set.Model, set.Alias, set.Kind, set.SetAt, set.SetBy = p.model, p.alias, m.subject.kind(), time.Now().UTC(), actor
		old, err := q.OldBaseline(ctx, store.OldBaselineParams{Model: p.model, Alias: p.alias, Kind: set.Kind})
		details := m.details(auditMoments(n, set.Mean, set.Std))
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
			announce.Drift("baseline_set", p.model, actor, announce.DriftSet{Model: p.model, Alias: p.alias, Kind: set.Kind, N: int64(n)}),
			announce.Audit(ctx, "drift.baseline_set", p.target(), "ok", details))
	})
	return set, n, err
}

func (p place) target() string { return "model:" + p.model + "@" + p.alias }

// details are those of an audit fact about a baseline.
func (m *Monitor) details(set map[string]any) map[string]any {
	out := map[string]any{"new": set, "old": nil}
	if kind := m.subject.kind(); kind != kindPrediction {
		out["kind"] = kind
	}
	return out
}

// auditMoments formats the moments for the audit ledger, which hashes canonical JSON: numbers as text are the same
// everywhere.
func auditMoments(n int, mean, std *float64) map[string]any {
	text := func(v *float64) any {
		if v == nil {
			return nil
		}
		return strconv.FormatFloat(*v, 'g', -1, 64)
	}
	return map[string]any{"n": n, "mean": text(mean), "std": text(std)}
}

// reset forgets the requests of a place.
func (m *Monitor) reset(ctx context.Context, p place) (deleted int64, err error) {
	err = postgres.InTx(ctx, m.pool, func(tx pgx.Tx) error {
		if deleted, err = m.subject.forget(ctx, m.queries.WithTx(tx), p); err != nil {
			return err
		}
		actor, _ := announce.Actor(ctx)
		details := map[string]any{"deleted": deleted}
		if kind := m.subject.kind(); kind != kindPrediction {
			details["kind"] = kind
		}
		return announce.Insert(ctx, tx,
			announce.Drift("reset", p.model, actor, announce.DriftSet{Model: p.model, Alias: p.alias, Kind: m.subject.kind(), N: deleted}),
			announce.Audit(ctx, "drift.reset", p.target(), "ok", details))
	})
	return deleted, err
}
