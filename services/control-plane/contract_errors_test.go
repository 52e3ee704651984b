package controlplane_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// retrainOf returns a request for a training run.
func retrainOf(model string) doc { return doc{"model_name": model, "dataset_name": "JobEmbeddings"} }

// sendInBackground sends a request and returns at once; the channel receives its answer.
func sendInBackground(p *controlplanetest.Plane, method, path, bearer string, body any, header ...string) <-chan controlplanetest.Response {
	done := make(chan controlplanetest.Response, 1)
	go func() {
		r, err := p.Try(method, path, bearer, body, header...)
		if err != nil {
			p.T.Error(err)
		}
		done <- r
	}()
	return done
}

const dispatching = "select count(*) from control_plane.commands where status = 'dispatching'"

// The errors of the contract that one control plane can show: a row is named status_code.
func TestContractErrors(t *testing.T) {
	t.Parallel()
	p := startForWalk(t, "PREFECT_CB_FAIL_MAX=1000", "ADMISSION_PER_TENANT=3")
	p.AwaitTarget()
	row := func(name string, f func(t *testing.T, p *controlplanetest.Plane)) {
		t.Helper()
		t.Run(name, func(t *testing.T) { f(t, onSubtest(t, p)) })
	}
	row("400_unknown_model", func(t *testing.T, p *controlplanetest.Plane) {
		if d := p.Refused(400, "unknown_model", "POST", "/retrain", all, retrainOf("NOPE")).Object(t); !strings.Contains(d["detail"].(string), "RUNTIMEREGRESSOR") {
			t.Errorf(`the known are not listed: %v; want strings.Contains(d["detail"].(string), "RUNTIMEREGRESSOR")`, d["detail"])
		}
	})
	row("400_unknown_dataset", func(t *testing.T, p *controlplanetest.Plane) {
		if d := p.Refused(400, "unknown_dataset", "POST", "/retrain", all, doc{"model_name": "JPCP", "dataset_name": "Nope"}).Object(t); !strings.Contains(d["detail"].(string), "JobEmbeddings") {
			t.Errorf(`the known are not listed: %v; want strings.Contains(d["detail"].(string), "JobEmbeddings")`, d["detail"])
		}
	})
	row("400_both_idempotency_keys_and_different", func(t *testing.T, p *controlplanetest.Plane) {
		p.Refused(400, "invalid_idempotency_key", "POST", "/retrain", all, retrainOf("JPCP"), "Idempotency-Key", "a", "X-Idempotency-Key", "b")
		p.Want(200, "POST", "/retrain", all, retrainOf("JPCP"), "Idempotency-Key", "same", "X-Idempotency-Key", "same")
		p.Want(200, "POST", "/retrain", all, retrainOf("JPCP"), "Idempotency-Key", strings.Repeat("k", 255))
		for _, bad := range []string{strings.Repeat("k", 256), "schlüssel"} {
			p.Refused(400, "invalid_idempotency_key", "POST", "/retrain", all, retrainOf("JPCP"), "X-Idempotency-Key", bad)
		}
	})
	row("409_idempotency_conflict", func(t *testing.T, p *controlplanetest.Plane) {
		p.Want(200, "POST", "/retrain", all, retrainOf("MACK"), "Idempotency-Key", "k1")
		if r := p.Want(200, "POST", "/retrain", all, retrainOf("MACK"), "Idempotency-Key", "k1"); r.Header.Get("Idempotency-Replayed") != "true" {
			t.Error("the same body is not replayed")
		}
		p.Refused(409, "idempotency_conflict", "POST", "/retrain", all, retrainOf("JPCP"), "Idempotency-Key", "k1")
	})
	row("409_already_decided", func(t *testing.T, p *controlplanetest.Plane) {
		id := p.Notice("JPCP", "a")
		p.Want(200, "POST", "/approvals/"+id+"/reject", all, nil)
		p.Refused(409, "already_decided", "POST", "/approvals/"+id+"/approve", all, nil)
		p.Refused(409, "already_decided", "POST", "/approvals/"+id+"/reject", all, nil)
	})
	row("409_approval_changed", func(t *testing.T, p *controlplanetest.Plane) {
		shown := p.Notice("JPCP", "a")
		p.Notice("JPCP", "b")
		p.Refused(409, "approval_changed", "POST", "/approve/JPCP", all, doc{"approval_id": shown})
	})
	row("400_no_dataset", func(t *testing.T, p *controlplanetest.Plane) {
		p.Notice("ELSEWHERE", "a")
		p.Refused(400, "no_dataset", "POST", "/approve/ELSEWHERE", all, nil)
	})
	row("404_no_pending_approval", func(t *testing.T, p *controlplanetest.Plane) {
		p.Refused(404, "no_pending_approval", "POST", "/approve/RUNTIMECLASS", all, nil)
		p.Refused(404, "no_pending_approval", "POST", "/reject/RUNTIMECLASS", all, nil)
		p.Refused(404, "no_pending_approval", "POST", "/approve/JPCP", controlplanetest.Foreign, nil) // theirs does not exist
	})
	row("404_run_of_another_tenant", func(t *testing.T, p *controlplanetest.Plane) {
		run := p.Want(200, "POST", "/retrain", all, retrainOf("JPCP")).Object(t)["flow_run_id"].(string)
		p.Refused(404, "run_not_found", "GET", "/retrain/"+run, controlplanetest.Foreign, nil)
	})
	row("404_diff_unavailable", func(t *testing.T, p *controlplanetest.Plane) { // the folder is not a repository
		p.Refused(404, "diff_unavailable", "GET", "/approvals/"+p.Notice("MACK", "c0ffee1")+"/diff", all, nil)
	})
	row("409_promotion_denied", func(t *testing.T, p *controlplanetest.Plane) {
		d := decodeObject(t, p.Refused(409, "promotion_denied", "POST", "/promotions", all, doc{"model": "MACK"}), "status code detail allowed reasons")
		if d["status"] != 409.0 || d["allowed"] != false || len(d["reasons"].([]any)) == 0 {
			t.Error(d, `want d["status"] == 409.0 && d["allowed"] == false && len(d["reasons"].([]any)) != 0`)
		}
	})
	row("409_alias_moved", func(t *testing.T, p *controlplanetest.Plane) {
		v := p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 12.0))
		p.Tracker.Move("jpcp", "Staging", v)
		id := p.Want(200, "POST", "/promotions", all, doc{"model": "JPCP"}).Object(t)["id"].(string)
		p.Tracker.Move("jpcp", "Production", p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 13.0)))
		p.Refused(409, "alias_moved", "POST", "/promotions/"+id+"/approve", all, nil)
	})
	row("422_validation_error", func(t *testing.T, p *controlplanetest.Plane) {
		p.Refused(422, "validation_error", "GET", "/approvals?status=done", all, nil)
		p.Refused(422, "validation_error", "GET", "/approvals?limit=501", all, nil)
	})
	row("502_orchestrator_rejected", func(t *testing.T, p *controlplanetest.Plane) {
		p.Orchestrator.Set(controlplanetest.Refusing)
		defer p.Orchestrator.Set(controlplanetest.Well)
		p.Refused(502, "orchestrator_rejected", "POST", "/retrain", all, retrainOf("JPCP"))
	})
	row("502_orchestrator_unreachable", func(t *testing.T, p *controlplanetest.Plane) {
		p.Orchestrator.Set(controlplanetest.Down)
		defer p.Orchestrator.Set(controlplanetest.Well)
		p.Refused(502, "orchestrator_unreachable", "POST", "/retrain", all, retrainOf("JPCP"))
		p.Refused(502, "orchestrator_unreachable", "POST", "/approve/JPCP", all, nil)
		p.Want(200, "GET", "/readyz", "", nil)
	})
	row("503_dispatch_target_missing", func(t *testing.T, p *controlplanetest.Plane) {
		p.Orchestrator.Mu.Lock()
		had := p.Orchestrator.Deployment
		p.Orchestrator.Deployment = nil
		p.Orchestrator.Mu.Unlock()
		p.Refused(503, "dispatch_target_missing", "POST", "/retrain", all, retrainOf("JPCP"))
		p.Orchestrator.Mu.Lock()
		p.Orchestrator.Deployment = had
		p.Orchestrator.Mu.Unlock()
		p.Want(200, "POST", "/retrain", all, retrainOf("JPCP"))
	})
	// The last rows share one dispatch that hangs.
	p.Notice("MACK", "b")
	p.Orchestrator.Set(controlplanetest.Hang)
	first := sendInBackground(p, "POST", "/retrain", all, retrainOf("JPCP"), "Idempotency-Key", "hangs")
	second := sendInBackground(p, "POST", "/approve/MACK", all, nil)
	testenv.Eventually(t, 20*time.Second, func() error {
		if n := p.Count(dispatching); n != 2 {
			return fmt.Errorf("%d dispatches under way", n)
		}
		return nil
	})
	row("409_command_in_progress", func(t *testing.T, p *controlplanetest.Plane) {
		p.Refused(409, "command_in_progress", "POST", "/retrain", all, retrainOf("JPCP"), "Idempotency-Key", "hangs")
	})
	row("409_retrain_in_flight", func(t *testing.T, p *controlplanetest.Plane) {
		p.Refused(409, "retrain_in_flight", "POST", "/retrain", all, retrainOf("jpcp"))
	})
	row("409_approval_in_progress", func(t *testing.T, p *controlplanetest.Plane) {
		p.Refused(409, "approval_in_progress", "POST", "/approve/MACK", all, nil)
		p.Refused(409, "approval_in_progress", "POST", "/reject/MACK", all, nil)
	})
	third := sendInBackground(p, "POST", "/retrain", all, retrainOf("MCBound"))
	row("429_admission_full", func(t *testing.T, p *controlplanetest.Plane) {
		testenv.Eventually(t, 20*time.Second, func() error {
			if n := p.Count(dispatching); n != 3 {
				return fmt.Errorf("%d dispatches under way", n)
			}
			return nil
		})
		if r := p.Refused(429, "admission_full", "POST", "/retrain", all, doc{"model_name": "RuntimeClass", "dataset_name": "IpscJobs"}); r.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	})
	p.Orchestrator.Set(controlplanetest.Well)
	for _, done := range []<-chan controlplanetest.Response{first, second, third} {
		if r := <-done; r.Status != 200 {
			t.Errorf("%d %s; want r.Status == 200", r.Status, r.Body)
		}
	}
}

// The errors that each need a specially configured control plane.
func TestContractErrorsOfSpecialSetups(t *testing.T) {
	t.Parallel()
	t.Run("502_orchestrator_unreachable_breaker_open", func(t *testing.T) {
		t.Parallel()
		p := startForWalk(t)
		p.AwaitTarget()
		p.Orchestrator.Set(controlplanetest.Down)
		p.Refused(502, "orchestrator_unreachable", "POST", "/retrain", all, retrainOf("JPCP")) // three failures
		p.Refused(502, "orchestrator_unreachable", "POST", "/retrain", all, retrainOf("JPCP")) // five
		testenv.Eventually(t, 20*time.Second, func() error {
			if s := p.Health()["circuit_breaker"].(doc)["state"]; s != "open" {
				return fmt.Errorf("the breaker is %v after five failures in a row, want open", s)
			}
			return nil
		})
		p.Orchestrator.Set(controlplanetest.Well)
		if r := p.Refused(502, "orchestrator_unreachable", "POST", "/retrain", all, retrainOf("JPCP")); r.Header.Get("Retry-After") == "" {
			t.Errorf(`no Retry-After: %v; want r.Header.Get("Retry-After") != ""`, r.Header)
		}
		if m := string(p.Want(200, "GET", "/metrics", "", nil).Body); !strings.Contains(m, "platform_orchestrator_breaker_opens_total 1") {
			t.Error("the opening is not counted")
		}
	})
	t.Run("503_coordinator_unavailable", func(t *testing.T) {
		t.Parallel()
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := ln.Addr().String()
		_ = ln.Close()
		p := startForWalk(t, "REDIS_URL=redis://"+addr, "RETRAIN_RATE_LIMIT_PER_MIN=20", "DECISION_RATE_LIMIT_PER_MIN=1")
		if r := p.Refused(503, "coordinator_unavailable", "POST", "/retrain", all, retrainOf("JPCP")); r.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		p.Notice("JPCP", "a") // the other limits hold per process
		p.Want(200, "POST", "/reject/JPCP", all, nil)
		p.Refused(429, "rate_limited", "POST", "/reject/JPCP", all, nil)
	})
	t.Run("503_webhook_secret_not_configured", func(t *testing.T) {
		t.Parallel()
		p := startForWalk(t, "MODELREPO_WEBHOOK_SECRET=")
		for _, forge := range []string{"forge-a", "forge-b"} {
			if r := p.Want(503, "POST", "/webhooks/modelrepo/"+forge, "", `{}`, "X-Forge-A-Token", ""); r.Code() == "" {
				t.Errorf(`%s; want r.Code() != ""`, r.Body)
			}
		}
	})
	t.Run("409_sync_in_progress", func(t *testing.T) {
		t.Parallel()
		repo, _ := newSampleRepository(t)
		server := repo.Serve()
		p := startForWalk(t, "MODELREPO_DIR=", "MODELREPO_GIT_URL="+server.Address(), "MODELREPO_CACHE_DIR="+t.TempDir(), "MODELREPO_POLL_SECONDS=86400")
		testenv.Eventually(t, 20*time.Second, func() error { // the first check may take a while
			if p.Health()["poller"].(doc)["last_ok_seconds_ago"] == nil {
				return fmt.Errorf("not polled yet")
			}
			return nil
		})
		reached := make(chan struct{}, 100)
		hang := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			reached <- struct{}{}
			<-r.Context().Done()
		})
		server.Handle.Store(&hang)
		done := sendInBackground(p, "POST", "/modelrepo/sync", all, nil)
		select {
		case <-reached:
		case <-time.After(time.Minute):
			t.Fatal("the repository was not asked")
		}
		p.Refused(409, "sync_in_progress", "POST", "/modelrepo/sync", all, nil)
		server.Handle.Store(nil)
		server.CloseClientConnections()
		if d := decodeObject(t, <-done, "new_commit error?"); d["new_commit"] != false {
			t.Error(d, `want d["new_commit"] == false`)
		}
	})
	t.Run("421_host", func(t *testing.T) {
		t.Parallel()
		p := startForWalk(t, "CONTROL_PLANE_ALLOWED_HOSTS=platform.example,127.0.0.1")
		req, err := http.NewRequestWithContext(t.Context(), "GET", p.URL+"/models", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "elsewhere.example"
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != 421 {
			t.Errorf("another host: %d; want 421", resp.StatusCode)
		}
	})
}
