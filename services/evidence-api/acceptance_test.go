package evidenceapi_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/services/evidence-api/internal/evidenceapitest"
)

// The rows of the acceptance table, by their numbers: requests without a store, or for
// which the store does not matter. Every answer is also held against its schema and the
// OpenAPI document by the harness.

func TestRow01HealthNeedsNoToken(t *testing.T) {
	t.Parallel()
	r := evidenceapitest.Start(t).Do(evidenceapitest.Request{Target: "/healthz", NoToken: true}).Want(200, "")
	if string(r.Body) != "ok\n" || r.Header.Get("ETag") != "" || r.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("%q %v; want string(r.Body) == \"ok\\n\" && r.Header.Get(\"ETag\") == \"\" && r.Header.Get(\"Content-Type\") == \"text/plain; charset=utf-8\"", r.Body, r.Header)
	}
}

func TestRow02ReadinessNeedsNoToken(t *testing.T) {
	t.Parallel()
	r := evidenceapitest.Start(t).Do(evidenceapitest.Request{Target: "/readyz", NoToken: true}).Want(200, "")
	if r.At("kind") != `"svc-readiness"` || r.Header.Get("X-SVC-Content-Digest") != canon.DigestBytes(r.Body) {
		t.Errorf("%s %v; want r.At(\"kind\") == `\"svc-readiness\"` && r.Header.Get(\"X-SVC-Content-Digest\") == canon.DigestBytes(r.Body)", r.Body, r.Header)
	}
}

func TestRow03Status(t *testing.T) {
	t.Parallel()
	r := evidenceapitest.Start(t).Get("/api/v1/status").Want(200, "")
	const limits = `{"connection_policy":"close_after_response","drain_timeout_seconds":5.0,"max_concurrent_requests":16,` +
		`"max_header_count":99,"max_header_line_bytes":65536,"max_request_body_bytes":2097152,"max_request_line_bytes":65536,` +
		`"max_sse_clients":8,"overload_status":503,"per_client_rate_limit":"not_implemented","request_timeout_seconds":10.0,` +
		`"retry_after_seconds":1,"sse_heartbeat_seconds":15.0,"sse_max_stream_seconds":300.0}`
	if got := r.At("operations", "limits"); got != limits {
		t.Errorf("limits %s; want %v", got, limits)
	}
	if got := r.Header.Get("ETag"); got != `"`+strings.TrimPrefix(canon.DigestBytes(r.Body), "sha256:")+`"` {
		t.Errorf("ETag %s; want got == `\"` + strings.TrimPrefix(canon.DigestBytes(r.Body), \"sha256:\") + `\"`", got)
	}
}

func TestRow04WrongTokensAllLookAlike(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	fields := map[string][]string{
		"missing":             nil,
		"one character short": {"X-SVC-UI-Token: " + evidenceapitest.Token[:len(evidenceapitest.Token)-1]},
		"other case":          {"X-SVC-UI-Token: " + strings.ToUpper(evidenceapitest.Token)},
		"not ASCII":           {"X-SVC-UI-Token: é"},
		"empty":               {"X-SVC-UI-Token: "},
		"padded":              {"X-SVC-UI-Token:  " + evidenceapitest.Token},
		"padded behind":       {"X-SVC-UI-Token: " + evidenceapitest.Token + " "},
		"repeated":            {"X-SVC-UI-Token: " + evidenceapitest.Token, "x-svc-ui-token: " + evidenceapitest.Token},
		"prefix":              {"X-SVC-UI-Token: Bearer " + evidenceapitest.Token},
		"bearer":              {"Authorization: Bearer " + evidenceapitest.Token},
		"cookie":              {"Cookie: X-SVC-UI-Token=" + evidenceapitest.Token},
	}
	want := tw.Do(evidenceapitest.Request{Target: "/api/v1/status", NoToken: true}).Body
	for name, f := range fields {
		for _, target := range []string{"/api/v1/status", "/api/v1/runs", "/api/v1/no-such-route", "/api/v1/", "/metrics"} {
			r := tw.Do(evidenceapitest.Request{Target: target, NoToken: true, Fields: f}).Want(403, "invalid_session_token")
			if !bytes.Equal(r.Body, want) {
				t.Errorf("%s: another body for %s; want bytes.Equal(r.Body, want)", name, target)
			}
		}
	}
	tw.Do(evidenceapitest.Request{Target: "/api/v1/status?token=" + evidenceapitest.Token, NoToken: true}).Want(403, "invalid_session_token")
}

func TestRow05Hosts(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	for _, hosts := range [][]string{
		{"evil.example"}, {"[::1]"}, {}, {"127.0.0.1", "127.0.0.1"}, {"localhost:0"}, {"localhost:65536"}, {"localhost:"}, {"localhost."},
		{"0.0.0.0"}, {"127.0.0.2"}, {""}, {"a@localhost"}, {"localhost,localhost"}, {"localhost localhost"}, {"localhost:8770:1"}, {"localhost:+1"},
	} {
		var fields []string
		for _, h := range hosts {
			fields = append(fields, "Host: "+h)
		}
		for _, target := range []string{"/api/v1/status", "/", "/healthz", "/nope"} {
			tw.Do(evidenceapitest.Request{Target: target, NoHost: true, Fields: fields}).Want(403, "invalid_host")
		}
		tw.Do(evidenceapitest.Request{Method: "OPTIONS", Target: "/api/v1/status", NoHost: true, Fields: fields}).Want(403, "invalid_host")
	}
	tw.Get("http://evil.example/api/v1/status").Want(403, "invalid_host")
	tw.Get("http://LOCALHOST:1/api/v1/status").Want(200, "")
	tw.Do(evidenceapitest.Request{Target: "http://localhost/api/v1/status", NoHost: true, Fields: []string{"Host: evil.example"}}).Want(403, "invalid_host")
}

func TestRow06HostInAnyCase(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	for _, host := range []string{"LOCALHOST:8770", "localhost", "127.0.0.1", "127.0.0.1:65535", "LocalHost:1"} {
		tw.Do(evidenceapitest.Request{Target: "/api/v1/status", NoHost: true, Fields: []string{"Host: " + host}}).Want(200, "")
	}
}

func TestRow07OtherVersions(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	for _, target := range []string{"/api/v2/status", "/api/v1", "/api/", "/api/v1x/status", "/api/V1/status"} {
		r := tw.Do(evidenceapitest.Request{Target: target, NoToken: true}).Want(404, "unsupported_api_version")
		if got := r.At("error", "details"); got != `{"supported_versions":["v1"]}` {
			t.Errorf("%s: %s; want got == `{\"supported_versions\":[\"v1\"]}`", target, got)
		}
	}
}

func TestRow08NoSuchEndpoint(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	tw.Do(evidenceapitest.Request{Target: "/nope", NoToken: true}).Want(404, "not_found")
	tw.Get("/nope").Want(404, "not_found")
	tw.Get("/api").Want(404, "not_found")
	for _, target := range []string{"/livez", "/docs", "/redoc", "/openapi.json", "//healthz", "/healthz/", "/index.html/"} {
		tw.Get(target).Want(404, "not_found")
	}
	tw.Get("/api/v1/runs/X/decisions").Want(404, "not_found")
	tw.Get("/api/v1/runs/").Want(404, "not_found")
	tw.Do(evidenceapitest.Request{Method: "POST", Target: "/api/v1/human-decisions"}).Want(404, "not_found")
}

func TestRow09Preflight(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	for target, allow := range map[string]string{
		"/api/v1/run-evidence/inspect": "POST", "/api/v1/events/stream": "GET", "/api/v1/status": "GET, HEAD",
		"/": "GET, HEAD", "/nope": "GET, HEAD", "*": "GET, HEAD", "/healthz": "GET, HEAD", "/api/v2/x": "GET, HEAD",
	} {
		for _, noToken := range []bool{false, true} {
			r := tw.Do(evidenceapitest.Request{Method: "OPTIONS", Target: target, NoToken: noToken}).Want(405, "preflight_not_supported")
			if got := r.Header.Get("Allow"); got != allow {
				t.Errorf("%s: Allow %q, want %q", target, got, allow)
			}
		}
	}
}

func TestRow10QueryWhereNoneIsTaken(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	for _, target := range []string{"/api/v1/status?x=1", "/healthz?x=1", "/readyz?x", "/metrics?x=1", "/api/v1/projects/project/demo?limit=1", "/api/v1/runs/X?limit=1"} {
		r := tw.Get(target).Want(400, "unexpected_query_parameters")
		if got := r.At("error", "details"); got != `{"allowed":[]}` {
			t.Errorf("%s: %s; want got == `{\"allowed\":[]}`", target, got)
		}
	}
	if got := tw.Get("/?x=1").Want(400, "unexpected_query_parameters").At("error", "details"); got != `{"allowed":["launch"]}` {
		t.Error(got, "want `{\"allowed\":[\"launch\"]}`")
	}
	tw.Get("/api/v1/status?").Want(200, "")
}

func TestRow11TokenBeforeQuery(t *testing.T) {
	t.Parallel()
	evidenceapitest.Start(t).Do(evidenceapitest.Request{Target: "/api/v1/status?x=1", NoToken: true}).Want(403, "invalid_session_token")
}

func TestRow12QueryNames(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	for _, query := range []string{"limit=1&limit=2", "foo=1", "LIMIT=1", "limit=1&%6cimit=1"} {
		r := tw.Get("/api/v1/runs?"+query).Want(400, "unexpected_query_parameters")
		if got := r.At("error", "details", "allowed"); got != `["cursor","limit","project_id","state"]` {
			t.Errorf("%s: %s; want got == `[\"cursor\",\"limit\",\"project_id\",\"state\"]`", query, got)
		}
	}
}

func TestRow13NotAcceptable(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	for _, accept := range []string{"text/html", "application/json;q=0", "text/event-stream"} {
		r := tw.Get("/api/v1/status", "Accept: "+accept).Want(406, "not_acceptable")
		if got := r.At("error", "details", "supported"); got != `["application/json","application/vnd.svc.control-tower.v1+json"]` {
			t.Errorf("%s: %s; want got == `[\"application/json\",\"application/vnd.svc.control-tower.v1+json\"]`", accept, got)
		}
	}
	// Not looked at here.
	for _, target := range []string{"/", "/healthz", "/readyz", "/metrics"} {
		tw.Get(target, "Accept: image/png").Want(200, "")
	}
}

func TestRow14Negotiation(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	const vendor = "application/vnd.svc.control-tower.v1+json"
	for accept, want := range map[string]string{vendor: vendor, "application/*": "application/json", "": "application/json"} {
		r := tw.Get("/api/v1/status", "Accept: "+accept).Want(200, "")
		if got := r.Header.Get("Content-Type"); got != want+"; charset=utf-8" {
			t.Errorf(`%q: %s; want got == want + "; charset=utf-8"`, accept, got)
		}
	}
	if got := tw.Get("/api/v1/nope", "Accept: "+vendor).Want(404, "not_found").Header.Get("Content-Type"); got != vendor+"; charset=utf-8" {
		t.Error("an error:", got, `want got == vendor + "; charset=utf-8"`)
	}
}

func TestRow15ConditionsAreIgnored(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	first := tw.Get("/api/v1/status")
	again := tw.Get("/api/v1/status", "If-None-Match: "+first.Header.Get("ETag"), "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT", "Range: bytes=0-1").Want(200, "")
	if !bytes.Equal(first.Body, again.Body) {
		t.Error("another body")
	}
}

func TestRow16Methods(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	for request, allow := range map[[2]string]string{
		{"POST", "/api/v1/runs"}: "GET, HEAD", {"GET", "/api/v1/run-evidence/inspect"}: "POST", {"HEAD", "/api/v1/run-evidence/inspect"}: "POST",
		{"HEAD", "/api/v1/events/stream"}: "GET", {"DELETE", "/api/v1/runs/X"}: "GET, HEAD", {"PUT", "/healthz"}: "GET, HEAD",
		{"POST", "/"}: "GET, HEAD", {"PATCH", "/metrics"}: "GET, HEAD", {"get", "/api/v1/status"}: "GET, HEAD", {"TRACE", "/readyz"}: "GET, HEAD",
	} {
		r := tw.Do(evidenceapitest.Request{Method: request[0], Target: request[1]})
		if r.Status != 405 || r.Header.Get("Allow") != allow || request[0] != "HEAD" && r.Code() != "method_not_allowed" {
			t.Errorf(`%v: %d %q %s; want r.Status == 405 && r.Header.Get("Allow") == allow && (request[0] == "HEAD" || r.Code() == "method_not_allowed")`, request, r.Status, r.Header.Get("Allow"), r.Body)
		}
	}
}

func TestRow17Head(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	for _, target := range []string{"/api/v1/status", "/api/v1/runs", "/healthz", "/readyz", "/api/v1/runs/none"} {
		const id = "X-Request-ID: one"
		get := tw.Get(target, id)
		head := tw.Do(evidenceapitest.Request{Method: "HEAD", Target: target, Fields: []string{id}})
		if head.StatusLine != get.StatusLine || formatHeader(head) != formatHeader(get) || len(head.Body) != 0 {
			t.Errorf("%s:\n%s\n%s; want head.StatusLine == get.StatusLine && formatHeader(head) == formatHeader(get) && len(head.Body) == 0", target, formatHeader(head), formatHeader(get))
		}
	}
}

// formatHeader writes the header of an answer, but for the time.
func formatHeader(r *evidenceapitest.Response) string {
	var b strings.Builder
	for _, f := range r.Header {
		if f.Name == "Date" {
			f.Value = "<date>"
		}
		fmt.Fprintf(&b, "%s: %s\n", f.Name, f.Value)
	}
	return b.String()
}

func TestRow18RequestIDs(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	for _, id := range []string{"a:b.c", strings.Repeat("9", 128)} {
		if got := tw.Get("/api/v1/status", "X-Request-ID: "+id).Header.Get("X-Request-ID"); got != id {
			t.Errorf("%q became %q; want got == %v", id, got, id)
		}
	}
	made := regexp.MustCompile(`^req_[0-9a-f]{32}$`)
	for _, sent := range [][]string{{"X-Request-ID: bad id"}, {"X-Request-ID: " + strings.Repeat("a", 129)}, {"X-Request-ID: a", "X-Request-ID: a"}, nil} {
		if got := tw.Get("/api/v1/status", sent...).Header.Get("X-Request-ID"); !made.MatchString(got) {
			t.Errorf("%q became %q; want made.MatchString(got)", sent, got)
		}
	}
	trace := "00-" + strings.Repeat("ab", 16) + "-" + strings.Repeat("cd", 8) + "-01"
	if got := tw.Get("/healthz", "traceparent: "+trace).Header.Values("traceparent"); len(got) != 1 || got[0] != trace {
		t.Errorf("traceparent %q; want len(got) == 1 && got[0] == trace", got)
	}
	if got := tw.Get("/healthz", "traceparent: "+strings.ToUpper(trace)).Header.Values("traceparent"); len(got) != 0 {
		t.Errorf("traceparent %q; want len(got) == 0", got)
	}
}
