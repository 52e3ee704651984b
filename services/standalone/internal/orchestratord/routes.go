package orchestratord

import (
	"context"
	"net/http"
)

// ownRoutes are about the server itself.
func (s *Server) ownRoutes() map[string]endpoint {
	return map[string]endpoint{
		"GET /api/health":        func(*http.Request) (any, error) { return true, nil },
		"GET /api/ready":         func(*http.Request) (any, error) { return true, nil },
		"GET /api/admin/version": func(*http.Request) (any, error) { return protocolVersion, nil },
		"GET /api/admin/storage": func(*http.Request) (any, error) { return defaultStorage{}, nil },
	}
}

// flowRoutes are those of flows, deployments and schedules.
func (s *Server) flowRoutes() map[string]endpoint {
	return map[string]endpoint{
		"POST /api/flows":            s.createFlow,
		"GET /api/flows/{id}":        s.readFlow,
		"GET /api/flows/name/{name}": s.readFlowByName,
		"POST /api/flows/filter":     s.filterFlows,
		"POST /api/flows/count":      count(s.q.CountFlows),
		"DELETE /api/flows/{id}":     s.deleteFlow,

		"POST /api/deployments":                         s.createDeployment,
		"GET /api/deployments/{id}":                     s.readDeployment,
		"GET /api/deployments/name/{flow}/{deployment}": s.readDeploymentByName,
		"PATCH /api/deployments/{id}":                   s.updateDeployment,
		"DELETE /api/deployments/{id}":                  s.deleteDeployment,
		"POST /api/deployments/filter":                  s.filterDeployments,
		"POST /api/deployments/{id}/pause_deployment":   s.pauseDeployment(true),
		"POST /api/deployments/{id}/resume_deployment":  s.pauseDeployment(false),
		"POST /api/deployments/{id}/create_flow_run":    s.createFlowRun,
		"POST /api/deployments/count":                   count(s.q.CountDeployments),
		"POST /api/deployments/get_scheduled_flow_runs": s.scheduledOfDeployments,

		"GET /api/deployments/{id}/schedules":               s.listSchedules,
		"POST /api/deployments/{id}/schedules":              s.createSchedules,
		"PATCH /api/deployments/{id}/schedules/{schedule}":  s.updateSchedule,
		"DELETE /api/deployments/{id}/schedules/{schedule}": s.deleteSchedule,
	}
}

// runRoutes are those of flow runs, their states, task runs and logs.
func (s *Server) runRoutes() map[string]endpoint {
	return map[string]endpoint{
		"POST /api/flow_runs":                s.createOwnRun,
		"PATCH /api/flow_runs/{id}":          s.updateFlowRun,
		"PATCH /api/flow_runs/{id}/labels":   s.labelFlowRun,
		"DELETE /api/flow_runs/{id}":         s.deleteFlowRun,
		"GET /api/flow_runs/{id}":            s.readFlowRun,
		"POST /api/flow_runs/filter":         s.filterFlowRuns,
		"POST /api/flow_runs/count":          s.countFlowRuns,
		"POST /api/flow_runs/{id}/set_state": s.setState,
		"GET /api/flow_run_states":           s.listStates,
		"GET /api/flow_run_states/{id}":      s.readState,

		"POST /api/task_runs":        s.createTaskRun,
		"GET /api/task_runs/{id}":    s.readTaskRun,
		"POST /api/task_runs/filter": s.filterTaskRuns,

		"POST /api/logs":        s.createLogs,
		"POST /api/logs/filter": s.filterLogs,
	}
}

// poolRoutes are those of work pools, queues, workers and variables.
func (s *Server) poolRoutes() map[string]endpoint {
	return map[string]endpoint{
		"POST /api/work_pools":                                s.createWorkPool,
		"GET /api/work_pools/{name}":                          s.readWorkPool,
		"PATCH /api/work_pools/{name}":                        s.updateWorkPool,
		"DELETE /api/work_pools/{name}":                       s.deleteWorkPool,
		"POST /api/work_pools/filter":                         s.filterWorkPools,
		"POST /api/work_pools/count":                          count(s.q.CountWorkPools),
		"POST /api/work_pools/{name}/queues/filter":           s.filterWorkQueues,
		"GET /api/work_pools/{name}/queues/{queue}":           s.readWorkQueueByName,
		"POST /api/work_queues/filter":                        s.filterWorkQueues,
		"GET /api/work_queues/{id}":                           s.readWorkQueue,
		"GET /api/work_queues/{id}/status":                    s.readWorkQueueStatus,
		"POST /api/work_pools/{name}/workers/heartbeat":       s.heartbeat,
		"POST /api/work_pools/{name}/workers/filter":          s.filterWorkers,
		"POST /api/work_pools/{name}/get_scheduled_flow_runs": s.scheduledFlowRuns,

		"POST /api/variables":               s.createVariable,
		"POST /api/variables/filter":        s.filterVariables,
		"POST /api/variables/count":         count(s.q.CountVariables),
		"GET /api/variables/name/{name}":    s.readVariable,
		"PATCH /api/variables/name/{name}":  s.updateVariable,
		"DELETE /api/variables/name/{name}": s.deleteVariable,
	}
}

// absentRoutes answer for objects that this server does not have: empty lists, and refusals to create them.
func absentRoutes() map[string]endpoint {
	return map[string]endpoint{
		"GET /api/automations/related-to/{resource}":  none,
		"DELETE /api/automations/owned-by/{resource}": func(*http.Request) (any, error) { return answer{status: http.StatusNoContent}, nil },
		"POST /api/automations":                       notKept("automations"),
		"POST /api/artifacts":                         notKept("artifacts"),
		"POST /api/block_types":                       notKept("blocks"),
		"POST /api/block_documents":                   notKept("blocks"),
		"POST /api/concurrency_limits":                notKept("concurrency limits other than those of deployments and work pools"),
		"POST /api/v2/concurrency_limits":             notKept("concurrency limits other than those of deployments and work pools"),
		"POST /api/work_pools/{name}/queues":          notKept("work queues other than \"default\", which every pool has"),
		"POST /api/work_queues":                       notKept("work queues other than \"default\", which every pool has"),
		"PATCH /api/work_queues/{id}":                 notKept("settings of work queues: those of the work pool hold"),
		"POST /api/flow_runs/{id}/resume":             notKept("paused runs"),
		"POST /api/flow_runs/{id}/input":              notKept("inputs of runs"),

		"POST /api/block_types/filter":           none,
		"POST /api/block_schemas/filter":         none,
		"POST /api/block_documents/filter":       none,
		"POST /api/v2/concurrency_limits/filter": none,
		"POST /api/concurrency_limits/filter":    none,
		"POST /api/automations/filter":           none,
		"POST /api/artifacts/filter":             none,
		"POST /api/artifacts/latest/filter":      none,
	}
}

// defaultStorage reports that results are kept where the client keeps them.
type defaultStorage struct {
	Block *string `json:"default_result_storage_block_id"`
}

// none answers an empty list.
func none(*http.Request) (any, error) { return []any{}, nil }

// notKept refuses to create an object that this server does not have. Prefect's client shows the sentence.
func notKept(what string) endpoint {
	return func(*http.Request) (any, error) {
		return nil, refuseRequest(http.StatusNotImplemented, "This server keeps no %s. A real Prefect server does.", what)
	}
}

// count answers with how many there are.
func count(of func(context.Context) (int64, error)) endpoint {
	return func(r *http.Request) (any, error) { return of(r.Context()) }
}
