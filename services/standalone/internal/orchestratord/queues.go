package orchestratord

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord/store"
)

// A pool of this server has exactly one queue, "default", with the pool's settings.

type queueDoc struct {
	ID               uuid.UUID       `json:"id"`
	Created          time.Time       `json:"created"`
	Updated          time.Time       `json:"updated"`
	Name             string          `json:"name"`
	Description      *string         `json:"description"`
	IsPaused         bool            `json:"is_paused"`
	ConcurrencyLimit *int32          `json:"concurrency_limit"`
	Priority         int             `json:"priority"`
	WorkPoolID       uuid.UUID       `json:"work_pool_id"`
	WorkPoolName     string          `json:"work_pool_name"`
	Filter           json.RawMessage `json:"filter"`
	LastPolled       *time.Time      `json:"last_polled"`
	Status           string          `json:"status"`
}

func queueOf(p poolDoc) queueDoc {
	return queueDoc{ID: p.DefaultQueueID, Created: p.Created, Updated: p.Updated, Name: defaultQueue, IsPaused: p.IsPaused,
		ConcurrencyLimit: p.ConcurrencyLimit, Priority: 1, WorkPoolID: p.ID, WorkPoolName: p.Name, Filter: json.RawMessage("null"), Status: p.Status}
}

// poolFilter selects work pools.
type poolFilter struct {
	ID   *anyOf[uuid.UUID] `json:"id"`
	Name *nameFilter       `json:"name"`
	Type *anyOf[string]    `json:"type"`
}

func (f *poolFilter) UnmarshalJSON(b []byte) error {
	type plain poolFilter
	return decodeFilter(b, "work_pools", (*plain)(f))
}

func (s *Server) listPools(ctx context.Context, arg store.WorkPoolsParams) ([]poolDoc, error) {
	arg.Now = s.now()
	for _, list := range []*[]uuid.UUID{&arg.Ids, &arg.QueueIds} {
		if *list == nil {
			*list = []uuid.UUID{}
		}
	}
	arg.Names, arg.Types = orEmpty(arg.Names), orEmpty(arg.Types)
	rows, err := s.q.WorkPools(ctx, arg)
	if err != nil {
		return nil, err
	}
	out := make([]poolDoc, 0, len(rows))
	for _, row := range rows {
		out = append(out, poolOf(store.WorkPoolByNameRow(row)))
	}
	return out, nil
}

func (s *Server) filterWorkPools(r *http.Request) (any, error) {
	var in struct {
		page
		WorkPools *poolFilter `json:"work_pools"`
	}
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	limit, offset, err := in.bounds()
	if err != nil {
		return nil, err
	}
	arg := store.WorkPoolsParams{Max: int32(limit), Skip: int32(offset)}
	if f := in.WorkPools; f != nil {
		named := namedFilter{f.ID, f.Name}
		if named.matchesNothing() || f.Type != nil && f.Type.Any != nil && len(*f.Type.Any) == 0 {
			return []poolDoc{}, nil
		}
		if arg.Ids, arg.Names, err = named.lists(); err != nil {
			return nil, err
		}
		if f.Type != nil && f.Type.NotAny != nil {
			return nil, invalidMember("work_pools.type", "this server offers type.any_ alone here")
		}
		if f.Type != nil && f.Type.Any != nil {
			arg.Types = *f.Type.Any
		}
	}
	return s.listPools(r.Context(), arg)
}

// updateWorkPool changes the members in the body; null removes a limit.
func (s *Server) updateWorkPool(r *http.Request) (any, error) {
	name := r.PathValue("name")
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	err = s.tx(r.Context(), func(q *store.Queries) error {
		p, err := q.LockWorkPool(r.Context(), name)
		if isNoRows(err) {
			return refuseRequest(http.StatusNotFound, "Work pool %q not found.", name)
		}
		if err != nil {
			return err
		}
		in := struct {
			Description      *string `json:"description"`
			BaseJobTemplate  object  `json:"base_job_template"`
			IsPaused         bool    `json:"is_paused"`
			ConcurrencyLimit *int32  `json:"concurrency_limit"`
		}{p.Description, object{p.BaseJobTemplate}, p.IsPaused, p.ConcurrencyLimit}
		if err := decodeBytes(body, &in); err != nil {
			return err
		}
		if in.ConcurrencyLimit != nil && *in.ConcurrencyLimit < 0 {
			return invalidMember("concurrency_limit", "Input should be greater than or equal to 0")
		}
		return q.UpdateWorkPool(r.Context(), store.UpdateWorkPoolParams{ID: p.ID, Now: s.now(), Description: in.Description,
			BaseJobTemplate: in.BaseJobTemplate.json(), IsPaused: in.IsPaused, ConcurrencyLimit: in.ConcurrencyLimit})
	})
	s.poke()
	return answer{status: http.StatusNoContent}, err
}

// deleteWorkPool removes a pool that no deployment is in: without its pool, a deployment would be this server's own.
func (s *Server) deleteWorkPool(r *http.Request) (any, error) {
	name := r.PathValue("name")
	err := s.tx(r.Context(), func(q *store.Queries) error {
		p, err := q.LockWorkPool(r.Context(), name)
		if isNoRows(err) {
			return refuseRequest(http.StatusNotFound, "Work pool %q not found.", name)
		}
		if err != nil {
			return err
		}
		n, err := q.DeploymentsOfPool(r.Context(), &p.ID)
		if err != nil {
			return err
		}
		if n > 0 {
			return refuseRequest(http.StatusConflict, "Work pool %q has %d deployments; delete those first.", name, n)
		}
		if err := q.LeaveRunsOfPool(r.Context(), &p.ID); err != nil {
			return err
		}
		return q.DeleteWorkPool(r.Context(), p.ID)
	})
	return answer{status: http.StatusNoContent}, err
}

// queueFilter selects work queues.
type queueFilter struct {
	ID   *anyOf[uuid.UUID] `json:"id"`
	Name *struct {
		Any        *[]string `json:"any_"`
		StartsWith *[]string `json:"startswith_"`
	} `json:"name"`
}

func (f *queueFilter) UnmarshalJSON(b []byte) error {
	type plain queueFilter
	return decodeFilter(b, "work_queues", (*plain)(f))
}

// matchesName reports whether the filter lets the one name pass that queues have.
func (f *queueFilter) matchesName() bool {
	if f.Name == nil {
		return true
	}
	found := func(list *[]string, match func(string) bool) bool {
		if list == nil {
			return true
		}
		for _, v := range *list {
			if match(v) {
				return true
			}
		}
		return false
	}
	return found(f.Name.Any, func(v string) bool { return v == defaultQueue }) &&
		found(f.Name.StartsWith, func(v string) bool { return len(v) <= len(defaultQueue) && defaultQueue[:len(v)] == v })
}

// filterWorkQueues lists the queues of a pool, or of all if the path names none.
func (s *Server) filterWorkQueues(r *http.Request) (any, error) {
	var in struct {
		page
		WorkQueues *queueFilter `json:"work_queues"`
	}
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	limit, offset, err := in.bounds()
	if err != nil {
		return nil, err
	}
	arg := store.WorkPoolsParams{Max: int32(limit), Skip: int32(offset)}
	if pool := r.PathValue("name"); pool != "" {
		if _, err := s.workPool(r.Context(), s.q, pool); err != nil {
			return nil, err
		}
		arg.Names = []string{pool}
	}
	if f := in.WorkQueues; f != nil {
		if !f.matchesName() || f.ID != nil && f.ID.Any != nil && len(*f.ID.Any) == 0 {
			return []queueDoc{}, nil
		}
		if f.ID != nil && f.ID.Any != nil {
			arg.QueueIds = *f.ID.Any
		}
	}
	pools, err := s.listPools(r.Context(), arg)
	out := make([]queueDoc, 0, len(pools))
	for _, p := range pools {
		out = append(out, queueOf(p))
	}
	return out, err
}

func (s *Server) readWorkQueue(r *http.Request) (any, error) {
	id, err := pathID(r)
	if err != nil {
		return nil, err
	}
	pools, err := s.listPools(r.Context(), store.WorkPoolsParams{QueueIds: []uuid.UUID{id}, Max: 1})
	if err == nil && len(pools) == 0 {
		err = notFound("Work queue")
	}
	if err != nil {
		return nil, err
	}
	return queueOf(pools[0]), nil
}

func (s *Server) readWorkQueueByName(r *http.Request) (any, error) {
	pool, err := s.workPool(r.Context(), s.q, r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	if r.PathValue("queue") != defaultQueue {
		return nil, notFound("Work queue")
	}
	return queueOf(poolOf(pool)), nil
}

// readWorkQueueStatus reports whether a worker polls the queue.
func (s *Server) readWorkQueueStatus(r *http.Request) (any, error) {
	q, err := s.readWorkQueue(r)
	if err != nil {
		return nil, err
	}
	return map[string]any{"healthy": q.(queueDoc).Status == "READY", "late_runs_count": 0, "last_polled": nil,
		"health_check_policy": map[string]any{"maximum_late_runs": 0, "maximum_seconds_since_last_polled": 60}}, nil
}
