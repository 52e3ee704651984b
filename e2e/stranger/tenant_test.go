//go:build e2e

package stranger

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// marker is part of every object of the tenant default in this test; its names are in lower case. Where a path contains
// the marker, an answer may repeat it, but not secret, a part of it.
const (
	marker = "ours5712a6e"
	secret = "secret1994a1b"
	amount = 5712.19
)

func isOurs(text string) bool { return strings.Contains(strings.ToLower(text), marker) }

func isSecret(text string) bool {
	return strings.Contains(text, secret) || strings.Contains(text, fmt.Sprint(amount))
}

// ownedPath is an object's location in a service: the parameters of a template.
type ownedPath struct {
	template string
	values   map[string]string
	// absent is the status that another tenant gets when it reads.
	absent int
}

// Another tenant with every scope finds none of our objects in any answer of the control plane, cannot act on one even
// with its id, and leaves all of them unchanged. TestOurRequestsChangeNoForeignAnswer covers what inference records.
func TestAnotherTenantFindsAndChangesNothing(t *testing.T) {
	t.Parallel()
	p := startWithCredentials(t)
	owned, token := createOwnedObjects(t, p), p.Secret(t, "operator_token")
	asked := 0
	for _, s := range services(p) {
		if s.name != "control plane" {
			continue // the others have one tenant, or a test of their own
		}
		list := operations(t, s)
		before := readOwned(t, s, list, owned, token)
		foreign := caller{name: "other tenant", header: bearer(foreignToken)}
		for _, o := range list {
			for _, place := range append([]ownedPath{{}}, owned...) {
				if (place.template == "") == matchesAny(o, owned) || !place.matches(o) {
					continue // with our ids where we have some, else with ids that are not ours
				}
				asked++
				status, body := ask(t, s, o, foreign, place.values)
				if isSecret(body) || isOurs(body) && !isOurs(o.path(place.values)) && !o.public {
					t.Errorf("%s: %s %s as another tenant: got %d with an object of ours, want none\n%.400s", s.name, o.method, o.template, status, body)
				}
				if !o.writes() && place.absent != 0 && status != place.absent {
					t.Errorf("%s: %s %s as another tenant: got %d, want %d\n%.400s", s.name, o.method, o.template, status, place.absent, body)
				}
			}
		}
		after := readOwned(t, s, list, owned, token)
		for path, was := range before {
			if after[path] != was {
				t.Errorf("%s: %s changed while another tenant asked: got\n%s\nwant\n%s", s.name, path, after[path], was)
			}
		}
		t.Logf("%s: %d requests of another tenant, %d of our answers compared", s.name, asked, len(before))
	}
	if asked < 60 {
		t.Errorf("got %d requests of another tenant, want at least 60", asked)
	}
}

// matches reports whether the location gives the operation's template the ids of one of our objects; the empty one
// matches all.
func (p ownedPath) matches(o operation) bool {
	return p.template == "" || o.template == p.template || strings.HasPrefix(o.template, p.template+"/")
}

func matchesAny(o operation, owned []ownedPath) bool {
	for _, p := range owned {
		if p.matches(o) {
			return true
		}
	}
	return false
}

// createOwnedObjects creates one object of each kind that the control plane keeps for a tenant.
func createOwnedObjects(t *testing.T, p *harness.Platform) []ownedPath {
	t.Helper()
	cp, operator, other := p.Env["CONTROL_PLANE_URL"], p.Secret(t, "operator_token"), p.Env["CONTROL_PLANE_TOKEN"]
	want := func(method, path string, body map[string]any) map[string]any {
		t.Helper()
		return harness.Want(t, http.StatusOK, method, cp+path, operator, body).JSON(t)
	}
	notice := func(model string) string {
		return want("POST", "/api/changes", map[string]any{
			"model_ids": []string{model}, "commit_sha": markerCommit, "commit_msg": marker + secret, "changed_files": []string{},
		})["created"].([]any)[0].(string)
	}
	approval := notice("JPCP")
	run := harness.Want(t, http.StatusOK, "POST", cp+"/approvals/"+notice("MACK")+"/approve", other, nil).JSON(t)["flow_run_id"]
	flowRun, ok := run.(string)
	if !ok {
		t.Fatalf("flow run: got %v, want an id", run)
	}

	// An alias is moved at the tracker: the control plane keeps the promotion that this requests.
	const moved = "moved-model"
	tracker := p.Tracker() + "/api/2.0/mlflow/"
	harness.Want(t, http.StatusOK, "POST", tracker+"registered-models/create", "", map[string]any{"name": moved})
	info := harness.Want(t, http.StatusOK, "POST", tracker+"runs/create", "", map[string]any{"experiment_id": "0"}).JSON(t)["run"].(map[string]any)["info"].(map[string]any)
	harness.Want(t, http.StatusOK, "POST", tracker+"model-versions/create", "", map[string]any{
		"name": moved, "run_id": info["run_id"], "source": info["artifact_uri"].(string) + "/model",
	})
	harness.Want(t, http.StatusOK, "POST", tracker+"registered-models/alias", "", map[string]any{"name": moved, "alias": "Production", "version": "1"})
	want("POST", "/costs", map[string]any{"model": "JPCP", "version": "1", "scheduler": "mock", "job_id": marker, "gpu_hours": 1, "cpu_hours": 1, "project": marker})
	want("PUT", "/budgets/"+marker, map[string]any{"cost_budget": amount})
	want("POST", "/evals", map[string]any{"model": "JPCP", "version": "1", "suite": marker, "status": "passed", "metrics": []any{}})
	want("PUT", "/llm/endpoints/"+marker, map[string]any{"engine": "vllm", "hostedModelId": marker + secret, "maxModelLen": 1024})
	want("PUT", "/compliance/JPCP/1", map[string]any{"riskClass": "high", "technicalFilePath": marker + secret})
	want("PUT", "/model-cards/JPCP", map[string]any{"markdown": marker + secret})
	harness.Want(t, http.StatusAccepted, "POST", cp+"/audit/events", operator, map[string]any{"source": "cli", "action": "note", "target": marker})
	harness.Eventually(t, 20*time.Second, func() error {
		if a := harness.Want(t, http.StatusOK, "GET", cp+"/audit/events?limit=500", operator, nil); !strings.Contains(string(a.Body), marker) {
			return fmt.Errorf("the ledger does not have the event yet")
		}
		return nil
	})

	var promotion string
	harness.Eventually(t, 60*time.Second, func() error {
		for _, item := range want("GET", "/promotions?limit=50", nil)["items"].([]any) {
			if pr := item.(map[string]any); strings.EqualFold(pr["model"].(string), moved) {
				promotion = pr["id"].(string)
				return nil
			}
		}
		return fmt.Errorf("no promotion of %s", moved)
	})
	p.WaitRun(t, flowRun, 2*time.Minute) // its record no longer changes
	return []ownedPath{
		{"/approvals/{id}", map[string]string{"id": approval}, http.StatusNotFound},
		{"/retrain/{flow_run_id}", map[string]string{"flow_run_id": flowRun}, http.StatusNotFound},
		{"/promotions/{id}", map[string]string{"id": promotion}, http.StatusNotFound},
		{"/budgets/{project}", map[string]string{"project": marker}, 0},
		{"/llm/endpoints/{model}", map[string]string{"model": marker}, 0},
		{"/compliance/{model}/{version}", map[string]string{"model": "JPCP", "version": "1"}, 0},
		{"/model-cards/{model}", map[string]string{"model": "JPCP"}, 0},
	}
}

// readOwned returns the owner's current view, by path, without the values that change over time: of lists those items
// that bear the marker.
func readOwned(t *testing.T, s server, list []operation, owned []ownedPath, token string) map[string]string {
	t.Helper()
	out := map[string]string{}
	owner := caller{name: "owner", header: bearer(token)}
	for _, o := range list {
		if o.method != http.MethodGet || o.public || strings.Contains(o.template, "export") {
			continue
		}
		for _, place := range append([]ownedPath{{}}, owned...) {
			if (place.template == "") == matchesAny(o, owned) || !place.matches(o) {
				continue
			}
			status, body := ask(t, s, o, owner, place.values)
			if status != http.StatusOK || place.template == "" && !isOurs(body) {
				continue
			}
			var page struct {
				Items []json.RawMessage `json:"items"`
			}
			if err := json.Unmarshal([]byte(body), &page); err == nil && page.Items != nil && place.template == "" {
				body = ""
				for _, item := range page.Items {
					if isOurs(string(item)) {
						body += string(item) + "\n"
					}
				}
			}
			out[o.path(place.values)] = body
		}
	}
	for _, place := range owned {
		for _, o := range list { // an object with a separate page is read there, all else in a list
			if path := o.path(place.values); o.method == http.MethodGet && o.template == place.template && out[path] == "" {
				t.Errorf("%s: got no answer of ours for %s", s.name, path)
			}
		}
	}
	if len(out) < len(owned) {
		t.Errorf("%s: got %d answers with our objects, want at least %d", s.name, len(out), len(owned))
	}
	return out
}

// Tokens collected on the port of a stopped platform open nothing once it is up again.
func TestStandInTokensAreThoseOfAStart(t *testing.T) {
	t.Parallel()
	p := harness.New(t, "PLATFORM_SEED=false")
	p.Start(t, 2*time.Minute)
	tracker, orchestrator := p.Tracker(), p.Orchestrator() // with their secrets
	p.Stop(t)
	p.Start(t, 2*time.Minute)
	const experiments, admin = "/api/2.0/mlflow/experiments/search?max_results=1", "/admin/version"
	for _, r := range []struct {
		url    string
		status int
	}{
		{tracker + experiments, http.StatusUnauthorized}, {p.Tracker() + experiments, http.StatusOK},
		{orchestrator + admin, http.StatusUnauthorized}, {p.Orchestrator() + admin, http.StatusOK},
	} {
		harness.Want(t, r.status, "GET", r.url, "", nil)
	}
}

// Policies, rules and repository settings belong to a model's owner: a person of another tenant with every scope, who
// would need a second one, cannot even open a change.
func TestAnotherTenantSetsNoGate(t *testing.T) {
	t.Parallel()
	p := startWithCredentials(t)
	cp, ours := p.Env["CONTROL_PLANE_URL"], p.Secret(t, "operator_token")
	settings := map[string]map[string]any{
		"/promotion-policies/JPCP": {"threshold": 0, "approval_mode": "run"}, "/modelrepo/config": {"gate": "direct"},
	}
	before := map[string]string{}
	for path := range settings {
		before[path] = string(harness.Call(t, http.MethodGet, cp+path, ours, nil).Body)
	}
	for path, body := range settings {
		for _, method := range []string{http.MethodGet, http.MethodPut} {
			if a := harness.Call(t, method, cp+path, foreignToken, body); a.Status != http.StatusNotFound {
				t.Errorf("%s %s as another tenant: got %d %.200s, want 404", method, path, a.Status, a.Body)
			}
		}
		if after := string(harness.Call(t, http.MethodGet, cp+path, ours, nil).Body); withoutClock(after) != withoutClock(before[path]) {
			t.Errorf("%s: got %s after another tenant's attempts, want %s", path, after, before[path])
		}
	}
}

// Another tenant's answers from the control plane and inference are the same, byte for byte, whether we send a request
// or not. This matters most for aggregates: the mean of a single prediction is that prediction.
func TestOurRequestsChangeNoForeignAnswer(t *testing.T) {
	t.Parallel()
	p := startWithCredentials(t, "PLATFORM_SEED=true")
	const model = "RuntimeRegressor"
	p.WaitOutput(t, "Next:", 15*time.Minute, time.Now()) // the samples are trained
	serving, ours := p.Env["SERVING_URL"], p.Env["SERVING_TOKEN"]
	bodies, err := filepath.Glob(filepath.Join(p.Dir, "samples", model+"-job-*.json"))
	if err != nil || len(bodies) == 0 {
		t.Fatalf("held-out jobs: %v, %v; want some", bodies, err)
	}
	job, err := os.ReadFile(bodies[0])
	if err != nil {
		t.Fatal(err)
	}
	type question struct {
		s server
		o operation
	}
	const series = "/series/{model_name}"
	queries := map[string]string{series: "?metric=prediction_mean&step=1"}
	var questions []question
	for _, s := range services(p) {
		if s.name != "control plane" && s.name != "inference" {
			continue
		}
		for _, o := range operations(t, s) {
			if !o.writes() && !o.public && o.level != "public" {
				questions = append(questions, question{s, o})
			}
		}
	}
	known := map[string]string{"model": model, "model_name": model, "model_id": model, "name": model}
	foreign := caller{name: "other tenant", header: bearer(foreignToken)}
	answers := func() map[string]string {
		all := map[string]string{}
		for _, q := range questions {
			o := q.o
			o.template += queries[o.template]
			status, body := ask(t, q.s, o, foreign, known)
			all[q.s.name+" "+q.o.template] = fmt.Sprint(status, " ", withoutClock(body))
		}
		return all
	}
	first := answers()
	idle := answers()
	const requests = 20
	for range requests {
		harness.Want(t, http.StatusOK, "POST", serving+"/predict/"+model, ours, json.RawMessage(job))
	}
	harness.Want(t, http.StatusOK, "POST", serving+"/traffic-rules/"+model, ours, map[string]int{"Production": 100})
	harness.Eventually(t, 30*time.Second, func() error {
		a := harness.Want(t, http.StatusOK, "GET", serving+"/series/"+model+queries[series], ours, nil)
		values := 0
		for _, point := range a.JSON(t)["points"].([]any) {
			if point.(map[string]any)["value"] != nil {
				values++
			}
		}
		if values == 0 {
			return fmt.Errorf("our own series does not have our requests yet: %.300s", a.Body)
		}
		return nil
	})
	after := answers()
	compared := 0
	for path, was := range idle {
		if first[path] != was {
			t.Logf("%s differs on its own: %.300s, then %.300s", path, first[path], was)
			continue
		}
		if compared++; after[path] != was {
			t.Errorf("%s: got another answer after our requests:\n%.400s\nwant\n%.400s", path, after[path], was)
		}
	}
	if moved := len(idle) - compared; compared < 40 || moved > 3 {
		t.Errorf("got %d answers compared and %d that change by themselves; want at least 40, and at most 3", compared, moved)
	}
}

var clockTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)|"request_id":"[^"]*"`)

// withoutClock removes times of day and ids of requests.
func withoutClock(body string) string { return clockTime.ReplaceAllString(body, "T") }
