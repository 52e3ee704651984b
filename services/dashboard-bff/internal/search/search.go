// Package search finds models, jobs, approvals, alerts, audit entries and documentation by label and id.
package search

import (
	"context"
	"time"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/compose"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/docs"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// Entry is something that can be found.
type Entry struct {
	Kind, ID, Label string
	URL             string // a route of the web UI

	foldedLabel, foldedID string
}

func (e *Entry) fold() { e.foldedLabel, e.foldedID = foldText(e.Label), foldText(e.ID) }

// Config of New.
type Config struct {
	Pool     *compose.Pool
	Upstream *upstream.Clients
	Docs     *docs.Library
	// Alerts are the caller's firing and acknowledged alerts.
	Alerts func(context.Context, caller.Caller) ([]api.Alert, error)
}

// Search answers searches.
type Search struct {
	Config
	sources []source
}

// listBudget is for sources that list thousands of things.
const listBudget = time.Minute

// source is one place to look in.
type source struct {
	need caller.Role
	compose.Source[compose.None, []Entry]
}

// New refuses a missing part.
func New(cfg Config) (*Search, error) {
	if err := service.RequireParts("search", cfg); err != nil {
		return nil, err
	}
	s := &Search{Config: cfg}
	s.sources = []source{
		newSource("alerts", caller.Viewer, upstream.ControlPlane, s.fetchAlerts),
		newSource("approvals", caller.Viewer, upstream.ControlPlane, s.fetchApprovals),
		newSource("audit", caller.Admin, upstream.ControlPlane, s.fetchAudit),
		newSource("docs", caller.Viewer, "docs", s.fetchDocs),
		newSource("scheduler", caller.Viewer, upstream.ControlPlane, s.fetchJobs),
		newSource("tracker", caller.Viewer, upstream.Tracker, s.fetchModels),
	}
	return s, nil
}

// newSource folds the entries of a source once, for all searches that share the answer.
func newSource(name string, need caller.Role, at upstream.Service, fetch func(context.Context, caller.Caller) ([]Entry, error)) source {
	return source{need, compose.Source[compose.None, []Entry]{
		// A list of thousands takes longer than a search waits, and is requested at each keystroke.
		Name: name, Service: at, Call: "search", Budget: listBudget, Pace: 5,
		Fetch: func(ctx context.Context, who caller.Caller, _ compose.None) ([]Entry, error) {
			entries, err := fetch(ctx, who)
			for i := range entries {
				entries[i].fold()
			}
			return entries, err
		},
	}}
}

// gather asks all sources that the caller may see, at once.
func (s *Search) gather(v *compose.View) map[string][]Entry {
	asked := map[string]*compose.Answer[[]Entry]{}
	for _, src := range s.sources {
		if v.Who().Role.Covers(src.need) {
			asked[src.Name] = compose.Ask(v, src.Source, compose.None{})
		}
	}
	found := map[string][]Entry{}
	for name, answer := range asked {
		if entries, ok := answer.Get(); ok {
			found[name] = entries
		}
	}
	return found
}

// document is the view without the members that describe its sources.
type document struct {
	Search results `json:"search"`
}

type results struct {
	Query   string                        `json:"query"`
	Count   int                           `json:"count"`
	Results []api.SearchResult            `json:"results"`
	Groups  map[string][]api.SearchResult `json:"groups"`
}

func newDocument(query string, matches []match) document {
	r := results{Query: query, Count: len(matches), Results: []api.SearchResult{}, Groups: map[string][]api.SearchResult{}}
	for _, m := range matches {
		result := api.SearchResult{Kind: m.Kind, Id: m.ID, Label: m.Label, Url: m.URL, Score: m.score, Source: m.source}
		r.Results = append(r.Results, result)
		r.Groups[m.source] = append(r.Groups[m.source], result)
	}
	return document{r}
}
