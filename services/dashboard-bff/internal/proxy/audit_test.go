package proxy

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

func TestEveryWriteIsAudited(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.behind(upstream.Orchestrator, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/bad") {
			w.WriteHeader(http.StatusConflict)
		}
	})
	b.send(http.MethodGet, "/api/proxy/orchestrator/api/x", "")
	b.send(http.MethodPost, "/api/proxy/orchestrator/api/x?token=hidden", "{}", "X-Request-ID", "r-1")
	b.send(http.MethodDelete, "/api/proxy/orchestrator/api/bad", "", "X-Request-ID", "r-2")
	b.settings.set("orchestrator_url", "http://127.0.0.1:1")
	b.send(http.MethodPatch, "/api/proxy/orchestrator/api/x", "{}", "X-Request-ID", "r-3")
	b.as(viewer).send(http.MethodPut, "/api/proxy/orchestrator/api/x", "{}")
	details := func(method, path string, status any) map[string]any {
		d := map[string]any{"service": "orchestrator", "method": method, "path": path, "origin": "dashboard"}
		if status != nil {
			d["status"] = status
		}
		return d
	}
	want := []fact{
		{"default", "local:admin", ActionBegin, "orchestrator/api/x", "ok", "r-1", details("POST", "/api/x", nil)},
		{"default", "local:admin", "proxy.post", "orchestrator/api/x", "ok", "r-1", details("POST", "/api/x", 200.0)},
		{"default", "local:admin", ActionBegin, "orchestrator/api/bad", "ok", "r-2", details("DELETE", "/api/bad", nil)},
		{"default", "local:admin", "proxy.delete", "orchestrator/api/bad", "failed", "r-2", details("DELETE", "/api/bad", 409.0)},
		{"default", "local:admin", ActionBegin, "orchestrator/api/x", "ok", "r-3", details("PATCH", "/api/x", nil)},
		{"default", "local:admin", "proxy.patch", "orchestrator/api/x", "failed", "r-3", details("PATCH", "/api/x", nil)},
	}
	if diff := cmp.Diff(want, b.facts()); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
}

func TestWritesOfTheToolsOriginAreAuditedWithThePerson(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.behind(upstream.Orchestrator, func(http.ResponseWriter, *http.Request) {})
	if a := b.enter(upstream.Orchestrator).send(http.MethodPost, "/api/proxy/orchestrator/api/x", "{}", "Sec-Fetch-Site", "same-origin", "X-Request-ID", "r-9"); a.status != 200 {
		t.Fatalf("%d %s; want 200", a.status, a.body)
	}
	facts := b.facts()
	if len(facts) != 2 || facts[0].Action != ActionBegin || facts[1].Action != "proxy.post" {
		t.Fatalf("facts %+v; want one of the beginning and one of the end", facts)
	}
	for _, f := range facts {
		if f.Actor != "local:admin" || f.RequestID != "r-9" || f.Details["origin"] != "tools" {
			t.Errorf("fact %+v; want it of local:admin, r-9, from the tools origin", f)
		}
	}
}

// A process that is killed while the service works records nothing more.
func TestAWriteIsOnRecordBeforeAServiceThatKnowsNobodyGetsIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	before := make(chan []fact, 2)
	look := func(http.ResponseWriter, *http.Request) { before <- b.facts() }
	b.behind(upstream.Tracker, look)
	b.behind(upstream.ControlPlane, look)
	b.send(http.MethodPost, "/api/proxy/tracker/api/x", "{}", "X-Request-ID", "r-1")
	if got := <-before; len(got) != 1 || got[0].Actor != "local:admin" || got[0].Target != "tracker/api/x" || got[0].RequestID != "r-1" {
		t.Errorf("the tracker got the request with the facts %+v on record; want one that names the person", got)
	}
	b.send(http.MethodPost, "/api/proxy/control_plane/approvals/1/approve", "{}")
	if got := <-before; len(got) != 2 { // those of the first request, which keeps a separate fact
		t.Errorf("the control plane got the request with the facts %+v on record; want none of it", got)
	}
}

func TestAWriteThatCannotBeRecordedIsNotSent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.behind(upstream.Orchestrator, func(_ http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Error("forwarded without a record")
		}
	})
	b.pool.Close()
	wantProblem(t, b.send(http.MethodPost, "/api/proxy/orchestrator/x", "{}"), 503, "store_unavailable")
	if a := b.send(http.MethodGet, "/api/proxy/orchestrator/x", ""); a.status != 200 {
		t.Errorf("reading: %d %s; want 200", a.status, a.body)
	}
}

func TestUpstreamRefusalsBecomeACredentialProblem(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	status := make(chan int, 1)
	answer := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", "Basic")
		w.WriteHeader(<-status)
	}
	for _, s := range proxied {
		b.behind(s, answer)
	}
	for _, tc := range []struct {
		service upstream.Service
		status  int
		want    int
		names   string
	}{
		{upstream.Tracker, 401, 502, "tracker_url"}, {upstream.Tracker, 407, 502, "tracker_url"}, {upstream.Tracker, 403, 502, "tracker_url"},
		{upstream.Dashboards, 403, 502, "dashboards_api_key"}, {upstream.MetricsStore, 401, 502, "metrics_store_url"}, {upstream.Orchestrator, 403, 502, "orchestrator_url"},
		{upstream.ControlPlane, 401, 502, "control_plane_token"}, {upstream.ControlPlane, 403, 403, ""}, {upstream.Serving, 401, 502, "SERVING_TOKEN"}, {upstream.Serving, 403, 403, ""},
		{upstream.Tracker, 404, 404, ""}, {upstream.Tracker, 500, 500, ""}, {upstream.Tracker, 503, 503, ""},
	} {
		status <- tc.status
		a := b.send(http.MethodGet, "/api/proxy/"+string(tc.service)+"/", "")
		if a.status != tc.want {
			t.Errorf("%s %d: %d; want %d", tc.service, tc.status, a.status, tc.want)
		}
		if tc.want != 502 {
			continue
		}
		if p := a.problem(t); p.Kind.Code != "upstream_credentials" || !strings.Contains(p.Detail, tc.names) {
			t.Errorf("%s %d: %s %q; want upstream_credentials naming %s", tc.service, tc.status, p.Kind.Code, p.Detail, tc.names)
		}
		if got := a.header.Get("X-Upstream-Status"); got != strconv.Itoa(tc.status) {
			t.Errorf("%s: X-Upstream-Status %q; want %d", tc.service, got, tc.status)
		}
		if a.header.Get("WWW-Authenticate") != "" {
			t.Errorf("%s: the browser got WWW-Authenticate %q", tc.service, a.header.Get("WWW-Authenticate"))
		}
	}
}
