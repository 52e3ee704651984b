package controlplane_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// A model logged with a plain client is listed, gets a digest, and can be given a policy and promoted; it cannot be
// trained, since it has no definition.
func TestExternalModel(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Neighbours(t)
	v := p.Tracker.Add("Churn-Model", controlplanetest.Version{Metrics: map[string]any{"auc": 0.9}, Tags: map[string]string{"by": "somebody"}})
	p.Tracker.Move("Churn-Model", "Staging", v)
	p.Serve()
	testenv.Eventually(t, 20*time.Second, func() error {
		list := p.Want(200, "GET", "/models", "", nil).List(t)
		i := slices.IndexFunc(list, func(m map[string]any) bool { return m["model_name"] == "CHURN-MODEL" })
		if i < 0 || list[i]["external"] != true || len(list[i]["datasets"].([]any)) != 0 {
			return fmt.Errorf("models %v", list)
		}
		p.Tracker.Mu.Lock()
		defer p.Tracker.Mu.Unlock()
		if digest := p.Tracker.Models["Churn-Model"].Versions[v].Tags["artifact_digest"]; len(digest) != 64 {
			return fmt.Errorf("got digest %q, want one of 64 digits", digest)
		}
		return nil
	})
	if m := p.Want(200, "GET", "/models", "", nil).List(t)[0]; m["external"] != nil {
		t.Errorf("a model of the repository: got %v, want it without external", m)
	}

	p.Want(200, "PUT", "/promotion-policies/churn-model", controlplanetest.Operator, `{"metric":"auc","operator":"gte","threshold":0.8}`)
	gate := p.Want(200, "GET", "/promotions/Churn-Model/gate", controlplanetest.Reader, nil).Object(t)
	if policy := gate["policy"].(map[string]any); policy["allow"] != true {
		t.Errorf("gate: got %v, want a policy that allows it", gate)
	}
	out := p.Want(200, "POST", "/promotions", controlplanetest.Operator, `{"model":"churn-model"}`).Object(t)
	p.Want(200, "POST", "/promotions/"+out["id"].(string)+"/approve", controlplanetest.Approver, nil)
	testenv.Eventually(t, 20*time.Second, func() error {
		if got := p.Tracker.Holder("Churn-Model", "Production"); got != v {
			return fmt.Errorf("Production is version %q, want %s", got, v)
		}
		return nil
	})
	history := p.Want(200, "GET", "/alias-history?model=churn-model&alias=Production", controlplanetest.Reader, nil).Object(t)["items"].([]any)
	if len(history) != 1 || history[0].(map[string]any)["via"] != "promotion" {
		t.Errorf(`alias history %v; want len(history) == 1 && history[0].(map[string]any)["via"] == "promotion"`, history)
	}

	r := p.Refused(400, "unknown_model", "POST", "/retrain", controlplanetest.Operator, `{"model_name":"Churn-Model","dataset_name":"x"}`)
	if !strings.Contains(string(r.Body), "no definition") {
		t.Errorf("retrain: got %s, want that no definition exists", r.Body)
	}
	fresh := p.Want(200, "GET", "/modelrepo/status", controlplanetest.Reader, nil).Object(t)["models"].([]any)
	if !slices.ContainsFunc(fresh, func(m any) bool {
		row := m.(map[string]any)
		return row["model_id"] == "CHURN-MODEL" && row["status"] == "no_definition"
	}) {
		t.Errorf(`freshness %v; want slices.ContainsFunc(fresh, func(m any) bool { row := m.(map[string]any) return row["model_id"] == "CHURN-MODEL" && row["status"] == "no_definition" })`, fresh)
	}
	if alerts := p.Want(200, "GET", "/alerts", controlplanetest.Reader, nil).Object(t)["items"].([]any); len(alerts) != 0 {
		t.Errorf("got alerts %v, want none: being external is no fault", alerts)
	}
	p.Want(200, "POST", "/costs", controlplanetest.Trainer, `{"model":"churn-model","version":"1","scheduler":"mock","job_id":"mock-1"}`)
}

func TestCostsOfAnUnknownModel(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	body := func(model string) string {
		return `{"model":"` + model + `","version":"1","scheduler":"slurm","job_id":"1","gpu_hours":1,"cpu_hours":1}`
	}
	p.Refused(404, "model_not_found", "POST", "/costs", controlplanetest.Trainer, body("NOPE"))
	p.Tracker.Add("nope", controlplanetest.Version{}) // too new to have been read
	p.Want(200, "POST", "/costs", controlplanetest.Trainer, body("NOPE"))
	p.Tracker.Set(controlplanetest.Down)
	p.Want(200, "POST", "/costs", controlplanetest.Trainer, body("JPCP"))
	p.Refused(502, "tracker_unreachable", "POST", "/costs", controlplanetest.Trainer, body("NEWER"))
}

// A model that was just logged can be given a policy immediately, on any replica: the tracker is queried.
func TestNewExternalModelIsKnownAtOnce(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	const policy = `{"metric":"auc","operator":"gte","threshold":0.8}`
	p.Refused(404, "model_not_found", "PUT", "/promotion-policies/late-model", controlplanetest.Operator, policy)
	p.Tracker.Add("Late-Model", controlplanetest.Version{Metrics: map[string]any{"auc": 0.9}})
	testenv.Eventually(t, 5*time.Second, func() error { // a second after the query for the previous name
		if r := p.Call("PUT", "/promotion-policies/late-model", controlplanetest.Operator, policy); r.Status != 200 {
			return fmt.Errorf("policy: got %d %s, want 200", r.Status, r.Body)
		}
		return nil
	})
}
