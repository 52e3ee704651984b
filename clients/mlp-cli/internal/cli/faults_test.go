package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// serveAnswer serves the same answer to every request: faults that a real service cannot be made to produce at will.
// The happy path runs against the real services in the end-to-end tests.
func serveAnswer(t *testing.T, status int, contentType, body string, headers ...string) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("X-Request-ID", "req-7")
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// Each kind of refusal is one sentence and what mends it, in table mode and as one document.
func TestRefusals(t *testing.T) {
	t.Parallel()
	problem := func(status int, code, detail string) string {
		return fmt.Sprintf(`{"type":"urn:platform:problem:%s","title":"x","status":%d,"detail":%q,"code":%q,"request_id":"req-7"}`, code, status, detail, code)
	}
	for _, tc := range []struct {
		name, code, sentence, hint string
		status                     int
		body, contentType          string
		headers                    []string
	}{
		{name: "401", status: 401, body: problem(401, "missing_credential", "no bearer credential"), code: "missing_credential", sentence: "control plane: no bearer credential", hint: "CONTROL_PLANE_TOKEN"},
		{name: "403", status: 403, body: problem(403, "own_request", "you asked for this change"), code: "own_request", sentence: "you asked for this change", hint: "another person"},
		{name: "404", status: 404, body: problem(404, "no_pending_approval", "nothing is pending for JPCP"), code: "no_pending_approval", sentence: "nothing is pending", hint: "mlp approvals list"},
		{name: "422", status: 422, body: `{"detail":"the body is wrong","code":"validation_error","errors":[{"loc":["body","model_name"],"msg":"must not be empty"}]}`, code: "validation_error", sentence: "body.model_name: must not be empty"},
		{name: "422 whose detail is its first error", status: 422, body: `{"detail":"query.state: unknown.","code":"validation_error","errors":[{"loc":["query","state"],"msg":"unknown"},{"loc":["query","limit"],"msg":"too large"}]}`, code: "validation_error", sentence: "error: control plane: query.state: unknown; query.limit: too large\n"},
		{name: "429", status: 429, body: problem(429, "rate_limited", "20 a minute"), code: "rate_limited", sentence: "20 a minute", hint: "try again in 7 s", headers: []string{"Retry-After", "7"}},
		{name: "502", status: 502, body: problem(502, "orchestrator_unreachable", "no answer"), code: "orchestrator_unreachable", sentence: "no answer", hint: "mlp status"},
		{name: "500 without a body", status: 500, code: "http_500", sentence: "Internal Server Error"},
		{name: "not JSON", status: 200, body: "<html>hello</html>", contentType: "text/html", code: "not_json", sentence: "not the expected JSON", hint: "mlp config show"},
		{name: "a redirect is not followed", status: 302, code: "http_302", sentence: "redirects to http://127.0.0.1:1/, where mlp does not follow", hint: "mlp config set control_plane", headers: []string{"Location", "http://127.0.0.1:1/"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.contentType == "" {
				tc.contentType = "application/problem+json"
			}
			url := serveAnswer(t, tc.status, tc.contentType, tc.body, tc.headers...)
			vars := map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": url, "CONTROL_PLANE_TOKEN": "a-token"}
			r := runMLP(t, vars, "", "approvals", "list")
			if r.code != 1 || r.out != "" || !strings.Contains(r.err, tc.sentence) || !strings.Contains(r.err, tc.hint) {
				t.Fatalf("exit %d\nout %q\nerr %q; want r.code == 1 && r.out == \"\" && strings.Contains(r.err, tc.sentence) && strings.Contains(r.err, tc.hint)", r.code, r.out, r.err)
			}
			if strings.Contains(r.err, "a-token") {
				t.Fatal("the token is shown")
			}
			r = runMLP(t, vars, "", "--json", "approvals", "list")
			var doc map[string]any
			if err := json.Unmarshal([]byte(r.out), &doc); err != nil || r.err != "" || r.code != 1 {
				t.Fatalf("exit %d, %v\nout %q\nerr %q; want r.err == \"\" && r.code == 1", r.code, err, r.out, r.err)
			}
			if doc["code"] != tc.code || doc["exit_code"] != 1.0 || doc["status"] != float64(tc.status) || doc["service"] != "control_plane" || doc["request_id"] != "req-7" {
				t.Fatalf(`document %v; want doc["code"] == tc.code && doc["exit_code"] == 1.0 && doc["status"] == float64(tc.status) && doc["service"] == "control_plane" && doc["request_id"] == "req-7"`, doc)
			}
			for _, k := range []string{"error", "code", "exit_code", "hint", "service", "status", "request_id"} {
				if _, ok := doc[k]; !ok {
					t.Fatalf("no member %s: %v; want ok", k, doc)
				}
			}
		})
	}
}

// One list in the four formats.
func TestFormats(t *testing.T) {
	t.Parallel()
	url := serveAnswer(t, 200, "application/json", `[{"id":"01930000-0000-7000-8000-000000000001","model_id":"JPCP","kind":"retrain","status":"pending","commit_sha":"0123456789abcdef","commit_msg":"a\u001b[31m, \"b\"","changed_files":[],"requested_by":"ci","resolved_by":null,"requested_at":"2026-01-02T03:04:05Z"}]`)
	vars := map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": url}
	table := runMLP(t, vars, "", "approvals", "list")
	if table.code != 0 || !strings.HasPrefix(table.out, "ID") || !strings.Contains(table.out, "0123456789  a\\x1b[31m, \"b\"") || strings.Contains(table.out, "\x1b") {
		t.Fatalf("%q; want table.code == 0 && strings.HasPrefix(table.out, \"ID\") && strings.Contains(table.out, \"0123456789 a\\x1b[31m, \\\"b\\\"\") && !strings.Contains(table.out, \"\\x1b\")", table.out)
	}
	var list []map[string]any
	js := runMLP(t, vars, "", "--json", "approvals", "list")
	if err := json.Unmarshal([]byte(js.out), &list); err != nil || len(list) != 1 || list[0]["model_id"] != "JPCP" || list[0]["resolved_by"] != nil {
		t.Fatalf(`%v %q; want len(list) == 1 && list[0]["model_id"] == "JPCP" && list[0]["resolved_by"] == nil`, err, js.out)
	}
	y := runMLP(t, vars, "", "--output", "yaml", "approvals", "list")
	if !strings.Contains(y.out, "model_id: JPCP") || !strings.Contains(y.out, "resolved_by: null") {
		t.Fatalf(`%q; want strings.Contains(y.out, "model_id: JPCP") && strings.Contains(y.out, "resolved_by: null")`, y.out)
	}
	c := runMLP(t, vars, "", "-o", "csv", "approvals", "list")
	lines := strings.Split(strings.TrimSpace(c.out), "\n")
	if len(lines) != 2 || lines[0] != "id,model,kind,commit,message,status,requested_by,age" || !strings.Contains(lines[1], "2026-01-02T03:04:05Z") {
		t.Fatalf(`%q; want len(lines) == 2 && lines[0] == "id,model,kind,commit,message,status,requested_by,age" && strings.Contains(lines[1], "2026-01-02T03:04:05Z")`, c.out)
	}
}

// A dry run never writes and always ends with 0, whatever its checks say.
func TestDryRunOfNothingPending(t *testing.T) {
	t.Parallel()
	var wrote bool
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wrote = wrote || r.Method != http.MethodGet
		fmt.Fprint(w, "[]")
	}))
	t.Cleanup(srv.Close)
	r := runMLP(t, map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": srv.URL}, "", "--json", "approvals", "approve", "JPCP", "--dry-run")
	var doc struct {
		DryRun  bool   `json:"dry_run"`
		Command string `json:"command"`
		Target  string `json:"target"`
		Checks  []Check
	}
	if err := json.Unmarshal([]byte(r.out), &doc); err != nil || r.code != 0 || !doc.DryRun || doc.Command != "approvals approve" || doc.Target != "JPCP" || len(doc.Checks) != 1 || doc.Checks[0].Pass || wrote {
		t.Fatalf(`exit %d, %v, wrote %v: %s; want r.code == 0 && doc.DryRun && doc.Command == "approvals approve" && doc.Target == "JPCP" && len(doc.Checks) == 1 && !doc.Checks[0].Pass && !wrote`, r.code, err, wrote, r.out)
	}
}
