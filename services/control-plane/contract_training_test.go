package controlplane_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
	"github.com/mlp-platform/platform/services/control-plane/internal/forge/forgetest"
)

type doc = map[string]any

// newSampleRepository returns the sample model repository under git, with an image, and its first commit.
func newSampleRepository(t *testing.T) (*forgetest.Project, string) {
	t.Helper()
	repo := forgetest.New(t)
	for _, dir := range []string{"models", "datasets", "registries"} {
		repo.Run(repo.Dir, "cp", "-r", filepath.Join(controlplanetest.Samples(), dir), ".")
	}
	repo.Git("add", ".")
	return repo, repo.Commit("first", map[string]string{jpcpImage: "\x89PNG\r\n\x1a\n0000"})
}

const jpcpImage = "models/power_consumption_prediction/JPCP/images/parity.png"

const approvalMembers = "id model_id status commit_sha commit_msg changed_files tenant requested_by resolved_by requested_at resolved_at prefect_run_id reject_reason " +
	"kind origin promotion_id? dataset_name? expires_at updated_at updated_by"

// pushPayload returns the payload of a push of one commit to forge A.
func pushPayload(sha string) doc {
	return doc{
		"ref": "refs/heads/main", "checkout_sha": sha, "after": sha, "user_name": "Ada", "total_commits_count": 1,
		"commits": []any{doc{"id": sha, "message": "change", "author": doc{"name": "Ada"}, "added": []string{}, "modified": []string{"models/power_consumption_prediction/JPCP/model.yaml"}, "removed": []string{}}},
	}
}

// hmacHex returns the signature header of forge B.
func hmacHex(body string) string {
	mac := hmac.New(sha256.New, []byte(hookSecret))
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

func commitSHA(n int) string { return fmt.Sprintf("%040x", n+1) }

// deliverPush pushes to forge A.
func deliverPush(p *controlplanetest.Plane, payload any) controlplanetest.Response {
	p.T.Helper()
	return p.Want(200, "POST", "/webhooks/modelrepo/forge-a", "", payload, "X-Forge-A-Token", hookSecret, "X-Gitlab-Event", "Push Hook", "X-Gitlab-Event-UUID", uuid.NewString())
}

// The routes of training runs, approvals, webhooks and the model repository.
func TestContractTrainingRoutes(t *testing.T) {
	t.Parallel()
	repo, first := newSampleRepository(t)
	p := startForWalk(t, "MODELREPO_DIR="+repo.Dir, "MODELREPO_POLL_SECONDS=0")
	p.AwaitTarget()
	row := func(name string, f func(t *testing.T, p *controlplanetest.Plane)) {
		t.Helper()
		t.Run(name, func(t *testing.T) { f(t, onSubtest(t, p)) })
	}
	row("GET /livez", func(t *testing.T, p *controlplanetest.Plane) {
		if d := decodeObject(t, p.Want(200, "GET", "/livez", "", nil), "status"); d["status"] != "alive" {
			t.Error(d, `want d["status"] == "alive"`)
		}
	})
	row("GET /readyz", func(t *testing.T, p *controlplanetest.Plane) {
		decodeObject(t, p.Want(200, "GET", "/readyz", "", nil), "status") // the 503 is a row of TestContractHealth
	})
	row("GET /ready", func(t *testing.T, p *controlplanetest.Plane) {
		if d := decodeObject(t, p.Want(200, "GET", "/ready", "", nil), "status"); d["status"] != "alive" {
			t.Error(d, `want d["status"] == "alive"`)
		}
	})
	row("GET /health", func(t *testing.T, p *controlplanetest.Plane) {
		decodeObject(t, p.Want(200, "GET", "/health", "", nil), "status prefect_api_url auth_configured models pending_approvals startup_checks poller runtime")
	})
	var run string
	row("POST /retrain", func(t *testing.T, p *controlplanetest.Plane) {
		body := doc{"model_name": "jpcp", "dataset_name": "jobembeddings", "parameters": doc{"depth": 3}}
		d := decodeObject(t, callWithScope(p, 200, "retrain", "POST", "/retrain", body), "flow_run_id deployment status_url parameters")
		run = d["flow_run_id"].(string)
		if d["deployment"] != "training_flow/platform-dispatch" || d["status_url"] != "/retrain/"+run {
			t.Error(d, `want d["deployment"] == "training_flow/platform-dispatch" && d["status_url"] == "/retrain/" + run`)
		}
		sent := p.Orchestrator.Bodies[0]
		if sent["model_name"] != "JPCP" || sent["dataset_cls_name"] != "JobEmbeddings" || sent["is_dummy"] != false {
			t.Errorf(`sent %v; want sent["model_name"] == "JPCP" && sent["dataset_cls_name"] == "JobEmbeddings" && sent["is_dummy"] == false`, sent)
		}
		for _, backend := range []string{"public_archive", "object_store", "dataplane", "local"} {
			p.Want(200, "POST", "/retrain", onlyScope("retrain"), doc{"model_name": "MACK", "dataset_name": "JobEmbeddings", "backend_name": backend, "is_dummy": true})
		}
		p.Refused(422, "validation_error", "POST", "/retrain", all, doc{"model_name": "MACK", "dataset_name": "JobEmbeddings", "backend_name": "tape"})
		for _, name := range []string{"model_name", "dataset_name", "dataset_cls_name", "is_dummy", "backend_name"} {
			p.Refused(422, "validation_error", "POST", "/retrain", all, doc{"model_name": "MACK", "dataset_name": "JobEmbeddings", "parameters": doc{name: "x"}})
		}
		expectUnknownKeyRefused(p, "POST", "/retrain", body)
		if a := p.Audits("retrain.requested"); len(a) != 5 || a[0]["actor"] != "only-retrain" || a[0]["target"] != "model:JPCP" {
			t.Errorf(`audit %v; want len(a) == 5 && a[0]["actor"] == "only-retrain" && a[0]["target"] == "model:JPCP"`, a)
		}
	})
	row("GET /retrain/{flow_run_id}", func(t *testing.T, p *controlplanetest.Plane) {
		d := decodeObject(t, callWithScope(p, 200, "read", "GET", "/retrain/"+run, nil),
			"flow_run_id state_type? state_name? is_terminal model_id? dataset_name? commit_sha? model_version? tracker_run_id? stale")
		if d["flow_run_id"] != run || d["is_terminal"] != false || d["model_id"] != "JPCP" || d["dataset_name"] != "JobEmbeddings" {
			t.Error(d, `want d["flow_run_id"] == run && d["is_terminal"] == false && d["model_id"] == "JPCP" && d["dataset_name"] == "JobEmbeddings"`)
		}
		p.Refused(404, "run_not_found", "GET", "/retrain/"+run, controlplanetest.Foreign, nil)
		theirs := p.Want(200, "POST", "/retrain", controlplanetest.Foreign, doc{"model_name": "JPCP", "dataset_name": "JobEmbeddings"}).Object(t)["flow_run_id"].(string)
		p.Refused(404, "run_not_found", "GET", "/retrain/"+theirs, all, nil)
		p.Want(200, "GET", "/retrain/"+theirs, controlplanetest.Legacy, nil)
		ended := map[string]string{}
		for _, state := range []string{"COMPLETED", "FAILED", "CANCELLED", "CRASHED"} {
			id := p.Want(200, "POST", "/retrain", all, doc{"model_name": "MCBound", "dataset_name": "JobEmbeddings"}).Object(t)["flow_run_id"].(string)
			p.Orchestrator.State(id, state, "")
			ended[id] = state
		}
		testenv.Eventually(t, 15*time.Second, func() error {
			for id, state := range ended {
				if d := p.Want(200, "GET", "/retrain/"+id, all, nil).Object(t); d["is_terminal"] != true || d["state_type"] != state {
					return fmt.Errorf("%v", d)
				}
			}
			return nil
		})
	})
	row("POST /retrain/{id}/cancel", func(t *testing.T, p *controlplanetest.Plane) {
		decodeObject(t, callWithScope(p, 202, "retrain", "POST", "/retrain/"+run+"/cancel", nil), "flow_run_id is_terminal")
	})
	row("POST /api/changes", func(t *testing.T, p *controlplanetest.Plane) {
		runs := len(p.Orchestrator.All())
		body := doc{"model_ids": []string{"jpcp", "Elsewhere"}, "commit_sha": first, "commit_msg": "why", "changed_files": []string{"a"}}
		d := decodeObject(t, callWithScope(p, 200, "changes", "POST", "/api/changes", body), "created existing superseded warnings")
		if len(d["created"].([]any)) != 2 || len(d["warnings"].([]any)) != 1 || len(p.Orchestrator.All()) != runs {
			t.Errorf(`%v, and %d new runs; want len(d["created"].([]any)) == 2 && len(d["warnings"].([]any)) == 1 && len(p.Orchestrator.All()) == runs`, d, len(p.Orchestrator.All())-runs)
		}
		again := p.Want(200, "POST", "/api/changes", onlyScope("changes"), body).Object(t)
		if len(again["created"].([]any)) != 0 || len(again["existing"].([]any)) != 2 {
			t.Errorf(`the same commit: %v; want len(again["created"].([]any)) == 0 && len(again["existing"].([]any)) == 2`, again)
		}
		body["commit_sha"] = "another"
		second := p.Want(200, "POST", "/api/changes", onlyScope("changes"), body).Object(t)
		if len(second["created"].([]any)) != 2 || len(second["superseded"].([]any)) != 2 {
			t.Errorf(`another commit: %v; want len(second["created"].([]any)) == 2 && len(second["superseded"].([]any)) == 2`, second)
		}
		old := p.Approval(d["created"].([]any)[0].(string))
		if old["status"] != "expired" || old["reject_reason"] != "superseded by "+second["created"].([]any)[0].(string) {
			t.Errorf(`superseded %v; want old["status"] == "expired" && old["reject_reason"] == "superseded by " + second["created"].([]any)[0].(string)`, old)
		}
		expectUnknownKeyRefused(p, "POST", "/api/changes", body)
		for _, actor := range []string{"tenant", "requested_by", "principal"} { // never taken from a body
			p.Refused(422, "validation_error", "POST", "/api/changes", all, doc{"model_ids": []string{"JPCP"}, "commit_sha": "x", actor: "other"})
		}
		if len(p.Events("approval.created")) != 4 || len(p.Audits("approval.created")) != 4 {
			t.Errorf(`%d events and %d facts of four records; want len(p.Events("approval.created")) == 4 && len(p.Audits("approval.created")) == 4`, len(p.Events("approval.created")), len(p.Audits("approval.created")))
		}
	})
	var record string
	row("GET /approvals", func(t *testing.T, p *controlplanetest.Plane) {
		list := decodeArray(t, callWithScope(p, 200, "read", "GET", "/approvals", nil), approvalMembers)
		if list[0]["tenant"] != "default" || list[0]["requested_by"] != "only-changes" || list[0]["kind"] != "retrain" || list[0]["origin"] != "ci" {
			t.Error(list[0], `want list[0]["tenant"] == "default" && list[0]["requested_by"] == "only-changes" && list[0]["kind"] == "retrain" && list[0]["origin"] == "ci"`)
		}
		for _, state := range []string{"pending", "approving", "approved", "rejected", "expired"} {
			for _, a := range p.Want(200, "GET", "/approvals?status="+state, all, nil).List(t) {
				if a["status"] != state {
					t.Errorf(`status=%s gives %v; want a["status"] == %v`, state, a, state)
				}
			}
		}
		p.Refused(422, "validation_error", "GET", "/approvals?status=done", all, nil)
		if theirs := p.Want(200, "GET", "/approvals", controlplanetest.Foreign, nil).List(t); len(theirs) != 0 {
			t.Errorf("another tenant sees %v; want len(theirs) == 0", theirs)
		}
		expectPaging(p, "/approvals", true)
		many := make([]string, 60)
		for i := range many {
			many[i] = fmt.Sprintf("MANY%d", i)
		}
		p.Want(200, "POST", "/api/changes", all, doc{"model_ids": many, "commit_sha": "m"})
		r := p.Want(200, "GET", "/approvals", all, nil)
		list = r.List(t)
		if len(list) != 50 || r.Header.Get("X-Next-Cursor") == "" {
			t.Errorf(`%d records without limit, next %q; want len(list) == 50 && r.Header.Get("X-Next-Cursor") != ""`, len(list), r.Header.Get("X-Next-Cursor"))
		}
		for i, a := range list[1:] {
			if a["requested_at"].(string) > list[i]["requested_at"].(string) {
				t.Errorf(`not newest first at %d; want a["requested_at"].(string) <= list[i]["requested_at"].(string)`, i)
			}
		}
	})
	row("POST /approve/{model_id}", func(t *testing.T, p *controlplanetest.Plane) {
		d := decodeObject(t, callWithScope(p, 200, "approve", "POST", "/approve/jpcp", nil), "flow_run_id status_url model_id approval_id status")
		if d["model_id"] != "JPCP" || d["status"] != "approved" || d["status_url"] != "/retrain/"+d["flow_run_id"].(string) {
			t.Error(d, `want d["model_id"] == "JPCP" && d["status"] == "approved" && d["status_url"] == "/retrain/" + d["flow_run_id"].(string)`)
		}
		record = d["approval_id"].(string)
		p.Notice("JPCP", "c1")
		body := doc{"dataset_name": "JobEmbeddings", "backend_name": "local", "reason": "because"}
		expectUnknownKeyRefused(p, "POST", "/approve/JPCP", body)
		p.Want(200, "POST", "/approve/JPCP", onlyScope("approve"), body)
	})
	row("POST /reject/{model_id}", func(t *testing.T, p *controlplanetest.Plane) {
		p.Notice("MACK", "c1")
		expectUnknownKeyRefused(p, "POST", "/reject/mack", doc{"reason": "no"})
		d := decodeObject(t, callWithScope(p, 200, "approve", "POST", "/reject/mack", doc{"reason": "no"}), "model_id approval_id status")
		if a := p.Approval(d["approval_id"].(string)); d["model_id"] != "MACK" || d["status"] != "rejected" || a["reject_reason"] != "no" || a["prefect_run_id"] != nil {
			t.Errorf(`%v: %v; want d["model_id"] == "MACK" && d["status"] == "rejected" && a["reject_reason"] == "no" && a["prefect_run_id"] == nil`, d, a)
		}
		p.Notice("MACK", "c2")
		p.Want(200, "POST", "/reject/MACK", onlyScope("approve"), nil) // the reason is optional
	})
	row("GET /approvals/{id}", func(t *testing.T, p *controlplanetest.Plane) {
		d := decodeObject(t, callWithScope(p, 200, "read", "GET", "/approvals/"+record, nil), approvalMembers)
		if d["status"] != "approved" || d["resolved_by"] != "only-approve" || d["resolved_at"] == nil || d["prefect_run_id"] == nil {
			t.Error(d, `want d["status"] == "approved" && d["resolved_by"] == "only-approve" && d["resolved_at"] != nil && d["prefect_run_id"] != nil`)
		}
	})
	row("POST /approvals/{id}/approve", func(t *testing.T, p *controlplanetest.Plane) {
		id := p.Notice("MCBound", "c1")
		decodeObject(t, callWithScope(p, 200, "approve", "POST", "/approvals/"+id+"/approve", nil), "flow_run_id status_url model_id approval_id status")
		p.Refused(409, "already_decided", "POST", "/approvals/"+id+"/approve", all, nil)
	})
	row("POST /approvals/{id}/reject", func(t *testing.T, p *controlplanetest.Plane) {
		id := p.Notice("MCBound", "c2")
		decodeObject(t, callWithScope(p, 200, "approve", "POST", "/approvals/"+id+"/reject", nil), "model_id approval_id status")
		p.Refused(409, "already_decided", "POST", "/approvals/"+id+"/reject", all, nil)
	})
	const outcome = "event_id models_marked_stale retrain_triggered approvals_created ci_pipeline_triggered duplicate"
	row("POST /webhooks/modelrepo/forge-a", func(t *testing.T, p *controlplanetest.Plane) {
		d := decodeObject(t, deliverPush(p, pushPayload(commitSHA(0))), outcome)
		if len(d["models_marked_stale"].([]any)) != 5 || d["duplicate"] != false {
			t.Error(d, `want len(d["models_marked_stale"].([]any)) == 5 && d["duplicate"] == false`)
		}
		other := pushPayload(commitSHA(1))
		other["ref"] = "refs/heads/other"
		if d := decodeObject(t, deliverPush(p, other), "skipped reason"); d["skipped"] != true {
			t.Error(d, `want d["skipped"] == true`)
		}
	})
	row("POST /webhooks/modelrepo/forge-b", func(t *testing.T, p *controlplanetest.Plane) {
		body := controlplanetest.MustJSON(doc{"ref": "refs/heads/main", "after": commitSHA(2), "pusher": doc{"name": "ada"}, "head_commit": doc{"id": commitSHA(2)}, "commits": []any{}})
		decodeObject(t, p.Want(200, "POST", "/webhooks/modelrepo/forge-b", "", body, "X-Forge-B-Signature-256", hmacHex(body), "X-GitHub-Event", "push"), outcome)
	})
	row("GET /modelrepo/status", func(t *testing.T, p *controlplanetest.Plane) {
		d := decodeObject(t, callWithScope(p, 200, "read", "GET", "/modelrepo/status", nil), "models last_event")
		expectContractMembers(t, d["last_event"].(doc), "commit_sha timestamp source")
		for _, m := range d["models"].([]any) {
			expectContractMembers(t, m.(doc), "model_id status latest_modelrepo_commit last_retrain_commit stale_since retrain_triggered_at trained_from_commit? active_run? touched_by_last_push?")
		}
	})
	row("GET /modelrepo/events", func(t *testing.T, p *controlplanetest.Plane) {
		for i := range 25 {
			deliverPush(p, pushPayload(commitSHA(100+i)))
		}
		list := decodeArray(t, callWithScope(p, 200, "read", "GET", "/modelrepo/events", nil), "id commit_sha branch pushed_by timestamp source delivery_id?")
		if len(list) != 20 || list[0]["commit_sha"] != commitSHA(124) || list[0]["source"] != "webhook" || list[0]["pushed_by"] != "Ada" {
			t.Errorf(`%d events, first %v; want len(list) == 20 && list[0]["commit_sha"] == commitSHA(124) && list[0]["source"] == "webhook" && list[0]["pushed_by"] == "Ada"`, len(list), list[0])
		}
		expectPaging(p, "/modelrepo/events", true)
	})
	row("POST /modelrepo/sync", func(t *testing.T, p *controlplanetest.Plane) {
		head := repo.Commit("second", map[string]string{"notes": "1\n"})
		d := decodeObject(t, callWithScope(p, 200, "manage", "POST", "/modelrepo/sync", nil), "new_commit commit_sha? models_marked_stale? error?")
		if d["new_commit"] != true || d["commit_sha"] != head || len(d["models_marked_stale"].([]any)) != 5 {
			t.Errorf(`%v, head %s; want d["new_commit"] == true && d["commit_sha"] == head && len(d["models_marked_stale"].([]any)) == 5`, d, head)
		}
		if d := p.Want(200, "POST", "/modelrepo/sync", onlyScope("manage"), nil).Object(t); d["new_commit"] != false {
			t.Errorf(`up to date: %v; want d["new_commit"] == false`, d)
		}
		if e := p.Want(200, "GET", "/modelrepo/events?limit=1", all, nil).List(t)[0]; e["source"] != "poll" || e["commit_sha"] != head {
			t.Error(e, `want e["source"] == "poll" && e["commit_sha"] == head`)
		}
	})
	const settings = "auto_retrain poll_interval_seconds watch_branch stale_scope gate"
	row("GET /modelrepo/config", func(t *testing.T, p *controlplanetest.Plane) {
		d := decodeObject(t, callWithScope(p, 200, "read", "GET", "/modelrepo/config", nil), settings)
		if d["auto_retrain"] != false || d["watch_branch"] != "main" || d["stale_scope"] != "all" || d["gate"] != "approval" {
			t.Errorf(`defaults %v; want d["auto_retrain"] == false && d["watch_branch"] == "main" && d["stale_scope"] == "all" && d["gate"] == "approval"`, d)
		}
	})
	row("PUT /modelrepo/config", func(t *testing.T, p *controlplanetest.Plane) {
		d := decodeObject(t, callWithScope(p, 200, "manage", "PUT", "/modelrepo/config", doc{"stale_scope": "touched", "surprise": 1}), settings)
		if d["stale_scope"] != "touched" || d["gate"] != "approval" {
			t.Errorf(`unknown keys are ignored, absent ones stay: %v; want d["stale_scope"] == "touched" && d["gate"] == "approval"`, d)
		}
		for key, bad := range map[string][]any{
			"poll_interval_seconds": {9, 86401, -1, "300", 10.5}, "gate": {"none", 1}, "stale_scope": {"some"}, "watch_branch": {"", "a b"},
		} {
			for _, v := range bad {
				p.Refused(422, "validation_error", "PUT", "/modelrepo/config", all, doc{"auto_retrain": true, key: v})
			}
		}
		p.Refused(422, "validation_error", "PUT", "/modelrepo/config", all, doc{"auto_retrain": "yes"})
		if d := p.Want(200, "GET", "/modelrepo/config", all, nil).Object(t); d["auto_retrain"] != false {
			t.Errorf(`a bad value applied the others: %v; want d["auto_retrain"] == false`, d)
		}
		for _, seconds := range []int{10, 86400, 0} {
			if d := p.Want(200, "PUT", "/modelrepo/config", onlyScope("manage"), doc{"poll_interval_seconds": seconds}).Object(t); d["poll_interval_seconds"] != float64(seconds) {
				t.Error(d, `want d["poll_interval_seconds"] == float64(seconds)`)
			}
		}
		if e := p.Events("event.config_changed"); len(e) == 0 || e[0].Tenant != "platform" || len(p.Audits("modelrepo.config_set")) < len(e) {
			t.Errorf(`events %v, facts %v; want len(e) != 0 && e[0].Tenant == "platform" && len(p.Audits("modelrepo.config_set")) >= len(e)`, e, p.Audits("modelrepo.config_set"))
		}
	})
	row("GET /metrics", func(t *testing.T, p *controlplanetest.Plane) {
		r := p.Want(200, "GET", "/metrics", "", nil)
		if ct := r.Header.Get("Content-Type"); !strings.HasPrefix(ct, "text/plain; version=0.0.4") {
			t.Errorf(`Content-Type %q; want strings.HasPrefix(ct, "text/plain; version=0.0.4")`, ct)
		}
	})
}
