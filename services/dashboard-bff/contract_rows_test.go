package dashboard_test

import (
	"strings"
)

var authenticationRows = []row{
	{table: authentication, route: "POST /api/auth/login", role: "public", body: `{"password": "` + viewerPassword + `"}`, status: 200, cache: noStore, members: map[string]string{"": "token role expires_at tenant"}},
	{table: authentication, route: "POST /api/auth/logout", role: "viewer", status: 204, ends: true, cache: noStore},
	{
		table: authentication, route: "GET /api/auth/me", role: "viewer", status: 200,
		members: map[string]string{"": "role expires_at tenant capabilities sub auth_method auth_time break_glass"}, check: wantValue("auth_method", "password"),
	},
	{
		table: authentication, route: "GET /api/auth/sso/providers", role: "public", status: 200,
		members: map[string]string{"": "providers local_login", "providers.0": "name display_name login_url step_up"}, check: wantValue("providers.0.login_url", "/api/auth/sso/campus/login"),
	},
	{table: authentication, route: "GET /api/auth/sso/{provider}/login", role: "public", path: "/api/auth/sso/campus/login?return_to=%2Fmodels&step_up=true", status: 302, cache: noStore, check: checkAuthorizationRequest},
	{table: authentication, route: "GET /api/auth/sso/callback", role: "public", status: 302, cache: noStore, check: wantLocation("/?sso_error=session_expired")},
	{table: authentication, route: "POST /api/auth/sso/logout", role: "viewer", status: 200, cache: noStore, ends: true, members: map[string]string{"": "ok"}},
	{
		table: authentication, route: "GET /api/health", role: "public", status: 200,
		members: map[string]string{"": "status checked_at services unmeasured", "services": "tracker orchestrator serving metrics_store dashboards scheduler bus bus_sim", "services.scheduler": "status note"},
	},
	{table: authentication, route: "GET /api/config", role: "viewer", status: 200, members: map[string]string{"": configKeys}, check: wantValue("control_plane_token", nil)},
	{
		table: authentication, route: "GET /api/config/keys", role: "viewer", status: 200, members: map[string]string{"0": "key is_secret has_value type description source"},
	},
	{table: authentication, route: "PUT /api/config", role: "admin", operator: true, body: `{"scheduler_partition": "gpu"}`, status: 200, members: map[string]string{"": configKeys}, check: wantValue("scheduler_partition", "gpu")},
	{
		table: authentication, route: "GET /api/audit", role: "admin", status: 200,
		members: map[string]string{"": "items total next_cursor", "items.0": "id at actor action target source outcome details hash"},
	},
	{
		table: authentication, route: "GET /api/proxy/{service}/{path}", role: "viewer", operator: true, path: "/api/proxy/serving/health", status: 200,
		members: map[string]string{"": "status models_loaded models"},
	},
	{
		table: authentication, route: "POST /api/proxy/{service}/{path}", role: "admin", operator: true, path: "/api/proxy/tracker/echo", body: `{}`, status: 200, check: wantValue("method", "POST"),
	},
	{
		table: authentication, route: "GET /api/docs/tree", role: "viewer", status: 200,
		members: map[string]string{"0": "key title files"}, check: wantValue("0.key", "guides"),
	},
	{table: authentication, route: "GET /api/docs/content", role: "viewer", path: "/api/docs/content?path=docs/dashboard.md", status: 200, check: func(_ *world, a answer) { a.hasHeader("Content-Type", "text/plain; charset=utf-8") }},
}

const configKeys = "tracker_url orchestrator_url serving_url serving_dashboard_url metrics_store_url dashboards_url control_plane_url bus_url " +
	"object_store_url object_store_console_url forge_url forge_project_id scheduler_mode scheduler_partition scheduler_time " +
	"object_store_access_key object_store_secret_key dashboards_api_key control_plane_token forge_token forge_pipeline_token"

// effectOf is the record whose effect the control plane knows.
const effectOf = "018f3a00-0000-7000-8000-000000000001"

var viewRows = []row{
	{
		table: views, route: "GET /api/v1/overview", role: "viewer", status: 200,
		members: map[string]string{"": "meta traffic drift audit " + freshMembers, "meta": "service api", "traffic": "models_with_rules", "drift": "models_tracked", "audit": "total_events"},
		check: func(w *world, a answer) {
			wantValue("meta.service", "dashboard-bff")(w, a)
			wantValue("meta.api", "v1")(w, a)
		},
	},
	{table: views, route: "GET /api/v1/stream", role: "viewer", status: 200, cache: "no-cache", open: true, check: func(_ *world, a answer) {
		a.hasHeader("Content-Type", "text/event-stream", "X-Accel-Buffering", "no")
	}},
	{
		table: views, route: "GET /api/v1/mlops/registry", role: "viewer", status: 200,
		members: map[string]string{
			"": "registry " + freshMembers, "registry": "count rows",
			"registry.rows.2": "name trackerName version stage health freshness governed aliases freshnessStatus healthReasons zScore trend",
		},
	},
	{
		table: views, route: "GET /api/v1/mlops/model/{name}", role: "viewer", path: "/api/v1/mlops/model/jpcp", status: 200,
		members: map[string]string{
			"": "detail " + freshMembers, "detail": "name trackerName cost drift traffic promotion versions aliasHistory", "detail.cost": "runs gpu_hours cost_usd",
			"detail.drift": "samples mean_prediction latest zScore status", "detail.traffic": "configured rules updated_at", "detail.promotion": "policy eval approval allowed",
		},
		check: wantValue("detail.name", "JPCP"),
	},
	{
		table: views, route: "GET /api/v1/mlops/promotion/{name}", role: "viewer", path: "/api/v1/mlops/promotion/JPCP", status: 200,
		members: map[string]string{
			"": "promotion " + freshMembers, "promotion": "model trackerName policy eval approval allowed", "promotion.policy": "allow reasons",
			"promotion.eval": "pass metrics state", "promotion.approval": "required state",
		},
		check: wantValue("promotion.approval.required", true),
	},
	{
		table: views, route: "GET /api/v1/runs", role: "viewer", status: 200,
		members: map[string]string{
			"": "runs " + freshMembers, "runs": "items truncated", "runs.items.0.metric": "state name better value", "runs.items.0.change": "state version reason",
			"runs.items.0": "flow_run_id model_id dataset_name origin cause state_type is_dummy requester commit_sha approval_id model_version started_at ended_at duration_s metric change cost",
		},
		check: wantValue("runs.items.0.duration_s", 90.0),
	},
	{
		table: views, route: "GET /api/v1/runs/{id}", role: "viewer", path: "/api/v1/runs/r1", status: 200,
		members: map[string]string{"": "run record " + freshMembers, "record": "state reason"}, check: wantValue("run.cause", "manual"),
	},
	{
		table: views, route: "GET /api/v1/approvals/{id}/effect", role: "viewer", path: "/api/v1/approvals/" + effectOf + "/effect", status: 200,
		members: map[string]string{"": "approval_id kind model_id decidable action sentences"}, check: wantValue("action", "Approve and train"),
	},
	{
		table: views, route: "GET /api/v1/facility/overview", role: "viewer", path: "/api/v1/facility/overview?cluster=beta", status: 200,
		members: map[string]string{
			"": "facility " + freshMembers, "facility": "nodesAllocated gpusAllocated jobsRunning queueDepth clusters partitions", "facility.partitions.0": "name running queued gpusAllocated",
		},
		check: wantValue("facility.clusters", []string{"alpha", "beta"}),
	},
	{
		table: views, route: "GET /api/v1/facility/queue", role: "viewer", status: 200,
		members: map[string]string{"": "queue " + freshMembers, "queue": "count jobs", "queue.jobs.0": "id cluster model dataset state waitSec nodes gpus submitTime"}, check: checkLongestWaitFirst,
	},
	{
		table: views, route: "GET /api/v1/facility/job/{job_id}", role: "viewer", path: "/api/v1/facility/job/102", status: 200,
		members: map[string]string{
			"": "job " + freshMembers, "job": "id cluster model dataset state resources timing exitCode flowRunId trackerRunId", "job.resources": "nodes gpus cpus",
			"job.timing": "submit start end queueSeconds runSeconds",
		},
	},
	{
		table: views, route: "GET /api/v1/flags", role: "viewer", status: 200,
		members: map[string]string{"": "flags", "flags": "mlopsConsole facilityConsole llmopsConsole finopsConsole commandPalette copilotDrawer toolProxy incidentTimeline"},
	},
	{
		table: views, route: "GET /api/v1/flags/admin", role: "admin", status: 200,
		members: map[string]string{"": "flags count", "flags.0": "name description default override effective targeting tags", "flags.0.targeting": "tenants roles percentage"},
		check:   wantValue("count", 8),
	},
	{
		table: views, route: "POST /api/v1/flags/{name}", role: "admin", path: "/api/v1/flags/incidentTimeline", body: `{"enabled": true}`, status: 200,
		members: map[string]string{"": "updated name enabled"}, check: wantValue("updated", true),
	},
	{
		table: views, route: "GET /api/v1/collab/{type}/{id}/comments", role: "viewer", path: "/api/v1/collab/model/JPCP/comments", status: 200, members: map[string]string{"": "comments"},
	},
	{
		table: views, route: "POST /api/v1/collab/{type}/{id}/comments", role: "viewer", path: "/api/v1/collab/model/JPCP/comments", body: `{"body": "see @local:admin"}`, status: 200,
		members: map[string]string{"": "id author body mentions created_at bodyHtml"}, check: wantValue("mentions", []string{"local:admin"}),
	},
	{
		table: views, route: "GET /api/v1/collab/{type}/{id}/activity", role: "viewer", path: "/api/v1/collab/model/JPCP/activity", status: 200,
		members: map[string]string{"": "activity", "activity.0": "kind actor ts detail"},
	},
	{
		table: views, route: "POST /api/v1/collab/snapshot", role: "viewer", body: `{"view": {"a": 1}, "ttl_hours": 1}`, status: 200, cache: noStore, members: map[string]string{"": "token expires_at"},
	},
	{
		table: views, route: "GET /api/v1/collab/snapshot/{token}", role: "viewer", path: "/api/v1/collab/snapshot/nothing", status: 200, cache: noStore,
		members: map[string]string{"": "found"}, check: wantValue("found", false),
	},
	{
		table: views, route: "POST /api/v1/copilot/ask", role: "viewer", body: `{"question": "why?", "context": {"page": "/models", "entity": {}, "filters": {}}}`, status: 200,
		members: map[string]string{"": "answer hitl_required proposals trace", "trace.0": "kind name detail"},
	},
	{
		table: views, route: "GET /api/v1/alerts", role: "viewer", status: 200,
		members: map[string]string{
			"": "inbox " + freshMembers, "inbox": "count counts alerts unacknowledged", "inbox.counts": "critical error warn", "inbox.alerts.0": "id source severity state title labels since",
		},
		check: wantValue("inbox.alerts.0.state", "firing"),
	},
	{
		table: views, route: "POST /api/v1/alerts/{alert_id}/ack", role: "viewer", path: "/api/v1/alerts/budget:spent/ack", status: 200, members: map[string]string{"": "acked audited acked_by acked_at"},
		check: func(w *world, a answer) { wantValue("acked", true)(w, a); wantValue("audited", true)(w, a) },
	},
	{
		table: views, route: "GET /api/v1/llmops/overview", role: "viewer", status: 200,
		members: map[string]string{
			"": "endpoints evals " + freshMembers, "endpoints": "rows count", "endpoints.rows.0": "model engine hostedModelId maxModelLen tensorParallel dtype enabled", "evals": "models count",
			"evals.models.0": "model suite status metrics passRate", "evals.models.1.metrics.0": "metric value baseline passed",
		},
	},
	{
		table: views, route: "GET /api/v1/governance/overview", role: "viewer", status: 200,
		members: map[string]string{
			"": "posture compliance cards audit " + freshMembers, "posture": "controls satisfied total statement", "posture.controls.0": "control function title status evidence", "compliance": "rows count",
			"compliance.rows.0": "model version riskClass technicalFile provenance", "cards": "withCard withoutCard coverage total", "audit": "count headDigest verified entries verifiedAt checked",
			"audit.entries.0": "seq hash prevHash",
		},
	},
	{
		table: views, route: "GET /api/v1/selfobs/status", role: "viewer", status: 200,
		members: map[string]string{
			"": "status dependencies metrics", "dependencies.0": "name status", "metrics": "requests errors clientErrors rateLimitHits latencyMs", "metrics.latencyMs": "count p50 p95",
		},
	},
	{
		table: views, route: "POST /api/v1/selfobs/action", role: "viewer", body: `{"action": "open", "target": "page:/models", "details": "x"}`, status: 200,
		members: map[string]string{"": "audited"}, check: wantValue("audited", true),
	},
	{
		table: views, route: "GET /api/v1/finops/overview", role: "viewer", status: 200,
		members: map[string]string{
			"": "cost budget carbon unitEconomics " + freshMembers, "cost": "rows total_gpu_hours total_cost_usd", "cost.rows.0": "dimension key gpuHours costUsd runs", "budget": "budgets consumed_cost_usd",
			"budget.budgets.0": "project period costRatio overBudget", "carbon": "totals co2e_kg uncertainty methodology", "carbon.totals": "kwh co2e_g", "unitEconomics": "costPerTrainingRun",
		},
	},
	{
		table: views, route: "GET /api/v1/search", role: "viewer", path: "/api/v1/search?q=jpcp&limit=20", status: 200,
		members: map[string]string{"": "search " + freshMembers, "search": "query count results groups", "search.results.0": "kind id label url score source"}, check: wantValue("search.results.0.score", 100),
	},
}

const (
	// nothing has this id.
	nothing = "0199d2a4-0000-7000-8000-000000000000"
	// aChannel names a host that the operator of these tests allows nowhere.
	aChannel = `{"name": "hook", "kind": "webhook", "events": ["alert"], "url": "https://hooks.example/x"}`
)

var additionRows = []row{
	{table: probes, route: "GET /livez", role: "public", status: 200, cache: noStore, members: map[string]string{"": "status"}},
	{table: probes, route: "GET /readyz", role: "public", status: 200, cache: noStore, members: map[string]string{"": "status checks"}},
	{table: probes, route: "GET /metrics", role: "public", status: 200, cache: noStore},
	{
		table: additions, route: "GET /api/v1/mlops/model/{name}/series", role: "viewer", path: "/api/v1/mlops/model/JPCP/series?metric=z_score" + day, status: 200,
		members: map[string]string{"": "metric unit points thresholds"}, check: wantValue("points.0", []any{1.7953056e+12, nil}),
	},
	{table: additions, route: "DELETE /api/v1/flags/{name}", role: "admin", path: "/api/v1/flags/incidentTimeline", status: 200, members: map[string]string{"": "updated name enabled"}, check: wantValue("enabled", false)},
	{table: additions, route: "POST /ofrep/v1/evaluate/flags", role: "viewer", status: 200, members: map[string]string{"": "flags", "flags.0": "key value reason variant"}, check: func(w *world, a answer) {
		if a.header.Get("ETag") == "" {
			w.t.Errorf("%s: got no ETag, want one", a.request)
		}
	}},
	{
		table: additions, route: "POST /ofrep/v1/evaluate/flags/{key}", role: "viewer", path: "/ofrep/v1/evaluate/flags/commandPalette", body: `{"context": {"targetingKey": "somebody else"}}`, status: 200,
		members: map[string]string{"": "key value reason variant"}, check: wantValue("reason", "STATIC"),
	},
	{table: additions, route: "DELETE /api/v1/collab/{type}/{id}/comments/{comment_id}", role: "viewer", path: "/api/v1/collab/model/JPCP/comments/0199d2a4-0000-7000-8000-000000000000", status: 404},
	{table: additions, route: "GET /api/v1/inbox", role: "viewer", status: 200, members: map[string]string{"": "unread items"}},
	{table: additions, route: "POST /api/v1/inbox/read-all", role: "viewer", body: `{"until": "2026-11-22T00:00:00Z"}`, status: 204},
	{table: additions, route: "POST /api/v1/inbox/{id}/read", role: "viewer", path: "/api/v1/inbox/" + nothing + "/read", status: 404},
	{table: additions, route: "GET /api/v1/notifications/channels", role: "admin", status: 200, members: map[string]string{"": "channels mail_configured allowed_hosts"}},
	{table: additions, route: "POST /api/v1/notifications/channels", role: "admin", body: aChannel, status: 422, check: wantValue("errors.0.loc.1", "url")},
	{table: additions, route: "PUT /api/v1/notifications/channels/{id}", role: "admin", path: "/api/v1/notifications/channels/" + nothing, body: aChannel, status: 404},
	{table: additions, route: "DELETE /api/v1/notifications/channels/{id}", role: "admin", path: "/api/v1/notifications/channels/" + nothing, status: 404},
	{table: additions, route: "POST /api/v1/notifications/channels/{id}/test", role: "admin", path: "/api/v1/notifications/channels/" + nothing + "/test", status: 404},
	{table: additions, route: "POST /api/proxy-ticket", role: "viewer", operator: true, body: `{"service": "tracker"}`, status: 200, cache: noStore, members: map[string]string{"": "url"}},
	{table: additions, route: "POST /api/v1/assistant/chat", role: "viewer", body: `{"question": "why?"}`, status: 200, cache: "no-cache", check: func(w *world, a answer) {
		if !strings.HasPrefix(a.header.Get("X-Session-ID"), "dd-") {
			w.t.Errorf("%s: got X-Session-ID %q, want one with a prefix of the caller", a.request, a.header.Get("X-Session-ID"))
		}
	}},
	{table: additions, route: "GET /api/v1/assistant/clusters", role: "viewer", status: 200, members: map[string]string{"": "clusters"}},
	{table: additions, route: "GET /api/v1/assistant/sessions/{session}/replay", role: "viewer", status: 404},
	{table: additions, route: "GET /api/v1/assistant/sessions/{session}", role: "viewer", status: 404},
	{table: additions, route: "GET /api/v1/assistant/sessions/{session}/actions", role: "viewer", status: 404},
	{table: additions, route: "POST /api/v1/assistant/sessions/{session}/actions/{action_id}", role: "admin", body: `{"decision": "approve"}`, status: 404},
}
