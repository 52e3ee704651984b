package store

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/cursor"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// Page limits: the largest page, and the default.
const (
	MaxLimit     = 200
	DefaultLimit = 50
)

// Reader reads a store. It cannot write and never migrates. It opens the file with the first
// read and again whenever the path leads to another file, so a store that was away is back
// with the next read. It leaves the file and its companions unchanged, even if a dead writer
// left its journal. Every method is safe for concurrent use; every error is an [*Error]
// unless the context ended.
type Reader struct {
	source *source
	tiles  tiles
}

// NewReader makes a reader of the file at path, which need not exist yet. It waits for a
// writer's lock for as long as wait: [ReadWait] in a server, [CommandWait] in a command.
func NewReader(path string, wait time.Duration) *Reader {
	return &Reader{source: &source{path: path, wait: wait}}
}

// NewServerReader makes a reader for a server, which waits [ReadWait] for locks. A store
// that a writer left unfinished is read through a private copy, in a server only up to
// [MaxServedImage].
func NewServerReader(path string) *Reader {
	return &Reader{source: &source{path: path, wait: ReadWait, copyLimit: MaxServedImage}}
}

// Notice returns a sentence for readers of the answers about the journal beside the file at
// the last read, or "".
func (r *Reader) Notice() string { return r.source.journalLeft().notice() }

// Close ends all connections; later reads fail. It is safe to call twice.
func (r *Reader) Close() error { return r.source.close() }

// Mark returns the store's change counter: as long as it stays the same, nothing
// was committed and no other file took the store's place.
func (r *Reader) Mark(ctx context.Context) (Mark, error) { return r.source.mark(ctx) }

// Page is one page of a listing. Next is the cursor of the page after it, or ""
// if this is the last.
type Page[T any] struct {
	Items []T
	Next  string
}

// Window selects a part of a listing. Limit 0 is [DefaultLimit]; Cursor "" starts at the
// beginning.
type Window struct {
	Limit  int
	Cursor *string // nil: from the beginning
}

// RunQuery selects runs. A nil filter selects all.
type RunQuery struct {
	Window
	State, ProjectID *string
}

// WorkUnitQuery selects work units. With a project, only its runs count.
type WorkUnitQuery struct {
	Window
	ProjectID *string
}

// EventFilter selects events; the nil filters select all.
type EventFilter struct {
	ProjectID, RunID, WorkUnitID, EventType *string
}

// EventQuery selects a page of events.
type EventQuery struct {
	Window
	EventFilter
}

// Check validates the window without reading the store. Whether a cursor was issued for this
// listing shows only with the store's key.
func (w Window) Check() error {
	if w.Limit < 0 || w.Limit > MaxLimit {
		return newFault(InvalidLimit, "limit is an integer from 1 to %d.", MaxLimit)
	}
	if w.Cursor != nil && strings.TrimSpace(*w.Cursor) == "" {
		return invalidCursor()
	}
	return nil
}

func (w Window) limit() int {
	if w.Limit == 0 {
		return DefaultLimit
	}
	return w.Limit
}

// Check validates the query's values, in the order in which they are reported.
func (q RunQuery) Check() error {
	return firstOf(q.Window.Check(), checkState(q.State), checkFilter("project_id", q.ProjectID))
}

// Check validates the query's values.
func (q WorkUnitQuery) Check() error {
	return firstOf(q.Window.Check(), checkFilter("project_id", q.ProjectID))
}

// Check validates the query's values.
func (q EventQuery) Check() error { return firstOf(q.Window.Check(), q.EventFilter.Check()) }

// Check validates the filter's values.
func (f EventFilter) Check() error {
	return firstOf(checkFilter("project_id", f.ProjectID), checkFilter("run_id", f.RunID),
		checkFilter("work_unit_id", f.WorkUnitID), checkEventType(f.EventType))
}

// firstOf returns the first error there is.
func firstOf(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

func checkState(state *string) error {
	if state == nil || spine.State(*state).Valid() {
		return nil
	}
	e := newFault(InvalidState, "state is not a lifecycle state.")
	for _, s := range spine.States() {
		e.Allowed = append(e.Allowed, string(s))
	}
	return e
}

func checkEventType(name *string) error {
	if name == nil || slices.Contains(spine.EventTypes(), *name) {
		return nil
	}
	e := newFault(InvalidEventType, "event_type is not a known type.")
	e.Allowed = spine.EventTypes()
	return e
}

func checkFilter(name string, value *string) error {
	if value != nil && strings.TrimSpace(*value) == "" {
		return newFault(InvalidFilter, "%s must not be blank.", name)
	}
	return nil
}

func invalidCursor() error {
	return newFault(InvalidCursor, "The cursor was not issued by this service for this listing.")
}

// cursorKey reads the key that cursors are sealed with.
func (t tx) cursorKey() ([]byte, error) {
	text, err := t.meta(metaCursorKey)
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(text)
	if err != nil || len(key) != 32 {
		return nil, brokenFault(nil, "The store's cursor key is damaged.")
	}
	return key, nil
}

// pager walks one listing of a store.
type pager struct {
	key   []byte
	kind  cursor.Kind
	after string
	limit int
}

func (t tx) pager(w Window, kind cursor.Kind) (pager, error) {
	key, err := t.cursorKey()
	if err != nil {
		return pager{}, err
	}
	p := pager{key: key, kind: kind, limit: w.limit()}
	if w.Cursor != nil {
		if p.after, err = cursor.Decode(key, kind, *w.Cursor); err != nil {
			return p, invalidCursor()
		}
	}
	return p, nil
}

func (p pager) next(last string) string { return cursor.Encode(p.key, p.kind, last) }

// conditions collects the filters of a query.
type conditions struct {
	text string
	args []any
}

func (c *conditions) and(column string, value *string) {
	if value != nil {
		c.text += " AND " + column + " = ?"
		c.args = append(c.args, *value)
	}
}

// Runs lists runs by id, in the order of code points. A row that fails its checks
// fails the page: nothing is skipped.
func (r *Reader) Runs(ctx context.Context, q RunQuery) (page Page[Run], err error) {
	if err := q.Check(); err != nil {
		return page, err
	}
	err = r.source.read(ctx, func(t tx) error {
		p, err := t.pager(q.Window, cursor.Runs)
		if err != nil {
			return err
		}
		c := conditions{args: []any{p.after}}
		c.and("r.state", q.State)
		c.and("r.project_id", q.ProjectID)
		page = Page[Run]{Items: []Run{}}
		err = t.eachRow("r.run_id > ?"+c.text+" ORDER BY r.run_id", c.args, func(row *runRow) error {
			if len(page.Items) == p.limit { // sound or not, it is on the next page
				page.Next = p.next(page.Items[p.limit-1].Projection.RunID)
				return errEnough
			}
			run, err := row.run()
			page.Items = append(page.Items, run)
			return err
		})
		if err != nil || q.State == nil && q.ProjectID == nil {
			return err
		}
		last := ""
		if n := len(page.Items); n > 0 {
			last = page.Items[n-1].Projection.RunID
		}
		return t.noStray(func(s stray) bool {
			return filterAllows(q.State, s.state) && filterAllows(q.ProjectID, s.project) && pageHolds(page, p.after, last, s.id)
		})
	})
	if err != nil {
		return Page[Run]{}, err
	}
	return page, nil
}

var errEnough = errors.New("enough")

// eachRun checks and passes on every run that the condition selects.
func (t tx) eachRun(where string, args []any, fn func(Run) error) error {
	return t.eachRow(where, args, func(row *runRow) error {
		run, err := row.run()
		if err != nil {
			return err
		}
		return fn(run)
	})
}

// eachRow passes on the row of every run that the condition selects, until fn
// returns errEnough.
func (t tx) eachRow(where string, args []any, fn func(*runRow) error) error {
	err := t.each(runSelect+" WHERE "+oursOrClaimed+" AND "+where, args, func(rows *sql.Rows) error {
		var row runRow
		if err := row.scan(rows); err != nil {
			return err
		}
		if row.foreign() { // it only quotes one of our kinds
			return nil
		}
		return fn(&row)
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// runRow reads the row of a run.
func (t tx) runRow(id string) (*runRow, error) {
	if !spine.IsIdentifier(id) {
		return nil, noRun(id)
	}
	var row runRow
	err := row.scan(t.row(runSelect+" WHERE r.run_id = ?", id))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, noRun(id)
	}
	return &row, err
}

// isCorrupt reports whether a run's row was found and fails its checks.
func isCorrupt(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == PersistedStateCorrupt
}

func noRun(id string) error {
	e := newFault(RunNotFound, "The store has no run of this id.")
	if spine.IsIdentifier(id) {
		e.ID = id
	}
	return e
}

// Run reads one run.
func (r *Reader) Run(ctx context.Context, id string) (run Run, err error) {
	err = r.source.read(ctx, func(t tx) error {
		row, err := t.runRow(id)
		if err != nil {
			return err
		}
		run, err = row.run()
		return err
	})
	return run, err
}

// WorkUnits lists work units by id, in the order of code points.
func (r *Reader) WorkUnits(ctx context.Context, q WorkUnitQuery) (page Page[spine.WorkUnit], err error) {
	if err := q.Check(); err != nil {
		return page, err
	}
	err = r.source.read(ctx, func(t tx) error {
		p, err := t.pager(q.Window, cursor.WorkUnits)
		if err != nil {
			return err
		}
		page = Page[spine.WorkUnit]{Items: []spine.WorkUnit{}}
		c := conditions{args: []any{p.after}}
		c.and("r.project_id", q.ProjectID)
		err = t.each("SELECT DISTINCT r.work_unit_id FROM runs r WHERE "+oursOrClaimed+" AND r.work_unit_id > ?"+c.text+
			" ORDER BY r.work_unit_id", c.args, func(rows *sql.Rows) error {
			var id string
			if err := rows.Scan(&id); err != nil {
				return err
			}
			// A row that only quotes one of our kinds may give a unit without a run.
			unit, err := t.workUnit(id, q.ProjectID)
			if len(page.Items) == p.limit && (unit.RunCount > 0 || isCorrupt(err)) { // sound or not, it is on the next page
				page.Next = p.next(page.Items[p.limit-1].ID)
				return errEnough
			}
			if err != nil || unit.RunCount == 0 {
				return err
			}
			page.Items = append(page.Items, unit)
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
		last := ""
		if n := len(page.Items); n > 0 {
			last = page.Items[n-1].ID
		}
		return t.noStray(func(s stray) bool {
			return filterAllows(q.ProjectID, s.project) && pageHolds(page, p.after, last, s.unit)
		})
	})
	if err != nil {
		return Page[spine.WorkUnit]{}, err
	}
	return page, nil
}

// WorkUnit reads one work unit, from all projects.
func (r *Reader) WorkUnit(ctx context.Context, id string) (unit spine.WorkUnit, err error) {
	err = r.source.read(ctx, func(t tx) error {
		if spine.IsIdentifier(id) {
			if unit, err = t.workUnit(id, nil); err == nil {
				err = t.noStray(func(s stray) bool { return s.unit == id })
			}
			if err != nil {
				return err
			}
		}
		if unit.RunCount == 0 {
			return newFault(WorkUnitNotFound, "No stored run references this work unit.")
		}
		return nil
	})
	return unit, err
}

func (t tx) workUnit(id string, project *string) (spine.WorkUnit, error) {
	unit := spine.WorkUnit{ID: id, Revisions: []spine.RevisionCount{}}
	counts := map[spine.Revision]int64{}
	c := conditions{args: []any{id}}
	c.and("r.project_id", project)
	err := t.eachRun("r.work_unit_id = ?"+c.text+" ORDER BY r.run_id", c.args, func(run Run) error {
		counts[run.Projection.WorkUnit]++
		unit.RunCount++
		return nil
	})
	for w, n := range counts {
		unit.Revisions = append(unit.Revisions, spine.RevisionCount{
			Version: w.Version, Digest: w.Digest, SourceRevision: w.SourceRevision, RunCount: n})
	}
	spine.SortRevisions(unit.Revisions)
	return unit, err
}

// Project reads the summary of a project's runs.
func (r *Reader) Project(ctx context.Context, id string) (project spine.Project, err error) {
	err = r.source.read(ctx, func(t tx) error {
		project = spine.NewProject(id)
		if spine.IsIdentifier(id) {
			last := ""
			// By work unit, so that counting them needs no memory.
			err := t.eachRun("r.project_id = ? ORDER BY r.work_unit_id, r.run_id", []any{id}, func(run Run) error {
				project.RunCount++
				project.RunsByState[run.Projection.State]++
				if unit := run.Projection.WorkUnit.ID; unit != last {
					project.WorkUnitCount++
					last = unit
				}
				return nil
			})
			if err == nil {
				err = t.noStray(func(s stray) bool { return s.project == id })
			}
			if err != nil {
				return err
			}
		}
		if project.RunCount == 0 {
			return newFault(ProjectNotFound, "No stored run names this project.")
		}
		return nil
	})
	return project, err
}

// Connections lists connectors by id, in the order of code points.
func (r *Reader) Connections(ctx context.Context, w Window) (page Page[spine.Connection], err error) {
	if err := w.Check(); err != nil {
		return page, err
	}
	err = r.source.read(ctx, func(t tx) error {
		p, err := t.pager(w, cursor.Connections)
		if err != nil {
			return err
		}
		page = Page[spine.Connection]{Items: []spine.Connection{}}
		return t.each("SELECT connection_id, metadata_json FROM connections WHERE connection_id > ? ORDER BY connection_id LIMIT ?",
			[]any{p.after, p.limit + 1}, func(rows *sql.Rows) error {
				var id, metadata string
				if err := rows.Scan(&id, &metadata); err != nil {
					return err
				}
				if len(page.Items) == p.limit {
					page.Next = p.next(page.Items[p.limit-1].ID)
					return nil
				}
				c, err := readConnection(id, metadata)
				page.Items = append(page.Items, c)
				return err
			})
	})
	if err != nil {
		return Page[spine.Connection]{}, err
	}
	return page, nil
}

// Connection reads one connector.
func (r *Reader) Connection(ctx context.Context, id string) (c spine.Connection, err error) {
	err = r.source.read(ctx, func(t tx) error {
		var metadata string
		err := t.row("SELECT metadata_json FROM connections WHERE connection_id = ?", id).Scan(&metadata)
		if errors.Is(err, sql.ErrNoRows) || err == nil && !spine.IsConnectionID(id) {
			return newFault(ConnectionNotFound, "The store has no connector of this id.")
		}
		if err != nil {
			return err
		}
		c, err = readConnection(id, metadata)
		return err
	})
	return c, err
}

func readConnection(id, metadata string) (spine.Connection, error) {
	c, err := decodeConnection(id, metadata)
	if err != nil {
		return spine.Connection{}, &Error{Code: ConnectionRecordInvalid, ID: id, Reason: describeFault(err),
			Message: "The stored connector " + id + " is invalid: " + describeFault(err) + "."}
	}
	return c, nil
}

// Events lists events by sequence.
func (r *Reader) Events(ctx context.Context, q EventQuery) (page Page[Event], err error) {
	if err := q.Check(); err != nil {
		return page, err
	}
	err = r.source.read(ctx, func(t tx) error {
		p, err := t.pager(q.Window, cursor.Events)
		if err != nil {
			return err
		}
		after := int64(0)
		if p.after != "" {
			if after, err = strconv.ParseInt(p.after, 10, 64); err != nil {
				return invalidCursor()
			}
		}
		items, err := t.events(after, q.EventFilter, p.limit+1)
		if err != nil && len(items) <= p.limit { // the one beyond is on the next page, sound or not
			return err
		}
		page = Page[Event]{Items: items}
		if len(items) > p.limit {
			page.Items = items[:p.limit]
			page.Next = p.next(strconv.FormatInt(items[p.limit-1].Sequence, 10))
		}
		return nil
	})
	return page, err
}

// EventsAfter reads up to limit events above a sequence that pass the filter, and the newest
// sequence that it read: the position of a stream, matched or not.
func (r *Reader) EventsAfter(ctx context.Context, after int64, f EventFilter, limit int) (items []Event, seen int64, err error) {
	if err := f.Check(); err != nil {
		return nil, 0, err
	}
	err = r.source.read(ctx, func(t tx) error {
		if items, err = t.events(after, f, limit); err != nil {
			return err
		}
		if len(items) == limit && limit > 0 {
			seen = items[limit-1].Sequence
			return nil
		}
		seen, err = t.lastSequence()
		return err
	})
	return items, seen, err
}

// LatestSequence is the newest sequence ever assigned, 0 if there is none.
func (r *Reader) LatestSequence(ctx context.Context) (sequence int64, err error) {
	err = r.source.read(ctx, func(t tx) error {
		sequence, err = t.lastSequence()
		return err
	})
	return sequence, err
}

func (t tx) events(after int64, f EventFilter, limit int) ([]Event, error) {
	c := conditions{args: []any{after}}
	c.and("run_id", f.RunID)
	// A run is the narrowest filter, then a work unit. The plus keeps SQLite, which
	// has no statistics here, from walking the index of a wider one instead.
	wider := ""
	if f.RunID != nil {
		wider = "+"
	}
	c.and(wider+"work_unit_id", f.WorkUnitID)
	if f.WorkUnitID != nil {
		wider = "+"
	}
	c.and(wider+"project_id", f.ProjectID)
	c.and(wider+"event_type", f.EventType)
	items := make([]Event, 0, min(limit, MaxLimit))
	var row eventRow
	var agrees bool
	targets := append(row.targets(), &agrees)
	err := t.each("SELECT "+eventColumns+", "+eventAgrees+" FROM events e WHERE sequence > ?"+c.text+" ORDER BY sequence LIMIT ?",
		append(c.args, limit), func(rows *sql.Rows) error {
			if err := rows.Scan(targets...); err != nil {
				return err
			}
			e, err := row.event()
			if err == nil && !agrees {
				err = brokenFault(nil, "The stored event %d does not match its run %s.", row.sequence, row.runID)
			}
			items = append(items, e)
			return err
		})
	return items, err
}
