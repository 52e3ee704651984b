package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ledger serves a platform with one model, and keeps the recorded facts.
type ledger struct {
	mu     sync.Mutex
	facts  []map[string]any
	status int // of a record; 0: 202
}

func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodPost && r.URL.Path == "/audit/events" {
		var fact map[string]any
		_ = json.NewDecoder(r.Body).Decode(&fact)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.facts = append(l.facts, fact)
		if l.status != 0 {
			w.WriteHeader(l.status)
			fmt.Fprint(w, `{"title":"Forbidden","status":403,"detail":"no","code":"forbidden"}`)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, `{"event_id":"01990000-0000-7000-8000-000000000000"}`)
		return
	}
	switch {
	case strings.HasPrefix(r.URL.Path, "/traffic-rules/"), strings.HasPrefix(r.URL.Path, "/traffic/"):
		fmt.Fprint(w, `{"model":"JPCP","rules":{"Production":100},"updated_at":"2026-01-02T03:04:05Z","updated_by":"x","warnings":[]}`)
	case strings.HasSuffix(r.URL.Path, "/registered-models/search"):
		fmt.Fprint(w, `{"registered_models":[{"name":"jpcp"}]}`)
	case strings.HasPrefix(r.URL.Path, "/predict/"):
		fmt.Fprint(w, `{"model_name":"JPCP","model_version":"1","prediction":1}`)
	case r.URL.Path == "/alerts/x/ack":
		w.WriteHeader(http.StatusInternalServerError)
	default:
		fmt.Fprint(w, `{"reloaded":["JPCP"],"unchanged":[],"failed":[{"model":"JPCP","alias":"Canary","reason":"no"}],"count":1}`)
	}
}

// Changes by mlp are recorded as facts of the source cli; reads, questions and dry runs are not.
func TestChangesAreRecorded(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]map[string]any{
		"serve traffic jpcp --production 100":           {"source": "cli", "action": "serve.traffic", "target": "model:JPCP", "outcome": "ok", "details": map[string]any{"command": "mlp serve traffic"}},
		"serve reload":                                  {"source": "cli", "action": "serve.reload", "target": "platform", "outcome": "failed", "details": map[string]any{"command": "mlp serve reload", "error": "reload_failed"}},
		"serve reload --model jpcp":                     {"source": "cli", "action": "serve.reload", "target": "model:JPCP", "outcome": "failed", "details": map[string]any{"command": "mlp serve reload", "error": "reload_failed"}},
		"serve traffic JPCP":                            nil,
		"serve traffic JPCP --production 100 --dry-run": nil,
		"serve traffic JPCP --production 90":            nil,
		"predict JPCP --features {}":                    nil,
	} {
		l := &ledger{}
		srv := httptest.NewServer(l)
		vars := map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": srv.URL, "SERVING_URL": srv.URL, "TRACKING_URI": srv.URL}
		r := runMLP(t, vars, "", strings.Fields(line)...)
		srv.Close()
		var got map[string]any
		if len(l.facts) > 0 {
			got = l.facts[0]
		}
		if diff := cmp.Diff(want, got); diff != "" || len(l.facts) > 1 {
			t.Errorf("%s: %d facts (-want +got):\n%s%s%s", line, len(l.facts), diff, r.out, r.err)
		}
	}
}

// A change that cannot be recorded is still made, with a warning.
func TestUnrecordedChangesAreSaid(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(&ledger{status: http.StatusForbidden})
	t.Cleanup(srv.Close)
	vars := map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": srv.URL, "SERVING_URL": srv.URL}
	r := runMLP(t, vars, "", "serve", "traffic", "JPCP", "--production", "100")
	if r.code != 0 || !strings.Contains(r.err, "note: the audit ledger has no entry of this command: ") {
		t.Errorf("got %+v, want exit 0 and a note", r)
	}
	r = runMLP(t, vars, "", "--json", "serve", "traffic", "JPCP", "--production", "100")
	if r.code != 0 || r.err != "" {
		t.Errorf("got %+v, want a document alone", r)
	}
}
