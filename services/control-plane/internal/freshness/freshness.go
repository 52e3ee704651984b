// Package freshness tracks whether each model was trained from the newest commit
// of the model repository.
//
//	any     → stale     a push that concerns the model, unless it was trained from that commit
//	any     → current   a run completed with a version made from the newest commit, or Production was given to one,
//	                    however it was trained
//	stale   → stale     a run was dispatched, failed or was a dummy; Production was given to a version of an older commit
//
// A model without a record is unknown.
package freshness

import (
	"context"
	"time"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/repoconfig"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// The states of a model.
const (
	Unknown = "unknown"
	Stale   = "stale"
	Current = "current"
	// NoDefinition is the state of an external model, which has no commit to compare with.
	NoDefinition = "no_definition"
)

// Triggered records that a run was dispatched; the state does not change.
func Triggered(ctx context.Context, tx store.Tx, model string, now time.Time) error {
	return tx.MarkRetrainTriggered(ctx, store.MarkRetrainTriggeredParams{ModelID: model, Now: &now})
}

// LockPushes lets only one push or completed training at a time determine the newest
// commit, until the transaction ends.
func LockPushes(ctx context.Context, tx store.Tx) error {
	return tx.LockKeys(ctx, []string{"modelrepo:push"})
}

// pusher is the actor of changes caused by a push.
const pusher = "system:modelrepo"

// Pushed records that commit is the newest that concerns the models. Models that were
// not trained from it become stale and are returned. The caller holds LockPushes.
func Pushed(ctx context.Context, tx store.Tx, models []string, commit string, now time.Time) (stale []string, err error) {
	rows, err := tx.LockFreshnessOf(ctx, models)
	if err != nil {
		return nil, err
	}
	before := make(map[string]store.Freshness, len(rows))
	for _, row := range rows {
		before[row.ModelID] = row
	}
	of := map[string][]string{Stale: {}, Current: {}}
	var moved []outbox.Event
	for _, model := range models {
		row, ok := before[model]
		if !ok {
			row.Status = Unknown
		}
		status := Stale
		if row.LastRetrainCommit != nil && *row.LastRetrainCommit == commit {
			status = Current
		}
		of[status] = append(of[status], model)
		moved = append(moved, freshnessChanged(pusher, model, status, row.Status)...)
	}
	for status, models := range of {
		if err := tx.PushedFreshness(ctx, store.PushedFreshnessParams{Models: models, Status: status, CommitSha: &commit, Now: now}); err != nil {
			return nil, err
		}
	}
	return of[Stale], tx.Emit(ctx, moved...)
}

// freshnessChanged returns the event of a changed status.
func freshnessChanged(actor, model, status, previous string) []outbox.Event {
	if status == previous {
		return nil
	}
	return []outbox.Event{event.Of(event.PlatformTenant, actor, "event", "freshness_changed", model,
		event.FreshnessChanged{Model: model, Status: status, Previous: previous})}
}

// Training is a version and the commit that it was trained from.
type Training struct {
	Model, Version, Commit string
	// Head is the commit that the registry was read from.
	Head string
	// Actor caused the change: the follower of runs, or the actor of the move to Production.
	Actor string
}

// Trained records that a run completed with the version, or that the version holds Production. The model is
// current only if the version's commit is the newest known one: the last push's, or without a push
// head, the commit the registry was read from, or the model's own. If pushes make only
// touched models stale, an older commit is enough if no later push touched the model.
// Dummy versions do not count; the caller leaves them out.
func Trained(ctx context.Context, tx store.Tx, t Training, now time.Time) error {
	if err := LockPushes(ctx, tx); err != nil {
		return err
	}
	row, err := tx.LockFreshness(ctx, t.Model)
	switch {
	case store.None(err):
		row = store.Freshness{ModelID: t.Model, Status: Unknown}
	case err != nil:
		return err
	}
	newest, isNewest, err := newestCommit(ctx, tx, row, t)
	if err != nil {
		return err
	}
	if !isNewest {
		// An older run finished after a newer one, or Production went back to an older version.
		if row.Status == Current {
			return nil
		}
		if last := row.LastRetrainCommit; last != nil && *last != t.Commit {
			later, err := tx.TrainedLater(ctx, store.TrainedLaterParams{ModelID: t.Model, CommitSha: *last, NewerThan: t.Version})
			if err != nil || later {
				return err
			}
		}
	}
	previous := row.Status
	switch {
	case isNewest:
		row.Status, row.StaleSince, row.LatestModelrepoCommit = Current, nil, &t.Commit
	case row.LatestModelrepoCommit == nil && newest != "":
		row.LatestModelrepoCommit = &newest
	}
	if err := tx.PutFreshness(ctx, store.PutFreshnessParams{
		ModelID: t.Model, Status: row.Status, LatestModelrepoCommit: row.LatestModelrepoCommit,
		LastRetrainCommit: &t.Commit, StaleSince: row.StaleSince, Now: now,
	}); err != nil {
		return err
	}
	return tx.Emit(ctx, freshnessChanged(t.Actor, t.Model, row.Status, previous)...)
}

// newestCommit returns the newest known commit, and whether the training's commit counts as the newest for its model.
func newestCommit(ctx context.Context, tx store.Tx, row store.Freshness, t Training) (newest string, isNewest bool, err error) {
	last, err := tx.LastPush(ctx)
	switch {
	case store.None(err): // no newer commit than the registry's, or than the model's own, is known
		own := row.LatestModelrepoCommit
		return t.Head, t.Commit == t.Head || own != nil && t.Commit == *own, nil
	case err != nil:
		return "", false, err
	case t.Commit == last.CommitSha:
		return last.CommitSha, true, nil
	}
	isNewest, err = untouchedSince(ctx, tx, t.Model, t.Commit)
	return last.CommitSha, isNewest, err
}

// untouchedSince reports whether pushes make only touched models stale and no push after
// the commit touched this one.
func untouchedSince(ctx context.Context, tx store.Tx, model, commit string) (bool, error) {
	cfg, err := tx.GetModelrepoConfig(ctx)
	if store.None(err) || (err == nil && cfg.StaleScope != repoconfig.Touched) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	touched, err := tx.TouchedSince(ctx, store.TouchedSinceParams{ModelID: model, CommitSha: commit})
	return !touched, err
}
