package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// The services store a split and a policy for any name, since it may come before its model. Who types one means a model
// that there is.
func TestNothingIsStoredForUnknownModels(t *testing.T) {
	t.Parallel()
	var stored, cleared atomic.Int32
	mux := http.NewServeMux()
	answer := func(pattern string, status int, body string, count *atomic.Int32) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			if count != nil {
				count.Add(1)
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		})
	}
	rule := `{"model":"JPCP","rules":{"Production":100},"updated_at":"2026-01-02T03:04:05Z","updated_by":"x","warnings":[]}`
	policy := `{"model":"JPCP","metric":"rmse","operator":"lte","threshold":50,"from_alias":"Staging","to_alias":"Production","enabled":true}`
	none := `{"status":404,"title":"No traffic rules","detail":"Model has no traffic rules.","code":"no_traffic_rules"}`
	answer("GET /api/2.0/mlflow/registered-models/search", 200, `{"registered_models":[{"name":"jpcp"},{"name":"runtimeregressor"}]}`, nil)
	answer("GET /models", 200, `[{"model_name":"JPCP","datasets":[]},{"model_name":"Declared","datasets":[]}]`, nil)
	answer("GET /drift/status", 200, `[]`, nil)
	answer("GET /drift/predictions/status", 200, `[]`, nil)
	answer("GET /traffic-rules/{model}", 404, none, nil)
	answer("POST /traffic-rules/{model}", 200, rule, &stored)
	answer("DELETE /traffic-rules/JPCPP", 204, "", &cleared)
	answer("DELETE /traffic-rules/{model}", 404, none, nil)
	answer("GET /promotion-policies/{model}", 404, none, nil)
	answer("PUT /promotion-policies/{model}", 200, policy, &stored)
	answer("POST /audit/events", 202, `{"event_id":"01990000-0000-7000-8000-000000000000"}`, nil)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	vars := map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": srv.URL, "TRACKING_URI": srv.URL, "SERVING_URL": srv.URL}
	for _, line := range []string{"serve traffic %s --production 100", "pipeline promote %s --if-rmse-lte 50 --save"} {
		if r := runMLP(t, vars, "", strings.Fields(fmt.Sprintf(line, "Jpcpp"))...); r.code != 1 || !strings.Contains(r.err, "there is no model JPCPP") || !strings.Contains(r.err, "did you mean: JPCP") || stored.Load() != 0 {
			t.Errorf("%s: got %+v and %d stored, want the nearest model and nothing stored", line, r, stored.Load())
		}
		for _, known := range []string{"jpcp", "declared"} {
			before := stored.Load()
			if r := runMLP(t, vars, "", strings.Fields(fmt.Sprintf(line, known))...); r.code != 0 || stored.Load() != before+1 {
				t.Errorf("%s of %s: got %+v, want it stored", line, known, r)
			}
		}
		stored.Store(0)
	}
	if r := runMLP(t, vars, "", "serve", "traffic", "Jpcpp", "--clear"); r.code != 0 || cleared.Load() != 1 {
		t.Errorf("got %+v, want the rules of a name that is no model dropped", r)
	}
	if r := runMLP(t, vars, "", "serve", "traffic", "jpc", "--clear"); r.code != 1 || !strings.Contains(r.err, "did you mean: JPCP") {
		t.Errorf("got %+v, want the nearest model", r)
	}
	if r := runMLP(t, vars, "", "serve", "traffic", "jpcp", "--clear"); r.code != 1 || !strings.Contains(r.err, "no traffic rules") {
		t.Errorf("got %+v, want that there are no rules", r)
	}
	if r := runMLP(t, vars, "", "serve", "traffic", "jpcp", "--clear", "--production", "100"); r.code != 2 {
		t.Errorf("got %+v, want exit 2", r)
	}
}
