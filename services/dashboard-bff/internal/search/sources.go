package search

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/go/wire"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
)

// newest limits how many entries of growing lists are searched.
const newest = 200

// maxLabel limits a label, in characters.
const maxLabel = 200

// sharedOrOwn filters what another service has filtered already: a fault there must not show one tenant's to
// another.
func sharedOrOwn(tenant string, who caller.Caller) bool {
	return tenant == who.Tenant || tenant == outbox.PlatformTenant
}

// address returns a route of the web UI with one parameter.
func address(route, name, value string) string {
	return route + "?" + url.Values{name: {value}}.Encode()
}

// oneLine returns text as one line that fits a list.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > maxLabel {
		return string(runes[:maxLabel-1]) + "…"
	}
	return s
}

func (s *Search) fetchModels(ctx context.Context, _ caller.Caller) ([]Entry, error) {
	client, err := s.Upstream.Tracker()
	if err != nil {
		return nil, err
	}
	var found []Entry
	for model, err := range client.SearchRegisteredModels(ctx, "") {
		if err != nil {
			return nil, err
		}
		found = append(found, Entry{Kind: "model", ID: model.Name, Label: model.Name, URL: "/models/" + url.PathEscape(model.Name)})
	}
	return found, nil
}

func (s *Search) fetchJobs(ctx context.Context, who caller.Caller) ([]Entry, error) {
	client, err := s.Upstream.ControlPlane(who)
	if err != nil {
		return nil, err
	}
	limit := newest
	page, err := wire.Decode[controlplane.JobList](client.ListJobs(ctx, &controlplane.ListJobsParams{Limit: &limit}))
	if err != nil {
		return nil, err
	}
	found := make([]Entry, len(page.Items))
	for i, job := range page.Items {
		// The same id may be in two clusters; the route then needs to know which.
		route := "/facility?" + url.Values{"job": {job.Id}, "cluster": {job.Cluster}}.Encode()
		found[i] = Entry{Kind: "job", ID: job.Id, Label: oneLine(fmt.Sprintf("%s on %s, %s", job.Model, job.Cluster, job.State)), URL: route}
	}
	return found, nil
}

func (s *Search) fetchApprovals(ctx context.Context, who caller.Caller) ([]Entry, error) {
	client, err := s.Upstream.ControlPlane(who)
	if err != nil {
		return nil, err
	}
	limit := newest
	page, err := wire.Decode[[]controlplane.Approval](client.ListApprovals(ctx, &controlplane.ListApprovalsParams{Limit: &limit}))
	if err != nil {
		return nil, err
	}
	var found []Entry
	for _, a := range page {
		if !sharedOrOwn(a.Tenant, who) {
			continue
		}
		subject, _, _ := strings.Cut(a.CommitMsg, "\n")
		if subject != "" {
			subject = ": " + subject
		}
		label := oneLine(fmt.Sprintf("%s%s (%s, %s)", a.ModelId, subject, a.Kind, a.Status))
		found = append(found, Entry{Kind: "approval", ID: a.Id.String(), Label: label, URL: address("/approvals", "id", a.Id.String())})
	}
	return found, nil
}

func (s *Search) fetchAlerts(ctx context.Context, who caller.Caller) ([]Entry, error) {
	alerts, err := s.Alerts(ctx, who)
	if err != nil {
		return nil, err
	}
	found := make([]Entry, len(alerts))
	for i, a := range alerts {
		found[i] = Entry{Kind: "alert", ID: a.Id, Label: oneLine(a.Title), URL: address("/alerts", "id", a.Id)}
	}
	return found, nil
}

func (s *Search) fetchAudit(ctx context.Context, who caller.Caller) ([]Entry, error) {
	client, err := s.Upstream.ControlPlane(who)
	if err != nil {
		return nil, err
	}
	limit := newest
	page, err := wire.Decode[controlplane.AuditEventList](client.ListAuditEvents(ctx, &controlplane.ListAuditEventsParams{Limit: &limit}))
	if err != nil {
		return nil, err
	}
	var found []Entry
	for _, e := range page.Items {
		if !sharedOrOwn(e.Tenant, who) {
			continue
		}
		found = append(found, Entry{
			Kind: "audit", ID: e.EventId.String(), Label: oneLine(e.Action + " " + e.Target + " by " + e.Actor), URL: auditRoute(e),
		})
	}
	return found, nil
}

// auditRoute filters the ledger down to one entry; its filters know no id.
func auditRoute(e controlplane.AuditEvent) string {
	filters := url.Values{"action": {e.Action}, "actor": {e.Actor}}
	if at, err := time.Parse(time.RFC3339Nano, e.Ts); err == nil {
		filters.Set("since", e.Ts)
		filters.Set("until", at.Add(time.Microsecond).UTC().Format(time.RFC3339Nano)) // exclusive; entries have microseconds
	}
	return "/audit?" + filters.Encode()
}

func (s *Search) fetchDocs(context.Context, caller.Caller) ([]Entry, error) {
	pages, err := s.Docs.Pages()
	if err != nil {
		return nil, err
	}
	var found []Entry
	for _, page := range pages {
		at := address("/documents", "path", page.Path)
		found = append(found, Entry{Kind: "page", ID: page.Path, Label: page.Title, URL: at})
		for i, h := range page.Headings {
			if i == 0 && h.Text == page.Title {
				continue // the page itself
			}
			found = append(found, Entry{Kind: "heading", ID: page.Path + "#" + h.Anchor, Label: h.Text, URL: at + "#" + url.PathEscape(h.Anchor)})
		}
	}
	return found, nil
}
