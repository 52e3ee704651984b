package orchestratord

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord/store"
	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord/transition"
)

// Runs that a process of the client's carries out: a flow that is called, or a deployment that is served.

// policyDoc is a run's retry policy: the number of retries and their delay in seconds.
type policyDoc struct {
	Retries    *int32 `json:"retries"`
	RetryDelay any    `json:"retry_delay"`
}

// retry puts a failed run off that may be tried again. The client leaves that to the server.
func retry(policy json.RawMessage, runs int32, v transition.Verdict, now time.Time) transition.Verdict {
	var p policyDoc
	if v.Record.Type != orchestrator.Failed || json.Unmarshal(policy, &p) != nil || p.Retries == nil || runs > *p.Retries {
		return v
	}
	delay := p.RetryDelay
	if list, ok := delay.([]any); ok && len(list) > 0 { // one for each try, the last for the rest
		delay = list[min(max(int(runs), 1), len(list))-1]
	}
	seconds, _ := delay.(float64) // absent: at once
	return transition.Verdict{
		Status: orchestrator.Reject, Reason: "Retrying", Replaced: true,
		Record: &transition.Proposal{Type: orchestrator.Scheduled, Name: "AwaitingRetry",
			ScheduledTime: pointerTo(now.Add(time.Duration(min(max(seconds, 0), maxRetryDelay) * float64(time.Second))))},
	}
}

const maxRetryDelay = 30 * 86400 // seconds

// createOwnRun makes a run of a flow that the client carries out; no deployment describes it.
func (s *Server) createOwnRun(r *http.Request) (any, error) {
	var in struct {
		Name            string     `json:"name"`
		FlowID          uuid.UUID  `json:"flow_id"`
		FlowVersion     *string    `json:"flow_version"`
		DeploymentID    *uuid.UUID `json:"deployment_id"`
		WorkPoolName    *string    `json:"work_pool_name"`
		ParentTaskRunID *uuid.UUID `json:"parent_task_run_id"`
		Parameters      object     `json:"parameters"`
		Context         object     `json:"context"`
		Tags            []string   `json:"tags"`
		Labels          object     `json:"labels"`
		JobVariables    object     `json:"job_variables"`
		EmpiricalPolicy object     `json:"empirical_policy"`
		IdempotencyKey  *string    `json:"idempotency_key"`
		State           *stateIn   `json:"state"`
	}
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	if in.DeploymentID != nil || in.WorkPoolName != nil {
		return nil, invalidMember("deployment_id", "this server makes the runs of deployments and of work pools by POST /deployments/{id}/create_flow_run")
	}
	if err := checkKey(in.IdempotencyKey); err != nil {
		return nil, err
	}
	n := newRun{
		name: in.Name, parameters: in.Parameters.json(), key: in.IdempotencyKey, tags: in.Tags, context: in.Context.json(),
		labels: in.Labels.json(), variables: in.JobVariables.json(), at: s.now(), parent: in.ParentTaskRunID,
		version: in.FlowVersion, policy: in.EmpiricalPolicy.json(), state: orchestrator.Pending,
	}
	if in.State != nil {
		if in.State.Type != orchestrator.Pending && in.State.Type != orchestrator.Scheduled {
			return nil, invalidMember("state.type", "this server starts a run in PENDING or SCHEDULED alone")
		}
		n.begin(*in.State)
	}
	var run store.Run
	var created bool
	err := s.tx(r.Context(), func(q *store.Queries) error {
		flow, err := q.FlowByID(r.Context(), in.FlowID)
		if err != nil {
			return absentAsNotFound(err, "Flow")
		}
		var id uuid.UUID
		if id, created, err = s.insertRun(r.Context(), q, store.Deployment{FlowID: flow.ID, Name: flow.Name}, n); err != nil {
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
	return answer{http.StatusCreated, s.runOf(run)}, nil
}

// updateFlowRun changes the members present in the body.
func (s *Server) updateFlowRun(r *http.Request) (any, error) {
	var in struct {
		Name              *string  `json:"name"`
		FlowVersion       *string  `json:"flow_version"`
		Parameters        object   `json:"parameters"`
		EmpiricalPolicy   object   `json:"empirical_policy"`
		Tags              []string `json:"tags"`
		InfrastructurePID *string  `json:"infrastructure_pid"`
		JobVariables      object   `json:"job_variables"`
	}
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	return s.changeRun(r, func(ctx context.Context, id uuid.UUID) (int64, error) {
		return s.q.UpdateRun(ctx, store.UpdateRunParams{
			ID: id, Now: s.now(), Name: in.Name, Parameters: in.Parameters.raw, Tags: in.Tags, FlowVersion: in.FlowVersion,
			InfrastructurePid: in.InfrastructurePID, EmpiricalPolicy: in.EmpiricalPolicy.raw, JobVariables: in.JobVariables.raw,
		})
	})
}

func (s *Server) labelFlowRun(r *http.Request) (any, error) {
	var in object
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	return s.changeRun(r, func(ctx context.Context, id uuid.UUID) (int64, error) {
		return s.q.LabelRun(ctx, store.LabelRunParams{ID: id, Now: s.now(), Labels: in.json()})
	})
}

// deleteFlowRun removes a run with its states and log; one that is under way here ends.
func (s *Server) deleteFlowRun(r *http.Request) (any, error) {
	return s.changeRun(r, func(ctx context.Context, id uuid.UUID) (int64, error) {
		n, err := s.q.DeleteRun(ctx, id)
		if err == nil {
			s.stopUnless(id, orchestrator.Cancelled)
		}
		return n, err
	})
}

// changeRun answers for a change of the run that the path names.
func (s *Server) changeRun(r *http.Request, change func(context.Context, uuid.UUID) (int64, error)) (any, error) {
	id, err := pathID(r)
	if err != nil {
		return nil, err
	}
	n, err := change(r.Context(), id)
	if err == nil && n == 0 {
		err = notFound("Flow run")
	}
	return answer{status: http.StatusNoContent}, err
}

// scheduledOfDeployments lists the due runs of these deployments, for the process that serves them.
func (s *Server) scheduledOfDeployments(r *http.Request) (any, error) {
	var in struct {
		page
		Deployments []uuid.UUID `json:"deployment_ids"`
		Before      *moment     `json:"scheduled_before"`
	}
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	limit, _, err := in.bounds()
	if err != nil {
		return nil, err
	}
	var out []runDoc
	err = s.tx(r.Context(), func(q *store.Queries) error {
		if err := q.TouchDeployments(r.Context(), store.TouchDeploymentsParams{Now: pointerTo(s.now()), Ids: in.Deployments}); err != nil {
			return err
		}
		ids, err := q.ScheduledRunsOfDeployments(r.Context(), store.ScheduledRunsOfDeploymentsParams{Deployments: in.Deployments, Before: in.Before.time(), Max: int32(limit)})
		if err != nil {
			return err
		}
		out, err = s.runsByID(r.Context(), q, ids)
		return err
	})
	return out, err
}

// runsByID reads documents in the order of ids, without those of deleted runs.
func (s *Server) runsByID(ctx context.Context, q *store.Queries, ids []uuid.UUID) ([]runDoc, error) {
	out := make([]runDoc, 0, len(ids))
	for _, id := range ids {
		run, err := q.Run(ctx, id)
		if isNoRows(err) { // deleted since
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, s.runOf(run))
	}
	return out, nil
}
