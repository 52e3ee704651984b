package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// A run may log NaN: the value is null in a document and NaN in a table, for every command that shows it.
func TestFiguresThatAreNoNumbersCostNoDocument(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	for path, body := range map[string]string{
		"registered-models/get":    `{"registered_model":{"name":"jpcp"}}`,
		"registered-models/search": `{"registered_models":[{"name":"jpcp"}]}`,
		"model-versions/search":    `{"model_versions":[{"name":"jpcp","version":"1","run_id":"r"},{"name":"jpcp","version":"2","run_id":"r"}]}`,
		"model-versions/get":       `{"model_version":{"name":"jpcp","version":"1","run_id":"r"}}`,
		"runs/get":                 `{"run":{"info":{"run_id":"r"},"data":{"metrics":[{"key":"rmse","value":"NaN","step":"0"},{"key":"mae","value":"-Infinity","step":"0"},{"key":"r2","value":0.5,"step":"0"}]}}}`,
	} {
		mux.HandleFunc("/api/2.0/mlflow/"+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, body)
		})
	}
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	vars := map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": srv.URL, "TRACKING_URI": srv.URL}
	for _, line := range []string{"models info JPCP", "models lineage JPCP 1", "models diff JPCP 1 2"} {
		for _, format := range []string{"json", "yaml", "csv", "table"} {
			r := runMLP(t, vars, "", append([]string{"-o", format}, strings.Fields(line)...)...)
			if r.code != 0 {
				t.Errorf("%s as %s: exit %d, %s%s", line, format, r.code, r.out, r.err)
			}
			var doc any
			switch format {
			case "json":
				if err := json.Unmarshal([]byte(r.out), &doc); err != nil || !strings.Contains(r.out, "null") {
					t.Errorf("%s: got %s, %v; want a document with null", line, r.out, err)
				}
			case "yaml":
				if err := yaml.Unmarshal([]byte(r.out), &doc); err != nil || !strings.Contains(r.out, ": null") {
					t.Errorf("%s: got %s, %v; want a document with null", line, r.out, err)
				}
			case "table":
				if !strings.Contains(line, "lineage") && !strings.Contains(r.out, "NaN") { // whose table has no metrics
					t.Errorf("%s: got %s, want NaN", line, r.out)
				}
			}
		}
	}
}

// Untrusted text is escaped in YAML, at a terminal and in a pipe.
func TestYAMLOfHostileText(t *testing.T) {
	t.Parallel()
	message := "\x1b]0;owned\x07\u202eevil\x7f\u009b2J"
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		quoted, _ := json.Marshal(message)
		fmt.Fprintf(w, `[{"approval_id":"01990000-0000-7000-8000-000000000000","model_id":"JPCP","kind":"change","status":"pending","commit_msg":%s,"created_at":"2026-01-02T03:04:05Z"}]`, quoted)
	}))
	t.Cleanup(srv.Close)
	vars := map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": srv.URL}
	r := runMLP(t, vars, "", "-o", "yaml", "approvals", "list", "--all")
	var doc []map[string]any
	if err := yaml.Unmarshal([]byte(r.out), &doc); err != nil || len(doc) != 1 {
		t.Fatalf("%v in %q, %s", err, r.out, r.err)
	}
	found := false
	for _, v := range doc[0] {
		found = found || v == message
	}
	if !found {
		t.Errorf("got %q, want the message %q", doc, message)
	}
}
