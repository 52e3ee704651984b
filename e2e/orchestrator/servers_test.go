//go:build e2e

// Package orchestrator runs one suite against the stand-in of the orchestrator and against the real product: its
// protocol as the Go client implements it, and the control plane's dispatch on top.
package orchestrator

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
	"github.com/mlp-platform/platform/libs/orchestrator/orchestratortest"
	"github.com/mlp-platform/platform/libs/testenv"
)

func TestMain(m *testing.M) {
	// Both servers are tested in parallel, and each part mostly waits: only two at a time, one per core, would leave
	// the cores idle.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	testenv.Main(m)
}

func TestStandIn(t *testing.T) {
	t.Parallel()
	p := harness.New(t, "PLATFORM_SEED=false")
	p.Start(t, 3*time.Minute)
	cases, worker := allDispatch, allWorker
	if !full {
		worker = []workerCase{registration, killedOnce}
	}
	runSuite(t, p.Orchestrator(), p, cases, worker)
}

// Acceptance row 25, worker half: the real product is the orchestrator, and the platform's own worker completes a run there,
// although it is killed once.
func TestRow25_WorkerOnTheRealServer(t *testing.T) {
	t.Parallel()
	// make e2e starts a server here; ORCHESTRATOR_E2E_URL names another one to use.
	api := os.Getenv("ORCHESTRATOR_E2E_URL")
	if api == "" {
		api = realServer(t)
	}
	p := harness.New(t, "PLATFORM_SEED=false") // for its tracker and its model repository
	p.Start(t, 3*time.Minute)
	cases, worker := allDispatch, allWorker
	if !full {
		cases, worker = shortDispatch, []workerCase{killedShort}
	}
	runSuite(t, api, p, cases, worker)
}

// runSuite runs the official client first, whose processes occupy a small machine, and the other parts in parallel:
// each mostly waits, and they share only the server.
func runSuite(t *testing.T, api string, p *harness.Platform, dispatch []dispatchCase, worker []workerCase) {
	t.Run("official client", func(t *testing.T) { testOfficialClient(t, api) })
	t.Run("protocol", func(t *testing.T) { t.Parallel(); orchestratortest.Run(t, api) })
	t.Run("dispatch", func(t *testing.T) { t.Parallel(); testDispatch(t, api, dispatch) })
	t.Run("worker", func(t *testing.T) { t.Parallel(); testWorker(t, api, p, worker) })
}

// realServer starts the real product on Postgres and returns the address of its API. On SQLite it answers 503 to
// concurrent writes, which the suite's parallel tests would see.
func realServer(t *testing.T) string {
	t.Helper()
	bin := os.Getenv("E2E_PREFECT")
	if bin == "" {
		bin = filepath.Join(harness.Root(t), ".cache", "venv-prefect", "bin", "prefect")
	}
	if _, err := os.Stat(bin); err != nil {
		t.Fatalf("%v: run scripts/venv.sh prefect", err)
	}
	database, err := url.Parse(testenv.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	database.Scheme, database.RawQuery = "postgresql+asyncpg", ""
	dir := t.TempDir()
	addr := harness.FreePorts(t, 1)[0]
	host, port := addr[:len("127.0.0.1")], addr[len("127.0.0.1:"):]
	log, err := os.Create(filepath.Join(dir, "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "server", "start", "--host", host, "--port", port, "--no-ui")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.Env = append(os.Environ(), "PREFECT_HOME="+dir, "PREFECT_API_DATABASE_CONNECTION_URL="+database.String(),
		"PREFECT_SERVER_ANALYTICS_ENABLED=false", "DO_NOT_TRACK=1", "PREFECT_LOGGING_LEVEL=WARNING")
	// A new process group: the server starts workers, and all of them must end.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // gone if it has ended already
		_ = cmd.Wait()
		_ = log.Close()
		if b, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("--- server.log\n%s", b[max(0, len(b)-6000):])
		}
	})
	api := "http://" + addr + "/api"
	hc := &http.Client{Timeout: 2 * time.Second}
	t.Cleanup(hc.CloseIdleConnections)
	harness.Eventually(t, 2*time.Minute, func() error {
		if cmd.ProcessState != nil {
			return errors.New("the server has ended")
		}
		resp, err := hc.Get(api + "/health")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s/health answers %s", api, resp.Status)
		}
		return nil
	})
	return api
}
