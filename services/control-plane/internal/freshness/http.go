package freshness

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// API serves the snapshot.
type API struct {
	Store    *store.Store
	Registry *registry.Registry
}

// Status serves GET /modelrepo/status: every model of the registry, and those that left it.
func (a API) Status(c echo.Context) error {
	ctx := c.Request().Context()
	p, _ := auth.FromContext(ctx)
	rows, err := a.Store.ListFreshness(ctx, p.Tenant)
	if err != nil {
		return err
	}
	var tenant *string // nil: every tenant's
	if !p.Legacy {
		tenant = &p.Tenant
	}
	active, err := a.Store.ActiveRuns(ctx, tenant)
	if err != nil {
		return err
	}
	running := make(map[string]string, len(active))
	for _, r := range active {
		running[r.ModelID] = r.FlowRunID
	}
	out := api.FreshnessSnapshot{Models: []api.Freshness{}}
	pushes, err := a.Store.ListPushes(ctx, store.ListPushesParams{Tenant: p.Tenant, MaxRows: 1})
	if err != nil {
		return err
	}
	var last store.Push
	pushed := len(pushes) > 0
	if pushed {
		last = pushes[0]
		out.LastEvent = &api.LastPush{CommitSha: last.CommitSha, Timestamp: last.ReceivedAt.UTC(), Source: api.LastPushSource(last.Source)}
	}
	seen := make(map[string]bool, len(rows))
	add := func(f store.Freshness) {
		seen[f.ModelID] = true
		row := api.Freshness{
			ModelId: f.ModelID, Status: api.FreshnessStatus(f.Status), LatestModelrepoCommit: f.LatestModelrepoCommit,
			LastRetrainCommit: f.LastRetrainCommit, TrainedFromCommit: f.LastRetrainCommit,
			StaleSince: wire.UTC(f.StaleSince), RetrainTriggeredAt: wire.UTC(f.RetrainTriggeredAt),
		}
		if id, ok := running[f.ModelID]; ok {
			row.ActiveRun = &id
		}
		if pushed {
			touched := last.TouchedAll || slices.Contains(last.Touched, f.ModelID)
			row.TouchedByLastPush = &touched
		}
		out.Models = append(out.Models, row)
	}
	for _, f := range rows {
		add(f)
	}
	for _, m := range a.Registry.Models() {
		if !seen[m.ID()] && m.Owner() == p.Tenant {
			add(store.Freshness{ModelID: m.ID(), Status: Unknown})
		}
	}
	for _, t := range a.Registry.External() {
		if !seen[t.ID] && p.Tenant == auth.LegacyTenant {
			add(store.Freshness{ModelID: t.ID, Status: NoDefinition})
		}
	}
	return c.JSON(http.StatusOK, out)
}
