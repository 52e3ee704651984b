package cli

import (
	"strings"
	"testing"
)

// A model that could not be checked or trained makes the command fail, with every outcome in its document. The service that is
// asked is a fake: a control plane whose orchestrator fails for one model of two cannot be had.
func TestFailedTriggerIsAnError(t *testing.T) {
	t.Parallel()
	url := serveAnswer(t, 200, "application/json", `{"results":[
		{"model":"JPCP","z_score":4.2,"outcome":"dispatched","flow_run_id":"0196f000-0000-7000-8000-000000000001"},
		{"model":"MACK","outcome":"failed","reason":"the orchestrator refused the connection"}]}`)
	env := map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": url, "CONTROL_PLANE_TOKEN": "a-long-enough-token"}
	r := runMLP(t, env, "", "--json", "drift", "trigger")
	for _, want := range []string{`"code": "trigger_failed"`, `"error": "1 of 2 models could not be checked or trained"`, `"outcome": "dispatched"`, `"reason": "the orchestrator refused the connection"`} {
		if r.code != 1 || !strings.Contains(r.out, want) {
			t.Errorf("exit %d\n%s\nwant exit 1 and %s in it", r.code, r.out, want)
		}
	}
	r = runMLP(t, env, "", "drift", "trigger")
	for _, want := range []string{"JPCP", "dispatched", "MACK", "failed"} {
		if r.code != 1 || !strings.Contains(r.out, want) {
			t.Errorf("exit %d\n%s\nwant exit 1 and %s in the table", r.code, r.out, want)
		}
	}
	if !strings.Contains(r.err, "1 of 2 models could not be checked or trained") {
		t.Errorf("stderr: got %q, want the number of models that failed", r.err)
	}
}
