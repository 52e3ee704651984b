//go:build e2e

// Package dashboard_test tests the dashboard in a real Chromium, with the real tools behind it.
package dashboard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

const (
	serverStart  = 5 * time.Minute
	scenarioTime = 10 * time.Minute
)

// toolsScenario is the input of tools.cjs.
type toolsScenario struct {
	Chromium     string `json:"chromium"`
	Shots        string `json:"shots"`
	Dashboard    string `json:"dashboard"`
	Tools        string `json:"tools"`
	Token        string `json:"token"`
	Experiment   string `json:"experiment"`
	ExperimentID string `json:"experiment_id"`
	Run          string `json:"run"`
	RunID        string `json:"run_id"`
	Metric       string `json:"metric"`
	Param        string `json:"param"`
	Registered   string `json:"registered"` // a model
	Description  string `json:"description"`
	Flow         string `json:"flow"`
	FlowRun      string `json:"flow_run"`
	Instance     string `json:"instance"` // the metrics store's scrape target: itself
}

// The pages, links, calls and sockets of the real tracker, orchestrator and metrics store work on the tools origin, and a hostile page
// behind the proxy reaches the dashboard from neither origin.
func TestRealToolsBehindTheProxy(t *testing.T) {
	tracker, orchestrator, metricsStore := startTracker(t), startOrchestrator(t), startMetricsStore(t)
	s := seedTracker(t, tracker)
	s.Flow, s.FlowRun = seedOrchestrator(t, orchestrator)
	s.Instance = strings.TrimPrefix(metricsStore, "http://")
	hostile := httptest.NewServer(http.HandlerFunc(serveHostile))
	t.Cleanup(hostile.Close)
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(refusing.Close)
	allowed := strings.ReplaceAll(tracker+","+refusing.URL, "http://", "")
	d := harness.StartDashboard(t, "PLATFORM_SEED=false", "ORCHESTRATOR_API_URL="+orchestrator+"/api", "METRICS_STORE_URL="+metricsStore,
		"DASHBOARDS_URL="+hostile.URL, "DASHBOARD_UPSTREAM_ALLOW="+allowed)
	token := d.Login(t, "admin")
	// The platform sets its own tracker's address in its services; the dashboard gets the real one's through its API,
	// as an operator would set it.
	harness.Want(t, http.StatusOK, http.MethodPut, d.URL+"/api/config", token, map[string]string{"tracker_url": tracker})
	harness.Eventually(t, 20*time.Second, func() error {
		a, err := harness.TryCall(http.MethodGet, d.URL+"/api/proxy/tracker/", token, nil)
		if err == nil && !strings.Contains(string(a.Body), "MLflow") {
			err = fmt.Errorf("the tracker's page is %.80q", a.Body)
		}
		return err
	})
	s.Dashboard, s.Tools, s.Token = d.URL, d.ToolsURL, token
	playTools(t, s)
	harness.Want(t, http.StatusOK, http.MethodPut, d.URL+"/api/config", token, map[string]string{"metrics_store_url": refusing.URL})
	harness.Eventually(t, 20*time.Second, func() error {
		a, err := harness.TryCall(http.MethodGet, d.URL+"/api/proxy/metrics_store/", token, nil)
		if err != nil {
			return err
		}
		if a.Status != http.StatusBadGateway || a.Header.Get("X-Upstream-Status") != "401" {
			return fmt.Errorf("%d with X-Upstream-Status %q; want 502 with 401", a.Status, a.Header.Get("X-Upstream-Status"))
		}
		return nil
	})
	harness.Want(t, http.StatusOK, http.MethodGet, d.URL+"/api/auth/me", token, nil) // still signed in
}

// serveHostile is a tool whose page tries to act as the dashboard. Its title shows how far it got.
func serveHostile(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html")
	w.Header().Set("Set-Cookie", "hostile=1; Path=/")
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Content-Security-Policy", "script-src * 'unsafe-inline'")
	_, _ = io.WriteString(w, `<!DOCTYPE html><title>untouched</title><p id=text>a page</p><script>
	const dashboard = location.hash.slice(1);
	(async () => {
		const got = ["ran"];
		if (localStorage.getItem("dashboard_auth")) got.push("token");
		if (document.cookie) got.push("cookie");
		for (const path of ["/api/auth/me", "/api/config", "/api/proxy/control_plane/health"]) {
			try { const r = await fetch(dashboard + path, {credentials: "include"}); got.push(path + " " + r.status); } catch { }
		}
		try { await navigator.serviceWorker.register("sw.js"); got.push("worker"); } catch { }
		document.title = got.join(", ");
	})();
	</script>`)
}

func playTools(t *testing.T, s toolsScenario) {
	t.Helper()
	root := harness.Root(t)
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v: run scripts/setup.sh e2e", err)
	}
	s.Chromium, s.Shots = chromium, filepath.Join(root, ".cache", "screenshots")
	told, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), scenarioTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", filepath.Join(root, "e2e", "dashboard", "tools.cjs"))
	cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(root, ".cache", "browser", "node_modules"))
	cmd.Stdin = bytes.NewReader(told)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("tools.cjs: %v\n%s", err, out)
	}
}

// startServer starts a tool that listens on addr and waits until its health check succeeds. The log is shown after a
// failure.
func startServer(t *testing.T, name, health string, cmd *exec.Cmd) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	// A new process group: the server starts workers, and all of them must end.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: run scripts/setup.sh e2e", err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // gone if it has ended already
		_ = cmd.Wait()
		_ = log.Close()
		if b, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("--- %s\n%s", name, b[max(0, len(b)-4000):])
		}
	})
	harness.Eventually(t, serverStart, func() error {
		a, err := harness.TryCall(http.MethodGet, health, "", nil)
		if err != nil {
			return err
		}
		if a.Status != http.StatusOK {
			return fmt.Errorf("%s answers %d", health, a.Status)
		}
		return nil
	})
}

func startTracker(t *testing.T) string {
	t.Helper()
	dir, addr := t.TempDir(), harness.FreePorts(t, 1)[0]
	host, port := addr[:len("127.0.0.1")], addr[len("127.0.0.1:"):]
	cmd := exec.Command(filepath.Join(harness.Root(t), ".cache", "venv", "bin", "python"), "-m", "mlflow", "server", "--host", host, "--port", port, "--workers", "1",
		"--backend-store-uri", "sqlite:///"+filepath.Join(dir, "db.sqlite"), "--artifacts-destination", filepath.Join(dir, "artifacts"))
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "MLFLOW_DISABLE_TELEMETRY=true")
	startServer(t, "tracker", "http://"+addr+"/health", cmd)
	return "http://" + addr
}

func startOrchestrator(t *testing.T) string {
	t.Helper()
	dir, addr := t.TempDir(), harness.FreePorts(t, 1)[0]
	host, port := addr[:len("127.0.0.1")], addr[len("127.0.0.1:"):]
	cmd := exec.Command(filepath.Join(harness.Root(t), ".cache", "venv-prefect", "bin", "prefect"), "server", "start", "--host", host, "--port", port)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PREFECT_HOME="+dir, "PREFECT_UI_API_URL=http://"+addr+"/api", "PREFECT_SERVER_ANALYTICS_ENABLED=false", "DO_NOT_TRACK=1", "PREFECT_LOGGING_LEVEL=WARNING")
	startServer(t, "orchestrator", "http://"+addr+"/api/health", cmd)
	return "http://" + addr
}

// startMetricsStore runs a Prometheus that scrapes itself, and waits until it has data.
func startMetricsStore(t *testing.T) string {
	t.Helper()
	dir, addr := t.TempDir(), harness.FreePorts(t, 1)[0]
	config := filepath.Join(dir, "prometheus.yml")
	writeFile(t, config, "global: {scrape_interval: 1s}\nscrape_configs:\n- {job_name: itself, static_configs: [{targets: ['"+addr+"']}]}\n")
	cmd := exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr)
	startServer(t, "metrics store", "http://"+addr+"/-/ready", cmd)
	harness.Eventually(t, serverStart, func() error {
		a, err := harness.TryCall(http.MethodGet, "http://"+addr+"/api/v1/query?query=up", "", nil)
		if err == nil && !strings.Contains(string(a.Body), addr) {
			err = fmt.Errorf("nothing was scraped yet: %s", a.Body)
		}
		return err
	})
	return "http://" + addr
}

// seedTracker creates an experiment with a run that recorded data, and a registered model.
func seedTracker(t *testing.T, url string) toolsScenario {
	t.Helper()
	s := toolsScenario{
		Experiment: "proxied-experiment", Run: "proxied-run", Metric: "proxied_loss", Param: "proxied_depth",
		Registered: "ProxiedModel", Description: "registered behind the proxy",
	}
	api := url + "/api/2.0/mlflow/"
	post := func(path string, body map[string]any) map[string]any {
		t.Helper()
		return harness.Want(t, http.StatusOK, http.MethodPost, api+path, "", body).JSON(t)
	}
	s.ExperimentID, _ = post("experiments/create", map[string]any{"name": s.Experiment})["experiment_id"].(string)
	var run struct {
		Run struct {
			Info struct {
				ID string `json:"run_id"`
			} `json:"info"`
		} `json:"run"`
	}
	now := time.Now().UnixMilli()
	body := harness.Want(t, http.StatusOK, http.MethodPost, api+"runs/create", "", map[string]any{"experiment_id": s.ExperimentID, "run_name": s.Run, "start_time": now}).Body
	if err := json.Unmarshal(body, &run); err != nil || run.Run.Info.ID == "" {
		t.Fatalf("run: %v in %s; want its id", err, body)
	}
	s.RunID = run.Run.Info.ID
	post("runs/log-metric", map[string]any{"run_id": s.RunID, "key": s.Metric, "value": 0.25, "timestamp": now})
	post("runs/log-parameter", map[string]any{"run_id": s.RunID, "key": s.Param, "value": "7"})
	post("registered-models/create", map[string]any{"name": s.Registered, "description": s.Description})
	return s
}

// seedOrchestrator creates a flow with a completed run and returns their names.
func seedOrchestrator(t *testing.T, url string) (flow, run string) {
	t.Helper()
	flow, run = "proxied-flow", "proxied-flow-run"
	id := harness.Want(t, http.StatusCreated, http.MethodPost, url+"/api/flows/", "", map[string]string{"name": flow}).JSON(t)["id"]
	harness.Want(t, http.StatusCreated, http.MethodPost, url+"/api/flow_runs/", "", map[string]any{
		"flow_id": id, "name": run, "state": map[string]string{"type": "COMPLETED", "name": "Completed"},
	})
	return flow, run
}
