package proxy

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

func TestMethodMatrix(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.behind(upstream.Tracker, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X-Method", r.Method) })
	for method, want := range map[string][2]int{ // of a viewer, of an admin
		"GET": {200, 200}, "HEAD": {200, 200}, "OPTIONS": {200, 200}, "POST": {403, 200}, "PUT": {403, 200}, "DELETE": {403, 200}, "PATCH": {403, 200},
		"TRACE": {405, 405}, "PROPFIND": {405, 405}, "CONNECT": {405, 405}, "FOO": {405, 405},
	} {
		for i, who := range []caller.Caller{viewer, admin} {
			a := serveDirectly(b.as(who), method, "/api/proxy/tracker/x")
			if a.status != want[i] || a.status == 200 && a.header.Get("X-Method") != method {
				t.Errorf("%s as %s: %d %s; want %d", method, who.Role, a.status, a.body, want[i])
			}
			if a.status == 405 && a.header.Get("Allow") != allowedMethods {
				t.Errorf("%s: Allow %q; want %q", method, a.header.Get("Allow"), allowedMethods)
			}
			if a.status == 403 && method != "HEAD" {
				wantProblem(t, a, 403, "role_required")
			}
		}
	}
}

// serveDirectly sends methods that a router or client would not pass on.
func serveDirectly(b *bench, method, path string) answer {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, path, nil)
	b.mu.Lock()
	who := b.who
	b.mu.Unlock()
	if err := b.proxy.serve(w, r, b.proxy.dashboard, who); err != nil {
		_ = problem.From(err).Write(w, r)
	}
	return answer{w.Code, w.Result().Header, w.Body.String()}
}

func TestNobodyIsNotForwarded(t *testing.T) {
	t.Parallel()
	b := newBench(t).as(caller.Caller{})
	b.behind(upstream.Tracker, func(http.ResponseWriter, *http.Request) { t.Error("forwarded") })
	wantProblem(t, b.send(http.MethodGet, "/api/proxy/tracker/", ""), 401, "unauthenticated")
}

func TestKillSwitchRefusesEvenAdmins(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.behind(upstream.Tracker, func(http.ResponseWriter, *http.Request) {})
	v := b.enter(upstream.Tracker)
	b.mu.Lock()
	b.off = true
	b.mu.Unlock()
	wantProblem(t, b.send(http.MethodGet, "/api/proxy/tracker/", ""), 403, "feature_off")
	wantProblem(t, b.send(http.MethodPost, "/api/proxy-ticket", `{"service":"tracker"}`, "Content-Type", "application/json"), 403, "feature_off")
	wantProblem(t, v.get("/api/proxy/tracker/"), 403, "feature_off")
}

func TestSharedToolsAreForOperatorTenants(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := admin
	other.Tenant = "b"
	b.as(other)
	for _, s := range proxied {
		b.behind(s, func(http.ResponseWriter, *http.Request) {})
		a := b.send(http.MethodGet, "/api/proxy/"+string(s)+"/", "")
		if s == upstream.ControlPlane {
			if a.status != 200 || OperatorOnly(s) {
				t.Errorf("control_plane: %d %s, operators only %v; want 200 for any tenant", a.status, a.body, OperatorOnly(s))
			}
			continue
		}
		wantProblem(t, a, 403, "operator_tenant_required")
		if !OperatorOnly(s) {
			t.Errorf("%s: not for operators only; want it so", s)
		}
	}
	wantProblem(t, b.send(http.MethodPost, "/api/proxy-ticket", `{"service":"tracker"}`, "Content-Type", "application/json"), 403, "operator_tenant_required")
}

func TestStepUpClassification(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		method, path string
		want         []string
	}{
		{"GET", "tracker/api/2.0/mlflow/runs/delete", nil},
		{"HEAD", "control_plane/promotions", nil},
		{"POST", "tracker/api/2.0/mlflow/runs/search", nil},
		{"POST", "tracker/ajax-api/2.0/mlflow/experiments/search", nil},
		{"POST", "tracker/api/2.0/mlflow/runs/delete", []string{"proxy.tracker"}},
		{"POST", "tracker/api/2.0/mlflow/runs/delete%2fsearch", []string{"proxy.tracker"}},
		{"POST", "tracker/api/2.0/mlflow/runs/delete;/search", []string{"proxy.tracker"}},
		{"POST", "tracker/search/delete", []string{"proxy.tracker"}},
		{"POST", "control_plane/approvals/promotions/rollback", []string{"proxy.control_plane"}},
		{"PUT", "tracker/api/2.0/mlflow-artifacts/artifacts/9/registered-models/alias", []string{"proxy.tracker"}},
		{"POST", "tracker/api/2.0/mlflow/registered-models/alias;x=1", []string{"model.promote", "proxy.tracker"}},
		{"POST", "tracker/api/2.0/mlflow/registered-models%2Falias", []string{"model.promote", "proxy.tracker"}},
		{"POST", "tracker/api/2.0/mlflow/registered-models/alias", []string{"model.promote", "proxy.tracker"}},
		{"DELETE", "tracker/ajax-api/2.0/mlflow/registered-models/alias", []string{"model.promote", "proxy.tracker"}},
		{"POST", "tracker/api/2.0/mlflow/registered-models//alias/", []string{"model.promote", "proxy.tracker"}},
		{"POST", "tracker/api/2.0/mlflow/registered-models/%61lias", []string{"model.promote", "proxy.tracker"}},
		{"POST", "tracker/api/2.0/mlflow/model-versions/transition-stage", []string{"model.promote", "proxy.tracker"}},
		{"POST", "control_plane/promotions", []string{"model.promote", "proxy.control_plane"}},
		{"POST", "control_plane/promotions/1/approve", []string{"model.promote", "proxy.control_plane"}},
		{"POST", "control_plane/aliases/M/Production/rollback", []string{"model.promote", "proxy.control_plane"}},
		{"POST", "control_plane/retrain", []string{"proxy.control_plane"}},
		{"POST", "control_plane/x/search", []string{"proxy.control_plane"}},
		{"POST", "orchestrator/api/flow_runs/", nil},
		{"POST", "nonsense/x", nil},
	} {
		r := httptest.NewRequest(tc.method, "/api/proxy/"+tc.path, nil)
		if got := StepUpActions(r); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s %s: %v; want %v", tc.method, tc.path, got, tc.want)
		}
	}
}

// A search is exempt by method and whole path: no other method of the same path, no other path with the same end or
// beginning, and no other spelling of it.
func TestOnlySearchRoutesAreExempt(t *testing.T) {
	t.Parallel()
	routes := []string{
		"2.0/mlflow/experiments/search", "2.0/mlflow/runs/search", "2.0/mlflow/logged-models/search",
		"3.0/mlflow/traces/search", "3.0/mlflow/datasets/search", "3.0/mlflow/issues/search", "3.0/mlflow/prompt-optimization/jobs/search",
	}
	writes := []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	check := func(method, path string, exempt bool) {
		t.Helper()
		r := httptest.NewRequest(method, "/api/proxy/tracker"+path, nil)
		if got := StepUpActions(r); (len(got) == 0) != exempt {
			t.Errorf("%s %s: asks for %v; want exempt %v", method, path, got, exempt)
		}
	}
	for _, root := range []string{"/api/", "/ajax-api/"} {
		for _, route := range routes {
			for _, method := range writes {
				check(method, root+route, method == http.MethodPost)
				for _, other := range []string{
					root + route + "/", root + "/" + route, "/x" + root + route, root + "2.0/mlflow-artifacts/artifacts/9/x" + root + route,
					root + strings.ToUpper(route), root + strings.Replace(route, "search", "s%65arch", 1), root + route + ";x=1", root + route + "%3Fx", root + route + "/..%2Fdelete",
				} {
					check(method, other, false)
				}
			}
		}
		for _, path := range []string{
			"2.0/mlflow-artifacts/artifacts/9/x/artifacts/search", "2.0/mlflow/artifacts/search", "2.0/mlflow/registered-models/search", "2.0/mlflow/model-versions/search",
			"2.0/mlflow/webhooks/search", "2.0/mlflow/logged-models/m-1/tags/search", "2.0/mlflow/experiments/search-datasets", "2.0/mlflow/search",
		} {
			for _, method := range writes {
				check(method, root+path, false)
			}
		}
	}
	check(http.MethodPut, "/get-artifact/search", false)
	check(http.MethodPost, "/search", false)
}

func TestToolsOriginAsksForStepUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.behind(upstream.Tracker, func(_ http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("%s reached the tracker before the step-up", r.Method)
		}
	})
	v := b.enter(upstream.Tracker)
	b.mu.Lock()
	b.stepUp = fault.StepUpRequired.New("Sign in again.")
	b.mu.Unlock()
	if a := v.get("/api/proxy/tracker/"); a.status != 200 {
		t.Errorf("reading: %d %s; want 200", a.status, a.body)
	}
	wantProblem(t, v.send(http.MethodPost, "/api/proxy/tracker/api/2.0/mlflow/registered-models/alias", "{}", "Sec-Fetch-Site", "same-origin"), 401, "step_up_required")
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(b.asked, []string{"model.promote"}) {
		t.Errorf("asked for %v; want model.promote, which failed", b.asked)
	}
}

func TestScriptsOfToolsAreNotServedToTheDashboardsPages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.behind(upstream.Tracker, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/javascript") })
	for _, dest := range []string{"script", "worker", "sharedworker", "serviceworker", "audioworklet", "object", "embed"} {
		wantProblem(t, b.send(http.MethodGet, "/api/proxy/tracker/evil.js", "", "Sec-Fetch-Dest", dest), 403, "forbidden")
	}
	for _, dest := range []string{"document", "empty", "image", "style"} {
		if a := b.send(http.MethodGet, "/api/proxy/tracker/x", "", "Sec-Fetch-Dest", dest); a.status != 200 {
			t.Errorf("%s: %d %s; want 200", dest, a.status, a.body)
		}
	}
	v := b.enter(upstream.Tracker)
	if a := v.send(http.MethodGet, "/api/proxy/tracker/app.js", "", "Sec-Fetch-Dest", "script"); a.status != 200 {
		t.Errorf("on the tools origin: %d %s; want 200", a.status, a.body)
	}
	wantProblem(t, v.send(http.MethodGet, "/api/proxy/tracker/sw.js", "", "Service-Worker", "script"), 403, "forbidden")
}

func TestToolsOriginTakesWritesFromItsOwnPagesOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.behind(upstream.Orchestrator, func(http.ResponseWriter, *http.Request) {})
	v := b.enter(upstream.Orchestrator)
	for _, tc := range []struct {
		name, value string
		want        int
	}{
		{"Sec-Fetch-Site", "same-origin", 200}, {"Origin", b.tools.URL, 200}, {"Origin", b.dashboard.URL, 403}, {"Origin", "null", 403},
		{"Sec-Fetch-Site", "same-site", 403}, {"Sec-Fetch-Site", "cross-site", 403}, {"Sec-Fetch-Site", "none", 403}, {"X-PLATFORM-CSRF", "1", 403}, {"X-None", "", 403},
	} {
		a := v.send(http.MethodPost, "/api/proxy/orchestrator/api/flow_runs/", "{}", tc.name, tc.value)
		if a.status != tc.want {
			t.Errorf("%s: %s: %d %s; want %d", tc.name, tc.value, a.status, a.body, tc.want)
		}
	}
}

func TestOnlyAdminsReadTheLedgerThroughTheProxy(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.behind(upstream.ControlPlane, func(http.ResponseWriter, *http.Request) {})
	for path, want := range map[string]int{
		"/audit/events": 403, "/audit/events?limit=1": 403, "/audit/export": 403, "/audit": 403, "/Audit/events": 403, "/%61udit/events": 403,
		"/%2561udit/events": 403, "/audit%2Fevents": 403, "/audit;a=b/events": 403, "/x//../audit": 400, "/outbox": 403, "/outbox/1": 403,
		"/models": 200, "/approvals/audit": 200, "/auditors": 200,
	} {
		if a := b.as(viewer).send(http.MethodGet, "/api/proxy/control_plane"+path, ""); a.status != want {
			t.Errorf("GET %s as viewer: %d %s; want %d", path, a.status, a.body, want)
		}
		if a := b.as(admin).send(http.MethodGet, "/api/proxy/control_plane"+path, ""); a.status != 200 && want != 400 {
			t.Errorf("GET %s as admin: %d %s; want 200", path, a.status, a.body)
		}
	}
}
