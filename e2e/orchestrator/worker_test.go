//go:build e2e

package orchestrator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/e2e/harness"
	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/libs/tracker"
)

// workers starts workers at one orchestrator, with a proxy in between that can be cut.
type workers struct {
	api     string
	client  *orchestrator.Client
	tracker *tracker.Client
	proxy   *harness.Proxy // before the orchestrator
	gate    *gate          // before the tracker, for the trainings alone
	repo    string         // the model repository
	env     []string
}

// testWorker makes the platform's own worker train at the orchestrator; runs are recorded at the platform's tracker.
// Its parts run in sequence: they share the pool, whose name is fixed.
func testWorker(t *testing.T, api string, p *harness.Platform, cases []workerCase) {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	hc := &http.Client{Transport: transport}
	w := &workers{
		api: api, client: orchestrator.New(api, hc), tracker: tracker.New(p.Env["TRACKING_URI"], hc, tracker.Token(p.Env["MLFLOW_TRACKING_TOKEN"])),
		proxy: harness.NewProxy(t, harness.FreePorts(t, 1)[0], strings.TrimSuffix(api, "/api")),
		gate:  newGate(t, p.Env["TRACKING_URI"]), repo: p.Env["PLATFORM_MODELREPO"],
		env: append(os.Environ(), "MLFLOW_TRACKING_TOKEN="+p.Env["MLFLOW_TRACKING_TOKEN"],
			"CONTROL_PLANE_URL=", "MODELREPO_DIR="+p.Env["PLATFORM_MODELREPO"], "WORKER_POLL_SECONDS=1", "WORKER_HEARTBEAT_SECONDS=1",
			"WORKER_LOST_SECONDS=3", "PREFECT_API_KEY=", "PREFECT_FLOW_RUN_ID="),
	}
	w.env = append(w.env, "PREFECT_API_URL="+w.proxy.URL+"/api", "TRACKING_URI="+w.gate.url)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Cleanup(w.gate.release)
			c.test(t, w)
		})
	}
}

type workerCase struct {
	name string
	test func(*testing.T, *workers)
}

var (
	registration = workerCase{"registers the deployments and their schedules", testRegistration}
	killedOnce   = workerCase{"killed once, finishes once", testKilledOnce}
	killedShort  = workerCase{"killed once, finishes once, on generated rows", testKilledShort}
	allWorker    = []workerCase{
		registration,
		killedOnce,
		scheduled,
		{"cancelled", testWorkerCancel},
		{"stopped, the next one goes on", testStopped},
		{"a training that is killed has crashed, one that fails has failed", testCrash},
		{"the orchestrator is away while the training ends", testLostServer},
		{"the worker never comes back", testLostWorker},
	}
)

// workerProcess is one trainer worker.
type workerProcess struct {
	cmd *exec.Cmd
	out *bytes.Buffer
}

func (w *workers) start(t *testing.T, name, state string, extra ...string) *workerProcess {
	t.Helper()
	p := &workerProcess{exec.Command(harness.Bin(t, "trainer"), "worker", "--name", name), &bytes.Buffer{}}
	p.cmd.Env = append(append(w.env, "WORKER_STATE_DIR="+filepath.Join(state, "own"), "DATA_CACHE_DIR="+t.TempDir()), extra...)
	p.cmd.Stderr = p.out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("--- worker %s\n%s", name, p.out.String())
		}
	})
	return p
}

func (p *workerProcess) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.cmd.Wait()
}

// stop tells the worker to end and waits until it has.
func (p *workerProcess) stop(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Fatalf("the worker ended with %v; want no error\n%s", err, p.out.String())
	}
}

// short is a training of seconds: generated rows in place of the job log.
var short = map[string]any{"is_dummy": true}

// dispatch requests a training of RuntimeClass, on the job log unless extra says otherwise.
func (w *workers) dispatch(t *testing.T, extra map[string]any) orchestrator.FlowRun {
	t.Helper()
	var d orchestrator.Deployment
	harness.Eventually(t, 30*time.Second, func() (err error) {
		if d, err = w.client.ReadDeploymentByName(t.Context(), "training_flow", "platform-dispatch"); err == nil && d.WorkPoolName == nil {
			err = fmt.Errorf("deployment %+v is in no work pool yet", d)
		}
		return err
	})
	parameters := map[string]any{"model_name": "RUNTIMECLASS", "dataset_cls_name": "IpscJobs", "requested_by": "e2e"}
	for k, v := range extra {
		parameters[k] = v
	}
	run, _, err := w.client.CreateFlowRun(t.Context(), d.ID, orchestrator.CreateFlowRun{Parameters: parameters, IdempotencyKey: uuid.NewString()})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func (w *workers) await(t *testing.T, id uuid.UUID, want orchestrator.StateType) (run orchestrator.FlowRun) {
	t.Helper()
	harness.Eventually(t, 2*time.Minute, func() (err error) {
		if run, err = w.client.ReadFlowRun(t.Context(), id); err == nil && run.StateType != want {
			err = fmt.Errorf("run %s is %s (%s); want %s", id, run.StateType, run.Message(), want)
		}
		return err
	})
	return run
}

// tracked lists the tracker's runs of a flow run.
func (w *workers) tracked(t *testing.T, id uuid.UUID) []tracker.Run {
	t.Helper()
	exp, err := w.tracker.EnsureExperiment(t.Context(), "runtimeclass_ipscjobs")
	if err != nil {
		t.Fatal(err)
	}
	runs, _, err := w.tracker.SearchRuns(t.Context(), tracker.RunQuery{ExperimentIDs: []string{exp.ID}, Filter: "tags.prefect_flow_run_id = " + tracker.Quote(id.String())})
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

// underWay waits until the run is RUNNING and its training waits at the gate.
func (w *workers) underWay(t *testing.T, id uuid.UUID) {
	t.Helper()
	w.gate.await(t)
	w.await(t, id, orchestrator.Running)
	if runs := w.tracked(t, id); len(runs) != 1 {
		t.Fatalf("%d runs at the tracker; want 1", len(runs))
	}
}

// versions returns those registered from the flow run.
func (w *workers) versions(t *testing.T, id uuid.UUID) (all []string) {
	t.Helper()
	for _, run := range w.tracked(t, id) {
		for v, err := range w.tracker.SearchModelVersions(t.Context(), "run_id = "+tracker.Quote(run.ID)) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, v.Version)
		}
	}
	return all
}

// children returns the trainings of a flow run that are running on this machine.
func children(t *testing.T, id uuid.UUID) (pids []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		b, err := os.ReadFile(file)
		if err != nil { // it has ended
			continue
		}
		if slices.Contains(strings.Split(string(b), "\x00"), "--flow-run="+id.String()) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

func (w *workers) states(t *testing.T, id uuid.UUID) string {
	t.Helper()
	all, err := w.client.States(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range all {
		if s.Name != "Late" { // a real server's word for a run that no worker has taken for some seconds
			names = append(names, s.Name)
		}
	}
	return strings.Join(names, " ")
}

func testRegistration(t *testing.T, w *workers) {
	p := w.start(t, "registrar", t.TempDir())
	for name, want := range map[string]struct {
		active bool
		cron   string
		limit  int
	}{
		"platform-nightly":              {false, "0 2 * * *", 1},
		"platform-runtimeclass-nightly": {true, "0 2 * * *", 1},
	} {
		harness.Eventually(t, time.Minute, func() error {
			d, err := w.client.ReadDeploymentByName(t.Context(), "scheduled_training", name)
			if err != nil {
				return err
			}
			if len(d.Schedules) != 1 || d.Schedules[0].Active != want.active || d.Schedules[0].Schedule.Cron != want.cron || d.WorkPoolName == nil || *d.WorkPoolName != "platform" {
				return fmt.Errorf("%s: %+v; want %+v in pool platform", name, d, want)
			}
			return nil
		})
	}
	harness.Eventually(t, 30*time.Second, func() error {
		all, err := w.client.Workers(t.Context(), "platform")
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(x orchestrator.PoolWorker) bool {
			return strings.HasPrefix(x.Name, "registrar-") && x.Status == "ONLINE"
		}) {
			return fmt.Errorf("workers %+v; want registrar, ONLINE", all)
		}
		return nil
	})
	testDeployBesideAWorker(t, w)
	p.stop(t)
	testUnscheduledStaysSo(t, w)
}

// testDeployBesideAWorker shows that mlp pipeline deploy and the worker write the same deployment: neither undoes the
// other's changes.
func testDeployBesideAWorker(t *testing.T, w *workers) {
	if got := w.deploy(t); got != "unchanged" {
		t.Errorf("pipeline deploy beside a worker: %s; want unchanged", got)
	}
	if got := w.deploy(t, "--no-schedule"); got != "updated" {
		t.Errorf("pipeline deploy --no-schedule: %s; want updated", got)
	}
}

// testUnscheduledStaysSo starts a worker on a deployment whose schedule an operator switched off.
func testUnscheduledStaysSo(t *testing.T, w *workers) {
	const name = "platform-runtimeclass-nightly"
	before, err := w.client.ReadDeploymentByName(t.Context(), "scheduled_training", name)
	if err != nil {
		t.Fatal(err)
	}
	p := w.start(t, "successor", t.TempDir())
	harness.Eventually(t, time.Minute, func() error {
		d, err := w.client.ReadDeploymentByName(t.Context(), "scheduled_training", name)
		if err == nil && !d.Updated.After(before.Updated) {
			err = fmt.Errorf("%s was last written at %s; want a registration after %s", name, d.Updated, before.Updated)
		}
		if err == nil && (len(d.Schedules) != 1 || d.Schedules[0].Active) {
			t.Fatalf("schedules of %s after a worker's start: %+v; want one that is off, as deployed", name, d.Schedules)
		}
		return err
	})
	p.stop(t)
	if got := w.deploy(t, "--no-schedule"); got != "unchanged" {
		t.Errorf("pipeline deploy --no-schedule again: %s; want unchanged", got)
	}
	if got := w.deploy(t); got != "updated" {
		t.Errorf("pipeline deploy with the schedule: %s; want updated", got)
	}
	if d, err := w.client.ReadDeploymentByName(t.Context(), "scheduled_training", name); err != nil || len(d.Schedules) != 1 || !d.Schedules[0].Active {
		t.Errorf("schedules of %s: %+v, %v; want one that is on", name, d.Schedules, err)
	}
}

// deploy runs mlp pipeline deploy for RuntimeClass and returns the resulting deployment.
func (w *workers) deploy(t *testing.T, options ...string) string {
	t.Helper()
	cmd := exec.Command(harness.Bin(t, "mlp"), append([]string{"--yes", "--json", "pipeline", "deploy", "--env", "prod", "--model", "RuntimeClass"}, options...)...)
	api, err := url.Parse(w.api)
	if err != nil {
		t.Fatal(err)
	}
	key, _ := api.User.Password() // mlp accepts no address with a credential in it
	api.User = nil
	cmd.Env = append(w.env, "HOME="+t.TempDir(), "ORCHESTRATOR_API_URL="+api.String(), "PREFECT_API_KEY="+key, "PLATFORM_MODELREPO="+w.repo)
	var out, talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &talk
	err = cmd.Run()
	var rows []struct {
		Result string `json:"result"`
	}
	if err != nil || json.Unmarshal(out.Bytes(), &rows) != nil || len(rows) != 1 {
		t.Fatalf("%s: %v\n%s%s", cmd, err, out.String(), talk.String())
	}
	return rows[0].Result
}

func testKilledOnce(t *testing.T, w *workers) { w.killOnce(t, nil) }

func testKilledShort(t *testing.T, w *workers) { w.killOnce(t, short) }

func (w *workers) killOnce(t *testing.T, what map[string]any) {
	state := t.TempDir()
	p := w.start(t, "mortal", state)
	w.gate.hold(creation)
	run := w.dispatch(t, what)
	w.underWay(t, run.ID)
	p.kill()
	harness.Eventually(t, 20*time.Second, func() error {
		if pids := children(t, run.ID); len(pids) != 0 {
			return fmt.Errorf("processes %v outlive their worker", pids)
		}
		return nil
	})
	w.gate.release()
	p = w.start(t, "mortal", state)
	done := w.await(t, run.ID, orchestrator.Completed)
	if v := w.versions(t, run.ID); len(v) != 1 || !strings.HasSuffix(done.Message(), "registered RUNTIMECLASS version "+v[0]) {
		t.Errorf("versions %v, message %q; want one version, named in the message", v, done.Message())
	}
	ended := map[tracker.RunStatus]int{}
	for _, r := range w.tracked(t, run.ID) {
		ended[r.Status]++
	}
	if ended[tracker.Killed] != 1 || ended[tracker.Finished] != 1 || len(ended) != 2 {
		t.Errorf("runs at the tracker by status %v; want one KILLED, one FINISHED", ended)
	}
	if got := w.states(t, run.ID); got != "Scheduled Pending Running AwaitingRetry Pending Running Completed" {
		t.Errorf("states %q; want Scheduled Pending Running AwaitingRetry Pending Running Completed", got)
	}
	harness.Eventually(t, 20*time.Second, func() error {
		lines, err := w.client.Logs(t.Context(), run.ID, 0, 0)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(lines, func(l orchestrator.Log) bool { return strings.HasPrefix(l.Message, "register ") }) {
			return fmt.Errorf("%d lines of the log, none of the stage register", len(lines))
		}
		return nil
	})
	p.stop(t)
}

func testWorkerCancel(t *testing.T, w *workers) {
	p := w.start(t, "obedient", t.TempDir())
	w.gate.hold(recording)
	run := w.dispatch(t, short)
	w.underWay(t, run.ID)
	if _, err := w.client.SetState(t.Context(), run.ID, orchestrator.State{Type: orchestrator.Cancelling}, false); err != nil {
		t.Fatal(err)
	}
	w.await(t, run.ID, orchestrator.Cancelled)
	if runs := w.tracked(t, run.ID); len(runs) != 1 || runs[0].Status != tracker.Killed || len(w.versions(t, run.ID)) != 0 {
		t.Errorf("runs at the tracker %+v; want one, KILLED, without a version", runs)
	}
	p.stop(t)
}

func testStopped(t *testing.T, w *workers) {
	p := w.start(t, "first", t.TempDir())
	w.gate.hold(recording)
	run := w.dispatch(t, short)
	w.underWay(t, run.ID)
	p.stop(t)
	w.gate.release()
	if got := w.await(t, run.ID, orchestrator.Scheduled); got.StateName != "AwaitingRetry" {
		t.Errorf("the run is %s; want AwaitingRetry", got.StateName)
	}
	next := w.start(t, "second", t.TempDir())
	w.await(t, run.ID, orchestrator.Completed)
	if v := w.versions(t, run.ID); len(v) != 1 {
		t.Errorf("versions %v; want one", v)
	}
	next.stop(t)
}

func testCrash(t *testing.T, w *workers) {
	p := w.start(t, "watchful", t.TempDir())
	w.gate.hold(recording)
	run := w.dispatch(t, short)
	w.underWay(t, run.ID)
	for _, pid := range children(t, run.ID) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.await(t, run.ID, orchestrator.Crashed); !strings.Contains(got.Message(), "killed") {
		t.Errorf("message %q; want it to name the signal", got.Message())
	}
	w.gate.release()
	run = w.dispatch(t, map[string]any{"model_name": "ORACLE"})
	if got := w.await(t, run.ID, orchestrator.Failed); !strings.Contains(got.Message(), `unknown model "ORACLE"`) {
		t.Errorf("message %q; want the trainer's own reason", got.Message())
	}
	p.stop(t)
}

func testLostServer(t *testing.T, w *workers) {
	p := w.start(t, "patient", t.TempDir())
	w.gate.hold(recording)
	run := w.dispatch(t, short)
	w.underWay(t, run.ID)
	w.proxy.Refuse()
	w.gate.release()
	harness.Eventually(t, time.Minute, func() error {
		if v := w.versions(t, run.ID); len(v) != 1 || len(children(t, run.ID)) != 0 {
			return fmt.Errorf("versions %v, children %v; want one version and no child", v, children(t, run.ID))
		}
		return nil
	})
	if got, err := w.client.ReadFlowRun(t.Context(), run.ID); err != nil || got.StateType != orchestrator.Running {
		t.Errorf("meanwhile %s, %v; want RUNNING", got.StateType, err)
	}
	w.proxy.Forward()
	w.await(t, run.ID, orchestrator.Completed)
	p.stop(t)
}

func testLostWorker(t *testing.T, w *workers) {
	p := w.start(t, "departed", t.TempDir())
	w.gate.hold(recording)
	run := w.dispatch(t, short)
	w.underWay(t, run.ID)
	p.kill()
	other := w.start(t, "survivor", t.TempDir())
	if got := w.await(t, run.ID, orchestrator.Crashed); !strings.Contains(got.Message(), "worker departed-") {
		t.Errorf("message %q; want it to name the lost worker", got.Message())
	}
	if v := w.versions(t, run.ID); len(v) != 0 {
		t.Errorf("versions %v; want none", v)
	}
	other.stop(t)
}
