//go:build e2e

package loop

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// pipelineBody returns a request to MACK about a job whose embedding is near centre; k varies each value slightly.
func pipelineBody(centre float64, k int) map[string]any {
	embedding := make([]float64, 384)
	for i := range embedding {
		embedding[i] = centre + 0.05*math.Sin(float64(i*31+k*17))
	}
	return map[string]any{"model_name": "MACK", "embedding": embedding, "num_nodes": 2, "user_id": "row22"}
}

// Acceptance row 22: shifted inputs are critical, raise an alert and request training; inputs that are not numbers
// block it.
func TestRow22_ShiftedAndNaNInputs(t *testing.T) {
	p := sharedPlatform(t)
	cp, inf := p.Env["CONTROL_PLANE_URL"], p.Env["SERVING_URL"]
	operator, serving := p.Secret(t, "operator_token"), p.Env["SERVING_TOKEN"]
	inputs := func() map[string]any {
		rows := harness.Want(t, 200, "GET", inf+"/drift/input/status?model=MACK&alias=Production", serving, nil).List(t)
		if len(rows) != 1 {
			t.Fatalf("%d rows of MACK's input drift under Production; want 1", len(rows))
		}
		return rows[0]
	}
	overall := func(want string) {
		t.Helper()
		harness.Eventually(t, 60*time.Second, func() error {
			if row := inputs(); row["overall"] != want {
				return fmt.Errorf("overall %v by %v of %v, z %v, %v snapshots; want %s", row["overall"], row["decided_by"], row["statistic"], row["z_score"], row["n_snapshots"], want)
			}
			return nil
		})
	}
	alert := func(title string) {
		t.Helper()
		harness.Eventually(t, 90*time.Second, func() error {
			alerts := listItems(t, harness.Want(t, 200, "GET", cp+"/alerts", operator, nil))
			for _, a := range alerts {
				if a["id"] == "drift:MACK:Production:input" && a["severity"] == "critical" && strings.Contains(fmt.Sprint(a["title"]), title) {
					return nil
				}
			}
			return fmt.Errorf("no critical alert of MACK's inputs that says %q: %v", title, alerts)
		})
	}
	trigger := func() map[string]any {
		t.Helper()
		results := harness.Want(t, 200, "POST", cp+"/drift/trigger", operator, map[string]any{"model": "MACK"}).JSON(t)["results"].([]any)
		if len(results) != 1 {
			t.Fatalf("results %v; want one", results)
		}
		return results[0].(map[string]any)
	}

	// The seeded, held-out rows are the baseline.
	if set := harness.Want(t, 200, "POST", inf+"/drift/input/MACK/baseline", serving, map[string]any{}).JSON(t); set["n"].(float64) < 100 {
		t.Fatalf("baseline %v; want the seeded requests", set)
	}
	overall("OK")
	harness.Want(t, 200, "PUT", cp+"/auto-retrain/MACK", operator, map[string]any{"enabled": true, "kind": "input", "gate": "approval"})
	t.Cleanup(func() {
		harness.Want(t, 200, "PUT", cp+"/auto-retrain/MACK", operator, map[string]any{"enabled": false, "kind": "prediction"})
		harness.Want(t, 200, "POST", inf+"/drift/input/MACK/reset", serving, map[string]any{})
	})
	for k := range 100 {
		harness.Want(t, 200, "POST", inf+"/infer-pipeline/infer", serving, pipelineBody(1, k))
	}
	overall("CRITICAL")
	alert("drifted")
	result := trigger()
	if result["outcome"] != "requested" && result["outcome"] != "already_pending" && result["outcome"] != "cooling_down" { // the leader may have been first
		t.Fatalf("trigger %v; want requested", result)
	}
	var waiting map[string]any
	for _, a := range harness.Want(t, 200, "GET", cp+"/approvals?status=pending", operator, nil).List(t) {
		if a["model_id"] == "MACK" && a["origin"] == "drift" {
			waiting = a
		}
	}
	if waiting == nil {
		t.Fatalf("no pending approval of origin drift after %v", result)
	}

	body := `{"model_name":"MACK","num_nodes":2,"embedding":[NaN` + strings.Repeat(",0.1", 383) + `]}`
	if a := harness.Want(t, 422, "POST", inf+"/infer-pipeline/infer", serving, body).JSON(t); a["code"] != "validation_error" {
		t.Errorf("NaN: %v; want validation_error", a)
	}
	overall("CORRUPT")
	if reason := inputs()["reason"]; reason != "non_finite_input" {
		t.Errorf("reason %v; want non_finite_input", reason)
	}
	alert("corrupt")
	if result := trigger(); result["outcome"] != "blocked_corrupt" || !strings.Contains(fmt.Sprint(result["reason"]), "non_finite_input") {
		t.Errorf("trigger %v; want blocked_corrupt because of non_finite_input", result)
	}
	harness.Want(t, 200, "POST", cp+"/approvals/"+fmt.Sprint(waiting["id"])+"/reject", operator, map[string]any{"reason": "row 22"})
}
