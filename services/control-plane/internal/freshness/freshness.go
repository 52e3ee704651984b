// Package freshness tells whether each model was trained from the newest commit
// of the model repository.
package freshness

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/services/control-plane/api"
	"github.com/mlp-platform/platform/services/control-plane/internal/answer"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// The states of a model.
const (
	Unknown = "unknown"
	Stale   = "stale"
	Current = "current"
)

// Triggered notes that a run was dispatched; the model stays what it was.
func Triggered(ctx context.Context, tx store.Tx, model string, now time.Time) error {
	return tx.MarkRetrainTriggered(ctx, store.MarkRetrainTriggeredParams{ModelID: model, Now: &now})
}

// Trained notes that a run completed with a version made from commit. The model
// is current only when that is the newest commit known: the one a push told of,
// else head, the commit the registry was read from. Dummy runs do not count;
// the caller leaves them out.
func Trained(ctx context.Context, tx store.Tx, model, commit, head string, now time.Time) error {
	row, err := tx.LockFreshness(ctx, model)
	switch {
	case store.None(err):
		row = store.Freshness{ModelID: model, Status: Unknown}
	case err != nil:
		return err
	}
	previous := row.Status
	if row.LatestModelrepoCommit == nil && head != "" {
		row.LatestModelrepoCommit = &head
	}
	if row.LatestModelrepoCommit != nil && *row.LatestModelrepoCommit == commit {
		row.Status, row.StaleSince = Current, nil
	}
	if err := tx.PutFreshness(ctx, store.PutFreshnessParams{
		ModelID: model, Status: row.Status, LatestModelrepoCommit: row.LatestModelrepoCommit,
		LastRetrainCommit: &commit, StaleSince: row.StaleSince, Now: now,
	}); err != nil || row.Status == previous {
		return err
	}
	return tx.Emit(ctx, event.Of(event.PlatformTenant, "system:follower", "event", "freshness_changed", model,
		event.FreshnessChanged{Model: model, Status: row.Status, Previous: previous}))
}

// API serves the snapshot.
type API struct {
	Store    *store.Store
	Registry *registry.Registry
}

// Status serves GET /modelrepo/status: every model of the registry, and those
// that left it.
func (a API) Status(c echo.Context) error {
	ctx := c.Request().Context()
	rows, err := a.Store.ListFreshness(ctx)
	if err != nil {
		return err
	}
	active, err := a.Store.ActiveRuns(ctx)
	if err != nil {
		return err
	}
	running := make(map[string]string, len(active))
	for _, r := range active {
		running[r.ModelID] = r.FlowRunID
	}
	out := api.FreshnessSnapshot{Models: []api.Freshness{}}
	seen := make(map[string]bool, len(rows))
	add := func(f store.Freshness) {
		seen[f.ModelID] = true
		row := api.Freshness{
			ModelId: f.ModelID, Status: api.FreshnessStatus(f.Status), LatestModelrepoCommit: f.LatestModelrepoCommit,
			LastRetrainCommit: f.LastRetrainCommit, TrainedFromCommit: f.LastRetrainCommit,
			StaleSince: answer.UTC(f.StaleSince), RetrainTriggeredAt: answer.UTC(f.RetrainTriggeredAt),
		}
		if id, ok := running[f.ModelID]; ok {
			row.ActiveRun = &id
		}
		out.Models = append(out.Models, row)
	}
	for _, f := range rows {
		add(f)
	}
	for _, m := range a.Registry.Models() {
		if !seen[m.ID()] {
			add(store.Freshness{ModelID: m.ID(), Status: Unknown})
		}
	}
	return c.JSON(http.StatusOK, out)
}
