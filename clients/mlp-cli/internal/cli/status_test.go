package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/service"
)

// Only a service that gives no answer is unreachable; the errors are in a fixed order.
func TestStatusOfServicesThatRefuse(t *testing.T) {
	t.Parallel()
	draining := serveAnswer(t, 503, "application/problem+json", `{"status":503,"detail":"draining","code":"draining"}`)
	unauthorized := serveAnswer(t, 401, "application/problem+json", `{"status":401,"detail":"no credential","code":"missing_credential"}`)
	const away = "http://127.0.0.1:1"
	healthy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // and wants another credential
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/health" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"status":401,"detail":"unknown credential","code":"invalid_credential"}`)
			return
		}
		fmt.Fprint(w, `{"status":"ok","startup_checks":{}}`)
	}))
	t.Cleanup(healthy.Close)
	for _, tc := range []struct {
		name, cp, serving, cpStatus, servingStatus string
		errors                                     string
		code                                       int
	}{
		{"both drain", draining, draining, "degraded", "degraded", "control plane,inference,models,approvals", 0},
		{"both refuse", unauthorized, unauthorized, "refused", "refused", "control plane,inference,models,approvals", 0},
		{"both are well and refuse the token", healthy.URL, healthy.URL, "refused", "refused", "control plane,inference,models,approvals", 0},
		{"one away", away, draining, "unreachable", "degraded", "control plane,inference,models", 0},
		{"the other away", unauthorized, away, "refused", "unreachable", "control plane,inference,approvals", 0},
		{"all away", away, away, "", "", "", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := runMLP(t, map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": tc.cp, "SERVING_URL": tc.serving}, "", "--json", "status")
			if r.code != tc.code || r.err != "" {
				t.Fatalf("exit %d\n%s%s; want r.code == tc.code && r.err == \"\"", r.code, r.out, r.err)
			}
			if tc.code != 0 {
				return
			}
			var doc struct {
				Services []serviceStatus
				Errors   []serviceError
			}
			if err := json.Unmarshal([]byte(r.out), &doc); err != nil || len(doc.Services) != 2 {
				t.Fatalf("%v\n%s; want len(doc.Services) == 2", err, r.out)
			}
			var names []string
			for _, e := range doc.Errors {
				names = append(names, e.Service)
			}
			if doc.Services[0].Status != tc.cpStatus || doc.Services[1].Status != tc.servingStatus || strings.Join(names, ",") != tc.errors {
				t.Fatalf(`%s; want doc.Services[0].Status == tc.cpStatus && doc.Services[1].Status == tc.servingStatus && strings.Join(names, ",") == tc.errors`, r.out)
			}
		})
	}
}

// Ages are relative to the clock that was passed in.
func TestAgesFollowTheClock(t *testing.T) {
	t.Parallel()
	url := serveAnswer(t, 200, "application/json", `[{"id":"01930000-0000-7000-8000-000000000001","model_id":"JPCP","kind":"retrain","status":"pending","commit_sha":"0123456789abcdef","commit_msg":"m","changed_files":null,"requested_by":"ci","requested_at":"2026-01-02T03:04:05Z"}]`)
	vars := map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": url}
	var out, talk bytes.Buffer
	env := &Env{In: strings.NewReader("n\n"), InTTY: true, Out: &out, Err: &talk, Format: output.Table, Getenv: func(k string) string { return vars[k] },
		Now: func() time.Time { return time.Date(2026, 1, 2, 5, 9, 5, 0, time.UTC) }}
	one.Lock()
	defer one.Unlock()
	if code := Main(t.Context(), env, []string{"mlp", "approvals", "list"}); code != 0 || !strings.Contains(out.String(), "2h 5m") {
		t.Fatalf("exit %d\n%s%s; want code == 0 && strings.Contains(out.String(), \"2h 5m\")", code, out.String(), talk.String())
	}
	if code := Main(t.Context(), env, []string{"mlp", "approvals", "approve", "JPCP"}); code != 0 || !strings.Contains(talk.String(), "requested by ci, 2h 5m ago") || !strings.Contains(talk.String(), "Nothing changed.") {
		t.Fatalf("exit %d\n%s; want code == 0 && strings.Contains(talk.String(), \"requested by ci, 2h 5m ago\") && strings.Contains(talk.String(), \"Nothing changed.\")", code, talk.String())
	}
	// In a record, no heading marks it as an age.
	out.Reset()
	var record approvalDetail
	record.RequestedAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := env.Printer().Print(recordGrid(record)); err != nil || !strings.Contains(out.String(), "Requested       2h 5m ago\n") {
		t.Errorf("%v\n%s; want a request of 2h 5m ago", err, out.String())
	}
	// A list is an array, also where the service says null.
	env.In, env.InTTY = strings.NewReader(""), false
	out.Reset()
	if code := Main(t.Context(), env, []string{"mlp", "--json", "approvals", "list"}); code != 0 || !strings.Contains(out.String(), `"changed_files": []`) || !strings.Contains(out.String(), `"resolved_at": null`) {
		t.Fatalf("exit %d\n%s; want code == 0 && strings.Contains(out.String(), `\"changed_files\": []`) && strings.Contains(out.String(), `\"resolved_at\": null`)", code, out.String())
	}
}

func TestVersionIsTheLinkers(t *testing.T) {
	t.Parallel()
	for _, option := range []string{"--version", "-V"} {
		if r := runMLP(t, nil, "", option); r.out != "mlp "+service.Version+"\n" || r.code != 0 {
			t.Errorf("%s: exit %d %q; want r.out == \"mlp \" + service.Version + \"\\n\" && r.code == 0", option, r.code, r.out)
		}
	}
}

// A plain MLflow client may register a name with capitals, which mlp shows and takes in any case.
func TestInfoFindsTheTrackersNameInAnyCase(t *testing.T) {
	t.Parallel()
	url := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/registered-models/search"):
			fmt.Fprint(w, `{"registered_models":[{"name":"MyModel"},{"name":"other"}]}`)
		case strings.HasSuffix(r.URL.Path, "/registered-models/get") && r.URL.Query().Get("name") == "MyModel":
			fmt.Fprint(w, `{"registered_model":{"name":"MyModel","aliases":[{"alias":"Staging","version":"1"}]}}`)
		case strings.HasSuffix(r.URL.Path, "/model-versions/search"):
			fmt.Fprint(w, `{"model_versions":[{"name":"MyModel","version":"1"}]}`)
		default:
			w.WriteHeader(404)
			fmt.Fprint(w, `{"error_code":"RESOURCE_DOES_NOT_EXIST","message":"none"}`)
		}
	}))
	t.Cleanup(url.Close)
	vars := map[string]string{"HOME": t.TempDir(), "TRACKING_URI": url.URL, "CONTROL_PLANE_URL": url.URL}
	for _, name := range []string{"MyModel", "mymodel", "MYMODEL"} {
		if r := runMLP(t, vars, "", "--json", "models", "info", name); r.code != 0 || !strings.Contains(r.out, `"Staging": "1"`) {
			t.Errorf("%s: exit %d, %s%s; want the versions of MyModel", name, r.code, r.out, r.err)
		}
	}
}

// The declaration may name the tracker's model otherwise than the model; only then is the control plane asked.
func TestInfoAsksForTheTrackersName(t *testing.T) {
	t.Parallel()
	tracker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body, _ := io.ReadAll(r.Body)
		switch {
		case strings.HasSuffix(r.URL.Path, "/registered-models/get") && r.URL.Query().Get("name") == "runtime-reg":
			fmt.Fprint(w, `{"registered_model":{"name":"runtime-reg"}}`)
		case strings.HasSuffix(r.URL.Path, "/model-versions/search"):
			fmt.Fprint(w, `{"model_versions":[]}`)
		default:
			w.WriteHeader(404)
			fmt.Fprintf(w, `{"error_code":"RESOURCE_DOES_NOT_EXIST","message":"no %s %s"}`, r.URL.Path, body)
		}
	}))
	t.Cleanup(tracker.Close)
	cp := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/models/RuntimeRegressor/meta" {
			w.WriteHeader(404)
			return
		}
		fmt.Fprint(w, `{"name":"RUNTIMEREGRESSOR","trackerName":"runtime-reg"}`)
	}))
	t.Cleanup(cp.Close)
	vars := map[string]string{"HOME": t.TempDir(), "TRACKING_URI": tracker.URL, "CONTROL_PLANE_URL": cp.URL}
	if r := runMLP(t, vars, "", "--json", "models", "info", "RuntimeRegressor"); r.code != 0 || !strings.Contains(r.out, `"tracker_name": "runtime-reg"`) {
		t.Fatalf("exit %d\n%s; want r.code == 0 && strings.Contains(r.out, `\"tracker_name\": \"runtime-reg\"`)", r.code, r.out)
	}
	if r := runMLP(t, vars, "", "--json", "models", "info", "Nobody"); r.code != 1 || !strings.Contains(r.out, `"code": "unknown_model"`) {
		t.Fatalf("exit %d\n%s; want r.code == 1 && strings.Contains(r.out, `\"code\": \"unknown_model\"`)", r.code, r.out)
	}
	vars["CONTROL_PLANE_URL"] = "http://127.0.0.1:1"
	if r := runMLP(t, vars, "", "--json", "models", "info", "RuntimeRegressor"); r.code != 1 || !strings.Contains(r.out, `"code": "unknown_model"`) {
		t.Fatalf("without a control plane: exit %d\n%s; want r.code == 1 && strings.Contains(r.out, `\"code\": \"unknown_model\"`)", r.code, r.out)
	}
}

// inference omits unknown values; mlp prints null.
func TestDriftDocument(t *testing.T) {
	t.Parallel()
	url := serveAnswer(t, 200, "application/json", `[{"model":"JPCP","alias":"Production","live_mean":null,"live_std":null,"n_baseline":0,"n_snapshots":2,"overall":"CRITICAL","decided_by":"psi","status":"OK","version":"1","recent":null,"measures":{"psi":{"status":"INSUFFICIENT"}}}]`)
	r := runMLP(t, map[string]string{"HOME": t.TempDir(), "SERVING_URL": url}, "", "--json", "drift", "status")
	var doc []map[string]any
	if err := json.Unmarshal([]byte(r.out), &doc); err != nil || len(doc) != 1 {
		t.Fatalf("%v\n%s%s; want len(doc) == 1", err, r.out, r.err)
	}
	for _, k := range []string{"live_mean", "live_std", "baseline_mean", "baseline_std", "z_score"} {
		if v, ok := doc[0][k]; !ok || v != nil {
			t.Errorf("%s is %v (%v); want ok && v == nil", k, v, ok)
		}
	}
	if doc[0]["status"] != "OK" || doc[0]["overall"] != "CRITICAL" || doc[0]["decided_by"] != "psi" {
		t.Errorf("got status %v, overall %v, decided by %v; want OK, CRITICAL, psi", doc[0]["status"], doc[0]["overall"], doc[0]["decided_by"])
	}
	table := runMLP(t, map[string]string{"HOME": t.TempDir(), "SERVING_URL": url, "COLUMNS": "200"}, "", "drift", "status")
	if !strings.Contains(table.out, "CRITICAL") || !strings.Contains(table.out, "psi") {
		t.Errorf("the table does not show the worst measure and its level:\n%s; want strings.Contains(table.out, \"CRITICAL\") && strings.Contains(table.out, \"psi\")", table.out)
	}
	psi := doc[0]["measures"].(map[string]any)["psi"].(map[string]any)
	if v, ok := psi["value"]; !ok || v != nil || psi["status"] != "INSUFFICIENT" || fmt.Sprint(doc[0]["recent"]) != "[]" {
		t.Errorf(`%v; want ok && v == nil && psi["status"] == "INSUFFICIENT" && fmt.Sprint(doc[0]["recent"]) == "[]"`, doc[0])
	}
}

// A version that serving refused is listed with the reason; without one, there is no such table.
func TestStatusListsRefusedModels(t *testing.T) {
	t.Parallel()
	run := func(failed, format string) string {
		url := serveAnswer(t, 200, "application/json", `{"status":"degraded","startup_checks":{},"models":{},"failed":`+failed+`}`)
		return runMLP(t, map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": url, "SERVING_URL": url}, "", "--output", format, "status").out
	}
	const failed = `[{"model":"PHOTOS","alias":"Production","version":"3","reason":"the operator Loop is not served"}]`
	if out := run(failed, "table"); !strings.Contains(out, "Not loaded") || !strings.Contains(out, "the operator Loop is not served") {
		t.Errorf("the tables lack the reason:\n%s", out)
	}
	if out := run("[]", "table"); strings.Contains(out, "Not loaded") {
		t.Errorf("nothing was refused:\n%s", out)
	}
	var doc struct {
		NotLoaded []map[string]string `json:"not_loaded"`
	}
	if err := json.Unmarshal([]byte(run(failed, "json")), &doc); err != nil || len(doc.NotLoaded) != 1 || doc.NotLoaded[0]["version"] != "3" {
		t.Errorf("the document has %v, %v; want version 3", doc.NotLoaded, err)
	}
}
