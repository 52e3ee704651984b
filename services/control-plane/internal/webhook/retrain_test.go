package webhook_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

const (
	powerFile = "models/power_consumption_prediction/JPCP/model.yaml"
	classFile = "models/performance_prediction/RuntimeClass/model.yaml"
)

// With auto_retrain and the gate approval a push requests training of the models it touched, whatever becomes stale; a
// newer push supersedes it.
func TestAutoRetrainByApproval(t *testing.T) {
	t.Parallel()
	p := startWithSecret(t)
	p.AwaitTarget()
	if out := deliverA(p, sampleA(t, pushA(strings.Repeat("0a", 20), classFile))); len(stringsOf(out["approvals_created"])) != 0 {
		t.Errorf(`off: %v; want len(stringsOf(out["approvals_created"])) == 0`, out)
	}
	putConfig(p, parsePayload{"auto_retrain": true})
	out := deliverA(p, sampleA(t, nil))
	ids := stringsOf(out["approvals_created"])
	if len(ids) != 1 || len(stringsOf(out["models_marked_stale"])) != len(everyModel) || len(stringsOf(out["retrain_triggered"])) != 0 {
		t.Fatalf(`on: %v; want len(ids) == 1 && len(stringsOf(out["models_marked_stale"])) == len(everyModel) && len(stringsOf(out["retrain_triggered"])) == 0`, out)
	}
	a := p.Approval(ids[0])
	if a["model_id"] != "RUNTIMECLASS" || a["status"] != "pending" || a["origin"] != "modelrepo" || a["commit_sha"] != headA ||
		a["requested_by"] != "system:modelrepo" || a["tenant"] != "default" || !strings.HasPrefix(a["commit_msg"].(string), "Fix a typing error") ||
		!slices.Contains(stringsOf(a["changed_files"]), classFile) {
		t.Errorf(`approval %v; want a["model_id"] == "RUNTIMECLASS" && a["status"] == "pending" && a["origin"] == "modelrepo" && a["commit_sha"] == headA && a["requested_by"] == "system:modelrepo" && …`, a)
	}
	newer := deliverA(p, sampleA(t, pushA(strings.Repeat("0b", 20), classFile, powerFile)))
	if len(stringsOf(newer["approvals_created"])) != 2 {
		t.Errorf(`newer: %v; want len(stringsOf(newer["approvals_created"])) == 2`, newer)
	}
	if a := p.Approval(ids[0]); a["status"] != "expired" || !strings.HasPrefix(a["reject_reason"].(string), "superseded by") {
		t.Errorf(`superseded: %v; want a["status"] == "expired" && strings.HasPrefix(a["reject_reason"].(string), "superseded by")`, a)
	}
	// Unknown files request training of every model.
	unknown := deliverA(p, sampleA(t, parsePayload{"checkout_sha": strings.Repeat("0c", 20), "total_commits_count": 90}))
	if len(stringsOf(unknown["approvals_created"])) != len(everyModel) {
		t.Errorf(`unknown files: %v; want len(stringsOf(unknown["approvals_created"])) == len(everyModel)`, unknown)
	}
	// Approving one trains from the commit that was pushed.
	run := p.Want(200, "POST", "/approve/JPCP", controlplanetest.Operator, nil).Object(t)["flow_run_id"]
	if r := p.Want(200, "GET", "/retrain/"+run.(string), controlplanetest.Operator, nil).Object(t); r["commit_sha"] != strings.Repeat("0c", 20) {
		t.Errorf(`run %v; want r["commit_sha"] == strings.Repeat("0c", 20)`, r)
	}
	if n := len(p.Orchestrator.All()); n != 1 {
		t.Errorf("%d runs; want 1", n)
	}
}

// With the gate direct a push trains the models it touched immediately, under a key that names commit, model and data
// set.
func TestAutoRetrainDirect(t *testing.T) {
	t.Parallel()
	p := startWithSecret(t)
	p.AwaitTarget()
	putConfig(p, parsePayload{"auto_retrain": true, "gate": "direct"})
	out := deliverA(p, sampleA(t, pushA(headA, classFile, powerFile)))
	if !slices.Equal(stringsOf(out["retrain_triggered"]), []string{"JPCP", "RUNTIMECLASS"}) || len(stringsOf(out["approvals_created"])) != 0 {
		t.Fatalf(`push: %v; want slices.Equal(stringsOf(out["retrain_triggered"]), []string{"JPCP", "RUNTIMECLASS"}) && len(stringsOf(out["approvals_created"])) == 0`, out)
	}
	runs := p.Want(200, "GET", "/runs", controlplanetest.Reader, nil).Object(t)["items"].([]any)
	if len(runs) != 2 {
		t.Fatalf("runs %v; want len(runs) == 2", runs)
	}
	for _, r := range runs {
		if r := r.(parsePayload); r["origin"] != "modelrepo" || r["commit_sha"] != headA {
			t.Errorf(`run %v; want r["origin"] == "modelrepo" && r["commit_sha"] == headA`, r)
		}
	}
	if m := freshnessOf(p, "JPCP"); m["status"] != "stale" || m["retrain_triggered_at"] == nil || m["active_run"] == nil {
		t.Errorf(`dispatched: %v; want m["status"] == "stale" && m["retrain_triggered_at"] != nil && m["active_run"] != nil`, m)
	}
	for _, a := range p.Audits("retrain.dispatched") {
		if a["actor"] != "system:modelrepo" || a["tenant"] != "default" || a["outcome"] != "ok" {
			t.Errorf(`audit %v; want a["actor"] == "system:modelrepo" && a["tenant"] == "default" && a["outcome"] == "ok"`, a)
		}
	}
	if again := deliverA(p, sampleA(t, pushA(headA, classFile, powerFile))); again["duplicate"] != true || len(stringsOf(again["retrain_triggered"])) != 0 || len(p.Orchestrator.All()) != 2 {
		t.Errorf(`again: %v; want again["duplicate"] == true && len(stringsOf(again["retrain_triggered"])) == 0 && len(p.Orchestrator.All()) == 2`, again)
	}
}

// A failed dispatch of one model does not stop the others, and none makes the webhook fail.
func TestFailuresAreIndependent(t *testing.T) {
	t.Parallel()
	p := startWithSecret(t)
	p.AwaitTarget()
	putConfig(p, parsePayload{"auto_retrain": true, "gate": "direct"})
	p.Orchestrator.Mu.Lock()
	p.Orchestrator.Refuses = "JPCP"
	p.Orchestrator.Mu.Unlock()
	out := deliverA(p, sampleA(t, pushA(headA, classFile, powerFile)))
	if !slices.Equal(stringsOf(out["retrain_triggered"]), []string{"RUNTIMECLASS"}) {
		t.Fatalf(`push: %v; want slices.Equal(stringsOf(out["retrain_triggered"]), []string{"RUNTIMECLASS"})`, out)
	}
	failed := p.Audits("modelrepo.retrain")
	if len(failed) != 1 || failed[0]["outcome"] != "failed" || failed[0]["target"] != "model:JPCP" ||
		failed[0]["details"].(parsePayload)["code"] != "orchestrator_rejected" || failed[0]["details"].(parsePayload)["commit_sha"] != headA {
		t.Errorf(`audit %v; want len(failed) == 1 && failed[0]["outcome"] == "failed" && failed[0]["target"] == "model:JPCP" && failed[0]["details"].(parsePayload)["code"] == "orchestrator_rejected" && …`, failed)
	}
	p.Orchestrator.Set(controlplanetest.Down)
	next := deliverA(p, sampleA(t, pushA(strings.Repeat("0d", 20), classFile)))
	if len(stringsOf(next["retrain_triggered"])) != 0 || next["event_id"] == nil || freshnessOf(p, "RUNTIMECLASS")["status"] != "stale" {
		t.Errorf(`orchestrator down: %v; want len(stringsOf(next["retrain_triggered"])) == 0 && next["event_id"] != nil && freshnessOf(p, "RUNTIMECLASS")["status"] == "stale"`, next)
	}
	if failed := p.Audits("modelrepo.retrain"); len(failed) != 2 || failed[1]["details"].(parsePayload)["code"] != "orchestrator_unreachable" {
		t.Errorf(`audit %v; want len(failed) == 2 && failed[1]["details"].(parsePayload)["code"] == "orchestrator_unreachable"`, failed)
	}
}

// The leader finishes the work of a push whose process died, except for models that a later push touched.
func TestWorkIsResumed(t *testing.T) {
	t.Parallel()
	p := startWithSecret(t)
	p.AwaitTarget()
	// The state left by a process that dies between the transaction and its dispatches.
	p.SQL(`insert into control_plane.pushes (commit_sha, branch, pushed_by, source, touched, touched_all, dispatch, trigger_ci, work_until, received_at)
		values ($1, 'main', 'ada', 'webhook', '{JPCP,MACK}', false, true, true, now() - interval '1 second', now()),
		       ($2, 'main', 'ada', 'webhook', '{MACK}', false, false, false, null, now())`, headA, headB)
	testenv.Eventually(t, 20*time.Second, func() error {
		if runs := p.Orchestrator.All(); len(runs) != 1 || runs[0].Parameters["model_name"] != "JPCP" || runs[0].Parameters["commit_sha"] != headA {
			return fmt.Errorf("runs %v", runs)
		}
		return nil
	})
	testenv.Eventually(t, 20*time.Second, func() error {
		if n := p.Count(`select count(*) from control_plane.pushes where work_until is not null or dispatch`); n != 0 {
			return fmt.Errorf("%d pushes with work left", n)
		}
		return nil
	})
	if n := len(p.Orchestrator.All()); n != 1 {
		t.Errorf("%d runs; want 1", n)
	}
}

// A dispatch that finds the platform busy is retried later, once.
func TestBusyDispatchIsDoneLater(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Neighbours(t, "MODELREPO_WEBHOOK_SECRET="+secret)
	deployment := p.Orchestrator.Deployment
	p.Orchestrator.Deployment = nil
	p.Serve()
	putConfig(p, parsePayload{"auto_retrain": true, "gate": "direct"})
	out := deliverA(p, sampleA(t, pushA(headA, powerFile)))
	if len(stringsOf(out["retrain_triggered"])) != 0 {
		t.Fatalf(`without a deployment: %v; want len(stringsOf(out["retrain_triggered"])) == 0`, out)
	}
	if failed := p.Audits("modelrepo.retrain"); len(failed) != 0 {
		t.Errorf("given up: %v; want len(failed) == 0", failed)
	}
	p.Orchestrator.Mu.Lock()
	p.Orchestrator.Deployment = deployment
	p.Orchestrator.Mu.Unlock()
	testenv.Eventually(t, 30*time.Second, func() error {
		if n := len(p.Orchestrator.All()); n != 1 {
			return fmt.Errorf("%d runs", n)
		}
		return nil
	})
}

// A repeated delivery is recognised for 30 days.
func TestDeliveriesAreForgotten(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Neighbours(t, "MODELREPO_WEBHOOK_SECRET="+secret)
	stop := p.Serve()
	first := deliverA(p, sampleA(t, nil), "webhook-id", "old")
	deliverA(p, sampleA(t, nil), "webhook-id", "young")
	stop()
	p.SQL(`update control_plane.push_deliveries set received_at = now() - case delivery_id when 'old' then interval '30 days 1 minute' else interval '29 days 23 hours' end`)
	p.Serve()
	testenv.Eventually(t, 20*time.Second, func() error {
		if n := p.Count(`select count(*) from control_plane.push_deliveries`); n != 1 {
			return fmt.Errorf("%d deliveries", n)
		}
		return nil
	})
	if again := deliverA(p, sampleA(t, nil), "webhook-id", "young"); again["reason"] != "duplicate delivery" {
		t.Errorf(`29 days later: %v; want again["reason"] == "duplicate delivery"`, again)
	}
	if again := deliverA(p, sampleA(t, nil), "webhook-id", "old"); again["duplicate"] != true || again["reason"] != nil || again["event_id"] != first["event_id"] {
		t.Errorf("30 days later: got %v, want a duplicate of the one record that there is", again)
	}
}

// ci is a forge that runs pipelines on request.
type ci struct {
	*httptest.Server
	asked  chan url.Values
	answer atomic.Pointer[http.HandlerFunc]
}

func (f *ci) answers(with http.HandlerFunc) { f.answer.Store(&with) }

func newCI(t *testing.T) *ci {
	f := &ci{asked: make(chan url.Values, 100)}
	f.answers(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"id":257,"sha":"` + headA + `","ref":"main","status":"created","web_url":"https://forge.example/p/257"}`))
	})
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.EscapedPath() != "/api/v4/projects/site%2Fmodels/trigger/pipeline" || r.ParseForm() != nil {
			http.NotFound(w, r)
			return
		}
		f.asked <- r.PostForm
		(*f.answer.Load())(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

const triggerToken = "glptt-0123456789abcdef"

// A new head triggers the pipeline; its outcome never fails the webhook.
func TestPipelineIsTriggered(t *testing.T) {
	t.Parallel()
	f := newCI(t)
	p := startWithSecret(t, "GITLAB_URL="+f.URL+"/", "AI_PROD_GITLAB_PROJECT_ID=site/models", "AI_PROD_PIPELINE_TRIGGER_TOKEN="+triggerToken)
	if out := deliverA(p, sampleA(t, nil)); out["ci_pipeline_triggered"] != true {
		t.Fatalf(`push: %v; want out["ci_pipeline_triggered"] == true`, out)
	}
	form := <-f.asked
	if form.Get("token") != triggerToken || form.Get("ref") != "main" || form.Get("variables[MODELREPO_COMMIT]") != headA {
		t.Errorf(`asked %v; want form.Get("token") == triggerToken && form.Get("ref") == "main" && form.Get("variables[MODELREPO_COMMIT]") == headA`, form)
	}
	told := p.Audits("modelrepo.ci_triggered")
	if len(told) != 1 || told[0]["outcome"] != "ok" || told[0]["details"].(parsePayload)["pipeline_id"] != 257.0 || told[0]["tenant"] != "default" {
		t.Errorf(`audit %v; want len(told) == 1 && told[0]["outcome"] == "ok" && told[0]["details"].(parsePayload)["pipeline_id"] == 257.0 && told[0]["tenant"] == "default"`, told)
	}
	if out := deliverA(p, sampleA(t, nil)); out["duplicate"] != true || out["ci_pipeline_triggered"] != false {
		t.Errorf(`known head: %v; want out["duplicate"] == true && out["ci_pipeline_triggered"] == false`, out)
	}
	for i, answer := range []http.HandlerFunc{
		func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"message":"404"}`, http.StatusNotFound) },
		func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) },
		func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/elsewhere", http.StatusTemporaryRedirect)
		},
	} {
		f.answers(answer)
		out := deliverA(p, sampleA(t, parsePayload{"checkout_sha": fmt.Sprintf("%040x", i+1)}))
		if out["ci_pipeline_triggered"] != false || out["event_id"] == nil {
			t.Errorf(`answer %d: %v; want out["ci_pipeline_triggered"] == false && out["event_id"] != nil`, i, out)
		}
	}
	told = p.Audits("modelrepo.ci_triggered")
	if len(told) != 5 || told[4]["outcome"] != "failed" {
		t.Errorf(`audit %v; want len(told) == 5 && told[4]["outcome"] == "failed"`, told)
	}
	if strings.Contains(controlplanetest.MustJSON(told), triggerToken) {
		t.Error("the ledger holds the token")
	}
}
