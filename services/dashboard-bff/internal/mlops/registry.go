package mlops

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/compose"
)

// answers of a view's sources; ok marks the ones that answered.
type answers struct {
	drift     map[string]modelDrift
	serving   inference.Health
	traffic   map[string]inference.TrafficRule
	freshness map[string]controlplane.FreshnessStatus
	policies  map[string]controlplane.Policy

	ok struct{ drift, serving, traffic, freshness, policies bool }
}

// Registry serves GET /api/v1/mlops/registry.
func (v *Views) Registry(c echo.Context) error {
	q, err := parseRegistryQuery(c)
	if err != nil {
		return err
	}
	view := v.pool.Begin(c)
	models := compose.Ask(view, v.sources.tracker, compose.None{})
	drift := compose.Ask(view, v.sources.drift, compose.None{})
	serving := compose.Ask(view, v.sources.serving, compose.None{})
	traffic := compose.Ask(view, v.sources.traffic, compose.None{})
	freshness := compose.Ask(view, v.sources.freshness, compose.None{})
	policies := compose.Ask(view, v.sources.policies, compose.None{})

	var a answers
	a.drift, a.ok.drift = drift.Get()
	a.serving, a.ok.serving = serving.Get()
	a.traffic, a.ok.traffic = traffic.Get()
	a.freshness, a.ok.freshness = freshness.Get()
	a.policies, a.ok.policies = policies.Get()
	all, ok := models.Get()
	if ok && a.ok.serving {
		v.serving.observe(all, a.serving)
	}
	build := func() any {
		rows := make([]api.RegistryRow, len(all))
		for i, m := range all {
			rows[i] = v.row(m, a)
		}
		return api.RegistryView{Registry: q.page(c.Path(), rows)}
	}
	if len(c.QueryParams()) > 0 {
		return view.Answer(build())
	}
	return view.AnswerShared("registry", build)
}

// row returns one model. Data of a failed source is missing, and the health is then unknown.
func (v *Views) row(m registered, a answers) api.RegistryRow {
	d := a.drift[m.name]
	row := api.RegistryRow{Name: m.name, TrackerName: m.trackerName, Aliases: &m.aliases}
	row.Version, row.Stage = m.position()
	if m.description != "" {
		row.Description = &m.description
	}
	if fresh := m.freshness(d, a.traffic[m.name]); !fresh.IsZero() {
		row.Freshness = &fresh
	}
	if a.ok.freshness {
		status := api.RegistryRowFreshnessStatus(a.freshness[m.name])
		if !status.Valid() { // no definition, or no record: nothing to compare with
			status = api.RegistryRowFreshnessStatusUnknown
		}
		row.FreshnessStatus = &status
	}
	if a.ok.policies {
		governed := a.policies[m.name].Enabled
		row.Governed = &governed
	}
	if shown := d.under(string(row.Stage)); a.ok.drift && shown != nil {
		addDrift(&row, shown)
	}
	if set := m.aliases[production]; a.ok.serving && set > 0 {
		served := servedVersion(a.serving, m.name) == set
		row.Served = &served
	}
	verdict, reasons := v.judge(m, a)
	row.Health, row.HealthReasons = verdict, &reasons
	row.Severity = severityOf(row)
	return row
}

// addDrift shows drift as a figure of the version it was measured of: that of a version which has left the alias says
// nothing of the one that stands there now.
func addDrift(row *api.RegistryRow, d *inference.DriftStatus) {
	if of := measuredVersion(d); of > 0 && row.Version != nil && of != *row.Version {
		row.Earlier = &api.EarlierDrift{Version: of, ZScore: d.ZScore}
		return
	}
	level, trend := string(d.Overall), numbers(d.Recent)
	row.ZScore, row.DriftStatus, row.Trend = d.ZScore, &level, &trend
}

// position returns the version that a model is at, and the alias that sets it.
func (m registered) position() (*int, api.RegistryRowStage) {
	for _, alias := range ladder {
		if n := m.aliases[alias]; n > 0 {
			return &n, api.RegistryRowStage(alias)
		}
	}
	if m.newest > 0 {
		return &m.newest, api.None
	}
	return nil, api.None
}

// freshness returns when something last happened to a model: a version, a prediction, its traffic.
func (m registered) freshness(d modelDrift, t inference.TrafficRule) time.Time {
	latest := m.changed
	for _, at := range []time.Time{d.newest(), t.UpdatedAt} {
		if at.After(latest) {
			latest = at
		}
	}
	return latest.UTC()
}

// mergeByName sorts models by name and keeps one of those whose names differ in case only: the one that has versions,
// else the one named as this platform names models, in lower case.
func mergeByName(all []registered) []registered {
	slices.SortFunc(all, func(a, b registered) int {
		return cmp.Or(
			cmp.Compare(a.name, b.name), compareBool(b.newest > 0, a.newest > 0),
			compareBool(isLower(b.trackerName), isLower(a.trackerName)), cmp.Compare(a.trackerName, b.trackerName),
		)
	})
	return slices.CompactFunc(all, func(a, b registered) bool { return a.name == b.name })
}

func isLower(s string) bool { return s == strings.ToLower(s) }

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
