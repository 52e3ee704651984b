//go:build e2e

package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mlp-platform/platform/e2e/harness"
)

// behindProxy starts an unseeded platform whose control plane reaches the orchestrator through a proxy.
func behindProxy(t *testing.T) (*harness.Platform, *harness.Proxy) {
	t.Helper()
	front := harness.FreePorts(t, 1)[0]
	p := harness.New(t, "PLATFORM_SEED=false", "PREFECT_API_URL=http://"+front+"/api", "PREFECT_CB_RESET_TIMEOUT=1")
	proxy := harness.NewProxy(t, front, "http://"+p.Setting("ORCHESTRATOR_ADDR"))
	// The platform sends its key only to its own orchestrator, and takes the proxy for another.
	proxy.Authorize = func() *url.Userinfo { return url.UserPassword("e2e", p.Secret(t, "orchestrator_key")) }
	p.Start(t, 30*time.Second)
	return p, proxy
}

func fileNotice(t *testing.T, p *harness.Platform, model, sha string) string {
	t.Helper()
	a := harness.Want(t, 200, "POST", p.Env["CONTROL_PLANE_URL"]+"/api/changes", p.Secret(t, "ci_token"), map[string]any{
		"model_ids": []string{model}, "commit_sha": sha, "commit_msg": "change", "changed_files": []string{"models/x"}}).JSON(t)
	ids, _ := a["created"].([]any)
	if len(ids) != 1 {
		t.Fatalf("created: %v; want len(ids) == 1", a)
	}
	return ids[0].(string)
}

// Acceptance row 11: a stopped orchestrator gives 502, the record stays pending and the service ready;
// once it is back the approval makes one run.
func TestRow11_OrchestratorDown(t *testing.T) {
	p, proxy := behindProxy(t)
	cp, operator := p.Env["CONTROL_PLANE_URL"], p.Secret(t, "operator_token")
	id := fileNotice(t, p, "JPCP", "row11")
	proxy.Refuse()
	a := harness.Want(t, 502, "POST", cp+"/approve/JPCP", operator, nil).JSON(t)
	if a["code"] != "orchestrator_unreachable" {
		t.Fatalf(`%v; want a["code"] == "orchestrator_unreachable"`, a)
	}
	if rec := p.Approval(t, id); rec["status"] != "pending" {
		t.Fatalf(`record: %v; want rec["status"] == "pending"`, rec)
	}
	harness.Want(t, 200, "GET", cp+"/readyz", "", nil)
	proxy.Forward()
	var res map[string]any
	harness.Eventually(t, 30*time.Second, func() error {
		a := harness.Call(t, "POST", cp+"/approve/JPCP", operator, nil)
		if a.Status != 200 {
			return fmt.Errorf("%d %s", a.Status, a.Body)
		}
		res = a.JSON(t)
		return nil
	})
	if runs := flowRuns(t, p); len(runs) != 1 || runs[0]["id"] != res["flow_run_id"] {
		t.Fatalf(`flow runs: %v; want len(runs) == 1 && runs[0]["id"] == res["flow_run_id"]`, runs)
	}
}

// flowRuns lists every run at the orchestrator.
func flowRuns(t *testing.T, p *harness.Platform) []map[string]any {
	t.Helper()
	return harness.Want(t, 200, "POST", p.Orchestrator()+"/flow_runs/filter", "", map[string]any{"limit": 200}).List(t)
}

// Acceptance row 12: killed after the orchestrator accepted the run and before the answer arrived, the control plane
// finds that same run again.
func TestRow12_KilledMidApprove(t *testing.T) {
	p, proxy := behindProxy(t)
	id := fileNotice(t, p, "JPCP", "row12")
	proxy.Swallow()
	go func() {
		_, _ = harness.TryCall("POST", p.Env["CONTROL_PLANE_URL"]+"/approve/JPCP", p.Secret(t, "operator_token"), nil)
	}()
	select {
	case <-proxy.Swallowed():
	case <-time.After(20 * time.Second):
		t.Fatal("no dispatch reached the orchestrator")
	}
	if rec := p.Approval(t, id); rec["status"] != "approving" {
		t.Fatalf(`record before the kill: %v; want rec["status"] == "approving"`, rec)
	}
	p.Kill()
	proxy.Forward()
	p.Start(t, 30*time.Second)
	var rec map[string]any
	harness.Eventually(t, 30*time.Second, func() error {
		if rec = p.Approval(t, id); rec["status"] != "approved" {
			return fmt.Errorf("record: %v", rec)
		}
		return nil
	})
	if runs := flowRuns(t, p); len(runs) != 1 || runs[0]["id"] != rec["prefect_run_id"] {
		t.Fatalf(`flow runs: %v; record %v; want len(runs) == 1 && runs[0]["id"] == rec["prefect_run_id"]`, runs, rec)
	}
	if rec["resolved_by"] != "operator" {
		t.Fatalf(`resolved_by: %v; want "operator"`, rec["resolved_by"])
	}
}

// kill -9 between approve and completion, at several moments: the command is finished exactly once, the
// run reaches one end, and every event is in the stream exactly once by id.
func TestKillBetweenApproveAndCompletion(t *testing.T) {
	p := harness.New(t, "PLATFORM_SEED=false")
	p.Start(t, 30*time.Second)
	cp, operator := p.Env["CONTROL_PLANE_URL"], p.Secret(t, "operator_token")
	var ids []string
	for i, model := range []string{"JPCP", "MACK", "RuntimeRegressor"} {
		id := fileNotice(t, p, model, fmt.Sprintf("kill%d", i))
		ids = append(ids, id)
		// The answer may be lost with the process; the record shows the result.
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = harness.TryCall("POST", cp+"/approve/"+model, operator, map[string]any{"approval_id": id})
		}()
		if i > 0 {
			<-done // killed during training; the first one is killed during its dispatch
		}
		if i == 2 {
			harness.Eventually(t, 30*time.Second, func() error {
				for _, r := range flowRuns(t, p) {
					if s, _ := r["state_type"].(string); s == "RUNNING" {
						return nil
					}
				}
				return fmt.Errorf("no run is RUNNING")
			})
		}
		p.Kill()
		<-done
		p.Start(t, 30*time.Second)
	}
	runs := map[string]string{}
	for _, id := range ids {
		var rec map[string]any
		harness.Eventually(t, time.Minute, func() error {
			rec = p.Approval(t, id)
			switch rec["status"] {
			case "approved":
				return nil
			case "pending":
				// Killed before anything was written: the caller never got an answer and retries.
				harness.Call(t, "POST", cp+"/approvals/"+id+"/approve", operator, nil)
			}
			return fmt.Errorf("record: %v", rec)
		})
		runs[id] = fmt.Sprint(rec["prefect_run_id"])
		end := p.WaitRun(t, runs[id], 3*time.Minute)
		t.Logf("%v: %v", rec["model_id"], end["state_type"])
	}
	if all := flowRuns(t, p); len(all) != len(ids) {
		t.Fatalf("%d flow runs for %d approvals: %v; want len(all) == len(ids)", len(all), len(ids), all)
	}
	for _, e := range []string{"approval.created", "approval.approved", "job.dispatched"} {
		harness.Eventually(t, 20*time.Second, func() error {
			if n := countEvents(readEventStream(t, p), e); n != len(ids) {
				return fmt.Errorf("%d events %s, want %d", n, e, len(ids))
			}
			return nil
		})
	}
	harness.Eventually(t, 20*time.Second, func() error {
		evs := readEventStream(t, p)
		if n := countEvents(evs, "job.completed") + countEvents(evs, "job.crashed") + countEvents(evs, "job.failed"); n != len(ids) {
			return fmt.Errorf("%d runs ended in the stream, want %d", n, len(ids))
		}
		return nil
	})
	seen := map[string]bool{}
	for _, e := range readEventStream(t, p) {
		if seen[e.ID] {
			t.Errorf("event %s (%s) stands twice in the stream; want !seen[e.ID]", e.ID, e.Type)
		}
		seen[e.ID] = true
	}
	// The tracker agrees: an interrupted run does not stay RUNNING there.
	harness.Eventually(t, 20*time.Second, func() error {
		tr := p.Tracker() + "/api/2.0/mlflow"
		var exps struct {
			Experiments []struct {
				ID string `json:"experiment_id"`
			} `json:"experiments"`
		}
		if err := json.Unmarshal(harness.Want(t, 200, "POST", tr+"/experiments/search", "", map[string]any{"max_results": 100}).Body, &exps); err != nil {
			return err
		}
		var all []string
		for _, e := range exps.Experiments {
			all = append(all, e.ID)
		}
		open := harness.Want(t, 200, "POST", tr+"/runs/search", "", map[string]any{"experiment_ids": all, "filter": "attributes.status = 'RUNNING'"}).JSON(t)
		if runs, _ := open["runs"].([]any); len(runs) > 0 {
			return fmt.Errorf("%d runs are RUNNING at the tracker", len(runs))
		}
		return nil
	})
	h := harness.Want(t, 200, "GET", cp+"/health", "", nil).JSON(t)
	box := h["runtime"].(map[string]any)["outbox"].(map[string]any)
	if box["poison"] != 0.0 {
		t.Fatalf(`outbox: %v; want box["poison"] == 0.0`, box)
	}
}

type event struct {
	ID, Type string
	Kind     string // of an approval
}

func countEvents(evs []event, name string) int {
	n := 0
	for _, e := range evs {
		// A completed run also opens a promotion, which has separate events.
		if e.Type == "platform."+name && e.Kind != "promotion" {
			n++
		}
	}
	return n
}

// readEventStream reads the whole event stream.
func readEventStream(t *testing.T, p *harness.Platform) []event {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	u := url.URL{Scheme: "nats", Host: p.Setting("NATS_ADDR"), User: url.User(p.Secret(t, "nats_token"))}
	nc, err := nats.Connect(u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(ctx, "PLATFORM")
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Info(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if info.State.Msgs == 0 {
		return nil
	}
	c, err := s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var out []event
	for uint64(len(out)) < info.State.Msgs {
		m, err := c.Next(jetstream.FetchMaxWait(5 * time.Second))
		if err != nil {
			t.Fatalf("after %d of %d messages: %v", len(out), info.State.Msgs, err)
		}
		var e struct {
			ID, Type, Source, SpecVersion string
			Data                          struct{ Kind string }
		}
		if err := json.Unmarshal(m.Data(), &e); err != nil || e.ID == "" || e.SpecVersion != "1.0" || !strings.HasPrefix(e.Source, "/services/") {
			t.Fatalf(`not a CloudEvents envelope (%v): %s; want e.ID != "" && e.SpecVersion == "1.0" && strings.HasPrefix(e.Source, "/services/")`, err, m.Data())
		}
		if got := m.Headers().Get("Nats-Msg-Id"); got != e.ID {
			t.Fatalf("Nats-Msg-Id %q of event %q; want got == %v", got, e.ID, e.ID)
		}
		out = append(out, event{e.ID, e.Type, e.Data.Kind})
	}
	return out
}

// Told to stop in the middle of a training, the platform lets the trainer record its end: after the next start the
// tracker's run is KILLED, not RUNNING for ever.
func TestStoppedMidTraining(t *testing.T) {
	p := harness.New(t, "PLATFORM_SEED=false")
	p.Start(t, 30*time.Second)
	harness.Want(t, 200, "POST", p.Env["CONTROL_PLANE_URL"]+"/retrain", p.Secret(t, "operator_token"),
		map[string]any{"model_name": "RuntimeRegressor", "dataset_name": "IpscJobs"})
	harness.Eventually(t, 30*time.Second, func() error {
		if got := trackerRuns(t, p); len(got) != 1 || got[0] != "RUNNING" {
			return fmt.Errorf("tracker runs: %v", got)
		}
		return nil
	})
	p.Stop(t)
	p.Start(t, 30*time.Second)
	if got := trackerRuns(t, p); len(got) != 1 || got[0] != "KILLED" {
		t.Fatalf("tracker runs after the stop: %v, want one KILLED", got)
	}
	if runs := flowRuns(t, p); len(runs) != 1 || runs[0]["state_type"] != "CRASHED" {
		t.Fatalf("flow runs after the stop: %v, want one CRASHED", runs)
	}
}

// trackerRuns lists the status of every run of the tracker.
func trackerRuns(t *testing.T, p *harness.Platform) (status []string) {
	t.Helper()
	api := p.Tracker() + "/api/2.0/mlflow/"
	var exps struct {
		Experiments []struct {
			ID string `json:"experiment_id"`
		}
	}
	var runs struct {
		Runs []struct{ Info struct{ Status string } }
	}
	if err := json.Unmarshal(harness.Want(t, 200, "POST", api+"experiments/search", "", map[string]any{"max_results": 100}).Body, &exps); err != nil {
		t.Fatal(err)
	}
	ids := []string{}
	for _, e := range exps.Experiments {
		ids = append(ids, e.ID)
	}
	if err := json.Unmarshal(harness.Want(t, 200, "POST", api+"runs/search", "", map[string]any{"experiment_ids": ids, "max_results": 100}).Body, &runs); err != nil {
		t.Fatal(err)
	}
	for _, r := range runs.Runs {
		status = append(status, r.Info.Status)
	}
	return status
}

// A stop before anything is ready is a stop, not a failure, at any moment. Moments are counted from when the process
// holds its data directory: before its main function the kernel ends it.
func TestStoppedWhileStarting(t *testing.T) {
	for _, after := range []time.Duration{0, 250, 750, 1350, 2050} {
		p := harness.New(t, "PLATFORM_SEED=false")
		p.Launch(t)
		harness.Eventually(t, time.Minute, func() error {
			_, err := os.Stat(filepath.Join(p.Dir, "platform.lock"))
			return err
		})
		select { // the moment is the point of the test
		case <-p.Done():
		case <-time.After(after * time.Millisecond):
		}
		p.Stop(t)
	}
}
