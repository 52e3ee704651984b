package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// serveInbox serves a fake dashboard with one alert whose text tries to colour the terminal.
func serveInbox(t *testing.T, acked *atomic.Int64) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodPost && r.URL.Path == "/api/v1/alerts/drift.JPCP/ack" && r.Header.Get("Idempotency-Key") != "":
			acked.Add(1)
			fmt.Fprint(w, `{"acked":true,"acked_by":"local:admin","audited":true}`)
		case r.Method == http.MethodGet:
			fmt.Fprint(w, `{"inbox":{"count":1,"counts":{},"stale":true,"alerts":[{"id":"drift.JPCP","labels":{"model":"JPCP"},"severity":"critical","title":"JPCP \u001b[31mdrifts","source":"drift","state":"firing"}]}}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestAlertIsShownAndAcknowledged(t *testing.T) {
	t.Parallel()
	var acked atomic.Int64
	vars := map[string]string{"HOME": t.TempDir(), "DASHBOARD_URL": serveInbox(t, &acked), "DASHBOARD_TOKEN": "t"}
	list := runMLP(t, vars, "", "alerts", "list")
	if list.code != 0 || strings.Contains(list.out, "\x1b") || !strings.Contains(list.out, `JPCP \x1b[31mdrifts`) || !strings.Contains(list.err, "known last") {
		t.Fatalf("got %+v, want the escape in the title shown, and a word that it is stale", list)
	}
	if dry := runMLP(t, vars, "", "alerts", "ack", "drift.JPCP", "--dry-run"); dry.code != 0 || acked.Load() != 0 || !strings.Contains(dry.out, "pass") {
		t.Fatalf("dry run: got %+v and %d acknowledgements, want 0", dry, acked.Load())
	}
	ack := runMLP(t, vars, "", "--json", "alerts", "ack", "drift.JPCP")
	var doc map[string]any
	if err := json.Unmarshal([]byte(ack.out), &doc); err != nil || ack.code != 0 || doc["acked_by"] != "local:admin" || acked.Load() != 1 {
		t.Fatalf("got %+v (%v) and %d acknowledgements, want one by local:admin", ack, err, acked.Load())
	}
	var rows []map[string]any
	if err := json.Unmarshal([]byte(runMLP(t, vars, "", "--json", "alerts", "list").out), &rows); err != nil || len(rows) != 1 {
		t.Fatalf("got %v (%v), want one alert", rows, err)
	}
	for _, k := range []string{"acked_at", "acked_by", "resolved_at", "since"} {
		if v, ok := rows[0][k]; !ok || v != nil {
			t.Errorf("%s: got %v (%v), want null", k, v, ok)
		}
	}
}

// A lost connection is tried once more under the same key, so that a mutation cannot happen twice.
func TestGeneratedClientsRetryUnderOneKey(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex // guards keys: the retry comes over another connection
	var keys []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.URL.Path == "/audit/events" {
			fmt.Fprint(w, `{"flow_run_id":"f1","is_terminal":false,"stale":false}`)
			return
		}
		_, _ = io.ReadAll(r.Body)
		mu.Lock()
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		first := len(keys) == 1
		mu.Unlock()
		if first {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, `{"flow_run_id":"f1","is_terminal":false,"stale":false}`)
	}))
	t.Cleanup(srv.Close)
	got := runMLP(t, map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": srv.URL}, "", "runs", "cancel", "f1")
	mu.Lock()
	defer mu.Unlock()
	if got.code != 0 || len(keys) != 2 || keys[0] != keys[1] || keys[0] == "" {
		t.Fatalf("got %+v with keys %q, want two requests with one key", got, keys)
	}
}

// An answer that is not JSON, or JSON of another service, produces one sentence that names the address.
func TestGeneratedClientsRefuseOtherAnswers(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"a page": "<html>hello</html>", "another list": `[1,2]`} {
		url := serveAnswer(t, 200, "text/html", body)
		got := runMLP(t, map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": url}, "", "--json", "runs", "list")
		if got.code != 1 || got.err != "" || !strings.Contains(got.out, `"code": "not_json"`) || !strings.Contains(got.out, "mlp config show") {
			t.Errorf("%s: got %+v, want not_json", name, got)
		}
	}
}
