package orchestratord

import (
	"strings"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord/store"
	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord/transition"
)

// The filters of the interface. A member that is absent or null is no
// condition; an empty any_ matches nothing. Members of the real interface that
// are not here are refused by [decodeFilter].

// notOffered is a filter that must stay empty.
type notOffered struct{}

func (*notOffered) UnmarshalJSON(b []byte) error {
	if s := string(b); s == "null" || s == "{}" {
		return nil
	}
	return invalidMember("", "this server does not offer the filter %.60s here", b)
}

type anyOf[T any] struct {
	Any    *[]T `json:"any_"`
	NotAny *[]T `json:"not_any_"`
}

func (a *anyOf[T]) add(c *store.Cond, column string) {
	if a == nil {
		return
	}
	if a.Any != nil {
		c.Add(column+" = any(?)", *a.Any)
	}
	if a.NotAny != nil {
		c.Add("not ("+column+" = any(?))", *a.NotAny)
	}
}

type nameFilter struct {
	anyOf[string]
	Like *string `json:"like_"`
}

func (n *nameFilter) add(c *store.Cond, column string) {
	if n == nil {
		return
	}
	n.anyOf.add(c, column)
	if n.Like != nil {
		c.Add(column+" ilike ?", "%"+strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(*n.Like)+"%")
	}
}

type span struct {
	After  *moment `json:"after_"`
	Before *moment `json:"before_"`
	IsNull *bool   `json:"is_null_"`
}

func (s *span) add(c *store.Cond, column string) {
	if s == nil {
		return
	}
	if s.After != nil {
		c.Add(column+" >= ?", s.After.time())
	}
	if s.Before != nil {
		c.Add(column+" <= ?", s.Before.time())
	}
	if s.IsNull != nil {
		c.Add("("+column+" is null) = ?", *s.IsNull)
	}
}

type tagFilter struct {
	All    *[]string `json:"all_"`
	Any    *[]string `json:"any_"`
	IsNull *bool     `json:"is_null_"`
}

func (t *tagFilter) add(c *store.Cond, column string) {
	if t == nil {
		return
	}
	if t.All != nil {
		c.Add(column+" @> ?::text[]", *t.All)
	}
	if t.Any != nil {
		c.Add(column+" && ?::text[]", *t.Any)
	}
	if t.IsNull != nil {
		c.Add("(cardinality("+column+") = 0) = ?", *t.IsNull)
	}
}

// namedFilter selects flows, deployments or work pools by id and name.
type namedFilter struct {
	ID   *anyOf[uuid.UUID] `json:"id"`
	Name *nameFilter       `json:"name"`
}

func (f *namedFilter) UnmarshalJSON(b []byte) error {
	type plain namedFilter
	return decodeFilter(b, "", (*plain)(f))
}

func (f *namedFilter) add(c *store.Cond, table string) {
	f.ID.add(c, table+".id")
	f.Name.add(c, table+".name")
}

// matchesNothing reports an empty list, which no id or name is in.
func (f *namedFilter) matchesNothing() bool {
	return f.ID != nil && f.ID.Any != nil && len(*f.ID.Any) == 0 ||
		f.Name != nil && f.Name.Any != nil && len(*f.Name.Any) == 0
}

// lists gives the ids and names to match, for queries where an empty list is no
// condition; the other forms of the filter are refused there.
func (f *namedFilter) lists() (ids []uuid.UUID, names []string, err error) {
	ids, names = []uuid.UUID{}, []string{}
	if f.ID != nil {
		if f.ID.NotAny != nil {
			return nil, nil, invalidMember("", "this server offers id.any_ alone here")
		}
		if f.ID.Any != nil {
			ids = *f.ID.Any
		}
	}
	if f.Name != nil {
		if f.Name.NotAny != nil || f.Name.Like != nil {
			return nil, nil, invalidMember("", "this server offers name.any_ alone here")
		}
		if f.Name.Any != nil {
			names = *f.Name.Any
		}
	}
	return ids, names, nil
}

type stateTypes = anyOf[orchestrator.StateType]

type runFilter struct {
	Operator       string            `json:"operator"`
	ID             *anyOf[uuid.UUID] `json:"id"`
	Name           *nameFilter       `json:"name"`
	Tags           *tagFilter        `json:"tags"`
	DeploymentID   *anyOf[uuid.UUID] `json:"deployment_id"`
	WorkQueueName  *anyOf[string]    `json:"work_queue_name"`
	State          *runStateFilter   `json:"state"`
	StartTime      *span             `json:"start_time"`
	EndTime        *span             `json:"end_time"`
	ExpectedStart  *span             `json:"expected_start_time"`
	NextStart      *span             `json:"next_scheduled_start_time"`
	IdempotencyKey *anyOf[string]    `json:"idempotency_key"`
	ParentTaskRun  *anyOf[uuid.UUID] `json:"parent_task_run_id"`
}

type runStateFilter struct {
	Type *stateTypes    `json:"type"`
	Name *anyOf[string] `json:"name"`
}

func (f *runFilter) UnmarshalJSON(b []byte) error {
	type plain runFilter
	if err := decodeFilter(b, "flow_runs", (*plain)(f)); err != nil {
		return err
	}
	switch f.Operator {
	case "", "and_", "or_":
	default:
		return invalidMember("flow_runs.operator", "Input should be 'and_' or 'or_'")
	}
	if f.State == nil || f.State.Type == nil {
		return nil
	}
	for _, list := range []*[]orchestrator.StateType{f.State.Type.Any, f.State.Type.NotAny} {
		if list == nil {
			continue
		}
		for _, t := range *list {
			if !transition.Known(t) {
				return invalidMember("flow_runs.state.type", "Input should be %s", stateTypeList())
			}
		}
	}
	return nil
}

func (f *runFilter) add(c *store.Cond) {
	mark := c.Mark()
	f.ID.add(c, "r.id")
	f.Name.add(c, "r.name")
	f.Tags.add(c, "r.tags")
	f.DeploymentID.add(c, "r.deployment_id")
	f.WorkQueueName.add(c, "r.work_queue_name")
	if f.State != nil {
		f.State.Type.add(c, "r.state_type")
		f.State.Name.add(c, "r.state_name")
	}
	f.StartTime.add(c, "r.start_time")
	f.EndTime.add(c, "r.end_time")
	f.ExpectedStart.add(c, "r.expected_start_time")
	f.NextStart.add(c, "r.next_start_time")
	f.IdempotencyKey.add(c, "r.idempotency_key")
	f.ParentTaskRun.add(c, "r.parent_task_run_id")
	if f.Operator == "or_" {
		c.Or(mark)
	}
}

// runQuery is the body of flow_runs/filter and flow_runs/count.
type runQuery struct {
	page
	Sort        string       `json:"sort"`
	Flows       *namedFilter `json:"flows"`
	FlowRuns    *runFilter   `json:"flow_runs"`
	Deployments *namedFilter `json:"deployments"`
	WorkPools   *namedFilter `json:"work_pools"`
	TaskRuns    notOffered   `json:"task_runs"`
	WorkQueues  notOffered   `json:"work_pool_queues"`
}

func (q runQuery) cond() store.Cond {
	var c store.Cond
	if q.Flows != nil {
		q.Flows.add(&c, "f")
	}
	if q.FlowRuns != nil {
		q.FlowRuns.add(&c)
	}
	if q.Deployments != nil {
		q.Deployments.add(&c, "d")
	}
	if q.WorkPools != nil {
		q.WorkPools.add(&c, "p")
	}
	return c
}

func stateTypeList() string {
	var quoted []string
	for _, t := range orchestrator.StateTypes {
		quoted = append(quoted, "'"+string(t)+"'")
	}
	return strings.Join(quoted[:len(quoted)-1], ", ") + " or " + quoted[len(quoted)-1]
}
