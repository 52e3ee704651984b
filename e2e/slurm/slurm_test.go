//go:build e2e && full

// Package slurm trains on a real Slurm of one node, started from Debian's packages.
package slurm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/libs/tracker"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// site is a cluster and a platform beside it.
type site struct {
	*harness.Platform
	conf    string
	dir     string // of the cluster
	work    string // where the jobs lie
	tracker *tracker.Client
	env     []string // of the trainer, with Slurm as its scheduler
}

func start(t *testing.T) *site {
	t.Helper()
	root := harness.Root(t)
	script := filepath.Join(root, "scripts", "slurm.sh")
	dir, err := os.MkdirTemp("", "slurm-") // short: the path of a socket must not be long
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("bash", script, "install").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("bash", script, "stop", dir).CombinedOutput(); err != nil {
			t.Errorf("stop Slurm: %v\n%s", err, out)
		}
		_ = os.RemoveAll(dir)
	})
	port := strconv.Itoa(harness.FreePortRow(t, 4))
	if out, err := exec.Command("bash", script, "start", dir, port).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := harness.New(t, "PLATFORM_SEED=false")
	p.Start(t, 5*time.Minute)
	s := &site{Platform: p, conf: filepath.Join(dir, "slurm.conf"), dir: dir, work: t.TempDir(), tracker: tracker.New(p.Env["TRACKING_URI"], nil, tracker.Token(p.Env["MLFLOW_TRACKING_TOKEN"]))}
	s.env = append(p.Environ(), "SLURM_CONF="+s.conf, "MODELREPO_DIR="+p.Env["PLATFORM_MODELREPO"], "PLATFORM_SCHEDULER_MODE=slurm",
		"HPC_WORK_DIR="+s.work, "HPC_POLL_SECONDS=1", "PREFECT_API_URL="+p.Env["ORCHESTRATOR_API_URL"], "PREFECT_FLOW_RUN_ID=",
		"WORKER_POLL_SECONDS=1", "WORKER_HEARTBEAT_SECONDS=1", "WORKER_LOST_SECONDS=60", "ORT_LIB="+filepath.Join(root, ".cache", "onnxruntime", "libonnxruntime.so.1"))
	return s
}

func (s *site) command(t *testing.T, extra []string, args ...string) (cmd *exec.Cmd, stderr *bytes.Buffer) {
	t.Helper()
	cmd = exec.Command(harness.Bin(t, "trainer"), args...)
	stderr = &bytes.Buffer{}
	cmd.Env, cmd.Stderr = append(s.env, extra...), stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	t.Cleanup(func() {
		if cmd.Process != nil && cmd.ProcessState == nil { // started, and not waited for
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		if t.Failed() {
			t.Logf("--- trainer %s\n%s", strings.Join(args, " "), stderr)
		}
	})
	return cmd, stderr
}

type result struct {
	RunID   string             `json:"run_id"`
	Version string             `json:"version"`
	Digest  string             `json:"artifact_digest"`
	Metrics map[string]float64 `json:"metrics"`
}

func (s *site) train(t *testing.T, extra ...string) (r result) {
	t.Helper()
	cmd, stderr := s.command(t, extra, "train", "--model", "RuntimeClass")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return r
}

func (s *site) run(t *testing.T, id string) tracker.Run {
	t.Helper()
	run, err := s.tracker.GetRun(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func (s *site) get(t *testing.T, path string) map[string]any {
	t.Helper()
	return harness.Want(t, 200, "GET", s.Env["CONTROL_PLANE_URL"]+path, s.Env["CONTROL_PLANE_TOKEN"], nil).JSON(t)
}

// slurm runs a command of Slurm.
func (s *site) slurm(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := s.trySlurm(argv...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// trySlurm is slurm for commands that may be refused.
func (s *site) trySlurm(argv ...string) (string, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "SLURM_CONF="+s.conf)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%v: %w", argv, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// dispatch requests a training from the orchestrator, for the worker.
func (s *site) dispatch(t *testing.T) (*orchestrator.Client, orchestrator.FlowRun) {
	t.Helper()
	c := orchestrator.New(s.Orchestrator(), nil)
	var d orchestrator.Deployment
	harness.Eventually(t, 30*time.Second, func() (err error) {
		if d, err = c.ReadDeploymentByName(t.Context(), "training_flow", "platform-dispatch"); err == nil && d.WorkPoolName == nil {
			err = fmt.Errorf("deployment %+v is in no work pool yet", d)
		}
		return err
	})
	run, _, err := c.CreateFlowRun(t.Context(), d.ID, orchestrator.CreateFlowRun{Parameters: map[string]any{"model_name": "RUNTIMECLASS", "dataset_cls_name": "IpscJobs"}})
	if err != nil {
		t.Fatal(err)
	}
	return c, run
}

func (s *site) runsOf(t *testing.T, flowRun string) []tracker.Run {
	t.Helper()
	exp, err := s.tracker.EnsureExperiment(t.Context(), "runtimeclass_ipscjobs")
	if err != nil {
		t.Fatal(err)
	}
	runs, _, err := s.tracker.SearchRuns(t.Context(), tracker.RunQuery{ExperimentIDs: []string{exp.ID}, Filter: "tags.prefect_flow_run_id = " + tracker.Quote(flowRun)})
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

func await(t *testing.T, c *orchestrator.Client, run orchestrator.FlowRun, want orchestrator.StateType) {
	t.Helper()
	harness.Eventually(t, 3*time.Minute, func() error {
		got, err := c.ReadFlowRun(t.Context(), run.ID)
		if err == nil && got.StateType != want {
			err = fmt.Errorf("the run is %s (%s); want %s", got.StateType, got.Message(), want)
		}
		return err
	})
}

func TestSlurm(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, c := range []struct {
		name  string
		test  func(*testing.T, *site)
		stays int // folders of jobs afterwards
	}{
		{"the same model three ways", testThreeWays, 0},
		{"a cancelled training cancels its job", testCancel, 0},
		{"a job that somebody cancels fails the training", testCancelledJob, 0},
		{"a worker killed while its job runs", testKilledWorker, 0},
		{"over SSH", testSSH, 0},
		{"a job that is requeued is paid for each time", testRequeued, 0},
		{"a job whose node fails starts over", testNodeFails, 0},
		{"a job that runs out of time fails the training", testTimeout, 0},
		{"a job that the scheduler loses fails the training", testLost, 1}, // last: its controller stays away
	} {
		t.Run(c.name, func(t *testing.T) {
			c.test(t, s)
			s.leavesFolders(t, c.stays)
		})
	}
}

// leavesFolders checks how many folders of jobs stay: only that of a job that could not be ended.
func (s *site) leavesFolders(t *testing.T, want int) {
	t.Helper()
	harness.Eventually(t, 20*time.Second, func() error {
		left, err := filepath.Glob(filepath.Join(s.work, "*"))
		if err == nil && len(left) != want {
			within, _ := filepath.Glob(filepath.Join(s.work, "*", "*"))
			err = fmt.Errorf("folders of jobs that stay: %v with %v; want %d", left, within, want)
		}
		return err
	})
}

func testThreeWays(t *testing.T, s *site) {
	inProcess := s.train(t, "PLATFORM_SCHEDULER_MODE=mock")

	worker, stderr := s.command(t, []string{"PLATFORM_SCHEDULER_MODE=mock", "WORKER_STATE_DIR=" + filepath.Join(t.TempDir(), "own")}, "worker")
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	c, run := s.dispatch(t)
	await(t, c, run, orchestrator.Completed)
	_ = worker.Process.Signal(syscall.SIGTERM)
	if err := worker.Wait(); err != nil {
		t.Errorf("the worker: %v\n%s", err, stderr)
	}
	runs := s.runsOf(t, run.ID.String())
	if len(runs) != 1 {
		t.Fatalf("runs of the worker at the tracker: %+v; want one", runs)
	}

	job := s.train(t)
	tags := s.run(t, job.RunID).Tags
	id := tags["hpc_job_id"]
	if tags["hpc_scheduler"] != "slurm" || tags["slurm_job_id"] != id || id == "" {
		t.Fatalf("tags %v; want those of a Slurm job", tags)
	}

	// The same seed and data make the same model, wherever they are trained.
	if !maps.Equal(inProcess.Metrics, job.Metrics) || inProcess.Digest != job.Digest || len(job.Metrics) == 0 {
		t.Errorf("in process %v, %s; as a job %v, %s; want both equal", inProcess.Metrics, inProcess.Digest, job.Metrics, job.Digest)
	}
	for name, want := range s.run(t, inProcess.RunID).Metrics {
		if byWorker, byJob := runs[0].Metrics[name], s.run(t, job.RunID).Metrics[name]; byWorker != want || byJob != want {
			t.Errorf("metric %s: %v in process, %v by the worker, %v as a job; want one figure", name, want, byWorker, byJob)
		}
	}

	// The job's usage is that of Slurm's accounting, and is recorded once; a training in a process costs nothing real.
	var elapsed, cpu float64
	if _, err := fmt.Sscanf(s.slurm(t, "sacct", "-P", "-n", "-X", "-j", id, "-o", "ElapsedRaw,CPUTimeRAW"), "%f|%f", &elapsed, &cpu); err != nil {
		t.Fatal(err)
	}
	var costs []map[string]any
	for _, row := range s.get(t, "/costs?model=RUNTIMECLASS")["items"].([]any) {
		if r := row.(map[string]any); r["synthetic"] != true {
			costs = append(costs, r)
		}
	}
	if len(costs) != 1 || costs[0]["job_id"] != id || costs[0]["scheduler"] != "slurm" || costs[0]["version"] != job.Version || costs[0]["run_id"] != job.RunID {
		t.Fatalf("cost records %v; want one, of job %s", costs, id)
	}
	if got, want := costs[0]["cpu_hours"].(float64), cpu/3600; cpu == 0 || got < want-1e-6 || got > want+1e-6 {
		t.Errorf("%v core hours recorded; want %v, which is %v core seconds of %v seconds", got, want, cpu, elapsed)
	}
	mock, err := s.tracker.GetModelVersion(t.Context(), "runtimeclass", inProcess.Version)
	if err != nil || mock.Tags["cost_synthetic"] != "true" {
		t.Errorf("version %s: %v, %v; want a synthetic cost", inProcess.Version, mock.Tags, err)
	}
	real, err := s.tracker.GetModelVersion(t.Context(), "runtimeclass", job.Version)
	if err != nil || real.Tags["cost_synthetic"] != "" || real.Tags["cpu_hours"] != fmt.Sprintf("%.6f", cpu/3600) || real.Tags["gpu_hours"] != "0.000000" {
		t.Errorf("version %s: %v, %v; want the cost of the job", job.Version, real.Tags, err)
	}

	seen := s.get(t, "/jobs/"+id+"?scheduler=slurm")
	if seen["state"] != "COMPLETED" || seen["model"] != "RUNTIMECLASS" || seen["trackerRunId"] != job.RunID {
		t.Errorf("job at the control plane: %v; want COMPLETED, RUNTIMECLASS, %s", seen, job.RunID)
	}
}

// sshd starts a real SSH server, which knows the cluster, and returns the trainer's settings for it.
func (s *site) sshd(t *testing.T) (settings []string, hostKey string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"host", "other", "user"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, name)).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // sshd wants it
		t.Fatal(err)
	}
	addr := harness.FreePorts(t, 1)[0]
	host, port, _ := strings.Cut(addr, ":")
	conf := filepath.Join(dir, "sshd_config")
	text := fmt.Sprintf("ListenAddress %s\nHostKey %s/host\nAuthorizedKeysFile %s/user.pub\nPidFile none\nStrictModes no\nUsePAM no\nPermitRootLogin prohibit-password\nPasswordAuthentication no\nSetEnv SLURM_CONF=%s\n", addr, dir, dir, s.conf)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	said := &bytes.Buffer{}
	cmd := exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", conf)
	cmd.Stderr = said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("--- sshd\n%s", said)
		}
	})
	harness.Eventually(t, 20*time.Second, func() error {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
		}
		return err
	})
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b))
	}
	return []string{"SLURM_CONF=/nowhere", "HPC_SSH_HOST=" + host, "HPC_SSH_PORT=" + port, "HPC_SSH_USER=root", "HPC_SSH_KEY_FILE=" + filepath.Join(dir, "user"),
		"HPC_SSH_HOST_KEY=" + read("host.pub")}, read("other.pub")
}

func testSSH(t *testing.T, s *site) {
	settings, other := s.sshd(t)
	r := s.train(t, settings...)
	if tags := s.run(t, r.RunID).Tags; tags["hpc_scheduler"] != "slurm" || tags["hpc_job_id"] == "" {
		t.Errorf("tags %v; want those of a Slurm job", tags)
	} else {
		s.ended(t, tags["hpc_job_id"], "COMPLETED")
	}
	cmd, stderr := s.command(t, append(settings, "HPC_SSH_HOST_KEY="+other), "train", "--model", "RuntimeClass")
	err := cmd.Run()
	lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
	if last := lines[len(lines)-1]; err == nil || !strings.Contains(last, "the host key is not the pinned one") || strings.Count(last, "SHA256:") != 2 {
		t.Errorf("with another pinned key: %v, %q; want a refusal that shows both keys", err, last)
	}
}

// begin starts a training and returns its job's id once the job runs.
func (s *site) begin(t *testing.T) (cmd *exec.Cmd, stderr *bytes.Buffer, id string) {
	t.Helper()
	cmd, stderr = s.command(t, nil, "train", "--model", "RuntimeClass")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, stderr, s.running(t)
}

// running waits until one job runs.
func (s *site) running(t *testing.T) (id string) {
	t.Helper()
	harness.Eventually(t, time.Minute, func() error {
		id = s.slurm(t, "squeue", "-h", "-t", "RUNNING", "-o", "%i")
		if id == "" || strings.Contains(id, "\n") {
			return fmt.Errorf("jobs that run: %q; want one", id)
		}
		return nil
	})
	return id
}

func (s *site) ended(t *testing.T, id, want string) {
	t.Helper()
	harness.Eventually(t, 30*time.Second, func() error {
		if got := s.slurm(t, "sacct", "-P", "-n", "-X", "-j", id, "-o", "State"); !strings.HasPrefix(got, want) {
			return fmt.Errorf("job %s is %s; want %s", id, got, want)
		}
		return nil
	})
}

func testCancel(t *testing.T, s *site) {
	cmd, stderr, id := s.begin(t)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Errorf("the training succeeded; want it cancelled\n%s", stderr)
	}
	s.ended(t, id, "CANCELLED")
	if got := s.get(t, "/jobs/"+id+"?scheduler=slurm"); got["state"] != "CANCELLED" {
		t.Errorf("job at the control plane: %v; want CANCELLED", got)
	}
}

func testCancelledJob(t *testing.T, s *site) {
	cmd, stderr, id := s.begin(t)
	s.slurm(t, "scancel", id)
	if err := cmd.Wait(); err == nil || !strings.Contains(stderr.String(), "job "+id+" of slurm ended CANCELLED") {
		t.Errorf("%v, %s; want an error that names job %s and CANCELLED", err, stderr, id)
	}
}

// The job of a training whose process was killed would continue and be paid for: the next attempt cancels it.
func testKilledWorker(t *testing.T, s *site) {
	state := "WORKER_STATE_DIR=" + filepath.Join(t.TempDir(), "own")
	worker, _ := s.command(t, []string{state}, "worker")
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	c, run := s.dispatch(t)
	orphan := s.running(t)
	// Its id is in the tracker, where the next attempt finds it.
	harness.Eventually(t, 30*time.Second, func() error {
		if runs := s.runsOf(t, run.ID.String()); len(runs) != 1 || runs[0].Tags["hpc_job_id"] != orphan {
			return fmt.Errorf("runs at the tracker %+v; want one of job %s", runs, orphan)
		}
		return nil
	})
	_ = worker.Process.Kill()
	_ = worker.Wait()
	next, _ := s.command(t, []string{state}, "worker")
	if err := next.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, c, run, orchestrator.Completed)
	_ = next.Process.Signal(syscall.SIGTERM)
	if err := next.Wait(); err != nil {
		t.Errorf("the worker: %v", err)
	}
	versions := 0
	for _, r := range s.runsOf(t, run.ID.String()) {
		for _, err := range s.tracker.SearchModelVersions(t.Context(), "run_id = "+tracker.Quote(r.ID)) {
			if err != nil {
				t.Fatal(err)
			}
			versions++
		}
	}
	if versions != 1 {
		t.Errorf("%d versions; want 1", versions)
	}
}
