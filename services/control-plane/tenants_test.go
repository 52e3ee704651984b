package controlplane_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// ownedByDefault lists the objects of tenant default in TestObjectsOfAnotherTenantLookAbsent.
type ownedByDefault struct{ approval, promotion, run, event string }

// marker is part of each object of tenant default that takes a text.
const marker = "only-of-default"

func ownEverything(t *testing.T, p *controlplanetest.Plane) (o ownedByDefault) {
	t.Helper()
	o.run = p.Want(200, "POST", "/retrain", controlplanetest.Operator, retrainOf("MACK")).Object(t)["flow_run_id"].(string)
	o.approval = p.Notice("RuntimeClass", marker)
	version := p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 10.0))
	p.Tracker.Move("jpcp", "Staging", version)
	o.promotion = p.Want(200, "POST", "/promotions", controlplanetest.Operator, doc{"model": "jpcp", "version": version, "reason": marker}).Object(t)["id"].(string)
	o.event = uuid.Must(uuid.NewV7()).String()
	p.SQL(`insert into control_plane.outbox (id, tenant, namespace, name, payload, actor, refusals, poison_at, last_error)
		values ($1, 'default', 'job', 'started', '{"model":"JPCP"}', $2, 5, now(), 'too large')`, o.event, marker)
	for path, body := range map[string]doc{
		"PUT /budgets/" + marker:   {"cost_budget": 2.5},
		"PUT /llm/endpoints/llama": {"engine": "vllm", "hostedModelId": marker, "maxModelLen": 8192, "tensorParallel": 2, "dtype": "bf16", "enabled": true},
		"PUT /compliance/jpcp/1":   {"riskClass": "high", "technicalFilePath": marker + ".pdf"},
		"PUT /model-cards/jpcp":    {"markdown": marker, "source": "cli"},
		"POST /evals":              {"model": "jpcp", "version": "1", "suite": marker, "status": "passed", "metrics": []doc{}},
		"POST /costs":              {"model": "jpcp", "version": "1", "scheduler": "slurm", "job_id": "7", "gpu_hours": 2, "cpu_hours": 8, "project": marker},
		"POST /audit/events":       {"source": "cli", "action": marker, "target": marker},
	} {
		method, path, _ := strings.Cut(path, " ")
		if r := p.Call(method, path, controlplanetest.Operator, body); r.Status > 299 {
			t.Fatalf("%s %s: %d %s; want it written", method, path, r.Status, r.Body)
		}
	}
	return o
}

// lists are the routes that show objects of a tenant.
var lists = []string{
	"/approvals", "/promotions", "/runs", "/costs", "/costs/summary", "/carbon", "/budgets", "/evals", "/llm/endpoints", "/compliance", "/model-cards",
	"/model-cards/jpcp", // of the repository, as there is no own card
	"/audit/events", "/audit/export", "/outbox?state=poison", "/outbox?state=pending", "/outbox?state=published", "/alerts", "/status", "/governance/posture",
}

// One tenant's objects look absent to a caller of another tenant who has every scope: each route with an id answers as
// for an unknown id, no list shows it, a name that both use is two objects, and nothing has changed.
func TestObjectsOfAnotherTenantLookAbsent(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	o := ownEverything(t, p)
	before := readOwned(t, p, o)

	nobody := uuid.Must(uuid.NewV7()).String()
	for _, c := range []struct {
		method, route, id, absent string
	}{
		{"GET", "/approvals/{id}", o.approval, nobody}, {"GET", "/approvals/{id}/diff", o.approval, nobody},
		{"GET", "/approvals/{id}/effect", o.approval, nobody},
		{"POST", "/approvals/{id}/approve", o.approval, nobody}, {"POST", "/approvals/{id}/reject", o.approval, nobody},
		{"POST", "/approve/{id}", "RuntimeClass", "RuntimeRegressor"}, {"POST", "/reject/{id}", "RuntimeClass", "RuntimeRegressor"},
		{"GET", "/retrain/{id}", o.run, nobody}, {"POST", "/retrain/{id}/cancel", o.run, nobody},
		{"GET", "/promotions/{id}", o.promotion, nobody},
		{"POST", "/promotions/{id}/approve", o.promotion, nobody}, {"POST", "/promotions/{id}/reject", o.promotion, nobody},
		{"DELETE", "/budgets/{id}", marker, "nothing-of-anybody"}, {"DELETE", "/llm/endpoints/{id}", "llama", "nothing"},
		{"POST", "/outbox/{id}/replay", o.event, nobody}, {"DELETE", "/outbox/{id}", o.event, nobody},
	} {
		foreign := p.Call(c.method, strings.Replace(c.route, "{id}", c.id, 1), controlplanetest.Foreign, nil)
		absent := p.Call(c.method, strings.Replace(c.route, "{id}", c.absent, 1), controlplanetest.Foreign, nil)
		same := func(r controlplanetest.Response, id string) string {
			var body map[string]any
			_ = json.Unmarshal(r.Body, &body)
			delete(body, "request_id")
			return strings.ReplaceAll(strings.ToLower(controlplanetest.MustJSON(body)), strings.ToLower(id), "{id}")
		}
		if foreign.Status != absent.Status || same(foreign, c.id) != same(absent, c.absent) || strings.Contains(string(foreign.Body), marker) && c.id != marker {
			t.Errorf("%s %s of another tenant: %d %s\nof nobody: %d %s; want the same", c.method, c.route, foreign.Status, foreign.Body, absent.Status, absent.Body)
		}
		if c.method != "DELETE" && foreign.Status != 404 {
			t.Errorf("%s %s of another tenant: %d %s; want 404", c.method, c.route, foreign.Status, foreign.Body)
		}
	}
	for _, path := range lists {
		r := p.Want(200, "GET", path, controlplanetest.Foreign, nil)
		for _, secret := range []string{marker, o.approval, o.promotion, o.run, o.event} {
			if strings.Contains(string(r.Body), secret) {
				t.Errorf("GET %s shows another tenant %s: %.400s", path, secret, r.Body)
			}
		}
	}
	for path, body := range map[string]doc{
		"/budgets/" + marker:   {"cost_budget": 1},
		"/llm/endpoints/llama": {"engine": "vllm", "hostedModelId": "mine", "maxModelLen": 1, "tensorParallel": 1, "dtype": "bf16", "enabled": false},
		"/compliance/jpcp/1":   {"riskClass": "minimal"},
		"/model-cards/jpcp":    {"markdown": "mine", "source": "cli"},
	} {
		p.Want(200, "PUT", path, controlplanetest.Foreign, body)
	}
	if diff := cmp.Diff(before, readOwned(t, p, o)); diff != "" {
		t.Errorf("another tenant changed something (-before +after):\n%s", diff)
	}
}

// readOwned returns tenant default's view of the objects it owns, without the fields that change over time.
func readOwned(t *testing.T, p *controlplanetest.Plane, o ownedByDefault) map[string]any {
	t.Helper()
	out := map[string]any{"approval": p.Approval(o.approval)["status"], "promotion": p.Promotion(o.promotion)["state"]}
	for _, path := range []string{"/budgets", "/llm/endpoints", "/compliance", "/model-cards/jpcp", "/evals", "/costs", "/outbox?state=poison"} {
		out[path] = p.Want(200, "GET", path, controlplanetest.Operator, nil).Object(t)
	}
	if got := controlplanetest.MustJSON(out); strings.Count(got, marker) < 7 || !strings.Contains(got, o.event) {
		t.Fatalf("tenant default sees %s; want all that it owns", got)
	}
	return out
}
