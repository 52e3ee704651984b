//go:build e2e && full

package training

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// The Dask example fits rows that the trainer never reads, spread over two worker processes, and its graph is evaluated
// and registered like any other.
func TestDaskExample(t *testing.T) {
	root := harness.Root(t)
	python := filepath.Join(root, ".cache", "venv-boost", "bin", "python")
	p := harness.New(t, "PLATFORM_SEED=false")
	p.Start(t, 4*time.Minute)
	repo := newCommandRepo(t)
	rng := rand.New(rand.NewPCG(5, 6))
	table := func(rows int) string {
		text := strings.Builder{}
		text.WriteString("procs,user,run\n")
		for range rows {
			procs, user := 1+rng.Float64()*100, rng.IntN(4)
			fmt.Fprintf(&text, "%g,u%d,%g\n", procs, user, (10+procs*float64(user+1))*(0.9+0.2*rng.Float64()))
		}
		return text.String()
	}
	const parts, perPart = 8, 5000
	for n := range parts {
		repo.write(fmt.Sprintf("parts/%d.csv", n), table(perPart))
	}
	repo.write("repo/data/jobs.csv", table(2000))
	repo.write("repo/datasets/Jobs.yaml", jobsYAML())

	addr := harness.FreePorts(t, 1)[0]
	startDask(t, python, "scheduler", "--host", "127.0.0.1", "--port", addr[strings.LastIndex(addr, ":")+1:], "--no-dashboard")
	for n := range 2 {
		startDask(t, python, "worker", "tcp://"+addr, "--host", "127.0.0.1", "--nthreads", "1", "--nworkers", "1", "--no-nanny", "--no-dashboard",
			"--name", fmt.Sprintf("worker-%d", n), "--local-directory", t.TempDir())
	}
	ready := fmt.Sprintf("from distributed import Client; Client(%q, timeout=60).wait_for_workers(2, timeout=120)", "tcp://"+addr)
	if out, err := exec.Command(python, "-c", ready).CombinedOutput(); err != nil {
		t.Fatalf("two workers: %v\n%s", err, out)
	}

	command := []string{python, filepath.Join(root, "examples", "dask", "train.py"), "--scheduler", "tcp://" + addr, "--parts", filepath.Join(repo.dir, "parts", "*.csv")}
	repo.write("repo/models/performance_prediction/DaskSeconds/model.yaml", fmt.Sprintf(`name: DaskSeconds
task_type: performance_prediction
type: regression
estimator:
  kind: command
  command: ["%s"]
  hyperparameters: {n_estimators: 80, max_depth: 5}
datasets:
  - name: Jobs
    target: {column: run, transform: log1p, unit: s}
    features:
      - {column: procs, kind: number}
      - {column: user, kind: category, transform: onehot}
split: {kind: random, allow_duplicates: true}
`, strings.Join(command, `", "`)))
	trained, log, err := repo.train(p, "DaskSeconds", strings.Join(command, " "))
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	if trained.Metrics["r2"] < 0.9 {
		t.Errorf("r2 on test %v; want at least 0.9", trained.Metrics["r2"])
	}
	if want := fmt.Sprintf("fitted %d rows of %d files on 2 workers", parts*perPart, parts); !strings.Contains(log, want) {
		t.Errorf("the log does not say %q:\n%s", want, log)
	}
}

// startDask runs a process of Dask's until the test ends.
func startDask(t *testing.T, python string, args ...string) {
	t.Helper()
	cmd := exec.Command(python, append([]string{"-m", "dask"}, args...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("--- dask %s\n%s", args[0], out.String())
		}
	})
}
