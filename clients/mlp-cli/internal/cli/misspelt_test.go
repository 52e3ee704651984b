package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A misspelt model is a fault that names the nearest one, not an empty answer about an unknown model.
func TestMisspeltModelsGetTheNearest(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	answer := func(pattern, body string) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, body)
		})
	}
	answer("GET /models", `[{"model_name":"JPCP","datasets":[]},{"model_name":"RUNTIMEREGRESSOR","datasets":[]}]`)
	answer("GET /alias-history", `{"items":[],"next_cursor":null}`)
	answer("GET /costs", `{"items":[],"next_cursor":null}`)
	answer("GET /approvals", `[]`)
	answer("GET /drift/status", `[]`)
	answer("GET /drift/input/status", `[]`)
	notLoaded := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(404)
		fmt.Fprint(w, `{"status":404,"code":"model_not_loaded","title":"Model not loaded","detail":"It is not loaded."}`)
	}
	mux.HandleFunc("POST /predict/{model}", notLoaded)
	mux.HandleFunc("POST /drift/{model}/baseline", notLoaded)
	mux.HandleFunc("POST /drift/input/{model}/baseline", notLoaded)
	answer("GET /api/2.0/mlflow/registered-models/search", `{"registered_models":[{"name":"jpcp"},{"name":"runtimeregressor"}]}`)
	mux.HandleFunc("GET /api/2.0/mlflow/registered-models/get", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(404)
		fmt.Fprint(w, `{"error_code":"RESOURCE_DOES_NOT_EXIST","message":"none"}`)
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	vars := map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": srv.URL, "TRACKING_URI": srv.URL, "SERVING_URL": srv.URL}
	for _, line := range []string{"models info %s", "models lineage %s", "models history %s", "models at %s yesterday", "models cost %s", "approvals show %s", "approvals approve %s",
		"predict %s --features {}", "drift status %s", "drift baseline %s", "drift reset %s", "drift input status %s", "drift input baseline %s", "drift input reset %s"} {
		misspelt := fmt.Sprintf(line, "RuntimRegressor")
		if r := runMLP(t, vars, "", strings.Fields(misspelt)...); r.code != 1 || r.out != "" || !strings.Contains(r.err, "hint: did you mean: RUNTIMEREGRESSOR\n") {
			t.Errorf("%s: exit %d, out %q, err %q; want exit 1 and the nearest model", misspelt, r.code, r.out, r.err)
		}
		known := fmt.Sprintf(line, "RuntimeRegressor")
		if r := runMLP(t, vars, "", strings.Fields(known)...); strings.Contains(r.err, "knows no model") || strings.Contains(r.err, "there is no model") {
			t.Errorf("%s: err %q; want the empty answer about a model that is known", known, r.err)
		}
	}
}
