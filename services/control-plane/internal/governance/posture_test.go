package governance_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

type control struct{ status, evidence, function, title string }

func readPosture(t *testing.T, p *controlplanetest.Plane, bearer string) map[string]control {
	t.Helper()
	doc := p.Want(200, "GET", "/governance/posture", bearer, nil).Object(t)
	out, satisfied := map[string]control{}, 0.0
	for _, v := range doc["controls"].([]any) {
		c := v.(map[string]any)
		out[c["control"].(string)] = control{c["status"].(string), fmt.Sprint(c["evidence"]), c["function"].(string), c["title"].(string)}
		if c["status"] == "satisfied" {
			satisfied++
		}
	}
	if doc["total"] != 4.0 || len(out) != 4 || doc["satisfied"] != satisfied {
		t.Fatalf(`posture %v; want doc["total"] == 4.0 && len(out) == 4 && doc["satisfied"] == satisfied`, doc)
	}
	return out
}

func wantControl(t *testing.T, p *controlplanetest.Plane, id, status, evidence string) {
	t.Helper()
	if c := readPosture(t, p, controlplanetest.Reader)[id]; c.status != status || !strings.Contains(c.evidence, evidence) {
		t.Errorf("%s is %s (%s), want %s (%s)", id, c.status, c.evidence, status, evidence)
	}
}

// Without subjects there is no evidence.
func TestPostureWithoutEvidence(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	got := readPosture(t, p, controlplanetest.Foreign)
	for id, function := range map[string]string{"GOVERN-1.1": "GOVERN", "MAP-1.1": "MAP", "MEASURE-2.1": "MEASURE", "MANAGE-4.1": "MANAGE"} {
		if c := got[id]; c.function != function || c.title == "" || c.evidence == "[]" {
			t.Errorf(`%s: %+v; want c.function == function && c.title != "" && c.evidence != "[]"`, id, c)
		}
		if c := got[id]; id != "GOVERN-1.1" && (c.status != "gap" || !strings.Contains(c.evidence, "nothing to judge")) {
			t.Errorf(`%s: %+v; want (id == "GOVERN-1.1" || !c.status != "gap" || !strings.Contains(c.evidence, "nothing to judge"))`, id, c)
		}
	}
}

func TestPostureOfServedModels(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(controlplanetest.Samples())); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "models", "power_consumption_prediction", "JPCP", "README.md")); err != nil {
		t.Fatal(err)
	}
	p := controlplanetest.Start(t, "MODELREPO_DIR="+dir)
	serve := func(model, metric string, value float64) string {
		t.Helper()
		v := p.Tracker.Add(strings.ToLower(model), controlplanetest.Good(metric, value))
		p.Report(model, v)
		p.Want(200, "POST", "/promotions/"+p.PendingPromotion(model)+"/approve", controlplanetest.Operator, nil)
		return v
	}
	serve("JPCP", "rmse", 12)
	wantControl(t, p, "MAP-1.1", "gap", "JPCP version 1: not classified")
	wantControl(t, p, "MEASURE-2.1", "gap", "JPCP: no card")
	p.Want(200, "PUT", "/compliance/jpcp/1", controlplanetest.Operator, `{"riskClass":"high"}`)
	p.Want(200, "PUT", "/model-cards/jpcp", controlplanetest.Operator, `{"markdown":"# JPCP"}`)
	wantControl(t, p, "MAP-1.1", "satisfied", "JPCP version 1: high")
	wantControl(t, p, "MEASURE-2.1", "satisfied", "JPCP: a card")
	// A classification covers one version: the next one is not classified.
	serve("JPCP", "rmse", 11)
	wantControl(t, p, "MAP-1.1", "gap", "JPCP version 2: not classified")
	p.Want(200, "PUT", "/compliance/jpcp/2", controlplanetest.Operator, `{"riskClass":"limited"}`)
	serve("MACK", "accuracy", 0.95)
	wantControl(t, p, "MAP-1.1", "partial", "MACK version 1: not classified")
	wantControl(t, p, "MEASURE-2.1", "satisfied", "MACK: a README in the model repository")
	// Records of another tenant are no evidence here; the platform's are.
	if c := readPosture(t, p, controlplanetest.Foreign); c["MAP-1.1"].status != "gap" || c["MEASURE-2.1"].status != "partial" {
		t.Errorf(`foreign: %+v; want c["MAP-1.1"].status == "gap" && c["MEASURE-2.1"].status == "partial"`, c)
	}
	p.SQL("update control_plane.compliance set tenant = 'platform'")
	if c := readPosture(t, p, controlplanetest.Foreign); c["MAP-1.1"].status != "partial" {
		t.Errorf(`foreign: %+v; want c["MAP-1.1"].status == "partial"`, c)
	}
}

func TestPostureOfRuns(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "MODELREPO_WEBHOOK_SECRET=a-secret-of-the-forge")
	p.AwaitTarget()
	p.Notice("JPCP", "c0ffee1")
	p.Want(200, "POST", "/approve/JPCP", controlplanetest.Operator, nil)
	wantControl(t, p, "MANAGE-4.1", "satisfied", "1 approved, 0 under a standing authorisation, 0 neither")
	// A push that trains directly is covered by the setting that allows it.
	p.Want(200, "PUT", "/modelrepo/config", controlplanetest.Operator, `{"auto_retrain":true,"gate":"direct"}`)
	p.Want(200, "POST", "/webhooks/modelrepo/forge-a", "", map[string]any{
		"ref": "refs/heads/main", "checkout_sha": strings.Repeat("1", 40), "total_commits_count": 1,
		"commits": []any{map[string]any{"id": strings.Repeat("1", 40), "modified": []string{"models/performance_prediction/MACK/train.py"}}},
	}, "X-Gitlab-Token", "a-secret-of-the-forge")
	testenv.Eventually(t, 20*time.Second, func() error {
		if c := readPosture(t, p, controlplanetest.Reader)["MANAGE-4.1"]; c.status != "satisfied" || !strings.Contains(c.evidence, "1 approved, 1 under a standing authorisation, 0 neither") {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
	run := p.Want(200, "POST", "/retrain", controlplanetest.Operator, `{"model_name":"MCBOUND","dataset_name":"JobEmbeddings"}`).Object(t)["flow_run_id"].(string)
	wantControl(t, p, "MANAGE-4.1", "partial", "run "+run+" of MCBOUND, started by operator: neither")
	if c := readPosture(t, p, controlplanetest.Foreign)["MANAGE-4.1"]; c.status != "gap" || !strings.Contains(c.evidence, "nothing to judge") {
		t.Errorf(`foreign: %+v; want c.status == "gap" && strings.Contains(c.evidence, "nothing to judge")`, c)
	}
	p.SQL("update control_plane.runs set dispatched_at = now() - interval '91 days' where flow_run_id <> $1", run)
	wantControl(t, p, "MANAGE-4.1", "gap", "1 runs since")
}

func TestPostureOfLedger(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	p.Want(200, "PUT", "/compliance/jpcp/1", controlplanetest.Operator, `{"riskClass":"high"}`)
	testenv.Eventually(t, 30*time.Second, func() error {
		for _, tenant := range []string{"default", "platform"} {
			p.Want(200, "GET", "/audit/verify?tenant="+tenant, controlplanetest.Reader, nil)
		}
		c := readPosture(t, p, controlplanetest.Reader)["GOVERN-1.1"]
		if c.status != "satisfied" || !strings.Contains(c.evidence, "chain default: ") || !strings.Contains(c.evidence, "chain platform: ") {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
	p.SQL("update control_plane.audit_verdicts set verified_at = now() - interval '4 hours' where tenant = 'default'")
	wantControl(t, p, "GOVERN-1.1", "partial", "which is too long ago")
	// An altered chain is no evidence.
	p.SQL("alter table control_plane.audit_events disable trigger audit_events_append_only")
	p.SQL("update control_plane.audit_events set actor = 'nobody' where tenant = 'default' and seq = 1")
	p.Want(200, "GET", "/audit/verify?tenant=default", controlplanetest.Reader, nil)
	wantControl(t, p, "GOVERN-1.1", "partial", "chain default: broken at entry 1 (hash)")
}
