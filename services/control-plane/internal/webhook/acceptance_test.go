package webhook_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// Row 8: a push of three commits to forge A makes every model stale at the head; repeating the delivery and a push to
// feature/main are skipped.
func TestRow08(t *testing.T) {
	t.Parallel()
	p := startWithSecret(t)
	body := sampleA(t, nil)
	delivery := []string{"X-Forge-A-Token", secret, "X-Gitlab-Event", "Push Hook", "X-Gitlab-Event-UUID", "13792a34-cac6-4fda-95a8-c58e00a3954e"}
	first := p.Want(200, "POST", pathA, "", body, delivery...).Object(t)
	if !slices.Equal(stringsOf(first["models_marked_stale"]), everyModel) || first["duplicate"] != false || first["ci_pipeline_triggered"] != false ||
		len(stringsOf(first["retrain_triggered"])) != 0 || len(stringsOf(first["approvals_created"])) != 0 {
		t.Fatalf(`push: %v; want slices.Equal(stringsOf(first["models_marked_stale"]), everyModel) && first["duplicate"] == false && first["ci_pipeline_triggered"] == false && …`, first)
	}
	for _, id := range everyModel {
		m := freshnessOf(p, id)
		if m["status"] != "stale" || m["latest_modelrepo_commit"] != headA || m["stale_since"] == nil || m["last_retrain_commit"] != nil ||
			m["touched_by_last_push"] != (id == "RUNTIMECLASS") {
			t.Errorf(`freshness %v; want m["status"] == "stale" && m["latest_modelrepo_commit"] == headA && m["stale_since"] != nil && m["last_retrain_commit"] == nil && …`, m)
		}
	}
	last := modelrepoStatus(p)["last_event"].(parsePayload)
	if last["commit_sha"] != headA || last["source"] != "webhook" || !strings.HasSuffix(last["timestamp"].(string), "Z") {
		t.Errorf(`last event %v; want last["commit_sha"] == headA && last["source"] == "webhook" && strings.HasSuffix(last["timestamp"].(string), "Z")`, last)
	}

	again := p.Want(200, "POST", pathA, "", body, delivery...).Object(t)
	if len(again) != 3 || again["skipped"] != true || again["reason"] != "duplicate delivery" || again["event_id"] != first["event_id"] {
		t.Errorf(`repeated: %v; want len(again) == 3 && again["skipped"] == true && again["reason"] == "duplicate delivery" && again["event_id"] == first["event_id"]`, again)
	}
	other := deliverA(p, sampleA(t, parsePayload{"ref": "refs/heads/feature/main"}))
	if len(other) != 2 || other["skipped"] != true || other["reason"] != "branch not watched" {
		t.Errorf(`feature/main: %v; want len(other) == 2 && other["skipped"] == true && other["reason"] == "branch not watched"`, other)
	}

	list := listEvents(p)
	if len(list) != 1 {
		t.Fatalf("events %v; want len(list) == 1", list)
	}
	e := list[0]
	if e["id"] != first["event_id"] || e["commit_sha"] != headA || e["branch"] != "main" || e["pushed_by"] != "Ada Lovelace" ||
		e["source"] != "webhook" || e["delivery_id"] != "13792a34-cac6-4fda-95a8-c58e00a3954e" {
		t.Errorf(`event %v; want e["id"] == first["event_id"] && e["commit_sha"] == headA && e["branch"] == "main" && e["pushed_by"] == "Ada Lovelace" && e["source"] == "webhook" && …`, e)
	}
	told := p.Events("event.push")
	if len(told) != 1 || told[0].Tenant != "platform" || told[0].Data["commit_sha"] != headA || told[0].Data["branch"] != "main" ||
		told[0].Data["source"] != "webhook" || told[0].Data["event_id"] != first["event_id"] {
		t.Errorf(`told %v; want len(told) == 1 && told[0].Tenant == "platform" && told[0].Data["commit_sha"] == headA && told[0].Data["branch"] == "main" && told[0].Data["source"] == "webhook" && …`, told)
	}
	moves := p.Events("event.freshness_changed")
	if len(moves) != len(everyModel) || moves[0].Tenant != "platform" || moves[0].Data["previous"] != "unknown" || moves[0].Data["status"] != "stale" {
		t.Errorf(`moves %v; want len(moves) == len(everyModel) && moves[0].Tenant == "platform" && moves[0].Data["previous"] == "unknown" && moves[0].Data["status"] == "stale"`, moves)
	}
	if a := p.Audits("modelrepo.pushed"); len(a) != 1 || a[0]["actor"] != "system:modelrepo" || a[0]["tenant"] != "platform" {
		t.Errorf(`audit %v; want len(a) == 1 && a[0]["actor"] == "system:modelrepo" && a[0]["tenant"] == "platform"`, a)
	}
	metrics := string(p.Want(200, "GET", "/metrics", "", nil).Body)
	for _, line := range []string{`platform_webhook_total{forge="forge-a",outcome="accepted"} 1`, `platform_webhook_total{forge="forge-a",outcome="skipped"} 2`} {
		if !strings.Contains(metrics, line) {
			t.Errorf("metrics lack %s; want strings.Contains(metrics, line)", line)
		}
	}
}

// Row 9: under stale_scope touched a push to one model makes it stale; a failed
// run leaves it so, a completed one makes it current.
func TestRow09(t *testing.T) {
	t.Parallel()
	p := startWithSecret(t)
	p.AwaitTarget()
	putConfig(p, parsePayload{"stale_scope": "touched"})
	out := deliverA(p, sampleA(t, nil))
	if !slices.Equal(stringsOf(out["models_marked_stale"]), []string{"RUNTIMECLASS"}) {
		t.Fatalf(`push: %v; want slices.Equal(stringsOf(out["models_marked_stale"]), []string{"RUNTIMECLASS"})`, out)
	}
	for _, id := range everyModel {
		want := "unknown"
		if id == "RUNTIMECLASS" {
			want = "stale"
		}
		if m := freshnessOf(p, id); m["status"] != want {
			t.Errorf("%v, want %s", m, want)
		}
	}
	since := freshnessOf(p, "RUNTIMECLASS")["stale_since"]

	failing := dispatchApproved(p, "RUNTIMECLASS", headA)
	if m := freshnessOf(p, "RUNTIMECLASS"); m["active_run"] != failing || m["retrain_triggered_at"] == nil || m["status"] != "stale" {
		t.Errorf(`under way: %v; want m["active_run"] == failing && m["retrain_triggered_at"] != nil && m["status"] == "stale"`, m)
	}
	p.Orchestrator.State(failing, "FAILED", "no data")
	testenv.Eventually(t, 20*time.Second, func() error {
		if m := freshnessOf(p, "RUNTIMECLASS"); m["active_run"] != nil {
			return fmt.Errorf("still %v", m)
		}
		return nil
	})
	if m := freshnessOf(p, "RUNTIMECLASS"); m["status"] != "stale" || m["stale_since"] != since || m["last_retrain_commit"] != nil {
		t.Errorf(`after a failed run: %v; want m["status"] == "stale" && m["stale_since"] == since && m["last_retrain_commit"] == nil`, m)
	}

	completeTraining(p, "RUNTIMECLASS", headA)
	m := freshnessOf(p, "RUNTIMECLASS")
	if m["last_retrain_commit"] != headA || m["trained_from_commit"] != headA || m["latest_modelrepo_commit"] != headA || m["stale_since"] != nil {
		t.Errorf(`after a completed run: %v; want m["last_retrain_commit"] == headA && m["trained_from_commit"] == headA && m["latest_modelrepo_commit"] == headA && m["stale_since"] == nil`, m)
	}
	moves := p.Events("event.freshness_changed")
	if len(moves) != 2 || moves[1].Data["model"] != "RUNTIMECLASS" || moves[1].Data["previous"] != "stale" || moves[1].Data["status"] != "current" {
		t.Errorf(`moves %v; want len(moves) == 2 && moves[1].Data["model"] == "RUNTIMECLASS" && moves[1].Data["previous"] == "stale" && moves[1].Data["status"] == "current"`, moves)
	}
}

// dispatchApproved approves a change of the model, and returns the run.
func dispatchApproved(p *controlplanetest.Plane, model, commit string) string {
	p.T.Helper()
	p.Notice(model, commit)
	return p.Want(200, "POST", "/approve/"+model, controlplanetest.Operator, nil).Object(p.T)["flow_run_id"].(string)
}

// completeTraining completes a run of the model on the commit and waits until that is known.
func completeTraining(p *controlplanetest.Plane, model, commit string) {
	p.T.Helper()
	id := dispatchApproved(p, model, commit)
	version := p.Tracker.Add(strings.ToLower(model), controlplanetest.Version{
		Metrics: map[string]any{"accuracy": 0.1, "rmse": 1e6, "male": 9.0},
		RunTags: map[string]string{"prefect_flow_run_id": id, "modelrepo_commit": commit},
	})
	p.Want(200, "POST", "/versions", controlplanetest.Trainer, parsePayload{"model": model, "version": version, "flow_run_id": id})
	p.Orchestrator.State(id, "COMPLETED", "")
	testenv.Eventually(p.T, 20*time.Second, func() error {
		if m := freshnessOf(p, model); m["active_run"] != nil {
			return fmt.Errorf("still %v", m)
		}
		return nil
	})
}

// Row 10: an invalid proof is 401, an oversized body 413, an unset secret 503; and the order of these checks.
func TestRow10(t *testing.T) {
	t.Parallel()
	big := `{"ref":"` + strings.Repeat("x", 10<<20) + `"}`
	streamed := func() io.Reader { return io.MultiReader(strings.NewReader(big)) } // of unknown length
	exact := `{"ref":"` + strings.Repeat("x", 5<<20-len(`{"ref":""}`)) + `"}`

	p := startWithSecret(t)
	for _, path := range []string{pathA, pathB} {
		p.Refused(401, "invalid_webhook_proof", "POST", path, "", `{}`)
		p.Refused(401, "invalid_webhook_proof", "POST", path, "", `[`)        // the proof is checked before the form
		p.Refused(413, "body_too_large", "POST", path, "", big)               // and the size before the proof
		p.Refused(401, "invalid_webhook_proof", "POST", path, "", streamed()) // only the body would show it, and a stranger's is not read
	}
	p.Refused(413, "body_too_large", "POST", pathA, "", streamed(), headersA()...)
	p.Refused(413, "body_too_large", "POST", pathB, "", streamed(), headersB(t, big)...)
	p.Refused(413, "body_too_large", "POST", pathA, "", big, headersA()...)
	p.Refused(413, "body_too_large", "POST", pathB, "", big, headersB(t, big)...)
	p.Refused(413, "body_too_large", "POST", pathA, "", strings.Repeat(" ", 5<<20+1), headersA()...)
	if out := deliverA(p, exact); out["reason"] != "branch not watched" { // 5 MiB is not over 5 MiB
		t.Errorf(`5 MiB: %v; want out["reason"] == "branch not watched"`, out)
	}
	for _, body := range []string{``, `[`, `[]`, `"x"`, `7`, `null`, `{} {}`, `{"ref":"refs/heads/main","ref":"refs/heads/other"}`, "\xff\xfe{}"} {
		p.Refused(400, "malformed_payload", "POST", pathA, "", body, headersA()...)
		p.Refused(400, "malformed_payload", "POST", pathB, "", body, headersB(t, body)...)
	}
	if list := listEvents(p); len(list) != 0 {
		t.Errorf("events %v; want len(list) == 0", list)
	}

	closed := controlplanetest.Start(t)
	for _, path := range []string{pathA, pathB} {
		closed.Refused(503, "webhook_secret_missing", "POST", path, "", `{}`)
		closed.Refused(503, "webhook_secret_missing", "POST", path, "", `[`)
		closed.Refused(503, "webhook_secret_missing", "POST", path, "", io.MultiReader(strings.NewReader(`{}`)))
		closed.Refused(503, "webhook_secret_missing", "POST", path, "", `{}`, "X-Gitlab-Token", "")
		closed.Refused(413, "body_too_large", "POST", path, "", big)
		closed.Refused(503, "webhook_secret_missing", "POST", path, "", streamed())
	}
}
