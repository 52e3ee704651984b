package collab

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/clients/go/wire"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/compose"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/store"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// The control plane finds the facts of a model; for other entities whole pages of the ledger are read and filtered,
// at most maxPages of them for one answer.
const (
	pageSize = 500
	maxPages = 4
)

// ledgerPlace is where the reading of one chain of the ledger resumes, towards older entries: in the page that the
// control plane's cursor leads to, below the sequence. The ledger is in the order of its sequence, not of the times of
// the acts, so a time would lose entries that arrived late.
type ledgerPlace struct {
	Page string `json:"p,omitempty"`
	Seq  int64  `json:"s,omitempty"` // 0: from the beginning of the page
	End  bool   `json:"e,omitempty"` // there is nothing older
}

// position is where a page of activity ends.
type position struct {
	Own      ledgerPlace `json:"o"`
	Platform ledgerPlace `json:"p"`
	Comment  *place      `json:"c"` // nil: from the newest
}

// item is one entry of the activity.
type item struct {
	api.Activity
	next func(*position) // moves a position behind this item
}

// Activity serves GET /api/v1/collab/:type/:id/activity: the newest entries, the oldest of them first.
func (s *Collab) Activity(c echo.Context) error {
	if err := input.CheckQuery(c, "limit", "cursor"); err != nil {
		return err
	}
	e, err := readEntity(c)
	if err != nil {
		return err
	}
	limit, err := service.PageLimit(c)
	if err != nil {
		return err
	}
	var at position
	if _, err := service.Cursor(c, &at); err != nil {
		return err
	}
	v := s.cfg.Views.Begin(c)
	// Facts of the tenant, and those that belong to none and that all may read.
	own := s.askLedger(v, query{entity: e, tenant: v.Who().Tenant, from: at.Own, limit: limit})
	platform := s.askLedger(v, query{entity: e, tenant: outbox.PlatformTenant, from: at.Platform, limit: limit})
	comments, err := s.newestComments(c.Request().Context(), v.Who(), e, at.Comment, limit)
	if err != nil {
		return err
	}
	streams := []*stream{comments}
	for _, l := range []struct {
		answer *compose.Answer[chapter]
		place  func(*position) *ledgerPlace
	}{{own, func(p *position) *ledgerPlace { return &p.Own }}, {platform, func(p *position) *ledgerPlace { return &p.Platform }}} {
		if l.answer == nil {
			continue
		}
		if read, ok := l.answer.Get(); ok {
			streams = append(streams, ledgerStream(read, l.place))
		}
	}
	items, more := merge(streams, &at, limit)
	out := struct {
		Activity   []api.Activity `json:"activity"`
		NextCursor *string        `json:"next_cursor"`
	}{Activity: items}
	if more {
		next := service.EncodeCursor(c.Path(), at)
		out.NextCursor = &next
	}
	return v.Answer(out)
}

// stream is one source's entries, newest first.
type stream struct {
	items []item
	// rest moves a position behind all items; more reports that further entries follow which were not read.
	rest func(*position)
	more bool
}

// merge takes the newest entries of all streams, moves the position behind them and returns them oldest first. It ends
// early where a stream's next entry is not known: it could be newer than those of the others.
func merge(streams []*stream, at *position, limit int) (out []api.Activity, more bool) {
	out = []api.Activity{}
	for _, s := range streams {
		if len(s.items) == 0 && s.rest != nil {
			s.rest(at)
		}
	}
	for len(out) < limit {
		var newest *stream
		for _, s := range streams {
			if len(s.items) == 0 {
				if s.more {
					return reverse(out), true
				}
				continue
			}
			if newest == nil || s.items[0].Ts.After(newest.items[0].Ts) {
				newest = s
			}
		}
		if newest == nil {
			return reverse(out), false
		}
		next := newest.items[0]
		newest.items = newest.items[1:]
		out = append(out, next.Activity)
		next.next(at)
		if len(newest.items) == 0 && newest.rest != nil {
			newest.rest(at)
		}
	}
	for _, s := range streams {
		more = more || len(s.items) > 0 || s.more
	}
	return reverse(out), more
}

// reverse puts the oldest first; within a page the time decides, also over the order of the ledger.
func reverse(items []api.Activity) []api.Activity {
	slices.Reverse(items)
	slices.SortStableFunc(items, func(a, b api.Activity) int { return cmp.Compare(a.Ts.UnixNano(), b.Ts.UnixNano()) })
	return items
}

// newestComments reads the comments before a position.
func (s *Collab) newestComments(ctx context.Context, who caller.Caller, e entity, before *place, limit int) (*stream, error) {
	params := store.ListNewestCommentsParams{Tenant: who.Tenant, EntityType: e.kind, EntityID: e.id, MaxRows: int32(limit) + 1}
	if before != nil {
		params.BeforeAt, params.BeforeID = &before.At, before.ID
	}
	rows, err := store.New(s.cfg.Pool).ListNewestComments(ctx, params)
	if err != nil {
		return nil, err
	}
	out := &stream{}
	for _, r := range rows {
		out.items = append(out.items, item{
			Activity: api.Activity{Kind: api.ActivityKindComment, Actor: r.Author, Ts: r.CreatedAt.UTC(), Detail: r.Body},
			next:     func(p *position) { p.Comment = &place{r.CreatedAt, r.ID} },
		})
	}
	return out, nil // it has one row more than the page, so merge sees by the items whether any are left
}

// query asks one chain of the ledger for the facts of an entity.
type query struct {
	entity
	tenant string
	from   ledgerPlace
	limit  int
}

// chapter is the result of one reading of the ledger, newest first.
type chapter struct {
	facts []fact
	rest  ledgerPlace
}

// fact is an entry of the ledger with the position after it.
type fact struct {
	controlplane.AuditEvent
	next ledgerPlace
}

// askLedger begins a reading; nil where the last one came to the end.
func (s *Collab) askLedger(v *compose.View, q query) *compose.Answer[chapter] {
	if q.from.End {
		return nil
	}
	return compose.Ask(v, compose.Source[query, chapter]{
		Name: "audit", Service: upstream.ControlPlane, Call: "facts of an entity", Fetch: s.readLedger,
	}, q)
}

// readLedger reads pages until it has one fact more than requested, the chain ends or it has read enough.
func (s *Collab) readLedger(ctx context.Context, who caller.Caller, q query) (chapter, error) {
	client, err := s.cfg.Clients.ControlPlane(who)
	if err != nil {
		return chapter{}, err
	}
	var out chapter
	at := q.from
	for n := range maxPages {
		size := pageSize
		params := &controlplane.ListAuditEventsParams{Tenant: &q.tenant, Limit: &size}
		if q.kind == modelType {
			size = min(q.limit+1, pageSize)
			params.Model = &q.id
		}
		if at.Page != "" {
			params.Cursor = &at.Page
		}
		page, err := wire.Decode[controlplane.AuditEventList](client.ListAuditEvents(ctx, params))
		if err != nil && n > 0 {
			return out, nil // the next request resumes here
		}
		if err != nil {
			return chapter{}, err
		}
		for _, e := range page.Items {
			if e.Tenant == q.tenant && e.Target == q.target() && (at.Seq == 0 || e.Seq < at.Seq) {
				out.facts = append(out.facts, fact{e, ledgerPlace{Page: at.Page, Seq: e.Seq}})
			}
		}
		if page.NextCursor == nil {
			out.rest = ledgerPlace{End: true}
			return out, nil
		}
		at = ledgerPlace{Page: *page.NextCursor}
		out.rest = at
		if len(out.facts) > q.limit {
			break
		}
	}
	return out, nil
}

// ledgerStream returns a reading as a stream; place is its part of a position.
func ledgerStream(read chapter, place func(*position) *ledgerPlace) *stream {
	out := &stream{more: !read.rest.End, rest: func(p *position) { *place(p) = read.rest }}
	for _, f := range read.facts {
		ts, _ := time.Parse(time.RFC3339Nano, f.Ts) // the ledger hashes that form; another would sort last
		out.items = append(out.items, item{
			Activity: api.Activity{Kind: api.ActivityKindAudit, Actor: f.Actor, Ts: ts, Detail: describe(f.AuditEvent)},
			next:     func(p *position) { *place(p) = f.next },
		})
	}
	return out
}

// describe summarizes a fact in one line: action, outcome unless ok, and the reason given, which is as untrusted as a
// comment.
func describe(e controlplane.AuditEvent) string {
	var details struct {
		Reason string `json:"reason"`
	}
	_ = json.Unmarshal(e.Details, &details) // details without a reason, or with another type of it, have none
	parts := e.Action
	if e.Outcome != controlplane.AuditOutcomeOk {
		parts += " (" + string(e.Outcome) + ")"
	}
	if reason := strings.TrimSpace(details.Reason); reason != "" {
		parts += ": " + reason
	}
	return Sanitize(parts)
}
