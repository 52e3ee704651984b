package mlops

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/clients/go/wire"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/compose"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// pageLimit is the most rows a page of the services behind holds.
const pageLimit = 500

// sources of the views here, by what _partial calls them.
type sources struct {
	tracker    compose.Source[compose.None, []registered]
	drift      compose.Source[compose.None, map[string]modelDrift]
	serving    compose.Source[compose.None, inference.Health]
	traffic    compose.Source[compose.None, map[string]inference.TrafficRule]
	freshness  compose.Source[compose.None, map[string]controlplane.FreshnessStatus]
	policies   compose.Source[compose.None, map[string]controlplane.Policy]
	auditCount compose.Source[compose.None, int]

	model   compose.Source[string, trackedModel]
	driftOf compose.Source[string, modelDrift]
	cost    compose.Source[string, modelCost]
	history compose.Source[string, []controlplane.AliasHolder]
	gate    compose.Source[string, gateFacts]
	series  compose.Source[seriesQuery, inference.Series]
	costs   compose.Source[string, []controlplane.Cost]

	runs     compose.Source[compose.None, runList]
	runCosts compose.Source[compose.None, map[modelAndVersion]api.RunCost]
	record   compose.Source[string, api.RunRecord]
}

// clients fetches the data of the sources.
type clients struct{ *upstream.Clients }

// listBudget is for lists that thousands of models make long: the serving service compares each model's predictions
// with its baseline when it is asked, which takes seconds per thousand.
const listBudget = time.Minute

func newSources(u *upstream.Clients) sources {
	c := clients{u}
	s := sources{
		tracker:    trackerSource("list models", c.listModels),
		drift:      servingSource("drift", "list drift", c.listDrift),
		serving:    servingSource("serving", "health", c.servingHealth),
		traffic:    servingSource("traffic", "list traffic rules", c.listTraffic),
		freshness:  controlSource("freshness", "freshness", c.freshness),
		policies:   controlSource("promotion", "list policies", c.listPolicies),
		auditCount: controlSource("audit", "count entries", c.countAudit),

		model:   compose.Source[string, trackedModel]{Name: "tracker", Service: upstream.Tracker, Call: "model", Fetch: c.trackedModel},
		driftOf: compose.Source[string, modelDrift]{Name: "drift", Service: upstream.Serving, Call: "drift of a model", Fetch: c.driftOf},
		cost:    compose.Source[string, modelCost]{Name: "cost", Service: upstream.ControlPlane, Call: "cost of a model", Fetch: c.costOf},
		history: compose.Source[string, []controlplane.AliasHolder]{Name: "promotion", Service: upstream.ControlPlane, Call: "alias history", Fetch: c.aliasHistory},
		gate:    compose.Source[string, gateFacts]{Name: "promotion", Service: upstream.ControlPlane, Call: "gate", Fetch: c.gate},
		series:  compose.Source[seriesQuery, inference.Series]{Name: "drift", Service: upstream.Serving, Call: "series", Fetch: c.series},
		costs:   compose.Source[string, []controlplane.Cost]{Name: "cost", Service: upstream.ControlPlane, Call: "list costs", Fetch: c.listCosts},

		runs:     controlSource("runs", "list runs", c.listRuns),
		runCosts: controlSource("cost", "costs of runs", c.listRunCosts),
		record:   compose.Source[string, api.RunRecord]{Name: "tracker", Service: upstream.Tracker, Call: "run", Fetch: c.readRecord},
	}
	s.drift.Budget, s.drift.Pace = listBudget, 2
	s.tracker.Budget, s.tracker.Pace = listBudget, 1
	s.runs.Budget, s.runs.Pace = listBudget, 1
	s.runCosts.Budget, s.runCosts.Pace = listBudget, 1
	return s
}

// plainFetch takes no parameters.
type plainFetch[T any] func(ctx context.Context, who caller.Caller) (T, error)

func plainSource[T any](name string, s upstream.Service, call string, fetch plainFetch[T]) compose.Source[compose.None, T] {
	return compose.Source[compose.None, T]{
		Name: name, Service: s, Call: call,
		Fetch: func(ctx context.Context, who caller.Caller, _ compose.None) (T, error) { return fetch(ctx, who) },
	}
}

func trackerSource[T any](call string, fetch plainFetch[T]) compose.Source[compose.None, T] {
	return plainSource("tracker", upstream.Tracker, call, fetch)
}

func servingSource[T any](name, call string, fetch plainFetch[T]) compose.Source[compose.None, T] {
	return plainSource(name, upstream.Serving, call, fetch)
}

func controlSource[T any](name, call string, fetch plainFetch[T]) compose.Source[compose.None, T] {
	return plainSource(name, upstream.ControlPlane, call, fetch)
}

// registered is a model of the tracker, as the registry shows it.
type registered struct {
	name        string // the platform's
	trackerName string
	description string
	aliases     map[string]int
	newest      int // version; 0 without one
	changed     time.Time
}

func newRegistered(m tracker.RegisteredModel) registered {
	r := registered{
		name: modelName(m.Name), trackerName: m.Name, description: m.Description, changed: m.Updated, aliases: make(map[string]int, len(m.Aliases)),
	}
	for alias, version := range m.Aliases {
		if n := versionNumber(version); n > 0 {
			r.aliases[aliasName(alias)] = n
			r.newest = max(r.newest, n)
		}
	}
	for _, v := range m.Latest {
		r.newest = max(r.newest, versionNumber(v.Version))
		for _, at := range []time.Time{v.Created, v.Updated} {
			if at.After(r.changed) {
				r.changed = at
			}
		}
	}
	return r
}

// listModels reads all registered models, of names equal but for case one.
func (c clients) listModels(ctx context.Context, _ caller.Caller) ([]registered, error) {
	t, err := c.Tracker()
	if err != nil {
		return nil, err
	}
	var all []registered
	for m, err := range t.SearchRegisteredModels(ctx, "") {
		if err != nil {
			return nil, err
		}
		all = append(all, newRegistered(m))
	}
	return mergeByName(all), nil
}

// listDrift reads the drift of all models.
func (c clients) listDrift(ctx context.Context, who caller.Caller) (map[string]modelDrift, error) {
	rows, err := c.readDrift(ctx, who, nil)
	return groupDrift(rows), err
}

func (c clients) driftOf(ctx context.Context, who caller.Caller, model string) (modelDrift, error) {
	rows, err := c.readDrift(ctx, who, &model)
	return groupDrift(rows)[model], err
}

func (c clients) readDrift(ctx context.Context, who caller.Caller, model *string) ([]inference.DriftStatus, error) {
	client, err := c.Inference(who)
	if err != nil {
		return nil, err
	}
	limit := pageLimit
	return compose.ReadPages(ctx, func(ctx context.Context, cursor *string) ([]inference.DriftStatus, *string, error) {
		resp, err := client.DriftStatus(ctx, &inference.DriftStatusParams{Model: model, Limit: &limit, Cursor: cursor})
		rows, err := wire.Decode[[]inference.DriftStatus](resp, err)
		if err != nil {
			return nil, nil, err
		}
		after := resp.Header.Get("X-Next-Cursor")
		return rows, &after, nil
	})
}

// servingHealth reads what is served. The route is public, so that the watch can read it without a caller.
func (c clients) servingHealth(ctx context.Context, _ caller.Caller) (inference.Health, error) {
	address, err := c.Address(upstream.Serving)
	if err != nil {
		return inference.Health{}, err
	}
	client, err := inference.NewClient(address, inference.WithHTTPClient(service.HTTPClient(0)))
	if err != nil {
		return inference.Health{}, err
	}
	return wire.Decode[inference.Health](client.Health(ctx))
}

// listTraffic reads how the requests of each model are divided among its aliases.
func (c clients) listTraffic(ctx context.Context, who caller.Caller) (map[string]inference.TrafficRule, error) {
	client, err := c.Inference(who)
	if err != nil {
		return nil, err
	}
	limit := pageLimit
	all, err := compose.ReadPages(ctx, func(ctx context.Context, cursor *string) ([]inference.TrafficRule, *string, error) {
		page, err := wire.Decode[inference.TrafficRuleList](client.ListTrafficRules(ctx, &inference.ListTrafficRulesParams{Limit: &limit, Cursor: cursor}))
		return page.Items, page.NextCursor, err
	})
	if isNotFound(err) {
		return nil, fmt.Errorf("the serving service has no traffic rules: %w: %w", compose.ErrSkipped, err)
	}
	if err != nil {
		return nil, err
	}
	out := make(map[string]inference.TrafficRule, len(all))
	for _, r := range all {
		out[modelName(r.Model)] = r
	}
	return out, nil
}

// isNotFound reports whether a service answered 404.
func isNotFound(err error) bool {
	var p *problem.Error
	return errors.As(err, &p) && p.Status() == http.StatusNotFound
}

func (c clients) freshness(ctx context.Context, who caller.Caller) (map[string]controlplane.FreshnessStatus, error) {
	client, err := c.ControlPlane(who)
	if err != nil {
		return nil, err
	}
	snapshot, err := wire.Decode[controlplane.FreshnessSnapshot](client.GetFreshness(ctx))
	out := make(map[string]controlplane.FreshnessStatus, len(snapshot.Models))
	for _, m := range snapshot.Models {
		out[modelName(m.ModelId)] = m.Status
	}
	return out, err
}

func (c clients) listPolicies(ctx context.Context, who caller.Caller) (map[string]controlplane.Policy, error) {
	client, err := c.ControlPlane(who)
	if err != nil {
		return nil, err
	}
	limit := pageLimit
	all, err := compose.ReadPages(ctx, func(ctx context.Context, cursor *string) ([]controlplane.Policy, *string, error) {
		page, err := wire.Decode[controlplane.PolicyList](client.ListPolicies(ctx, &controlplane.ListPoliciesParams{Limit: &limit, Cursor: cursor}))
		return page.Items, page.NextCursor, err
	})
	out := make(map[string]controlplane.Policy, len(all))
	for _, p := range all {
		out[modelName(p.Model)] = p
	}
	return out, err
}

// countAudit counts the entries of the tenant's ledger.
func (c clients) countAudit(ctx context.Context, who caller.Caller) (int, error) {
	client, err := c.ControlPlane(who)
	if err != nil {
		return 0, err
	}
	limit := 1
	page, err := wire.Decode[controlplane.AuditEventList](client.ListAuditEvents(ctx, &controlplane.ListAuditEventsParams{Limit: &limit}))
	for _, e := range page.Items {
		if e.Tenant != who.Tenant { // the credential is of another tenant: its count is not this one's
			return 0, fmt.Errorf("the control plane answered for tenant %q, not for %q", e.Tenant, who.Tenant)
		}
	}
	return int(page.Count), err
}
