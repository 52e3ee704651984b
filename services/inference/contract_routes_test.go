package inference_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	api "github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/services/inference"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest"
)

// contractRow is one operation: its scope, and its answer to an administrator for the body.
type contractRow struct {
	route  string // of the document
	scope  string // predict or admin; public without credentials; signed by its own proof
	body   string
	status int
	code   string // of the problem, if it answers one
}

const (
	oneTensor  = `{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1]}]}`
	noPipeline = `{"num_nodes": 1}`
	window     = `{"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}`
)

// contractRows are all operations. {model_name} is jpcp, {version} 1, {id} an event that is not there.
var contractRows = []contractRow{
	{"GET /livez", "public", "", 200, ""},
	{"GET /readyz", "public", "", 200, ""},
	{"GET /metrics", "public", "", 200, ""},
	{"GET /health", "public", "", 200, ""},
	{"GET /models", "predict", "", 200, ""},
	{"POST /predict/{model_name}", "predict", row, 200, ""},
	{"POST /infer-pipeline/infer", "predict", noPipeline, 422, "validation_error"},
	{"GET /v2", "predict", "", 200, ""},
	{"GET /v2/health/live", "public", "", 200, ""},
	{"GET /v2/health/ready", "public", "", 200, ""},
	{"POST /v2/repository/index", "predict", "", 200, ""},
	{"GET /v2/models/{model_name}", "predict", "", 200, ""},
	{"GET /v2/models/{model_name}/ready", "predict", "", 200, ""},
	{"POST /v2/models/{model_name}/infer", "predict", oneTensor, 200, ""},
	{"GET /v2/models/{model_name}/versions/{version}", "predict", "", 200, ""},
	{"GET /v2/models/{model_name}/versions/{version}/ready", "predict", "", 200, ""},
	{"POST /v2/models/{model_name}/versions/{version}/infer", "predict", oneTensor, 200, ""},
	{"POST /reload", "admin", "", 200, ""},
	{"POST /reload/{model_name}", "admin", "", 200, ""},
	{"GET /drift/status", "predict", "", 200, ""},
	{"GET /series/{model_name}?metric=requests", "predict", "", 200, ""},
	{"POST /drift/{model_name}/baseline", "admin", "", 409, "not_enough_snapshots"},
	{"POST /drift/{model_name}/reset", "admin", "", 200, ""},
	{"GET /drift/input/status", "predict", "", 200, ""},
	{"GET /drift/input/{model_name}/report", "predict", "", 200, ""},
	{"POST /drift/input/{model_name}/baseline", "admin", "", 409, "not_enough_snapshots"},
	{"POST /drift/input/{model_name}/reset", "admin", "", 200, ""},
	{"GET /traffic-rules", "predict", "", 200, ""},
	{"POST /traffic-rules/{model_name}", "admin", `{"Production": 100}`, 200, ""},
	{"PUT /traffic-rules/{model_name}", "admin", `{"Production": 99}`, 422, "validation_error"},
	{"GET /traffic-rules/{model_name}", "predict", "", 200, ""},
	{"DELETE /traffic-rules/{model_name}", "admin", "", 204, ""},
	{"GET /shadow-rules", "predict", "", 200, ""},
	{"PUT /shadow-rules/{model_name}", "admin", `{"alias": "Canary", "percent": 10}`, 200, ""},
	{"GET /shadow-rules/{model_name}", "predict", "", 200, ""},
	{"DELETE /shadow-rules/{model_name}", "admin", "", 204, ""},
	{"POST /webhooks/tracker", "signed", aliasMoved, 401, "invalid_webhook_proof"},
	{"GET /outbox", "admin", "", 200, ""},
	{"POST /outbox/republish", "admin", window, 200, ""},
	{"DELETE /outbox/{id}", "admin", "", 404, "event_not_found"},
	{"POST /outbox/{id}/replay", "admin", "", 404, "event_not_found"},
}

// request is the row's method and a path that is there.
func (r contractRow) request() (method, path string) {
	method, path, _ = strings.Cut(r.route, " ")
	return method, strings.NewReplacer("{model_name}", "jpcp", "{version}", "1", "{id}", "01930000-0000-7000-8000-000000000001").Replace(path)
}

// TestContractRoutes calls each operation without a credential, with the scope predict and as an administrator, in the
// order of the table.
func TestContractRoutes(t *testing.T) {
	t.Parallel()
	i := start(t, splitRegistry(t), func(c *inference.Config) { c.Credentials, c.TrackerWebhookSecret = scoped, hookSecret })
	ask := func(r contractRow, who string, status int, code string) {
		t.Helper()
		method, path := r.request()
		i.Bearer = who
		var body any
		if r.body != "" {
			body = r.body
		}
		s, _, out := i.Do(method, path, body)
		got := ""
		if s >= http.StatusBadRequest {
			got = inferencetest.ProblemOf(t, s, out).Code
		}
		if s != status || got != code {
			t.Errorf("%s: got %d %s, want %d %s", r.route, s, out, status, code)
		}
	}
	for _, r := range contractRows {
		if r.scope == "predict" || r.scope == "admin" {
			ask(r, "", http.StatusUnauthorized, "missing_credential")
			ask(r, "somebody-0123456789", http.StatusUnauthorized, "invalid_credential")
		}
		if r.scope == "admin" {
			ask(r, askSecret, http.StatusForbidden, "insufficient_scope")
		}
		switch r.scope {
		case "predict":
			ask(r, askSecret, r.status, r.code)
		case "admin":
			ask(r, adminSecret, r.status, r.code)
		default:
			ask(r, "", r.status, r.code)
		}
	}
}

// TestEveryOperationHasARow holds the API's document against the table: an operation without a row is one that no
// contract test asks, and a row without an operation is a route that the document hides.
func TestEveryOperationHasARow(t *testing.T) {
	t.Parallel()
	var doc struct {
		Paths map[string]map[string]any
	}
	if err := yaml.Unmarshal(api.Document, &doc); err != nil {
		t.Fatal(err)
	}
	var documented, tabled []string
	for path, operations := range doc.Paths {
		for method := range operations {
			documented = append(documented, strings.ToUpper(method)+" "+path)
		}
	}
	for _, r := range contractRows {
		route, _, _ := strings.Cut(r.route, "?")
		if slices.Contains(tabled, route) {
			t.Errorf("%s has two rows", route)
		}
		tabled = append(tabled, route)
	}
	for _, route := range documented {
		if !slices.Contains(tabled, route) {
			t.Errorf("%s is in clients/go/inference/openapi.yaml and has no row here", route)
		}
	}
	for _, route := range tabled {
		if !slices.Contains(documented, route) {
			t.Errorf("%s has a row and is not in clients/go/inference/openapi.yaml", route)
		}
	}
}
