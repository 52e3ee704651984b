package controltower_test

import (
	"fmt"
	"strings"

	"github.com/mlp-platform/platform/clients/go/controltower"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/document"
	"github.com/mlp-platform/platform/libs/evidence/evidencetest"
	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/report"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// The good answers, and those of errors.

func runNamed(id string) spine.Run {
	r := fixture.Run()
	r.RunID = id
	return r
}

func runAnswer(id string) *reply {
	run := runNamed(id)
	return documentReply(200, evidencetest.NewRun(document.RunDetail{Run: run, IdempotencyKey: "demo", CreateRequestDigest: spine.CreateRequestDigest(run)}))
}

const (
	runID     = "run/demo:0001"
	runTarget = "/runs/run/demo:0001"
)

var askRun = encodeArgs("run_id", runID)

func newHead(kind string) document.Head {
	return document.Head{APIVersion: "v1", SchemaVersion: "0.1", Kind: kind, OK: true}
}

func statusAnswer() *reply {
	return documentReply(200, controltower.Status{
		Head: newHead("svc-control-tower-status"), Service: "svc-control-tower", Mode: "local-read-only",
		MediaTypes:      []string{"application/json", "application/vnd.svc.control-tower.v1+json"},
		SourceContracts: []string{"svc-run-evidence-report/0.1"},
		Schemas:         map[string]string{"event": "urn:svc:schema:event:0.1"},
		Capabilities:    map[string]bool{"product_spine_reads": true, "merge": false},
		Operations: controltower.Operations{
			RequestIDHeader: "X-Request-ID", Liveness: "GET /healthz", Readiness: "GET /readyz", AccessLogEnv: "SVC_HTTP_ACCESS_LOG",
			TraceContext: "w3c-traceparent-v00-pass-through",
			Limits: controltower.Limits{
				RequestTimeoutSeconds: 10, MaxConcurrentRequests: 16, RetryAfterSeconds: 1, DrainTimeoutSeconds: 5, MaxRequestLineBytes: 65536,
				MaxHeaderLineBytes: 65536, MaxHeaderCount: 99, MaxRequestBodyBytes: 2097152, OverloadStatus: 503, ConnectionPolicy: "close_after_response",
				PerClientRateLimit: "not_implemented", MaxSSEClients: 8, SSEHeartbeatSeconds: 15, SSEMaxStreamSeconds: 300,
			},
		},
		Endpoints: map[string]string{"status": "GET /api/v1/status"},
	})
}

func mustParse(text string) canon.Value {
	v, err := canon.Parse([]byte(text))
	if err != nil {
		panic(err)
	}
	return v
}

func metricsAnswer() *reply {
	return documentReply(200, mustParse(`{"schema_version":"0.1","kind":"svc-api-operational-metrics","service":"svc-control-tower","service_version":"0.1.0",
		"scope":"process_lifetime","requests":{"total":3,"client_errors_total":1,"server_errors_total":0,
		"by_status_class":{"1xx":0,"2xx":2,"3xx":0,"4xx":1,"5xx":0}},"latency_ms":{"count":3,"sum":1.25,"max":0.75,"buckets":[{"le_ms":5,"count":3}]},
		"concurrency":{"in_flight_requests":1,"max_concurrent_requests":16,"event_stream_clients":0,"max_event_stream_clients":8},
		"admission":{"overload_rejections_total":0,"draining_rejections_total":0,"rate_limit_rejections_total":0,"rate_limit_status":"not_implemented"},
		"operations":{"run_evidence_inspections_total":1,"human_decision_ingestions_total":0,"human_decision_ingestion_status":"not_implemented"},
		"dependencies":{"product_spine_store":{"state":"configured_unprobed","required_for_core_readiness":false}},
		"telemetry":{"trace_context":"w3c-traceparent-v00-pass-through","path_labels":false,"query_labels":false,"request_id_labels":false,
		"authentication_labels":false,"payload_labels":false},
		"authority":{"canonical_state_write":false,"git_push":false,"merge":false}}`))
}

func reportText() string {
	c1, err := canon.C1(canon.MustFrom(fixture.Report()))
	if err != nil {
		panic(err)
	}
	return string(c1)
}

func inspectionReply(r *report.Report) *reply { return documentReply(200, document.NewInspection(r)) }

func evidenceAnswer() *reply {
	return documentReply(200, evidencetest.NewRunEvidence(fixture.Report()))
}

func workUnitAnswer() *reply {
	return documentReply(200, document.NewWorkUnit(evidencetest.WorkUnits([]spine.Run{fixture.Run()})[0]))
}

func projectAnswer() *reply {
	return documentReply(200, document.NewProject(evidencetest.ProjectOf(fixture.ProjectID, []spine.Run{fixture.Run()})))
}

func answerExchanges() []recorded {
	ok := func(name, call string, a []byte, target string, r *reply) recorded {
		return answeredCall(name, call, a, getRequest(target), r, expectDocument(r))
	}
	vendor := runAnswer(runID).set("Content-Type", "application/vnd.svc.control-tower.v1+json; charset=utf-8")
	spaced := runAnswer(runID)
	spaced.write(" " + strings.Replace(string(spaced.body), `,"authority":`, ",\n \"authority\" : ", 1) + "\n")
	openapi := documentReply(200, mustParse(`{"openapi":"3.1.0","info":{"title":"Evidence","version":"1"},"paths":{},"servers":[{"url":"/"}],
		"x-svc-kind":"svc-openapi","x-svc-schema-version":"0.1"}`))
	attempts := documentReply(200, document.RunAttempts{Head: newHead(document.KindRunAttempts), RunID: runID, Attempts: []spine.Attempt{
		{AttemptID: "attempt-1", Order: 1, ConnectorID: "fake-agent", State: spine.AttemptCreated}}})
	named := func(name, id, target string) recorded {
		return ok(name, "get_run", encodeArgs("run_id", id), "/runs/"+target, runAnswer(id))
	}
	inspected := inspectionReply(fixture.Report())
	return []recorded{
		ok("status, floats stay floats", "status", nil, "/status", statusAnswer()),
		ok("OpenAPI document", "get_openapi", nil, "/openapi.json", openapi),
		ok("metrics", "get_metrics", nil, "/metrics", metricsAnswer()),
		ok("run", "get_run", askRun, runTarget, runAnswer(runID)),
		ok("run under the vendor type", "get_run", askRun, runTarget, vendor),
		ok("run in other bytes of the same document", "get_run", askRun, runTarget, spaced),
		named("run id that ends like a sub-resource", "run/attempts", "run%2Fattempts"),
		named("run id that ends like another", "a/b/evidence", "a/b%2Fevidence"),
		named("run id that is a sub-resource's name", "attempts", "attempts"),
		named("run id to be quoted", "run é?#%", "run%20%C3%A9%3F%23%25"),
		named("run id of dots", "../..", "../.."),
		ok("attempts", "get_run_attempts", askRun, runTarget+"/attempts", attempts),
		ok("evidence", "get_run_evidence", encodeArgs("run_id", "run/demo:0002"), "/runs/run/demo:0002/evidence", evidenceAnswer()),
		ok("work unit", "get_work_unit", encodeArgs("work_unit_id", "work/demo-0001"), "/work-units/work/demo-0001", workUnitAnswer()),
		ok("project", "get_project", encodeArgs("project_id", fixture.ProjectID), "/projects/project/demo", projectAnswer()),
		ok("connection", "get_connection", encodeArgs("connection_id", fixture.Connections()[0].ID), "/connections/"+fixture.Connections()[0].ID,
			documentReply(200, document.NewConnection(fixture.Connections()[0]))),
		answeredCall("inspection", "inspect_run_evidence", encodeArgs("report", reportText()), postRequest("/run-evidence/inspect", reportText()), inspected, expectDocument(inspected)),
	}
}

// errorReply is an error of the server.
func errorReply(status int, code string, retryable bool, details *canon.Object) *reply {
	r := documentReply(status, document.NewError(code, "What is wrong, in a sentence.", retryable, details))
	if retryable {
		r.set("Retry-After", "1")
	}
	return r
}

func capacityReply(code string) *reply {
	return errorReply(503, code, true, canon.NewObject(canon.Member{Key: "retry_after_seconds", Value: canon.NewInt(1)}))
}

func apiErrors() []recorded {
	api := func(status int, code string, details string) expectation {
		e := expectation{Error: "api", StatusCode: status, Code: code, RequestID: requestID}
		if details != "" {
			e.Details = []byte(details)
		}
		return e
	}
	busy := api(503, "overloaded", `{"retry_after_seconds":1}`)
	busy.Retryable, busy.RetryAfter = true, pointerTo(1)
	one := func(r *reply) rawExchange {
		return rawExchange{Request: getRequest(runTarget), Response: []piece{{Text: r.text()}}}
	}
	gone := rawExchange{Request: getRequest(runTarget), Response: []piece{}}
	atOnce := clientSettings{Retry: &retrySetting{MaxAttempts: 3}}
	limits := canon.NewObject(canon.Member{Key: "minimum", Value: canon.NewInt(1)}, canon.Member{Key: "maximum", Value: canon.NewInt(200)})
	run := func(name string, client clientSettings, want expectation, exchanges ...rawExchange) recorded {
		return recorded{Name: name, Client: client, Call: "get_run", Args: askRun, Exchanges: exchanges, Expect: want}
	}
	found := expectDocument(runAnswer(runID))
	tampered := runAnswer(runID).swap("proposed", "proposeD")
	tooLong := errorReply(503, "overloaded", true, nil).set("Retry-After", "61")
	far := busy
	far.Details, far.RetryAfter = nil, pointerTo(61)
	return []recorded{
		run("not found", clientSettings{}, api(404, "run_not_found", ""), one(errorReply(404, "run_not_found", false, nil))),
		run("details", clientSettings{}, api(400, "invalid_limit", `{"maximum":200,"minimum":1}`), one(errorReply(400, "invalid_limit", false, limits))),
		run("a code this client does not know", clientSettings{}, api(418, "new_code", ""), one(errorReply(418, "new_code", false, nil))),
		run("overloaded, no policy", clientSettings{}, busy, one(capacityReply("overloaded"))),
		run("overloaded, then an answer", atOnce, found, one(capacityReply("overloaded")), one(runAnswer(runID))),
		run("no answer, then an answer", atOnce, found, gone, one(runAnswer(runID))),
		run("overloaded until the attempts are spent", atOnce, busy, one(capacityReply("overloaded")), one(capacityReply("overloaded")), one(capacityReply("overloaded"))),
		run("not found is not tried again", atOnce, api(404, "run_not_found", ""), one(errorReply(404, "run_not_found", false, nil))),
		run("a broken digest is not tried again", atOnce, expectation{Error: "integrity", RequestID: requestID}, one(tampered)),
		run("a broken answer is not tried again", atOnce, expectation{Error: "protocol"}, one(plainReply(414, "The request line is too long."))),
		run("a wait beyond a minute is not waited for", clientSettings{Retry: &retrySetting{MaxAttempts: 3, HonorRetryAfter: true}}, far, one(tooLong)),
		{Name: "an inspection is never tried again", Client: atOnce, Call: "inspect_run_evidence", Args: encodeArgs("report", "{}"), Expect: busy,
			Exchanges: []rawExchange{{Request: postRequest("/run-evidence/inspect", "{}"), Response: []piece{{Text: capacityReply("overloaded").text()}}}}},
		{Name: "a stream is never tried again", Client: atOnce, Call: "stream_events", Args: encodeArgs("idle_timeout", 20), Expect: func() expectation {
			e := busy
			e.Code = "too_many_streams"
			return e
		}(), Exchanges: []rawExchange{{Request: getRequest("/events/stream", "Accept", "text/event-stream"), Response: []piece{{Text: capacityReply("too_many_streams").text()}}}}},
		{Name: "a list is tried again", Client: atOnce, Call: "list_connections", Expect: expectation{RequestID: requestID, Limit: 50,
			ContentDigest: documentReply(200, document.NewList([]spine.Connection{}, 50, "")).digest()},
			Exchanges: []rawExchange{{Request: getRequest("/connections"), Response: []piece{{Text: capacityReply("overloaded").text()}}},
				{Request: getRequest("/connections"), Response: []piece{{Text: documentReply(200, document.NewList([]spine.Connection{}, 50, "")).text()}}}}},
	}
}

// lists

func runsPage(limit int, cursor string, ids ...string) *reply {
	runs := []spine.Run{}
	for _, id := range ids {
		runs = append(runs, runNamed(id))
	}
	return documentReply(200, document.NewList(runs, limit, cursor))
}

func fixtureEvents() []spine.Event { e := evidencetest.RunEvents(); return e[:] }

func listExchanges() []recorded {
	paged := func(r *reply, limit int, cursor string, items ...string) expectation {
		e := expectDocument(r)
		e.Limit, e.Items = limit, items
		if cursor != "" {
			e.NextCursor = &cursor
		}
		return e
	}
	runs := runsPage(2, "bmV4dA==", "run/a", "run/b")

	topOnly := runsPage(2, "bmV4dA==", "run/a").swap(`"page":{"limit":2,"next_cursor":"bmV4dA=="}`, `"page":{"limit":2}`).sealed()
	pageOnly := runsPage(2, "bmV4dA==", "run/a").swap(`"next_cursor":"bmV4dA==","page"`, `"page"`).sealed()
	empty := documentReply(200, document.NewList([]spine.Run{}, 50, ""))
	units := documentReply(200, document.NewList(evidencetest.WorkUnits([]spine.Run{fixture.Run()}), 50, ""))
	connections := documentReply(200, document.NewList(fixture.Connections(), 4, ""))
	names := []string{}
	for _, c := range fixture.Connections() {
		names = append(names, c.ID)
	}
	events := documentReply(200, document.NewList(fixtureEvents(), 200, ""))
	turn := func(target string, r *reply) rawExchange {
		return rawExchange{Request: getRequest(target), Response: []piece{{Text: r.text()}}}
	}
	return []recorded{
		answeredCall("runs", "list_runs", encodeArgs("limit", 2, "cursor", "YQ==", "state", "proposed", "project_id", "project/demo"),
			getRequest("/runs?limit=2&cursor=YQ%3D%3D&state=proposed&project_id=project%2Fdemo"), runs, paged(runs, 2, "bmV4dA==", "run/a", "run/b")),
		answeredCall("a cursor at the top alone", "list_runs", nil, getRequest("/runs"), topOnly, paged(topOnly, 2, "bmV4dA==", "run/a")),
		answeredCall("a cursor on the page alone", "list_runs", nil, getRequest("/runs"), pageOnly, paged(pageOnly, 2, "bmV4dA==", "run/a")),
		answeredCall("no runs", "list_runs", nil, getRequest("/runs"), empty, paged(empty, 50, "")),
		answeredCall("work units", "list_work_units", encodeArgs("project_id", "project/demo"), getRequest("/work-units?project_id=project%2Fdemo"), units,
			paged(units, 50, "", "work/demo-0001")),
		answeredCall("connections", "list_connections", encodeArgs("limit", 4), getRequest("/connections?limit=4"), connections, paged(connections, 4, "", names...)),
		answeredCall("events", "list_events", encodeArgs("limit", 200, "run_id", runID, "work_unit_id", "work/demo-0001"),
			getRequest("/events?limit=200&run_id=run%2Fdemo%3A0001&work_unit_id=work%2Fdemo-0001"), events,
			paged(events, 200, "", "evt-000000000001", "evt-000000000002")),
		{Name: "every run, page after page", Call: "iter_runs", Args: encodeArgs("page_size", 2, "state", "proposed"),
			Exchanges: []rawExchange{
				turn("/runs?limit=2&state=proposed", runsPage(2, "b25l", "run/a", "run/b")),
				turn("/runs?limit=2&cursor=b25l&state=proposed", runsPage(2, "dHdv")),
				turn("/runs?limit=2&cursor=dHdv&state=proposed", runsPage(2, "", "run/c")),
			}, Expect: expectation{Items: []string{"run/a", "run/b", "run/c"}}},
		{Name: "no more runs than asked for", Call: "iter_runs", Args: encodeArgs("max_items", 1),
			Exchanges: []rawExchange{turn("/runs?limit=50", runsPage(50, "b25l", "run/a", "run/b"))}, Expect: expectation{Items: []string{"run/a"}}},
		{Name: "a cursor that comes again", Call: "iter_runs", Args: encodeArgs("page_size", 1),
			Exchanges: []rawExchange{
				turn("/runs?limit=1", runsPage(1, "b25l", "run/a")),
				turn("/runs?limit=1&cursor=b25l", runsPage(1, "b25l", "run/b")),
			}, Expect: expectation{Error: "protocol", RequestID: requestID, Items: []string{"run/a", "run/b"}}},
	}
}

// refusedCalls calls send nothing.
func refusedCalls() []recorded {
	no := func(name, call string, a []byte, client clientSettings) recorded {
		return recorded{Name: name, Client: client, Call: call, Args: a, Expect: expectation{Error: "config"}}
	}
	var out []recorded
	for _, base := range []string{
		"https://127.0.0.1:{port}", "http://10.0.0.1:{port}", "http://127.0.0.2:{port}", "http://[::1]:{port}", "http://localhost.:{port}", "http://localhoſt:{port}", "http://evil.example",
		"http://user@127.0.0.1:{port}", "http://127.0.0.1:{port}/api", "http://127.0.0.1:{port}?", "http://127.0.0.1:{port}#x", "http://127.0.0.1:0",
		"http://127.0.0.1:65536", "127.0.0.1:{port}", " http://127.0.0.1:{port}", "http://127.0.0.1:{port}\n", "http://127.0.0.1:",
	} {
		out = append(out, no("base URL "+fmt.Sprintf("%q", base), "status", nil, clientSettings{BaseURL: base}))
	}
	for _, bad := range []string{"", strings.Repeat("a", 31), strings.Repeat("a", 4097), strings.Repeat("a", 31) + " ", strings.Repeat("é", 32), token + "\r\nX: y"} {
		out = append(out, no(fmt.Sprintf("token of %d bytes ending %q", len(bad), bad[max(len(bad)-2, 0):]), "status", nil, clientSettings{Token: &bad}))
	}
	for _, limit := range []int{0, -1, 201} {
		out = append(out, no(fmt.Sprintf("limit %d", limit), "list_runs", encodeArgs("limit", limit), clientSettings{}))
	}
	return append(out,
		no("timeout below 0", "status", nil, clientSettings{Timeout: -1}),
		no("retry policy without an attempt", "status", nil, clientSettings{Retry: &retrySetting{}}),
		no("retry policy whose base exceeds its most", "status", nil, clientSettings{Retry: &retrySetting{MaxAttempts: 2, BaseDelay: 2, MaxDelay: 1}}),
		no("empty run id", "get_run", encodeArgs("run_id", ""), clientSettings{}),
		no("run id with a line break", "get_run", encodeArgs("run_id", "a\r\nX-Injected: y"), clientSettings{}),
		no("empty connection id", "get_connection", encodeArgs("connection_id", ""), clientSettings{}),
		no("cursor with a control character", "list_runs", encodeArgs("cursor", "a\u0000"), clientSettings{}),
		no("page size beyond the limit", "iter_runs", encodeArgs("page_size", 201), clientSettings{}),
		no("fewer than no runs", "iter_runs", encodeArgs("max_items", -1), clientSettings{}),
		no("stream without a timeout worth its name", "stream_events", encodeArgs("idle_timeout", -1), clientSettings{}),
		no("stream from before the first event", "stream_events", encodeArgs("idle_timeout", 20, "last_event_id", -1), clientSettings{}),
		no("stream from 19 digits", "stream_events", encodeArgs("idle_timeout", 20, "last_event_id", int64(1e18)), clientSettings{}),
		no("stream of fewer than no events", "stream_events", encodeArgs("idle_timeout", 20, "max_events", -1), clientSettings{}),
		no("stream of a time below 0", "stream_events", encodeArgs("idle_timeout", 20, "max_seconds", -1), clientSettings{}),
		no("stream with a negative bound of frames", "stream_events", encodeArgs("idle_timeout", 20, "max_frame_bytes", -1), clientSettings{}),
	)
}
