package controltower

import (
	"context"
	"iter"
	"strconv"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/document"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// ListPage is one page of a listing. Pass NextCursor back unchanged; "" is the end.
type ListPage[T any] struct {
	Items      []T
	NextCursor string
	Limit      int
}

// RunQuery narrows a list of runs. What is zero is not sent.
type RunQuery struct {
	Limit     int // 1 to 200; 0 is the server's default, 50
	Cursor    string
	State     string
	ProjectID string
}

// WorkUnitQuery narrows a list of work units. What is zero is not sent.
type WorkUnitQuery struct {
	Limit     int // 1 to 200; 0 is the server's default, 50
	Cursor    string
	ProjectID string // restricts the counts of the work units
}

// ConnectionQuery narrows a list of connectors. What is zero is not sent.
type ConnectionQuery struct {
	Limit  int // 1 to 200; 0 is the server's default, 50
	Cursor string
}

// EventFilter picks events. What is zero picks all.
type EventFilter struct{ ProjectID, RunID, WorkUnitID, EventType string }

func (f EventFilter) query(q query) query {
	return q.add("project_id", f.ProjectID).add("run_id", f.RunID).add("work_unit_id", f.WorkUnitID).add("event_type", f.EventType)
}

// EventQuery narrows a list of events. What is zero is not sent.
type EventQuery struct {
	EventFilter
	Limit  int // 1 to 200; 0 is the server's default, 50
	Cursor string
}

// ListRuns reads one page of runs, by id.
func (c *Client) ListRuns(ctx context.Context, q RunQuery) (Result[ListPage[spine.Run]], error) {
	filters := query{}.add("state", q.State).add("project_id", q.ProjectID)
	return listPage[spine.Run](ctx, c, "/runs", q.Limit, q.Cursor, filters, func(a *documentReply, items []*canon.Object) error {
		for _, item := range items {
			if err := firstFault(a.isRun(item), a.filtered(item, filters)); err != nil {
				return err
			}
		}
		return nil
	})
}

// RunsQuery narrows [Client.Runs]. What is zero is not sent.
type RunsQuery struct {
	State     string
	ProjectID string
	PageSize  int // 1 to 200; 0 is 50
	MaxItems  int // 0 is no bound
}

// Runs reads every run, page after page. Each result carries the metadata of its
// page. It ends after an error.
func (c *Client) Runs(ctx context.Context, q RunsQuery) iter.Seq2[Result[spine.Run], error] {
	return func(yield func(Result[spine.Run], error) bool) {
		if q.MaxItems < 0 {
			yield(Result[spine.Run]{}, misuseError("MaxItems must not be negative"))
			return
		}
		if q.PageSize == 0 {
			q.PageSize = 50
		}
		ask, seen, count := RunQuery{Limit: q.PageSize, State: q.State, ProjectID: q.ProjectID}, map[string]bool{}, 0
		for {
			page, err := c.ListRuns(ctx, ask)
			if err != nil {
				yield(Result[spine.Run]{}, err)
				return
			}
			docs, _ := page.Document.Get("items")
			for i, run := range page.Value.Items {
				doc, _ := docs.(canon.Array)[i].(*canon.Object) // ListRuns has seen that it is one
				if count++; !yield(Result[spine.Run]{Value: run, Document: doc, Metadata: page.Metadata}, nil) || count == q.MaxItems {
					return
				}
			}
			ask.Cursor = page.Value.NextCursor
			if ask.Cursor == "" {
				return
			}
			if seen[ask.Cursor] {
				yield(Result[spine.Run]{}, &ProtocolError{Detail: "the server gave the same cursor twice, so the list would never end",
					RequestID: page.Metadata.RequestID})
				return
			}
			seen[ask.Cursor] = true
		}
	}
}

// ListWorkUnits reads one page of work units, by id.
func (c *Client) ListWorkUnits(ctx context.Context, q WorkUnitQuery) (Result[ListPage[spine.WorkUnit]], error) {
	return listPage[spine.WorkUnit](ctx, c, "/work-units", q.Limit, q.Cursor, query{}.add("project_id", q.ProjectID), (*documentReply).haveIDs)
}

// ListConnections reads one page of connectors, by id.
func (c *Client) ListConnections(ctx context.Context, q ConnectionQuery) (Result[ListPage[spine.Connection]], error) {
	return listPage[spine.Connection](ctx, c, "/connections", q.Limit, q.Cursor, nil, (*documentReply).haveIDs)
}

// ListEvents reads one page of events, by sequence. Every envelope is checked as on
// the stream.
func (c *Client) ListEvents(ctx context.Context, q EventQuery) (Result[ListPage[spine.Event]], error) {
	filters := q.EventFilter.query(nil)
	return listPage[spine.Event](ctx, c, "/events", q.Limit, q.Cursor, filters, func(a *documentReply, items []*canon.Object) error {
		after := int64(0)
		for _, item := range items {
			e, err := a.event(item, filters, after)
			if err != nil {
				return err
			}
			after = e.Sequence
		}
		return nil
	})
}

func listPage[T any](ctx context.Context, c *Client, path string, limit int, cursor string, filters query,
	check func(*documentReply, []*canon.Object) error) (Result[ListPage[T]], error) {
	var none Result[ListPage[T]]
	if limit < 0 || limit > 200 {
		return none, misuseError("the limit must be from 1 to 200, or 0 for the server's default")
	}
	q := query{}
	if limit > 0 {
		q = q.add("limit", strconv.Itoa(limit))
	}
	target, err := append(q.add("cursor", cursor), filters...).on(path)
	if err != nil {
		return none, err
	}
	a, err := c.get(ctx, target)
	if err != nil {
		return none, err
	}
	items, err := a.page(limit)
	if err != nil {
		return none, err
	}
	if err := check(a, items); err != nil {
		return none, err
	}
	var page document.List[T]
	if err := a.into(&page, a.doc, a.c1); err != nil {
		return none, err
	}
	r := Result[ListPage[T]]{Value: ListPage[T]{Items: page.Items, Limit: page.Page.Limit}, Document: a.doc, Metadata: a.meta}
	for _, next := range []*string{page.NextCursor, page.Page.NextCursor} {
		if next != nil {
			r.Value.NextCursor = *next
		}
	}
	return r, nil
}

// page checks the fields that every page has, and returns its items.
func (a *documentReply) page(asked int) ([]*canon.Object, error) {
	if err := a.ofKind(document.KindList, false); err != nil {
		return nil, err
	}
	array, ok := a.at("items").(canon.Array)
	if !ok {
		return nil, a.broken("the items of the page are no list")
	}
	items := make([]*canon.Object, len(array))
	for i, v := range array {
		if items[i], ok = v.(*canon.Object); !ok {
			return nil, a.broken("an item of the page is no object")
		}
	}
	size, _ := a.at("page", "limit").(canon.Int)
	limit, ok := size.Int64()
	switch {
	case !ok || limit < 1 || limit > 200:
		return nil, a.broken("the limit of the page is not from 1 to 200")
	case asked > 0 && limit != int64(asked):
		return nil, a.broken("the page has another limit than the one requested")
	case int64(len(items)) > limit:
		return nil, a.broken("the page holds more items than its limit")
	}
	inner, _ := a.at("page").(*canon.Object)
	top, atTop := a.doc.Get("next_cursor")
	below, atPage := inner.Get("next_cursor")
	if !atTop && !atPage || atTop && !cursorOrNull(top) || atPage && !cursorOrNull(below) || atTop && atPage && top != below {
		return nil, a.broken("next_cursor is no text or null, or its two places do not agree")
	}
	return items, nil
}

func cursorOrNull(v canon.Value) bool {
	s, ok := v.(string)
	return v == nil || ok && s != ""
}

func (a *documentReply) isRun(v canon.Value) error {
	o, _ := v.(*canon.Object)
	kind, _ := o.Get("kind")
	version, _ := o.Get("schema_version")
	if kind != canon.Value(spine.RunKind) || version != canon.Value(spine.SchemaVersion) {
		return a.broken("a run is not %s of schema version %s", spine.RunKind, spine.SchemaVersion)
	}
	id, _ := o.Get("run_id")
	state, _ := o.Get("state")
	if _, ok := id.(string); !ok {
		return a.broken("a run has no id")
	}
	if _, ok := state.(string); !ok {
		return a.broken("a run has no state")
	}
	return nil
}

func (a *documentReply) haveIDs(items []*canon.Object) error {
	for _, item := range items {
		id, _ := item.Get("id")
		if _, ok := id.(string); !ok {
			return a.broken("an item of the page has no id")
		}
	}
	return nil
}

// filtered checks that an item matches the filters.
func (a *documentReply) filtered(item *canon.Object, filters query) error {
	for _, f := range filters {
		if v, _ := item.Get(f.name); v != canon.Value(f.value) {
			return a.broken("the answer holds an item of another %s than the filter requests", f.name)
		}
	}
	return nil
}
