//go:build e2e

package loop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// Acceptance row 25, client half: a model that the official MLflow client logs, registers and moves to Production is
// put back and requested within one poll; with a policy and another person's approval it is served, with Python's
// numbers.
func TestRow25_OfficialMLflowClient(t *testing.T) {
	p := sharedPlatform(t)
	python := os.Getenv("E2E_PYTHON")
	if python == "" {
		t.Fatal("E2E_PYTHON is not set: run make e2e")
	}
	cmd := exec.Command(python, "sklearn_onnx.py", "official-forest")
	cmd.Env = append(os.Environ(), "TRACKING_URI="+p.Env["TRACKING_URI"], "MLFLOW_TRACKING_TOKEN="+p.Env["MLFLOW_TRACKING_TOKEN"], "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR=false", "GIT_PYTHON_REFRESH=quiet")
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errOut.String())
	}
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	var doc struct {
		Version     string
		Since       float64
		Rows        []map[string]float64
		Predictions []float64
	}
	if err := json.Unmarshal(lines[len(lines)-1], &doc); err != nil || len(doc.Rows) != 20 {
		t.Fatalf("%v\n%s; want len(doc.Rows) == 20", err, out.String())
	}
	control, operator := p.Env["CONTROL_PLANE_URL"], p.Secret(t, "operator_token")
	var promotion string
	harness.Eventually(t, 45*time.Second, func() error { // the control plane compares every 30 s
		a := harness.Want(t, 200, "GET", control+"/promotions?model=OFFICIAL-FOREST&state=pending", operator, nil).JSON(t)
		items := a["items"].([]any)
		if len(items) != 1 {
			return fmt.Errorf("got promotions %v, want one", items)
		}
		pr := items[0].(map[string]any)
		if pr["requested_by"] != "tracker:unknown" || pr["origin"] != "outside" || pr["version"] != doc.Version {
			t.Fatalf("got promotion %v, want version %s asked for by tracker:unknown", pr, doc.Version)
		}
		promotion = pr["id"].(string)
		return nil
	})
	if a := harness.Call(t, "POST", p.Env["SERVING_URL"]+"/predict/OFFICIAL-FOREST", p.Env["SERVING_TOKEN"], map[string]any{"features": doc.Rows[0]}); a.Status != 404 {
		t.Fatalf("before the approval: got %d %s, want 404", a.Status, a.Body)
	}
	harness.Eventually(t, 20*time.Second, func() error { // the promotion is written down before the alias moves
		a := harness.Call(t, "GET", p.Tracker()+"/api/2.0/mlflow/registered-models/alias?name=official-forest&alias=Production", "", nil)
		if a.Status == 200 {
			return fmt.Errorf("before the approval: got Production %s, want it put back to none", a.Body)
		}
		return nil
	})
	legacy := p.Env["CONTROL_PLANE_TOKEN"] // its policy changes wait for no second person
	harness.Want(t, 200, "PUT", control+"/promotion-policies/official-forest", legacy, map[string]any{"metric": "train_r2", "operator": "gte", "threshold": 0.5})
	harness.Eventually(t, 45*time.Second, func() error { // its digest is computed with the next comparison
		if a := harness.Call(t, "POST", control+"/promotions/"+promotion+"/approve", operator, nil); a.Status != 200 {
			return fmt.Errorf("approve: %d %s", a.Status, a.Body)
		}
		return nil
	})
	// The mover of the alias is unknown, so a second person must approve.
	if a := harness.Want(t, 200, "GET", control+"/promotions/"+promotion, operator, nil).JSON(t); a["state"] != "pending" || a["first_approver"] != "operator" {
		t.Errorf("after the first approval: got %v, want pending with first_approver operator", a)
	}
	harness.Want(t, 200, "POST", control+"/promotions/"+promotion+"/approve", legacy, nil)
	approved := time.Now()
	url, token := p.Env["SERVING_URL"]+"/predict/OFFICIAL-FOREST", p.Env["SERVING_TOKEN"]
	harness.Eventually(t, 15*time.Second, func() error {
		a := harness.Call(t, "POST", url, token, map[string]any{"features": doc.Rows[0]})
		if a.Status != 200 {
			return fmt.Errorf("%d %s", a.Status, a.Body)
		}
		return nil
	})
	t.Logf("served %.1f s after the approval, %.1f s after the alias was set", time.Since(approved).Seconds(), float64(time.Now().UnixMicro())/1e6-doc.Since)
	for i, row := range doc.Rows {
		var a map[string]any
		harness.Eventually(t, 15*time.Second, func() error { // another replica may still load it
			answer := harness.Call(t, "POST", url, token, map[string]any{"features": row})
			if answer.Status != 200 {
				return fmt.Errorf("row %d: got %d %s, want 200", i, answer.Status, answer.Body)
			}
			a = answer.JSON(t)
			return nil
		})
		got, _ := a["prediction"].(float64)
		if math.Abs(got-doc.Predictions[i]) > 1e-5*math.Max(1, math.Abs(doc.Predictions[i])) || a["model_version"] != doc.Version {
			t.Errorf(`row %d: %v, Python gives %v; want math.Abs(got - doc.Predictions[i]) <= 1e-5 * math.Max(1, math.Abs(doc.Predictions[i])) && a["model_version"] == doc.Version`, i, a, doc.Predictions[i])
		}
	}
}
