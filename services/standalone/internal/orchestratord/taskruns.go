package orchestratord

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord/store"
)

// The client keeps its task runs to itself and reports them as events, which this server drops. It creates only one
// kind on the server: the task run of a flow called within a flow, so that a retry of the outer run finds the inner run
// again. Its state is that of the inner run.

type taskRunDoc struct {
	ID         uuid.UUID       `json:"id"`
	Created    time.Time       `json:"created"`
	Updated    time.Time       `json:"updated"`
	Name       string          `json:"name"`
	FlowRunID  uuid.UUID       `json:"flow_run_id"`
	TaskKey    string          `json:"task_key"`
	DynamicKey string          `json:"dynamic_key"`
	Tags       []string        `json:"tags"`
	TaskInputs json.RawMessage `json:"task_inputs"`
	StateID    uuid.UUID       `json:"state_id"`
	StateType  string          `json:"state_type"`
	StateName  string          `json:"state_name"`
	State      stateDoc        `json:"state"`
}

func taskRunOf(row store.TaskRunsRow) taskRunDoc {
	t := row.TaskRun
	st := stateDoc{t.ID, row.StateType, row.StateName, t.Updated.UTC(), nil, json.RawMessage("null"), stateDetails{FlowRunID: &t.FlowRunID}}
	return taskRunDoc{t.ID, t.Created.UTC(), t.Updated.UTC(), t.Name, t.FlowRunID, t.TaskKey, t.DynamicKey, t.Tags, t.TaskInputs,
		st.ID, st.Type, st.Name, st}
}

func (s *Server) createTaskRun(r *http.Request) (any, error) {
	var in struct {
		Name       *string    `json:"name"`
		FlowRunID  *uuid.UUID `json:"flow_run_id"`
		TaskKey    string     `json:"task_key"`
		DynamicKey string     `json:"dynamic_key"`
		Tags       []string   `json:"tags"`
		TaskInputs object     `json:"task_inputs"`
	}
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	if in.FlowRunID == nil {
		return nil, invalidMember("flow_run_id", "this server keeps the task runs of flow runs alone")
	}
	if in.TaskKey == "" || in.DynamicKey == "" {
		return nil, invalidMember("task_key", "task_key and dynamic_key are required")
	}
	if in.Name == nil {
		in.Name = &in.TaskKey
	}
	status := http.StatusCreated
	var doc taskRunDoc
	err := s.tx(r.Context(), func(q *store.Queries) error {
		if _, err := q.LockRun(r.Context(), *in.FlowRunID); err != nil {
			return absentAsNotFound(err, "Flow run")
		}
		arg := store.InsertTaskRunParams{ID: newID(), Now: s.now(), Name: *in.Name, FlowRunID: *in.FlowRunID, TaskKey: in.TaskKey,
			DynamicKey: in.DynamicKey, Tags: orEmpty(in.Tags), TaskInputs: in.TaskInputs.json()}
		id, err := q.InsertTaskRun(r.Context(), arg)
		if err != nil {
			return err
		}
		if status = http.StatusCreated; id != arg.ID {
			status = http.StatusOK
		}
		doc, err = readTaskRun(r.Context(), q, id)
		return err
	})
	return answer{status, doc}, err
}

func readTaskRun(ctx context.Context, q *store.Queries, id uuid.UUID) (taskRunDoc, error) {
	rows, err := q.TaskRuns(ctx, store.TaskRunsParams{Ids: []uuid.UUID{id}, FlowRunIds: []uuid.UUID{}, Max: 1})
	if err == nil && len(rows) == 0 {
		err = notFound("Task run")
	}
	if err != nil {
		return taskRunDoc{}, err
	}
	return taskRunOf(rows[0]), nil
}

func (s *Server) readTaskRun(r *http.Request) (any, error) {
	id, err := pathID(r)
	if err != nil {
		return nil, err
	}
	return readTaskRun(r.Context(), s.q, id)
}

func (s *Server) filterTaskRuns(r *http.Request) (any, error) {
	var in struct {
		page
		Flows       notOffered   `json:"flows"`
		FlowRuns    *namedFilter `json:"flow_runs"`
		TaskRuns    *namedFilter `json:"task_runs"`
		Deployments notOffered   `json:"deployments"`
	}
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	limit, offset, err := in.bounds()
	if err != nil {
		return nil, err
	}
	arg := store.TaskRunsParams{Ids: []uuid.UUID{}, FlowRunIds: []uuid.UUID{}, Max: int32(limit), Skip: int32(offset)}
	for f, ids := range map[*namedFilter]*[]uuid.UUID{in.FlowRuns: &arg.FlowRunIds, in.TaskRuns: &arg.Ids} {
		if f == nil {
			continue
		}
		if f.matchesNothing() {
			return []taskRunDoc{}, nil
		}
		var names []string
		if *ids, names, err = f.lists(); err != nil {
			return nil, err
		}
		if len(names) > 0 {
			return nil, invalidMember("", "this server offers id.any_ alone here")
		}
	}
	rows, err := s.q.TaskRuns(r.Context(), arg)
	out := make([]taskRunDoc, 0, len(rows))
	for _, row := range rows {
		out = append(out, taskRunOf(row))
	}
	return out, err
}
