//go:build e2e

package orchestrator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/e2e/harness"
	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/libs/testenv"
)

const token = "dispatch-suite-0123456789"

// schema is the one that the platform's worker registers for the flow that trains; enforced, so that the orchestrator
// itself refuses a parameter of the wrong type.
const schema = `{"type": "object", "required": ["model_name", "dataset_cls_name"], "properties": {
	"model_name": {"type": "string"}, "dataset_cls_name": {"type": "string"}, "is_dummy": {"type": "boolean"},
	"backend_name": {"type": "string"}, "commit_sha": {"type": "string"}, "tenant": {"type": "string"},
	"request_id": {"type": "string"}, "requested_by": {"type": "string"}, "approval_id": {"type": "string"},
	"parameters": {"type": "object", "properties": {"epochs": {"type": "integer"}}}}}`

// plane is a control plane in a separate process, with a proxy between it and the orchestrator.
type plane struct {
	t          *testing.T
	url        string
	env        []string
	proxy      *harness.Proxy
	client     *orchestrator.Client
	flow       orchestrator.Flow
	pool       orchestrator.WorkPool
	deployment orchestrator.Deployment
	cmd        *exec.Cmd
}

func testDispatch(t *testing.T, api string, cases []dispatchCase) {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	ports := harness.FreePorts(t, 2)
	p := &plane{t: t, url: "http://" + ports[0], client: orchestrator.New(api, &http.Client{Transport: transport})}
	p.proxy = harness.NewProxy(t, ports[1], api[:len(api)-len("/api")])
	name := "training_flow_" + uuid.NewString()[:8]
	var err error
	if p.flow, err = p.client.CreateFlow(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	// Runs of a pool wait for a worker: here the suite acts as the worker.
	if p.pool, err = p.client.CreateWorkPool(t.Context(), name, "process", "dispatch suite"); err != nil {
		t.Fatal(err)
	}
	p.register(t)
	p.env = append(os.Environ(),
		"DRAIN_DELAY=0s", "PLATFORM_DATABASE_URL="+testenv.Postgres(t), "NATS_URL="+testenv.NATS(t), "PREFECT_API_URL="+p.proxy.URL+"/api",
		"PREFECT_DEPLOYMENT_NAME="+name+"/platform-dispatch", "TRACKING_URI=http://127.0.0.1:1", "CONTROL_PLANE_ADDR="+ports[0],
		"MODELREPO_DIR="+filepath.Join(harness.Root(t), "deploy/modelrepo"), "CONTROL_PLANE_TOKEN="+token, "COMMAND_LEASE_SECONDS=15",
		"RETRAIN_RATE_LIMIT_PER_MIN=0", "DECISION_RATE_LIMIT_PER_MIN=0", "ADMISSION_MAX_RUNNING=64", "ADMISSION_PER_TENANT=64", "LOG_LEVEL=warn")
	migrate := exec.Command(harness.Bin(t, "control-plane"), "migrate")
	migrate.Env = p.env
	if out, err := migrate.CombinedOutput(); err != nil {
		t.Fatalf("migrate: %v\n%s", err, out)
	}
	p.start(t)
	t.Cleanup(func() { p.kill() })

	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.test(t, p) })
	}
}

type dispatchCase struct {
	name string
	test func(*testing.T, *plane)
}

var (
	shortDispatch = []dispatchCase{
		{"retrain arrives with its parameters", testRetrain},
		{"the same key is one run", testSameKey},
		{"approve starts one run", testApprove},
		{"cancel", testCancel},
		{"the orchestrator refuses the parameters", testRefused},
	}
	allDispatch = append(shortDispatch[:len(shortDispatch):len(shortDispatch)], []dispatchCase{
		{"many at once are that many runs", testManyAtOnce},
		{"a run is followed to its end", testFollow},
		{"killed in the middle of an approval", testKilled},
		{"unreachable, then back", testUnreachable},
		{"the deployment is gone, then registered anew", testDeploymentGone},
	}...)
)

func (p *plane) register(t *testing.T) {
	t.Helper()
	var err error
	if p.deployment, err = p.client.CreateDeployment(t.Context(), orchestrator.CreateDeployment{
		FlowID: p.flow.ID, Name: "platform-dispatch", ParameterSchema: json.RawMessage(schema), EnforceParameterSchema: true,
		WorkPoolName: p.pool.Name,
	}); err != nil {
		t.Fatal(err)
	}
}

func (p *plane) start(t *testing.T) {
	t.Helper()
	cmd := exec.Command(harness.Bin(t, "control-plane"))
	cmd.Env, cmd.Stderr = p.env, p.t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.cmd = cmd
	harness.Eventually(t, 30*time.Second, func() error {
		h, err := harness.TryCall("GET", p.url+"/health", "", nil)
		if err != nil {
			return err
		}
		if d, _ := h.JSON(t)["dispatch"].(map[string]any); d["state"] != "ok" {
			return fmt.Errorf("dispatch %v", d)
		}
		return nil
	})
}

func (p *plane) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // killed, so it always returns an error
}

// retrain dispatches a run; extra members go into the body.
func (p *plane) retrain(t *testing.T, extra map[string]any, headers ...string) harness.Answer {
	t.Helper()
	body := map[string]any{"model_name": "RuntimeClass", "dataset_name": "IpscJobs", "backend_name": "local"}
	for k, v := range extra {
		body[k] = v
	}
	return harness.Call(t, "POST", p.url+"/retrain", token, body, headers...)
}

func (p *plane) started(t *testing.T, a harness.Answer) orchestrator.FlowRun {
	t.Helper()
	if a.Status != 200 {
		t.Fatalf("%d %s; want a.Status == 200", a.Status, a.Body)
	}
	run, err := p.client.ReadFlowRun(t.Context(), uuid.MustParse(a.JSON(t)["flow_run_id"].(string)))
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// runs counts the orchestrator's runs of this suite's deployment.
func (p *plane) runs(t *testing.T) int {
	t.Helper()
	n, err := p.client.CountFlowRuns(t.Context(), orchestrator.Filter{DeploymentIDs: []uuid.UUID{p.deployment.ID}})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (p *plane) notice(t *testing.T, model, commit string) string {
	t.Helper()
	out := harness.Want(t, 200, "POST", p.url+"/api/changes", token, map[string]any{
		"model_ids": []string{model}, "commit_sha": commit, "commit_msg": "a change", "changed_files": []string{"models/x"},
	}).JSON(t)
	return out["created"].([]any)[0].(string)
}

func problemCode(a harness.Answer) string {
	var v struct{ Code string }
	_ = json.Unmarshal(a.Body, &v)
	return v.Code
}

func testRetrain(t *testing.T, p *plane) {
	a := p.retrain(t, map[string]any{"is_dummy": true, "parameters": map[string]any{"epochs": 3}}, "X-Request-ID", "dispatch-suite")
	run := p.started(t, a)
	want := map[string]any{
		"model_name": "RUNTIMECLASS", "dataset_cls_name": "IpscJobs", "is_dummy": true, "backend_name": "local",
		"tenant": "default", "request_id": "dispatch-suite", "requested_by": "legacy",
	}
	for k, v := range want {
		if run.Parameters[k] != v {
			t.Errorf("parameter %s is %v, want %v", k, run.Parameters[k], v)
		}
	}
	if inner, _ := run.Parameters["parameters"].(map[string]any); inner["epochs"] != 3.0 {
		t.Errorf(`own parameters %v; want inner["epochs"] == 3.0`, run.Parameters["parameters"])
	}
	if run.DeploymentID == nil || *run.DeploymentID != p.deployment.ID || run.StateType != orchestrator.Scheduled {
		t.Errorf("run %+v; want run.DeploymentID != nil && *run.DeploymentID == p.deployment.ID && run.StateType == orchestrator.Scheduled", run)
	}
	if a.JSON(t)["status_url"] != "/retrain/"+run.ID.String() {
		t.Errorf(`answer %s; want a.JSON(t)["status_url"] == "/retrain/" + run.ID.String()`, a.Body)
	}
	s := harness.Want(t, 200, "GET", p.url+"/retrain/"+run.ID.String(), token, nil).JSON(t)
	if s["state_type"] != "SCHEDULED" || s["is_terminal"] != false || s["model_id"] != "RUNTIMECLASS" {
		t.Errorf(`status %v; want s["state_type"] == "SCHEDULED" && s["is_terminal"] == false && s["model_id"] == "RUNTIMECLASS"`, s)
	}
}

func testSameKey(t *testing.T, p *plane) {
	before := p.runs(t)
	first := p.retrain(t, nil, "Idempotency-Key", "one")
	again := p.retrain(t, nil, "X-Idempotency-Key", "one")
	if p.started(t, first).ID != p.started(t, again).ID || again.Header.Get("Idempotency-Replayed") != "true" {
		t.Fatalf(`%s then %s; want p.started(t, first).ID == p.started(t, again).ID && again.Header.Get("Idempotency-Replayed") == "true"`, first.Body, again.Body)
	}
	if a := p.retrain(t, map[string]any{"is_dummy": true}, "Idempotency-Key", "one"); a.Status != 409 || problemCode(a) != "idempotency_conflict" {
		t.Fatalf(`other body: %d %s; want a.Status == 409 && problemCode(a) == "idempotency_conflict"`, a.Status, a.Body)
	}
	if n := p.runs(t) - before; n != 1 {
		t.Fatalf("%d runs; want 1", n)
	}
}

func testManyAtOnce(t *testing.T, p *plane) {
	before := p.runs(t)
	models := map[string]string{"JPCP": "JobEmbeddings", "MACK": "JobEmbeddings", "MCBound": "JobEmbeddings", "RuntimeClass": "IpscJobs", "RuntimeRegressor": "IpscJobs"}
	ids := make(chan string, 100)
	var wg sync.WaitGroup
	for round := range 4 {
		for model, dataset := range models {
			wg.Go(func() {
				harness.Eventually(t, time.Minute, func() error { // one of the same model may be in progress
					a := p.retrain(t, map[string]any{"model_name": model, "dataset_name": dataset}, "Idempotency-Key", fmt.Sprintf("many-%d-%s", round, model))
					if a.Status != 200 {
						return fmt.Errorf("%d %s", a.Status, a.Body)
					}
					ids <- a.JSON(t)["flow_run_id"].(string)
					return nil
				})
			})
		}
	}
	wg.Wait()
	close(ids)
	distinct := map[string]bool{}
	for id := range ids {
		distinct[id] = true
	}
	if n := p.runs(t) - before; n != 20 || len(distinct) != 20 {
		t.Fatalf("%d runs, %d ids, want 20", n, len(distinct))
	}
}

func testApprove(t *testing.T, p *plane) {
	before := p.runs(t)
	id := p.notice(t, "JPCP", "c0ffee01")
	a := harness.Call(t, "POST", p.url+"/approve/jpcp", token, nil)
	run := p.started(t, a)
	if run.Parameters["commit_sha"] != "c0ffee01" || run.Parameters["approval_id"] != id || run.IdempotencyKey == nil || *run.IdempotencyKey != "approval:"+id {
		t.Fatalf(`run %+v; want run.Parameters["commit_sha"] == "c0ffee01" && run.Parameters["approval_id"] == id && run.IdempotencyKey != nil && *run.IdempotencyKey == "approval:" + id`, run)
	}
	if r := harness.Want(t, 200, "GET", p.url+"/approvals/"+id, token, nil).JSON(t); r["status"] != "approved" || r["prefect_run_id"] != run.ID.String() {
		t.Fatalf(`record %v; want r["status"] == "approved" && r["prefect_run_id"] == run.ID.String()`, r)
	}
	if n := p.runs(t) - before; n != 1 {
		t.Fatalf("%d runs; want 1", n)
	}
}

func (p *plane) wait(t *testing.T, id uuid.UUID, state string, terminal bool) {
	t.Helper()
	harness.Eventually(t, 20*time.Second, func() error {
		a, err := harness.TryCall("GET", p.url+"/retrain/"+id.String(), token, nil)
		if err != nil {
			return err
		}
		if s := a.JSON(t); s["state_type"] != state || s["is_terminal"] != terminal {
			return fmt.Errorf("%v", s)
		}
		return nil
	})
}

func (p *plane) set(t *testing.T, id uuid.UUID, s orchestrator.StateType) {
	t.Helper()
	got, err := p.client.SetState(t.Context(), id, orchestrator.State{Type: s, Message: "by the suite"}, true)
	if err != nil || got.Status != orchestrator.Accept {
		t.Fatalf("%s: %+v, %v; want got.Status == orchestrator.Accept", s, got, err)
	}
}

func testFollow(t *testing.T, p *plane) {
	ends := []orchestrator.StateType{orchestrator.Completed, orchestrator.Failed, orchestrator.Crashed, orchestrator.Cancelled}
	var runs []uuid.UUID
	for range ends {
		run := p.started(t, p.retrain(t, nil))
		p.set(t, run.ID, orchestrator.Pending)
		p.set(t, run.ID, orchestrator.Running)
		runs = append(runs, run.ID)
	}
	for _, id := range runs {
		p.wait(t, id, "RUNNING", false)
	}
	for i, id := range runs {
		p.set(t, id, ends[i])
	}
	for i, id := range runs {
		p.wait(t, id, string(ends[i]), true)
	}
}

func testCancel(t *testing.T, p *plane) {
	run := p.started(t, p.retrain(t, nil))
	p.set(t, run.ID, orchestrator.Pending)
	p.set(t, run.ID, orchestrator.Running)
	p.wait(t, run.ID, "RUNNING", false)
	harness.Want(t, 202, "POST", p.url+"/retrain/"+run.ID.String()+"/cancel", token, nil)
	p.wait(t, run.ID, "CANCELLING", false)
	p.set(t, run.ID, orchestrator.Cancelled) // as the worker does when the flow has ended
	p.wait(t, run.ID, "CANCELLED", true)
	if a := harness.Call(t, "POST", p.url+"/retrain/"+run.ID.String()+"/cancel", token, nil); a.Status != 409 || problemCode(a) != "run_ended" {
		t.Fatalf(`cancel of an ended run: %d %s; want a.Status == 409 && problemCode(a) == "run_ended"`, a.Status, a.Body)
	}
}

func testRefused(t *testing.T, p *plane) {
	before := p.runs(t)
	a := p.retrain(t, map[string]any{"parameters": map[string]any{"epochs": "many"}})
	if a.Status != 502 || problemCode(a) != "orchestrator_rejected" {
		t.Fatalf(`%d %s; want a.Status == 502 && problemCode(a) == "orchestrator_rejected"`, a.Status, a.Body)
	}
	if n := p.runs(t) - before; n != 0 {
		t.Fatalf("%d runs; want 0", n)
	}
	if h := harness.Want(t, 200, "GET", p.url+"/health", "", nil).JSON(t); h["circuit_breaker"].(map[string]any)["state"] != "closed" {
		t.Fatalf(`a refusal is no failure: %v; want h["circuit_breaker"].(map[string]any)["state"] == "closed"`, h["circuit_breaker"])
	}
}

func testKilled(t *testing.T, p *plane) {
	before := p.runs(t)
	id := p.notice(t, "MACK", "c0ffee02")
	p.proxy.Swallow()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = harness.TryCall("POST", p.url+"/approvals/"+id+"/approve", token, nil) // its connection dies with the process
	}()
	<-p.proxy.Swallowed() // the orchestrator has the run, the control plane does not know it
	p.kill()
	<-gone
	p.proxy.Forward()
	p.start(t)
	harness.Eventually(t, time.Minute, func() error {
		if r := harness.Want(t, 200, "GET", p.url+"/approvals/"+id, token, nil).JSON(t); r["status"] != "approved" || r["prefect_run_id"] == nil {
			return fmt.Errorf("record %v", r)
		}
		return nil
	})
	if n := p.runs(t) - before; n != 1 {
		t.Fatalf("%d runs; want 1", n)
	}
}

func testUnreachable(t *testing.T, p *plane) {
	before := p.runs(t)
	id := p.notice(t, "MCBound", "c0ffee03")
	p.proxy.Refuse()
	if a := harness.Call(t, "POST", p.url+"/approve/MCBound", token, nil); a.Status != 502 || problemCode(a) != "orchestrator_unreachable" {
		t.Fatalf(`%d %s; want a.Status == 502 && problemCode(a) == "orchestrator_unreachable"`, a.Status, a.Body)
	}
	if r := harness.Want(t, 200, "GET", p.url+"/approvals/"+id, token, nil).JSON(t); r["status"] != "pending" {
		t.Fatalf(`record %v; want r["status"] == "pending"`, r)
	}
	harness.Want(t, 200, "GET", p.url+"/readyz", "", nil)
	p.proxy.Forward()
	p.started(t, harness.Call(t, "POST", p.url+"/approve/MCBound", token, nil))
	if n := p.runs(t) - before; n != 1 {
		t.Fatalf("%d runs; want 1", n)
	}
}

func testDeploymentGone(t *testing.T, p *plane) {
	if err := p.client.DeleteDeployment(t.Context(), p.deployment.ID); err != nil {
		t.Fatal(err)
	}
	if a := p.retrain(t, nil); a.Status != 503 || problemCode(a) != "dispatch_target_missing" {
		t.Fatalf(`%d %s; want a.Status == 503 && problemCode(a) == "dispatch_target_missing"`, a.Status, a.Body)
	}
	p.register(t)
	if run := p.started(t, p.retrain(t, nil)); *run.DeploymentID != p.deployment.ID {
		t.Fatalf("run %+v; want *run.DeploymentID == %v", run, p.deployment.ID)
	}
}
