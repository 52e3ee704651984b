package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const loggedRun = "01a21f5c-7aa9-7377-95d3-e22ca59b115c"

// serveRun serves the control plane and the orchestrator of one run in a state, with one line in its log.
func serveRun(t *testing.T, state string) map[string]string {
	t.Helper()
	mux := http.NewServeMux()
	answer := func(pattern, body string) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, body)
		})
	}
	answer("GET /retrain/"+loggedRun, `{"flow_run_id":"`+loggedRun+`","model_id":"JPCP","is_terminal":true,"state_type":"`+state+`"}`)
	answer("POST /api/logs/filter", `[{"flow_run_id":"`+loggedRun+`","timestamp":"2026-01-02T03:04:05Z","level":20,"name":"train","message":"extract"}]`)
	answer("GET /api/flow_runs/"+loggedRun, `{"id":"`+loggedRun+`","state":{"type":"`+state+`","timestamp":"2026-01-02T03:04:06Z","message":"extract: no rows\u001b[2J"}}`)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": srv.URL, "ORCHESTRATOR_API_URL": srv.URL + "/api"}
}

// The log of a run that failed ends with why, which the orchestrator does not keep in the log, and runs show leads there.
func TestLogsEndWithWhyARunFailed(t *testing.T) {
	t.Parallel()
	vars := serveRun(t, "FAILED")
	const extract, reason = "03:04:05  INFO     extract\n", "03:04:06  ERROR    FAILED: extract: no rows\\x1b[2J\n"
	for line, want := range map[string]string{
		"runs logs " + loggedRun:               extract + reason,
		"runs logs " + loggedRun + " --tail 1": reason,
		"runs logs " + loggedRun + " --follow": extract + reason,
	} {
		if r := runMLP(t, vars, "", strings.Fields(line)...); r.code != 0 || r.out != want {
			t.Errorf("%s: exit %d, got %q, want %q", line, r.code, r.out, want)
		}
	}
	var doc []logLine
	r := runMLP(t, vars, "", "--json", "runs", "logs", loggedRun)
	if err := json.Unmarshal([]byte(r.out), &doc); err != nil || len(doc) != 2 || doc[1].Level != "ERROR" || !strings.HasPrefix(doc[1].Message, "FAILED: extract: no rows") {
		t.Errorf("got %s (%v), want the line of the log and an ERROR with the reason", r.out, err)
	}
	if r := runMLP(t, vars, "", "runs", "show", loggedRun); !strings.Contains(r.out, "see why it failed: mlp runs logs "+loggedRun) {
		t.Errorf("got %q, want where the reason stands", r.out)
	}
}

func TestLogsOfOtherRunsEndAsTheyDo(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"COMPLETED", "CANCELLED"} {
		vars := serveRun(t, state)
		if r := runMLP(t, vars, "", "runs", "logs", loggedRun); r.code != 0 || r.out != "03:04:05  INFO     extract\n" {
			t.Errorf("%s: exit %d, got %q, want the line of the log alone", state, r.code, r.out)
		}
		if r := runMLP(t, vars, "", "runs", "show", loggedRun); strings.Contains(r.out, "why it failed") {
			t.Errorf("%s: got %q, want no word of a failure", state, r.out)
		}
	}
}

// A state that no run can have is refused: an empty list would suggest that no run is in it.
func TestUnknownStatesAreRefused(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": "http://127.0.0.1:1"}
	for state, hint := range map[string]string{"canceled": "hint: did you mean: --state cancelled\n", "broken-by-somebody": ""} {
		r := runMLP(t, vars, "", "runs", "list", "--state", state)
		if want := "error: --state must be one of SCHEDULED, PENDING,"; r.code != 2 || !strings.HasPrefix(r.err, want) || !strings.HasSuffix(r.err, hint) {
			t.Errorf("%s: exit %d, got %q, want exit 2, %q and %q", state, r.code, r.err, want, hint)
		}
	}
}

// An empty list names its filters, and suggests starting a run only where no state is given.
func TestEmptyListOfRunsNamesItsFilter(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": serveAnswer(t, 200, "application/json", `{"items":[],"next_cursor":null}`)}
	for line, want := range map[string]string{
		"runs list":                             "No runs. Start one with: mlp retrain <model>\n",
		"runs list --state failed":              "No run is FAILED.\n",
		"runs list --model jpcp":                "No runs of JPCP. Start one with: mlp retrain JPCP\n",
		"runs list --model jpcp --state failed": "No run of JPCP is FAILED.\n",
	} {
		if r := runMLP(t, vars, "", strings.Fields(line)...); r.code != 0 || r.out != want {
			t.Errorf("%s: exit %d, got %q, want %q", line, r.code, r.out, want)
		}
	}
}
