package orchestratord

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord/paramschema"
	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord/store"
	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord/transition"
)

type runDoc struct {
	ID                 uuid.UUID              `json:"id"`
	Created            time.Time              `json:"created"`
	Updated            time.Time              `json:"updated"`
	Name               string                 `json:"name"`
	FlowID             uuid.UUID              `json:"flow_id"`
	StateID            uuid.UUID              `json:"state_id"`
	DeploymentID       *uuid.UUID             `json:"deployment_id"`
	DeploymentVersion  *string                `json:"deployment_version"`
	WorkQueueID        *uuid.UUID             `json:"work_queue_id"`
	WorkQueueName      *string                `json:"work_queue_name"`
	Parameters         json.RawMessage        `json:"parameters"`
	IdempotencyKey     *string                `json:"idempotency_key"`
	Context            json.RawMessage        `json:"context"`
	Tags               []string               `json:"tags"`
	Labels             json.RawMessage        `json:"labels"`
	StateType          orchestrator.StateType `json:"state_type"`
	StateName          string                 `json:"state_name"`
	RunCount           int32                  `json:"run_count"`
	ExpectedStartTime  *time.Time             `json:"expected_start_time"`
	NextStartTime      *time.Time             `json:"next_scheduled_start_time"`
	StartTime          *time.Time             `json:"start_time"`
	EndTime            *time.Time             `json:"end_time"`
	TotalRunTime       float64                `json:"total_run_time"`
	EstimatedRunTime   float64                `json:"estimated_run_time"`
	EstimatedStartLate float64                `json:"estimated_start_time_delta"`
	AutoScheduled      bool                   `json:"auto_scheduled"`
	WorkPoolID         *uuid.UUID             `json:"work_pool_id"`
	WorkPoolName       *string                `json:"work_pool_name"`
	State              stateDoc               `json:"state"`
	JobVariables       json.RawMessage        `json:"job_variables"`
	ParentTaskRunID    *uuid.UUID             `json:"parent_task_run_id"`
	FlowVersion        *string                `json:"flow_version"`
	InfrastructurePID  *string                `json:"infrastructure_pid"`
	EmpiricalPolicy    json.RawMessage        `json:"empirical_policy"`
}

func toUTC(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return pointerTo(t.UTC())
}

// runOf makes the document of a run. The estimates count up to now.
func (s *Server) runOf(r store.Run) runDoc {
	now := s.now()
	d := runDoc{
		ID: r.ID, Created: r.Created.UTC(), Updated: r.Updated.UTC(), Name: r.Name, FlowID: r.FlowID,
		StateID: r.State.ID, DeploymentID: r.DeploymentID, DeploymentVersion: r.DeploymentVersion,
		WorkQueueID: r.WorkQueueID, WorkQueueName: r.WorkQueueName, Parameters: r.Parameters,
		IdempotencyKey: r.IdempotencyKey, Context: r.Context, Tags: r.Tags, Labels: r.Labels,
		StateType: orchestrator.StateType(r.State.Type), StateName: r.State.Name, RunCount: r.RunCount,
		ExpectedStartTime: toUTC(r.ExpectedStartTime), NextStartTime: toUTC(r.NextStartTime),
		StartTime: toUTC(r.StartTime), EndTime: toUTC(r.EndTime), TotalRunTime: r.RunSeconds,
		EstimatedRunTime: r.RunSeconds, AutoScheduled: r.AutoScheduled, WorkPoolID: r.WorkPoolID,
		WorkPoolName: r.WorkPoolName, State: stateOf(r.State), JobVariables: r.JobVariables,
		ParentTaskRunID: r.ParentTaskRunID, FlowVersion: r.FlowVersion, InfrastructurePID: r.InfrastructurePID,
		EmpiricalPolicy: r.EmpiricalPolicy,
	}
	if d.StateType == orchestrator.Running {
		d.EstimatedRunTime += max(0, now.Sub(r.State.Timestamp).Seconds())
	}
	if e := r.ExpectedStartTime; e != nil {
		start := now
		if r.StartTime != nil {
			start = *r.StartTime
		} else if d.StateType.Terminal() {
			start = *e
		}
		d.EstimatedStartLate = max(0, start.Sub(*e).Seconds())
	}
	return d
}

// newRun describes a run to create, by default in the state SCHEDULED.
type newRun struct {
	name       string
	parameters json.RawMessage
	key        *string
	tags       []string
	context    json.RawMessage
	labels     json.RawMessage
	variables  json.RawMessage
	at         time.Time
	state      orchestrator.StateType
	stateName  string
	message    *string
	auto       bool
	schedule   *uuid.UUID
	parent     *uuid.UUID
	version    *string
	policy     json.RawMessage
}

// begin takes over the state that the client wants a run to begin in.
func (n *newRun) begin(st stateIn) {
	if t := st.Details.ScheduledTime.time(); t != nil {
		n.at = t.Truncate(time.Microsecond)
	}
	n.state, n.stateName, n.message = st.Type, st.Name, st.Message
}

// insertRun makes the run and its first state. Where the idempotency key is
// known, it returns the earlier run and false: Postgres makes the second of two
// inserts wait for the first to commit.
func (s *Server) insertRun(ctx context.Context, q *store.Queries, d store.Deployment, n newRun) (uuid.UUID, bool, error) {
	id, state, now := newID(), newID(), s.now()
	if n.name == "" {
		n.name = fmt.Sprintf("%s-%x", d.Name, id[12:])
	}
	if n.state == "" {
		n.state = orchestrator.Scheduled
	}
	if n.stateName == "" {
		n.stateName = transition.DefaultName(n.state)
	}
	var scheduled *time.Time
	if n.state == orchestrator.Scheduled {
		scheduled = &n.at
	}
	empty := json.RawMessage("{}")
	arg := store.InsertRunParams{
		ID: id, Now: now, Name: n.name, FlowID: d.FlowID, DeploymentVersion: d.Version,
		WorkPoolID: d.WorkPoolID, WorkQueueName: d.WorkQueueName, Parameters: n.parameters, IdempotencyKey: n.key,
		Context: orRaw(n.context, empty), Tags: orEmpty(n.tags), Labels: orRaw(n.labels, empty),
		JobVariables: orRaw(n.variables, empty), AutoScheduled: n.auto, ScheduleID: n.schedule,
		ExpectedStartTime: &n.at, NextStartTime: scheduled, StateID: state, StateType: string(n.state), StateName: n.stateName,
		ParentTaskRunID: n.parent, FlowVersion: n.version, EmpiricalPolicy: orRaw(n.policy, empty), Elsewhere: d.ID == uuid.Nil,
	}
	if d.ID != uuid.Nil {
		arg.DeploymentID = &d.ID
		// A deployment with an entrypoint is for processes that can run its code; this server runs only built-in flows.
		arg.Elsewhere = d.WorkPoolID == nil && d.Entrypoint != nil && *d.Entrypoint != ""
	}
	rows, err := q.InsertRun(ctx, arg)
	if err != nil {
		return uuid.Nil, false, err
	}
	if rows == 0 {
		id, err = q.RunByKey(ctx, store.RunByKeyParams{FlowID: d.FlowID, IdempotencyKey: n.key})
		return id, false, err
	}
	err = q.InsertState(ctx, store.InsertStateParams{
		ID: state, FlowRunID: id, Type: string(n.state), Name: n.stateName,
		Timestamp: now, Message: n.message, ScheduledTime: scheduled,
	})
	return id, true, err
}

func orRaw(a, b json.RawMessage) json.RawMessage {
	if a == nil {
		return b
	}
	return a
}

func (s *Server) createFlowRun(r *http.Request) (any, error) {
	deployment, err := pathID(r)
	if err != nil {
		return nil, err
	}
	var in struct {
		Name           string   `json:"name"`
		Parameters     object   `json:"parameters"`
		Enforce        *bool    `json:"enforce_parameter_schema"`
		Context        object   `json:"context"`
		Tags           []string `json:"tags"`
		IdempotencyKey *string  `json:"idempotency_key"`
		Labels         object   `json:"labels"`
		JobVariables   object   `json:"job_variables"`
		State          *stateIn `json:"state"`

		ParentTaskRunID *uuid.UUID `json:"parent_task_run_id"`
		EmpiricalPolicy object     `json:"empirical_policy"`
	}
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	if err := checkKey(in.IdempotencyKey); err != nil {
		return nil, err
	}
	n := newRun{
		name: in.Name, key: in.IdempotencyKey, context: in.Context.json(), labels: in.Labels.json(),
		variables: in.JobVariables.json(), at: s.now(), parent: in.ParentTaskRunID, policy: in.EmpiricalPolicy.json(),
	}
	if st := in.State; st != nil {
		if st.Type != orchestrator.Scheduled {
			return nil, invalidMember("state.type", "this server starts a run in SCHEDULED alone")
		}
		n.begin(*st)
	}
	var id uuid.UUID
	var created bool
	var run store.Run
	err = s.tx(r.Context(), func(q *store.Queries) error {
		rows, err := q.Deployments(r.Context(), store.DeploymentsParams{Ids: []uuid.UUID{deployment}, Now: s.now()})
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return notFound("Deployment")
		}
		d := rows[0].Deployment
		if n.parameters, err = overlayObjects(d.Parameters, in.Parameters.json()); err != nil {
			return err
		}
		if in.Enforce == nil && d.EnforceParameterSchema || in.Enforce != nil && *in.Enforce {
			if err := checkParameters(d.ParameterOpenapiSchema, n.parameters); err != nil {
				return err
			}
		}
		n.tags = append(append([]string{}, d.Tags...), in.Tags...)
		if id, created, err = s.insertRun(r.Context(), q, d, n); err != nil {
			return err
		}
		run, err = q.Run(r.Context(), id)
		return err
	})
	if err != nil {
		return nil, err
	}
	if !created {
		return s.runOf(run), nil
	}
	s.poke()
	return answer{http.StatusCreated, s.runOf(run)}, nil
}

func checkKey(key *string) error {
	if key != nil && utf8.RuneCountInString(*key) > 1024 {
		return invalidMember("idempotency_key", "must be at most 1024 characters")
	}
	return nil
}

func checkParameters(schema, parameters json.RawMessage) error {
	compiled, err := paramschema.Compile(schema, false)
	if err == nil {
		err = compiled.Check(parameters)
	}
	if err != nil {
		return refuseRequest(http.StatusConflict, "Error creating flow run: %v", err)
	}
	return nil
}

func (s *Server) readFlowRun(r *http.Request) (any, error) {
	id, err := pathID(r)
	if err != nil {
		return nil, err
	}
	run, err := s.q.Run(r.Context(), id)
	if err != nil {
		return nil, absentAsNotFound(err, "Flow run")
	}
	return s.runOf(run), nil
}

func (s *Server) filterFlowRuns(r *http.Request) (any, error) {
	in := runQuery{Sort: "ID_DESC"}
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	limit, offset, err := in.bounds()
	if err != nil {
		return nil, err
	}
	if _, ok := store.RunOrder[in.Sort]; !ok {
		return nil, invalidMember("sort", "%q is no order of flow runs", in.Sort)
	}
	runs, err := s.q.Runs(r.Context(), in.cond(), in.Sort, limit, offset)
	if err != nil {
		return nil, err
	}
	out := make([]runDoc, 0, len(runs))
	for _, run := range runs {
		out = append(out, s.runOf(run))
	}
	return out, nil
}

func (s *Server) countFlowRuns(r *http.Request) (any, error) {
	var in runQuery
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	return s.q.CountRuns(r.Context(), in.cond())
}
