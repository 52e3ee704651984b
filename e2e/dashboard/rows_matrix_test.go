//go:build e2e

package dashboard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// access lists the requirements of a route.
type access struct {
	role     string // public, viewer, admin
	operator bool   // a tenant of the operators
	ends     bool   // ends the caller's session: called with separate sessions
	stream   bool   // the answer does not end
}

// roleMatrix is the contract: who may call which route. Every other route under /api/v1/ is viewer.
var roleMatrix = map[string]access{
	"GET /livez": {role: "public"}, "GET /readyz": {role: "public"}, "GET /metrics": {role: "public"},
	"POST /api/auth/login": {role: "public"}, "GET /api/health": {role: "public"},
	"GET /api/auth/sso/providers": {role: "public"}, "GET /api/auth/sso/{provider}/login": {role: "public"}, "GET /api/auth/sso/callback": {role: "public"},
	"POST /api/auth/logout": {role: "viewer", ends: true}, "POST /api/auth/sso/logout": {role: "viewer", ends: true}, "GET /api/auth/me": {role: "viewer"},
	"GET /api/config": {role: "viewer"}, "GET /api/config/keys": {role: "viewer"}, "PUT /api/config": {role: "admin", operator: true}, "GET /api/audit": {role: "admin"},
	"GET /api/proxy/{service}/{path}": {role: "viewer", operator: true}, "POST /api/proxy/{service}/{path}": {role: "admin", operator: true},
	"POST /api/proxy-ticket": {role: "viewer"}, "GET /api/docs/tree": {role: "viewer"}, "GET /api/docs/content": {role: "viewer"},
	"GET /api/v1/overview": {role: "viewer"}, "GET /api/v1/stream": {role: "viewer", stream: true},
	"GET /api/v1/runs": {role: "viewer"}, "GET /api/v1/runs/{id}": {role: "viewer"},
	"GET /api/v1/mlops/registry": {role: "viewer"}, "GET /api/v1/mlops/model/{name}": {role: "viewer"},
	"GET /api/v1/mlops/model/{name}/series": {role: "viewer"}, "GET /api/v1/mlops/promotion/{name}": {role: "viewer"},
	"GET /api/v1/facility/overview": {role: "viewer"}, "GET /api/v1/facility/queue": {role: "viewer"}, "GET /api/v1/facility/job/{job_id}": {role: "viewer"},
	"GET /api/v1/flags": {role: "viewer"}, "GET /api/v1/flags/admin": {role: "admin"},
	"POST /api/v1/flags/{name}": {role: "admin"}, "DELETE /api/v1/flags/{name}": {role: "admin"},
	"POST /ofrep/v1/evaluate/flags": {role: "viewer"}, "POST /ofrep/v1/evaluate/flags/{key}": {role: "viewer"},
	"GET /api/v1/collab/{type}/{id}/comments": {role: "viewer"}, "POST /api/v1/collab/{type}/{id}/comments": {role: "viewer"},
	"DELETE /api/v1/collab/{type}/{id}/comments/{comment_id}": {role: "viewer"}, "GET /api/v1/collab/{type}/{id}/activity": {role: "viewer"},
	"POST /api/v1/collab/snapshot": {role: "viewer"}, "GET /api/v1/collab/snapshot/{token}": {role: "viewer"},
	"POST /api/v1/copilot/ask": {role: "viewer"}, "POST /api/v1/assistant/chat": {role: "viewer"}, "GET /api/v1/assistant/clusters": {role: "viewer"},
	"GET /api/v1/assistant/sessions/{session}/replay": {role: "viewer", stream: true}, "GET /api/v1/assistant/sessions/{session}": {role: "viewer"},
	"GET /api/v1/assistant/sessions/{session}/actions": {role: "viewer"}, "POST /api/v1/assistant/sessions/{session}/actions/{action_id}": {role: "admin"},
	"GET /api/v1/alerts": {role: "viewer"}, "POST /api/v1/alerts/{alert_id}/ack": {role: "viewer"},
	"GET /api/v1/approvals/{id}/effect": {role: "viewer"},
	"GET /api/v1/inbox":                 {role: "viewer"}, "POST /api/v1/inbox/read-all": {role: "viewer"}, "POST /api/v1/inbox/{id}/read": {role: "viewer"},
	"GET /api/v1/notifications/channels": {role: "admin"}, "POST /api/v1/notifications/channels": {role: "admin"},
	"PUT /api/v1/notifications/channels/{id}": {role: "admin"}, "DELETE /api/v1/notifications/channels/{id}": {role: "admin"},
	"POST /api/v1/notifications/channels/{id}/test": {role: "admin"},
	"GET /api/v1/llmops/overview":                   {role: "viewer"}, "GET /api/v1/governance/overview": {role: "viewer"}, "GET /api/v1/finops/overview": {role: "viewer"},
	"GET /api/v1/selfobs/status": {role: "viewer"}, "POST /api/v1/selfobs/action": {role: "viewer"}, "GET /api/v1/search": {role: "viewer"},
}

// undocumented routes exist all the same: the document describes POST for the other methods.
var undocumented = map[string]access{
	"PUT /api/proxy/{service}/{path}": {role: "admin", operator: true}, "PATCH /api/proxy/{service}/{path}": {role: "admin", operator: true},
	"DELETE /api/proxy/{service}/{path}": {role: "admin", operator: true},
}

// columns of the matrix.
var columns = []string{"nobody", "viewer", "admin", "cookie viewer", "cookie admin", "cookie, no proof", "other tenant's viewer", "other tenant's admin"}

// expect returns the refusal of a route: empty where the caller passes.
func (a access) expect(column, method string) string {
	if a.role == "public" {
		return ""
	}
	writes := method != http.MethodGet
	switch {
	case column == "nobody":
		return "401 unauthenticated"
	case column == "cookie, no proof" && writes:
		return "403 csrf_refused"
	case strings.HasSuffix(column, "viewer") && a.role == "admin":
		return "403 role_required"
	case strings.HasPrefix(column, "other tenant's") && a.operator:
		return "403 operator_tenant_required"
	}
	return ""
}

// placeholders name nothing: a request that passes the guard finds nothing to change.
var placeholders = strings.NewReplacer("{service}", "tracker", "{path}", "no/such/path", "{name}", "no-such-name", "{provider}", "campus", "{key}", "no-such-flag",
	"{type}", "model", "{id}", "NOSUCH", "{comment_id}", "0199d2a4-0000-7000-8000-000000000000", "{token}", "nothing", "{session}", "nosuch",
	"{action_id}", "nosuch", "{alert_id}", "nosuch", "{job_id}", "nosuch")

func TestRow09RoleMatrix(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	routes := documentedRoutes(t, w)
	for _, route := range routes {
		if _, known := roleMatrix[route]; !known {
			t.Errorf("%s is in the API document, but the contract's table lacks it", route)
		}
	}
	for route := range roleMatrix {
		if !slices.Contains(routes, route) {
			t.Errorf("%s is in the contract's table, but not in the API document", route)
		}
	}
	table := maps.Clone(roleMatrix)
	maps.Copy(table, undocumented)
	callers := w.matrixCallers(t)
	var printed strings.Builder
	grid := tabwriter.NewWriter(&printed, 0, 0, 2, ' ', 0)
	fmt.Fprintf(grid, "\nroute\t%s\n", strings.Join(columns, "\t"))
	passed := 0
	for _, route := range slices.Sorted(maps.Keys(table)) {
		method, path, _ := strings.Cut(route, " ")
		rules := table[route]
		cells := make([]string, len(columns))
		for n, column := range columns {
			c := callers[column]
			if rules.ends {
				c = w.matrixCaller(t, column)
			}
			got := w.knock(t, method, placeholders.Replace(path), c, rules)
			want := rules.expect(column, method)
			cells[n] = got
			refused := strings.HasPrefix(got, "401 ") || strings.HasPrefix(got, "403 ")
			if want != "" && got != want || want == "" && refused && !(path == "/api/auth/login" && got == "401 invalid_password") {
				t.Errorf("%s as %s: got %s, want %s", route, column, got, orPassed(want))
				continue
			}
			passed++
		}
		fmt.Fprintf(grid, "%s\t%s\n", route, strings.Join(cells, "\t"))
	}
	_ = grid.Flush()
	t.Log(printed.String())
	t.Logf("%d routes, %d callers: %d answers as the contract has them", len(table), len(columns), passed)
}

func orPassed(want string) string {
	if want == "" {
		return "to pass"
	}
	return want
}

// documentedRoutes returns METHOD /path of the served OpenAPI document.
func documentedRoutes(t *testing.T, w *world) []string {
	t.Helper()
	doc := decode[struct {
		Paths map[string]map[string]json.RawMessage
	}](t, w.want(t, http.StatusOK, http.MethodGet, w.url+"/openapi.json", who{}, nil))
	var out []string
	for path, operations := range doc.Paths {
		for method := range operations {
			if method != "parameters" {
				out = append(out, strings.ToUpper(method)+" "+path)
			}
		}
	}
	slices.Sort(out)
	return out
}

func (w *world) matrixCallers(t *testing.T) map[string]who {
	t.Helper()
	out := map[string]who{}
	for _, column := range columns {
		out[column] = w.matrixCaller(t, column)
	}
	return out
}

// matrixCaller returns a new session of a column's caller.
func (w *world) matrixCaller(t *testing.T, column string) who {
	t.Helper()
	cookie := func(role string) who {
		return w.signedIn(t, w.url, "campus", "row9-"+role, "platform-"+role, "gold").who
	}
	switch column {
	case "viewer", "admin":
		return w.passwordLogin(t, column)
	case "cookie viewer", "cookie admin":
		c := cookie(strings.TrimPrefix(column, "cookie "))
		c.header = append(c.header, "X-PLATFORM-CSRF", "1")
		return c
	case "cookie, no proof":
		return cookie("admin")
	case "other tenant's viewer", "other tenant's admin":
		return w.foreigner("row9-"+w.freshAddress(), strings.TrimPrefix(column, "other tenant's "))
	}
	return who{}
}

// knock makes a harmless request and returns status and code of the answer.
func (w *world) knock(t *testing.T, method, path string, c who, rules access) string {
	t.Helper()
	var body any
	if method != http.MethodGet && method != http.MethodDelete && !rules.ends {
		body = map[string]any{}
	}
	if rules.stream {
		return w.knockAtStream(t, path, c)
	}
	a := w.call(t, method, w.url+path, c, body, "X-Forwarded-For", w.freshAddress())
	return describeAnswer(a.Status, a.Body)
}

// knockAtStream reads the head of an answer that need not end.
func (w *world) knockAtStream(t *testing.T, path string, c who) string {
	t.Helper()
	req, err := newRequest(http.MethodGet, w.url+path, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	resp, err := (&http.Client{Transport: wire, Jar: c.jar}).Do(req.WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return "200"
	}
	var raw json.RawMessage
	_ = json.NewDecoder(resp.Body).Decode(&raw)
	return describeAnswer(resp.StatusCode, raw)
}

func describeAnswer(status int, body []byte) string {
	var p struct{ Code string }
	_ = json.Unmarshal(body, &p)
	return strings.TrimSpace(fmt.Sprint(status, " ", p.Code))
}
