package orchestratord

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord/paramschema"
	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord/store"
)

type deploymentDoc struct {
	ID                     uuid.UUID       `json:"id"`
	Created                time.Time       `json:"created"`
	Updated                time.Time       `json:"updated"`
	Name                   string          `json:"name"`
	Version                *string         `json:"version"`
	Description            *string         `json:"description"`
	FlowID                 uuid.UUID       `json:"flow_id"`
	Paused                 bool            `json:"paused"`
	Schedules              []scheduleDoc   `json:"schedules"`
	ConcurrencyLimit       *int32          `json:"concurrency_limit"`
	JobVariables           json.RawMessage `json:"job_variables"`
	Parameters             json.RawMessage `json:"parameters"`
	Tags                   []string        `json:"tags"`
	Labels                 json.RawMessage `json:"labels"`
	WorkQueueName          *string         `json:"work_queue_name"`
	WorkQueueID            *uuid.UUID      `json:"work_queue_id"`
	LastPolled             *time.Time      `json:"last_polled"`
	ParameterSchema        json.RawMessage `json:"parameter_openapi_schema"`
	Path                   *string         `json:"path"`
	PullSteps              json.RawMessage `json:"pull_steps"`
	Entrypoint             *string         `json:"entrypoint"`
	WorkPoolName           *string         `json:"work_pool_name"`
	Status                 string          `json:"status"`
	EnforceParameterSchema bool            `json:"enforce_parameter_schema"`
}

// deploymentIn is the body that creates or changes a deployment. For a change it starts as the present deployment, so
// that absent members stay.
type deploymentIn struct {
	Name                   string      `json:"name"`
	FlowID                 uuid.UUID   `json:"flow_id"`
	Version                *string     `json:"version"`
	Description            *string     `json:"description"`
	Paused                 bool        `json:"paused"`
	Schedules              *[]cronIn   `json:"schedules"`
	ConcurrencyLimit       *int32      `json:"concurrency_limit"`
	Tags                   []string    `json:"tags"`
	Labels                 object      `json:"labels"`
	Parameters             object      `json:"parameters"`
	ParameterSchema        object      `json:"parameter_openapi_schema"`
	EnforceParameterSchema bool        `json:"enforce_parameter_schema"`
	WorkPoolName           *string     `json:"work_pool_name"`
	WorkQueueName          *string     `json:"work_queue_name"`
	Path                   *string     `json:"path"`
	Entrypoint             *string     `json:"entrypoint"`
	PullSteps              *[]pullStep `json:"pull_steps"`
	JobVariables           object      `json:"job_variables"`
}

type pullStep = map[string]any

func (in deploymentIn) check() error {
	if err := checkName(in.Name); err != nil {
		return err
	}
	if in.ConcurrencyLimit != nil && *in.ConcurrencyLimit < 1 {
		return invalidMember("concurrency_limit", "Input should be greater than 0")
	}
	schema, err := paramschema.Compile(in.ParameterSchema.json(), true)
	if err != nil {
		return invalidMember("parameter_openapi_schema", "%v", err)
	}
	if in.EnforceParameterSchema {
		if err := schema.Check(in.Parameters.json()); err != nil {
			return refuseRequest(http.StatusConflict, "Error creating deployment: %v", err)
		}
	}
	if in.Schedules != nil {
		for _, c := range *in.Schedules {
			if err := c.check(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (in deploymentIn) pullSteps() (json.RawMessage, error) {
	if in.PullSteps == nil {
		return json.RawMessage("[]"), nil
	}
	return json.Marshal(*in.PullSteps)
}

// place resolves the work pool and its queue.
func (s *Server) place(ctx context.Context, q *store.Queries, in deploymentIn) (pool *uuid.UUID, queue *string, err error) {
	if in.WorkPoolName == nil || *in.WorkPoolName == "" {
		return nil, in.WorkQueueName, nil
	}
	row, err := s.workPool(ctx, q, *in.WorkPoolName)
	if err != nil {
		return nil, nil, err
	}
	if in.WorkQueueName != nil && *in.WorkQueueName != "" && *in.WorkQueueName != defaultQueue {
		return nil, nil, refuseRequest(http.StatusNotFound, "Work queue %q not found: a pool of this server has the queue %q alone.", *in.WorkQueueName, defaultQueue)
	}
	return &row.WorkPool.ID, pointerTo(defaultQueue), nil
}

const defaultQueue = "default"

func (s *Server) createDeployment(r *http.Request) (any, error) {
	in := deploymentIn{EnforceParameterSchema: true}
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	if _, err := s.q.FlowByID(r.Context(), in.FlowID); err != nil {
		return nil, absentAsNotFound(err, "Flow")
	}
	pool, queue, err := s.place(r.Context(), s.q, in)
	if err != nil {
		return nil, err
	}
	steps, err := in.pullSteps()
	if err != nil {
		return nil, err
	}
	arg := store.UpsertDeploymentParams{
		ID: newID(), Now: s.now(), Name: in.Name, FlowID: in.FlowID, Version: in.Version, Description: in.Description,
		Paused: in.Paused, ConcurrencyLimit: in.ConcurrencyLimit, Tags: orEmpty(in.Tags), Labels: in.Labels.json(),
		Parameters: in.Parameters.json(), ParameterOpenapiSchema: in.ParameterSchema.json(),
		EnforceParameterSchema: in.EnforceParameterSchema, WorkPoolID: pool, WorkQueueName: queue,
		Path: in.Path, Entrypoint: in.Entrypoint, PullSteps: steps, JobVariables: in.JobVariables.json(),
	}
	var schedules []cronIn
	if in.Schedules != nil {
		schedules = *in.Schedules
	}
	status := http.StatusCreated
	var id uuid.UUID
	err = s.tx(r.Context(), func(q *store.Queries) error {
		if id, err = q.UpsertDeployment(r.Context(), arg); err != nil {
			return err
		}
		status = http.StatusCreated
		if id != arg.ID {
			status = http.StatusOK
		}
		return s.replaceSchedules(r.Context(), q, id, schedules)
	})
	if err != nil {
		return nil, err
	}
	s.poke()
	doc, err := s.deployment(r.Context(), s.q, id)
	return answer{status, doc}, err
}

// replaceSchedules replaces the present schedules. Their runs that have not started are deleted with them.
func (s *Server) replaceSchedules(ctx context.Context, q *store.Queries, id uuid.UUID, schedules []cronIn) error {
	if err := q.DeleteSchedules(ctx, id); err != nil {
		return err
	}
	for _, c := range schedules {
		if err := q.InsertSchedule(ctx, c.row(id, s.now())); err != nil {
			return err
		}
	}
	return s.reschedule(ctx, q, id)
}

// reschedule rebuilds the runs that a deployment's schedules make ahead.
func (s *Server) reschedule(ctx context.Context, q *store.Queries, id uuid.UUID) error {
	if err := q.DeleteScheduledRuns(ctx, store.DeleteScheduledRunsParams{DeploymentID: id, AutoOnly: true}); err != nil {
		return err
	}
	return s.scheduleAhead(ctx, q, id)
}

func (s *Server) readDeployment(r *http.Request) (any, error) {
	id, err := pathID(r)
	if err != nil {
		return nil, err
	}
	return s.deployment(r.Context(), s.q, id)
}

func (s *Server) readDeploymentByName(r *http.Request) (any, error) {
	id, err := s.q.DeploymentID(r.Context(), store.DeploymentIDParams{Flow: r.PathValue("flow"), Name: r.PathValue("deployment")})
	if err != nil {
		return nil, absentAsNotFound(err, "Deployment")
	}
	return s.deployment(r.Context(), s.q, id)
}

func (s *Server) deployment(ctx context.Context, q *store.Queries, id uuid.UUID) (deploymentDoc, error) {
	docs, err := s.deployments(ctx, q, []uuid.UUID{id})
	if err == nil && len(docs) == 0 {
		err = notFound("Deployment")
	}
	if err != nil {
		return deploymentDoc{}, err
	}
	return docs[0], nil
}

// deployments reads documents in the order of ids, without those of deleted deployments.
func (s *Server) deployments(ctx context.Context, q *store.Queries, ids []uuid.UUID) ([]deploymentDoc, error) {
	rows, err := q.Deployments(ctx, store.DeploymentsParams{Ids: ids, Now: s.now()})
	if err != nil {
		return nil, err
	}
	schedules, err := q.Schedules(ctx, ids)
	if err != nil {
		return nil, err
	}
	byID := map[uuid.UUID]deploymentDoc{}
	for _, row := range rows {
		d := row.Deployment
		doc := deploymentDoc{
			ID: d.ID, Created: d.Created.UTC(), Updated: d.Updated.UTC(), Name: d.Name, Version: d.Version,
			Description: d.Description, FlowID: d.FlowID, Paused: d.Paused, Schedules: []scheduleDoc{},
			ConcurrencyLimit: d.ConcurrencyLimit, JobVariables: d.JobVariables, Parameters: d.Parameters,
			Tags: d.Tags, Labels: d.Labels, WorkQueueName: d.WorkQueueName, WorkQueueID: row.DefaultQueueID,
			LastPolled: toUTC(d.LastPolled), ParameterSchema: d.ParameterOpenapiSchema, Path: d.Path,
			PullSteps: d.PullSteps, Entrypoint: d.Entrypoint, WorkPoolName: row.WorkPoolName,
			Status: "NOT_READY", EnforceParameterSchema: d.EnforceParameterSchema,
		}
		if row.WorkPoolType == nil || *row.WorkPoolType == InProcess || row.Polled {
			doc.Status = "READY"
		}
		byID[d.ID] = doc
	}
	for _, sc := range schedules {
		if doc, ok := byID[sc.DeploymentID]; ok {
			doc.Schedules = append(doc.Schedules, scheduleOf(sc))
			byID[sc.DeploymentID] = doc
		}
	}
	out := make([]deploymentDoc, 0, len(ids))
	for _, id := range ids {
		if doc, ok := byID[id]; ok {
			out = append(out, doc)
		}
	}
	return out, nil
}

func (s *Server) updateDeployment(r *http.Request) (any, error) {
	id, err := pathID(r)
	if err != nil {
		return nil, err
	}
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	err = s.tx(r.Context(), func(q *store.Queries) error {
		if _, err := q.LockDeployment(r.Context(), id); err != nil {
			return absentAsNotFound(err, "Deployment")
		}
		now, err := s.deployment(r.Context(), q, id)
		if err != nil {
			return err
		}
		in := deploymentIn{
			Name: now.Name, FlowID: now.FlowID, Version: now.Version, Description: now.Description, Paused: now.Paused,
			ConcurrencyLimit: now.ConcurrencyLimit, Tags: now.Tags, Parameters: object{now.Parameters},
			ParameterSchema: object{now.ParameterSchema}, EnforceParameterSchema: now.EnforceParameterSchema,
			WorkPoolName: now.WorkPoolName, WorkQueueName: now.WorkQueueName, Path: now.Path,
			Entrypoint: now.Entrypoint, JobVariables: object{now.JobVariables},
		}
		if err := decodeBytes(body, &in); err != nil {
			return err
		}
		in.Name, in.FlowID = now.Name, now.FlowID
		if err := in.check(); err != nil {
			return err
		}
		pool, queue, err := s.place(r.Context(), q, in)
		if err != nil {
			return err
		}
		steps := now.PullSteps
		if in.PullSteps != nil {
			if steps, err = in.pullSteps(); err != nil {
				return err
			}
		}
		err = q.UpdateDeployment(r.Context(), store.UpdateDeploymentParams{
			ID: id, Now: s.now(), Version: in.Version, Description: in.Description, Paused: in.Paused,
			ConcurrencyLimit: in.ConcurrencyLimit, Tags: orEmpty(in.Tags), Parameters: in.Parameters.json(),
			ParameterOpenapiSchema: in.ParameterSchema.json(), EnforceParameterSchema: in.EnforceParameterSchema,
			WorkPoolID: pool, WorkQueueName: queue, Path: in.Path, Entrypoint: in.Entrypoint, PullSteps: steps,
			JobVariables: in.JobVariables.json(),
		})
		if err != nil {
			return err
		}
		if in.Schedules != nil {
			return s.replaceSchedules(r.Context(), q, id, *in.Schedules)
		}
		return s.reschedule(r.Context(), q, id)
	})
	if err != nil {
		return nil, err
	}
	s.poke()
	return answer{status: http.StatusNoContent}, nil
}

// deleteDeployment removes a deployment and its runs that have not started;
// the others stay, without it.
func (s *Server) deleteDeployment(r *http.Request) (any, error) {
	id, err := pathID(r)
	if err != nil {
		return nil, err
	}
	err = s.tx(r.Context(), func(q *store.Queries) error {
		if err := q.DeleteScheduledRuns(r.Context(), store.DeleteScheduledRunsParams{DeploymentID: id, AutoOnly: false}); err != nil {
			return err
		}
		n, err := q.DeleteDeployment(r.Context(), id)
		if err == nil && n == 0 {
			err = notFound("Deployment")
		}
		return err
	})
	return answer{status: http.StatusNoContent}, err
}

// pauseDeployment stops or resumes the schedules; runs requested manually continue.
func (s *Server) pauseDeployment(paused bool) endpoint {
	return func(r *http.Request) (any, error) {
		id, err := pathID(r)
		if err != nil {
			return nil, err
		}
		return nil, s.tx(r.Context(), func(q *store.Queries) error {
			n, err := q.PauseDeployment(r.Context(), store.PauseDeploymentParams{ID: id, Paused: paused, Now: s.now()})
			if err != nil {
				return err
			}
			if n == 0 {
				return notFound("Deployment")
			}
			return s.reschedule(r.Context(), q, id)
		})
	}
}

func (s *Server) filterDeployments(r *http.Request) (any, error) {
	var in struct {
		page
		Sort        string            `json:"sort"`
		Flows       *namedFilter      `json:"flows"`
		Deployments *deploymentFilter `json:"deployments"`
		FlowRuns    notOffered        `json:"flow_runs"`
		TaskRuns    notOffered        `json:"task_runs"`
		WorkPools   *namedFilter      `json:"work_pools"`
		WorkQueues  notOffered        `json:"work_pool_queues"`
	}
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	limit, offset, err := in.bounds()
	if err != nil {
		return nil, err
	}
	if err := checkSort(in.Sort); err != nil {
		return nil, err
	}
	arg := store.DeploymentIDsParams{
		Ids: []uuid.UUID{}, Names: []string{}, FlowIds: []uuid.UUID{}, FlowNames: []string{}, Tags: []string{},
		Pools: []string{}, Sort: in.Sort, Max: int32(limit), Skip: int32(offset),
	}
	if p := in.WorkPools; p != nil {
		if p.matchesNothing() {
			return []deploymentDoc{}, nil
		}
		ids, names, err := p.lists()
		if err != nil {
			return nil, err
		}
		if len(ids) > 0 {
			return nil, invalidMember("work_pools.id", "this server offers work_pools.name.any_ alone here")
		}
		arg.Pools = names
	}
	if f := in.Flows; f != nil {
		if f.matchesNothing() {
			return []deploymentDoc{}, nil
		}
		if arg.FlowIds, arg.FlowNames, err = f.lists(); err != nil {
			return nil, err
		}
	}
	if d := in.Deployments; d != nil {
		named := namedFilter{d.ID, d.Name}
		if named.matchesNothing() {
			return []deploymentDoc{}, nil
		}
		if arg.Ids, arg.Names, err = named.lists(); err != nil {
			return nil, err
		}
		if d.Tags != nil && d.Tags.All != nil {
			arg.Tags = *d.Tags.All
		}
		if d.Paused != nil {
			arg.Paused = d.Paused.Eq
		}
	}
	ids, err := s.q.DeploymentIDs(r.Context(), arg)
	if err != nil {
		return nil, err
	}
	return s.deployments(r.Context(), s.q, ids)
}

type deploymentFilter struct {
	ID   *anyOf[uuid.UUID] `json:"id"`
	Name *nameFilter       `json:"name"`
	Tags *struct {
		All *[]string `json:"all_"`
	} `json:"tags"`
	Paused *struct {
		Eq *bool `json:"eq_"`
	} `json:"paused"`
}

func (f *deploymentFilter) UnmarshalJSON(b []byte) error {
	type plain deploymentFilter
	return decodeFilter(b, "deployments", (*plain)(f))
}
