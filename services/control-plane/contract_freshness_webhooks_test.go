package controlplane_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

const (
	hookA = "/webhooks/modelrepo/forge-a"
	hookB = "/webhooks/modelrepo/forge-b"
)

// freshnessOf returns a model's freshness.
func freshnessOf(p *controlplanetest.Plane, model string) doc {
	p.T.Helper()
	for _, m := range p.Want(200, "GET", "/modelrepo/status", controlplanetest.Reader, nil).Object(p.T)["models"].([]any) {
		if m := m.(doc); m["model_id"] == model {
			return m
		}
	}
	p.T.Fatalf("no model %s", model)
	return nil
}

// expectMembers asserts members of a document.
func expectMembers(t *testing.T, got, want doc) {
	t.Helper()
	for name, v := range want {
		if fmt.Sprint(got[name]) != fmt.Sprint(v) {
			t.Errorf("%s is %v, want %v", name, got[name], v)
		}
	}
}

// finishRun completes or fails a run of the model, trained from the commit, and waits until the control plane has
// recorded it.
func finishRun(p *controlplanetest.Plane, model, commit, state string, v *controlplanetest.Version) {
	p.T.Helper()
	run := p.Want(200, "POST", "/retrain", controlplanetest.Operator, retrainOf(model)).Object(p.T)["flow_run_id"].(string)
	if v != nil {
		v.RunTags = map[string]string{"prefect_flow_run_id": run, "modelrepo_commit": commit}
		p.Want(200, "POST", "/versions", controlplanetest.Operator, doc{"model": model, "version": p.Tracker.Add(strings.ToLower(model), *v), "flow_run_id": run})
	}
	p.Orchestrator.State(run, state, "")
	testenv.Eventually(p.T, 20*time.Second, func() error {
		if d := p.Want(200, "GET", "/retrain/"+run, controlplanetest.Reader, nil).Object(p.T); d["is_terminal"] != true || freshnessOf(p, model)["active_run"] != nil {
			return fmt.Errorf("%v", d)
		}
		return nil
	})
}

// How the freshness of a model changes.
func TestContractFreshness(t *testing.T) {
	t.Parallel()
	repo, first := newSampleRepository(t)
	p := startForWalk(t, "MODELREPO_DIR="+repo.Dir, "MODELREPO_POLL_SECONDS=0")
	p.AwaitTarget()
	row := func(name string, f func(t *testing.T, p *controlplanetest.Plane)) {
		t.Helper()
		t.Run(name, func(t *testing.T) { f(t, onSubtest(t, p)) })
	}
	row("unknown_no_record", func(t *testing.T, p *controlplanetest.Plane) {
		expectMembers(t, freshnessOf(p, "JPCP"), doc{"status": "unknown", "latest_modelrepo_commit": nil, "last_retrain_commit": nil, "stale_since": nil, "retrain_triggered_at": nil})
	})
	var since any
	row("→_stale_by_push_all", func(t *testing.T, p *controlplanetest.Plane) {
		deliverPush(p, pushPayload(commitSHA(1)))
		for _, model := range []string{"JPCP", "MACK", "MCBOUND", "RUNTIMECLASS", "RUNTIMEREGRESSOR"} {
			expectMembers(t, freshnessOf(p, model), doc{"status": "stale", "latest_modelrepo_commit": commitSHA(1), "touched_by_last_push": model == "JPCP"})
		}
		since = freshnessOf(p, "JPCP")["stale_since"]
		deliverPush(p, pushPayload(commitSHA(2)))
		expectMembers(t, freshnessOf(p, "JPCP"), doc{"status": "stale", "latest_modelrepo_commit": commitSHA(2), "stale_since": since}) // kept
	})
	var second string
	row("→_stale_by_poll", func(t *testing.T, p *controlplanetest.Plane) {
		second = repo.Commit("second", map[string]string{"notes": "1\n"})
		if d := p.Want(200, "POST", "/modelrepo/sync", all, nil).Object(t); d["new_commit"] != true {
			t.Error(d, `want d["new_commit"] == true`)
		}
		expectMembers(t, freshnessOf(p, "MACK"), doc{"status": "stale", "latest_modelrepo_commit": second, "stale_since": since})
	})
	row("stays_stale_dispatch_accepted", func(t *testing.T, p *controlplanetest.Plane) {
		run := p.Want(200, "POST", "/retrain", all, retrainOf("MCBound")).Object(t)["flow_run_id"]
		m := freshnessOf(p, "MCBOUND")
		expectMembers(t, m, doc{"status": "stale", "active_run": run})
		if m["retrain_triggered_at"] == nil {
			t.Error(m, `want m["retrain_triggered_at"] != nil`)
		}
	})
	row("stays_stale_failed_run", func(t *testing.T, p *controlplanetest.Plane) {
		finishRun(p, "MACK", second, "FAILED", nil)
		expectMembers(t, freshnessOf(p, "MACK"), doc{"status": "stale", "last_retrain_commit": nil})
	})
	row("stays_stale_dummy_run", func(t *testing.T, p *controlplanetest.Plane) {
		finishRun(p, "MACK", second, "COMPLETED", &controlplanetest.Version{Metrics: doc{"accuracy": 0.9}, Tags: map[string]string{"artifact_digest": controlplanetest.Digest, "dummy": "true"}})
		expectMembers(t, freshnessOf(p, "MACK"), doc{"status": "stale"})
	})
	row("stays_stale_trained_from_another_commit_and_promoted", func(t *testing.T, p *controlplanetest.Plane) {
		finishRun(p, "JPCP", first, "COMPLETED", &controlplanetest.Version{Metrics: doc{"rmse": 10.0}})
		expectMembers(t, freshnessOf(p, "JPCP"), doc{"status": "stale", "last_retrain_commit": first, "trained_from_commit": first})
		p.Want(200, "POST", "/promotions/"+p.PendingPromotion("JPCP")+"/approve", all, nil)
		expectMembers(t, freshnessOf(p, "JPCP"), doc{"status": "stale"})
	})
	row("→_current", func(t *testing.T, p *controlplanetest.Plane) {
		finishRun(p, "JPCP", second, "COMPLETED", &controlplanetest.Version{Metrics: doc{"rmse": 10.0}})
		expectMembers(t, freshnessOf(p, "JPCP"), doc{"status": "current", "last_retrain_commit": second, "latest_modelrepo_commit": second, "stale_since": nil})
		moves := p.Events("event.freshness_changed")
		last := moves[len(moves)-1]
		expectMembers(t, last.Data, doc{"model": "JPCP", "status": "current", "previous": "stale"})
		if last.Tenant != "platform" {
			t.Errorf(`tenant %s; want "platform"`, last.Tenant)
		}
	})
	row("current_→_stale_again", func(t *testing.T, p *controlplanetest.Plane) {
		known := pushPayload(second)
		if d := deliverPush(p, known).Object(t); d["duplicate"] != true || slices.Contains(d["models_marked_stale"].([]any), any("JPCP")) {
			t.Errorf(`the known head again: %v; want d["duplicate"] == true && !slices.Contains(d["models_marked_stale"].([]any), any("JPCP"))`, d) // only models not trained from it are stale
		}
		expectMembers(t, freshnessOf(p, "JPCP"), doc{"status": "current"})
		deliverPush(p, pushPayload(commitSHA(3)))
		expectMembers(t, freshnessOf(p, "JPCP"), doc{"status": "stale", "latest_modelrepo_commit": commitSHA(3)})
	})
	row("touched_→_stale_only_touched", func(t *testing.T, p *controlplanetest.Plane) {
		finishRun(p, "JPCP", commitSHA(3), "COMPLETED", &controlplanetest.Version{Metrics: doc{"rmse": 10.0}})
		expectMembers(t, freshnessOf(p, "JPCP"), doc{"status": "current"})
		p.Want(200, "PUT", "/modelrepo/config", all, doc{"stale_scope": "touched"})
		other := pushPayload(commitSHA(4))
		other["commits"].([]any)[0].(doc)["modified"] = []string{"README.md"}
		if d := deliverPush(p, other).Object(t); len(d["models_marked_stale"].([]any)) != 0 {
			t.Error(d, `want len(d["models_marked_stale"].([]any)) == 0`)
		}
		expectMembers(t, freshnessOf(p, "JPCP"), doc{"status": "current", "touched_by_last_push": false})
		if d := deliverPush(p, pushPayload(commitSHA(5))).Object(t); fmt.Sprint(d["models_marked_stale"]) != "[JPCP]" {
			t.Error(d, `want fmt.Sprint(d["models_marked_stale"]) == "[JPCP]"`)
		}
		expectMembers(t, freshnessOf(p, "JPCP"), doc{"status": "stale", "touched_by_last_push": true})
	})
	row("touched_→_current_of_an_older_commit_no_later_push_touched", func(t *testing.T, p *controlplanetest.Plane) {
		other := pushPayload(commitSHA(6))
		other["commits"].([]any)[0].(doc)["modified"] = []string{"README.md"}
		deliverPush(p, other)
		finishRun(p, "JPCP", commitSHA(5), "COMPLETED", &controlplanetest.Version{Metrics: doc{"rmse": 10.0}})
		expectMembers(t, freshnessOf(p, "JPCP"), doc{"status": "current", "last_retrain_commit": commitSHA(5), "stale_since": nil})
	})
	row("auto_retrain_gate_approval", func(t *testing.T, p *controlplanetest.Plane) {
		p.Want(200, "PUT", "/modelrepo/config", all, doc{"auto_retrain": true})
		d := deliverPush(p, pushPayload(commitSHA(7))).Object(t)
		ids := d["approvals_created"].([]any)
		if len(ids) != 1 || len(d["retrain_triggered"].([]any)) != 0 {
			t.Fatal(d, `want len(ids) == 1 && len(d["retrain_triggered"].([]any)) == 0`)
		}
		expectMembers(t, p.Approval(ids[0].(string)), doc{"model_id": "JPCP", "origin": "modelrepo", "requested_by": "system:modelrepo", "tenant": "default", "commit_sha": commitSHA(7), "status": "pending"})
	})
	row("auto_retrain_gate_direct", func(t *testing.T, p *controlplanetest.Plane) {
		p.Want(200, "PUT", "/modelrepo/config", all, doc{"gate": "direct"})
		unknown := pushPayload(commitSHA(8))
		unknown["total_commits_count"] = 9 // with unknown files all models are trained
		p.Orchestrator.Mu.Lock()
		p.Orchestrator.Refuses = "MACK" // failures are independent
		p.Orchestrator.Mu.Unlock()
		if d := deliverPush(p, unknown).Object(t); fmt.Sprint(d["retrain_triggered"]) != "[JPCP MCBOUND RUNTIMECLASS RUNTIMEREGRESSOR]" {
			t.Error(d, `want fmt.Sprint(d["retrain_triggered"]) == "[JPCP MCBOUND RUNTIMECLASS RUNTIMEREGRESSOR]"`)
		}
		if list := decodeItems(t, p.Want(200, "GET", "/runs?model=JPCP", all, nil), ""); list[0]["commit_sha"] != commitSHA(8) || list[0]["origin"] != "modelrepo" {
			t.Error(list[0], `want list[0]["commit_sha"] == commitSHA(8) && list[0]["origin"] == "modelrepo"`)
		}
	})
}

// The proofs of each forge, and the members read from its payload.
func TestContractWebhooks(t *testing.T) {
	t.Parallel()
	p := startForWalk(t)
	row := func(name string, f func(t *testing.T, p *controlplanetest.Plane)) {
		t.Helper()
		t.Run(name, func(t *testing.T) { f(t, onSubtest(t, p)) })
	}
	n := 1000
	next := func() string { n++; return commitSHA(n) }
	a := func(p *controlplanetest.Plane, body any, header ...string) doc {
		p.T.Helper()
		return p.Want(200, "POST", hookA, "", body, append([]string{"X-Forge-A-Token", hookSecret}, header...)...).Object(p.T)
	}
	b := func(p *controlplanetest.Plane, body doc, header ...string) doc {
		p.T.Helper()
		raw := controlplanetest.MustJSON(body)
		return p.Want(200, "POST", hookB, "", raw, append([]string{"X-Forge-B-Signature-256", hmacHex(raw)}, header...)...).Object(p.T)
	}
	payloadB := func(sha string) doc {
		return doc{"ref": "refs/heads/main", "after": sha, "pusher": doc{"name": "bob"}, "head_commit": doc{"id": sha},
			"commits": []any{doc{"id": sha, "added": []string{}, "modified": []string{"models/power_consumption_prediction/JPCP/model.yaml"}, "removed": []string{}}}}
	}
	newest := func(p *controlplanetest.Plane) doc {
		return p.Want(200, "GET", "/modelrepo/events?limit=1", all, nil).List(p.T)[0]
	}

	for _, name := range []string{"X-Forge-A-Token", "X-Gitlab-Token"} {
		row("forge_A_proof_"+name, func(t *testing.T, p *controlplanetest.Plane) {
			p.Want(200, "POST", hookA, "", pushPayload(next()), name, hookSecret)
			p.Refused(401, "invalid_webhook_proof", "POST", hookA, "", pushPayload(next()), name, hookSecret+"x")
			p.Refused(401, "invalid_webhook_proof", "POST", hookA, "", pushPayload(next()))
		})
	}
	for _, name := range []string{"X-Forge-B-Signature-256", "X-Hub-Signature-256"} {
		row("forge_B_proof_"+name, func(t *testing.T, p *controlplanetest.Plane) {
			raw := controlplanetest.MustJSON(payloadB(next()))
			p.Want(200, "POST", hookB, "", raw, name, hmacHex(raw))
			p.Refused(401, "invalid_webhook_proof", "POST", hookB, "", raw+" ", name, hmacHex(raw))
		})
	}
	row("forge_A_kind_X-Gitlab-Event", func(t *testing.T, p *controlplanetest.Plane) {
		expectMembers(t, a(p, pushPayload(next()), "X-Gitlab-Event", "Merge Request Hook"), doc{"skipped": true, "reason": "not a push"})
		expectMembers(t, a(p, pushPayload(next()), "X-Gitlab-Event", "Push Hook"), doc{"duplicate": false})
	})
	row("forge_B_kind_X-GitHub-Event", func(t *testing.T, p *controlplanetest.Plane) {
		expectMembers(t, b(p, payloadB(next()), "X-GitHub-Event", "ping"), doc{"skipped": true, "reason": "not a push"})
		expectMembers(t, b(p, payloadB(next()), "X-GitHub-Event", "push"), doc{"duplicate": false})
	})
	for _, name := range []string{"webhook-id", "Idempotency-Key", "X-Gitlab-Event-UUID"} {
		row("forge_A_delivery_id_"+name, func(t *testing.T, p *controlplanetest.Plane) {
			id, body := uuid.NewString(), pushPayload(next())
			first := a(p, body, name, id)
			expectMembers(t, newest(p), doc{"delivery_id": id})
			expectMembers(t, a(p, body, name, id), doc{"skipped": true, "reason": "duplicate delivery", "event_id": first["event_id"]})
		})
	}
	row("forge_A_delivery_id_in_this_order", func(t *testing.T, p *controlplanetest.Plane) {
		one, two, three := uuid.NewString(), uuid.NewString(), uuid.NewString()
		a(p, pushPayload(next()), "X-Gitlab-Event-UUID", three, "Idempotency-Key", two, "webhook-id", one)
		expectMembers(t, newest(p), doc{"delivery_id": one})
		a(p, pushPayload(next()), "X-Gitlab-Event-UUID", three, "Idempotency-Key", two)
		expectMembers(t, newest(p), doc{"delivery_id": two})
	})
	row("forge_B_delivery_id_X-GitHub-Delivery", func(t *testing.T, p *controlplanetest.Plane) {
		id, body := uuid.NewString(), payloadB(next())
		first := b(p, body, "X-GitHub-Delivery", id)
		expectMembers(t, b(p, body, "X-GitHub-Delivery", id), doc{"skipped": true, "reason": "duplicate delivery", "event_id": first["event_id"]})
		p.SQL("update control_plane.push_deliveries set received_at = now() - interval '29 days'") // of 30; push has the sweep
		expectMembers(t, b(p, body, "X-GitHub-Delivery", id), doc{"reason": "duplicate delivery", "event_id": first["event_id"]})
	})
	row("forge_A_commit", func(t *testing.T, p *controlplanetest.Plane) { // checkout_sha, after, last of commits
		checkout, after, last := next(), next(), next()
		body := pushPayload(last)
		body["checkout_sha"], body["after"] = checkout, after
		for _, want := range []string{checkout, after, last} {
			a(p, body)
			expectMembers(t, newest(p), doc{"commit_sha": want})
			if want == checkout {
				body["checkout_sha"] = nil
			} else {
				delete(body, "after")
			}
		}
	})
	row("forge_B_commit", func(t *testing.T, p *controlplanetest.Plane) { // head_commit.id, after
		head, after := next(), next()
		body := payloadB(head)
		body["after"] = after
		b(p, body)
		expectMembers(t, newest(p), doc{"commit_sha": head})
		body["head_commit"] = nil
		b(p, body)
		expectMembers(t, newest(p), doc{"commit_sha": after})
	})
	row("forge_A_pusher", func(t *testing.T, p *controlplanetest.Plane) { // user_name, last commit's author
		body := pushPayload(next())
		body["commits"].([]any)[0].(doc)["author"] = doc{"name": "Grace"}
		a(p, body)
		expectMembers(t, newest(p), doc{"pushed_by": "Ada"})
		delete(body, "user_name")
		body["checkout_sha"] = next()
		a(p, body)
		expectMembers(t, newest(p), doc{"pushed_by": "Grace"})
	})
	row("forge_B_pusher", func(t *testing.T, p *controlplanetest.Plane) {
		b(p, payloadB(next()))
		expectMembers(t, newest(p), doc{"pushed_by": "bob"})
	})
	row("files_added_modified_removed_of_all_commits", func(t *testing.T, p *controlplanetest.Plane) {
		at := "models/power_consumption_prediction/"
		body := pushPayload(next())
		body["total_commits_count"] = 3
		body["commits"] = []any{
			doc{"id": commitSHA(1), "added": []string{at + "JPCP/x"}},
			doc{"id": commitSHA(2), "modified": []string{"README.md"}},
			doc{"id": commitSHA(3), "removed": []string{folderOf(t, "MACK") + "/x"}},
		}
		a(p, body)
		for _, model := range []string{"JPCP", "MACK", "MCBOUND"} {
			expectMembers(t, freshnessOf(p, model), doc{"touched_by_last_push": model != "MCBOUND"})
		}
	})
	row("files_unknown_where_the_list_is_cut_forge_A", func(t *testing.T, p *controlplanetest.Plane) {
		body := pushPayload(next())
		body["total_commits_count"] = 2
		a(p, body)
		expectMembers(t, freshnessOf(p, "MCBOUND"), doc{"touched_by_last_push": true})
	})
	row("files_unknown_where_the_list_is_cut_forge_B", func(t *testing.T, p *controlplanetest.Plane) {
		for commits, touched := range map[int]bool{19: false, 20: true} {
			body := payloadB(next())
			body["commits"] = slices.Repeat(body["commits"].([]any), commits)
			b(p, body)
			expectMembers(t, freshnessOf(p, "MCBOUND"), doc{"touched_by_last_push": touched})
		}
	})
	row("skip_branch_not_watched", func(t *testing.T, p *controlplanetest.Plane) {
		for _, ref := range []any{"refs/heads/feature/main", "refs/heads/mainline", "refs/tags/main", "main", "", nil} {
			body := pushPayload(next())
			body["ref"] = ref
			expectMembers(t, a(p, body), doc{"skipped": true, "reason": "branch not watched", "event_id": nil})
		}
	})
	row("skip_no_commit_sha", func(t *testing.T, p *controlplanetest.Plane) {
		zeros := strings.Repeat("0", 40)
		expectMembers(t, a(p, doc{"ref": "refs/heads/main"}), doc{"skipped": true, "reason": "no commit sha"})
		expectMembers(t, a(p, doc{"ref": "refs/heads/main", "checkout_sha": nil, "after": zeros, "commits": []any{}}), doc{"skipped": true, "reason": "no commit sha"})
		expectMembers(t, b(p, doc{"ref": "refs/heads/main", "after": zeros, "deleted": true, "head_commit": nil}), doc{"skipped": true, "reason": "no commit sha"})
	})
	row("duplicate_head", func(t *testing.T, p *controlplanetest.Plane) {
		body := pushPayload(next())
		first := a(p, body, "webhook-id", uuid.NewString())
		again := a(p, body, "webhook-id", uuid.NewString())
		if expectMembers(t, again, doc{"duplicate": true}); again["event_id"] == nil || first["duplicate"] != false {
			t.Errorf(`%v, then %v; want again["event_id"] != nil && first["duplicate"] == false`, first, again)
		}
	})
	row("unknown_keys_ignored", func(t *testing.T, p *controlplanetest.Plane) {
		body := pushPayload(next())
		maps.Copy(body, doc{"surprise": doc{"deep": []int{1}}, "object_kind": "push"})
		expectMembers(t, a(p, body), doc{"duplicate": false})
	})
	row("order_413_503_401_400", func(t *testing.T, p *controlplanetest.Plane) {
		big := `{"ref":"` + strings.Repeat("x", 5<<20) + `"}`
		p.Refused(413, "body_too_large", "POST", hookA, "", big)
		p.Refused(401, "invalid_webhook_proof", "POST", hookA, "", `[`)
		for _, body := range []string{`[`, `[1]`, `"x"`, ``} {
			if r := p.Want(400, "POST", hookA, "", body, "X-Forge-A-Token", hookSecret); r.Code() == "" {
				t.Errorf(`%s; want r.Code() != ""`, r.Body)
			}
			p.Want(400, "POST", hookB, "", body, "X-Forge-B-Signature-256", hmacHex(body))
		}
	})
	t.Run("forge_A_proof_signed", func(t *testing.T) {
		key := "0123456789abcdef0123456789abcdef"
		p := startForWalk(t, "MODELREPO_WEBHOOK_SIGNING_TOKEN=whsec_"+base64.StdEncoding.EncodeToString([]byte(key)))
		body := controlplanetest.MustJSON(pushPayload(next()))
		signed := func(id string, at time.Time, before string) []string {
			stamp := strconv.FormatInt(at.Unix(), 10)
			mac := hmac.New(sha256.New, []byte(key))
			mac.Write([]byte(id + "." + stamp + "." + body))
			return []string{"webhook-id", id, "webhook-timestamp", stamp, "webhook-signature", before + "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))}
		}
		p.Refused(401, "invalid_webhook_proof", "POST", hookA, "", body, "X-Forge-A-Token", hookSecret)
		p.Refused(401, "invalid_webhook_proof", "POST", hookA, "", body, signed("m", time.Now().Add(-310*time.Second), "")...)
		p.Refused(401, "invalid_webhook_proof", "POST", hookA, "", body, signed("m", time.Now().Add(310*time.Second), "")...)
		p.Want(200, "POST", hookA, "", body, signed("m", time.Now().Add(-290*time.Second), "v1,AAAA ")...)
	})
}

// folderOf returns a model's folder in the sample repository.
func folderOf(t *testing.T, model string) string {
	t.Helper()
	for _, task := range []string{"performance_prediction", "power_consumption_prediction", "anomaly_detection"} {
		if _, err := os.Stat(filepath.Join(controlplanetest.Samples(), "models", task, model)); err == nil {
			return "models/" + task + "/" + model
		}
	}
	t.Fatalf("no folder of %s", model)
	return ""
}
