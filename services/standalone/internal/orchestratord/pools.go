package orchestratord

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord/store"
)

type poolDoc struct {
	ID               uuid.UUID       `json:"id"`
	Created          time.Time       `json:"created"`
	Updated          time.Time       `json:"updated"`
	Name             string          `json:"name"`
	Description      *string         `json:"description"`
	Type             string          `json:"type"`
	BaseJobTemplate  json.RawMessage `json:"base_job_template"`
	IsPaused         bool            `json:"is_paused"`
	ConcurrencyLimit *int32          `json:"concurrency_limit"`
	Status           string          `json:"status"`
	DefaultQueueID   uuid.UUID       `json:"default_queue_id"`
}

func poolOf(row store.WorkPoolByNameRow) poolDoc {
	p := row.WorkPool
	d := poolDoc{
		p.ID, p.Created.UTC(), p.Updated.UTC(), p.Name, p.Description, p.Type, p.BaseJobTemplate,
		p.IsPaused, p.ConcurrencyLimit, "NOT_READY", p.DefaultQueueID,
	}
	switch {
	case p.IsPaused:
		d.Status = "PAUSED"
	case row.Polled || p.Type == InProcess:
		d.Status = "READY"
	}
	return d
}

func (s *Server) workPool(ctx context.Context, q *store.Queries, name string) (store.WorkPoolByNameRow, error) {
	row, err := q.WorkPoolByName(ctx, store.WorkPoolByNameParams{Name: name, Now: s.now()})
	if isNoRows(err) {
		return row, refuseRequest(http.StatusNotFound, "Work pool %q not found.", name)
	}
	return row, err
}

func (s *Server) createWorkPool(r *http.Request) (any, error) {
	var in struct {
		Name             string  `json:"name"`
		Description      *string `json:"description"`
		Type             string  `json:"type"`
		BaseJobTemplate  object  `json:"base_job_template"`
		IsPaused         bool    `json:"is_paused"`
		ConcurrencyLimit *int32  `json:"concurrency_limit"`
	}
	in.Type = "prefect-agent" // the interface's default
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	if err := checkName(in.Name); err != nil {
		return nil, err
	}
	if in.ConcurrencyLimit != nil && *in.ConcurrencyLimit < 0 {
		return nil, invalidMember("concurrency_limit", "Input should be greater than or equal to 0")
	}
	n, err := s.q.InsertWorkPool(r.Context(), store.InsertWorkPoolParams{
		ID: newID(), Now: s.now(), Name: in.Name, Description: in.Description, Type: in.Type,
		BaseJobTemplate: in.BaseJobTemplate.json(), IsPaused: in.IsPaused,
		ConcurrencyLimit: in.ConcurrencyLimit, DefaultQueueID: newID(),
	})
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, refuseRequest(http.StatusConflict, "A work pool with this name already exists.")
	}
	row, err := s.workPool(r.Context(), s.q, in.Name)
	if err != nil {
		return nil, err
	}
	return answer{http.StatusCreated, poolOf(row)}, nil
}

func (s *Server) readWorkPool(r *http.Request) (any, error) {
	row, err := s.workPool(r.Context(), s.q, r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	return poolOf(row), nil
}

// heartbeat notes that a worker polls; a pool counts as polled for three
// intervals after the last.
func (s *Server) heartbeat(r *http.Request) (any, error) {
	var in struct {
		Name     string `json:"name"`
		Interval *int32 `json:"heartbeat_interval_seconds"`
	}
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	if in.Name == "" {
		return nil, invalidMember("name", "Field required")
	}
	interval := int32(30) // a worker's default
	if in.Interval != nil {
		interval = *in.Interval
	}
	if interval < 1 || interval > 86400 {
		return nil, invalidMember("heartbeat_interval_seconds", "must be 1 to 86400")
	}
	pool, err := s.workPool(r.Context(), s.q, r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	err = s.q.Beat(r.Context(), store.BeatParams{WorkPoolID: pool.WorkPool.ID, Name: in.Name, Now: s.now(), IntervalSeconds: interval})
	return answer{status: http.StatusNoContent}, err
}

// workerFilter selects workers by whether they are ONLINE or OFFLINE.
type workerFilter struct {
	Status *anyOf[string] `json:"status"`
}

func (f *workerFilter) UnmarshalJSON(b []byte) error {
	type plain workerFilter
	return decodeFilter(b, "workers", (*plain)(f))
}

func (f *workerFilter) matches(status string) bool {
	if f == nil || f.Status == nil {
		return true
	}
	return (f.Status.Any == nil || slices.Contains(*f.Status.Any, status)) &&
		(f.Status.NotAny == nil || !slices.Contains(*f.Status.NotAny, status))
}

// filterWorkers lists a pool's workers, the last heard of first.
func (s *Server) filterWorkers(r *http.Request) (any, error) {
	var in struct {
		page
		Workers *workerFilter `json:"workers"`
	}
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	limit, offset, err := in.bounds()
	if err != nil {
		return nil, err
	}
	pool, err := s.workPool(r.Context(), s.q, r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	rows, err := s.q.Workers(r.Context(), store.WorkersParams{Now: s.now(), WorkPoolID: pool.WorkPool.ID, Max: int32(limit), Skip: int32(offset)})
	if err != nil {
		return nil, err
	}
	type workerDoc struct {
		Name       string    `json:"name"`
		WorkPoolID uuid.UUID `json:"work_pool_id"`
		Heartbeat  time.Time `json:"last_heartbeat_time"`
		Interval   int32     `json:"heartbeat_interval_seconds"`
		Status     string    `json:"status"`
	}
	out := make([]workerDoc, 0, len(rows))
	for _, w := range rows {
		doc := workerDoc{w.Name, pool.WorkPool.ID, w.LastHeartbeat.UTC(), w.IntervalSeconds, "OFFLINE"}
		if w.Online {
			doc.Status = "ONLINE"
		}
		if in.Workers.matches(doc.Status) {
			out = append(out, doc)
		}
	}
	return out, nil
}

func (s *Server) scheduledFlowRuns(r *http.Request) (any, error) {
	var in struct {
		page
		Queues *[]string `json:"work_queue_names"`
		Before *moment   `json:"scheduled_before"`
		After  *moment   `json:"scheduled_after"`
	}
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	limit, _, err := in.bounds()
	if err != nil {
		return nil, err
	}
	pool, err := s.workPool(r.Context(), s.q, r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	type item struct {
		WorkPoolID  uuid.UUID `json:"work_pool_id"`
		WorkQueueID uuid.UUID `json:"work_queue_id"`
		FlowRun     runDoc    `json:"flow_run"`
	}
	out := []item{}
	if pool.WorkPool.IsPaused {
		return out, nil
	}
	arg := store.ScheduledRunsOfPoolParams{WorkPoolID: &pool.WorkPool.ID, Before: in.Before.time(), After: in.After.time(), Queues: []string{}, Max: int32(limit)}
	if in.Queues != nil {
		arg.Queues = *in.Queues
	}
	err = s.tx(r.Context(), func(q *store.Queries) error {
		out = out[:0]
		if err := q.TouchPolled(r.Context(), store.TouchPolledParams{WorkPoolID: &pool.WorkPool.ID, Now: pointerTo(s.now())}); err != nil {
			return err
		}
		if limit := pool.WorkPool.ConcurrencyLimit; limit != nil {
			active, err := q.ActiveRunsOfPool(r.Context(), arg.WorkPoolID)
			if err != nil {
				return err
			}
			arg.Max = min(arg.Max, max(0, *limit-int32(active)))
		}
		ids, err := q.ScheduledRunsOfPool(r.Context(), arg)
		if err != nil {
			return err
		}
		runs, err := s.runsByID(r.Context(), q, ids)
		for _, run := range runs {
			out = append(out, item{pool.WorkPool.ID, pool.WorkPool.DefaultQueueID, run})
		}
		return err
	})
	return out, err
}

func pointerTo[T any](v T) *T { return &v }
