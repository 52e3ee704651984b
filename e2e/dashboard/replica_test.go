//go:build e2e

package dashboard_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mlp-platform/platform/e2e/harness"
)

// replica is another process of the dashboard.
type replica struct {
	w   *world
	url string
	env []string
	log string
	cmd *exec.Cmd
	end chan struct{}
}

// startReplica runs bin/dashboard-bff on the platform's database; settings replace those of the platform's own dashboard.
func (w *world) startReplica(t *testing.T, settings ...string) *replica {
	t.Helper()
	ports := harness.FreePorts(t, 2)
	r := &replica{w: w, url: "http://" + ports[0], log: filepath.Join(w.dir, "replica-"+strings.ReplaceAll(ports[0], ":", "-")+".log")}
	r.env = append(os.Environ(),
		"DRAIN_DELAY=0s", "PLATFORM_DATABASE_URL="+w.database, "NATS_URL="+w.natsURL(t, w.Setting("NATS_ADDR")), "DASHBOARD_ADDR="+ports[0], "DASHBOARD_TOOLS_ADDR="+ports[1],
		"TRACKING_URI="+w.Env["TRACKING_URI"], "MLFLOW_TRACKING_TOKEN="+w.Env["MLFLOW_TRACKING_TOKEN"], "PREFECT_API_KEY="+w.Env["PREFECT_API_KEY"], "ORCHESTRATOR_API_URL="+w.Env["ORCHESTRATOR_API_URL"], "CONTROL_PLANE_URL="+w.Env["CONTROL_PLANE_URL"],
		"SERVING_URL="+w.Env["SERVING_URL"], "ASSISTANT_URL="+w.Env["ASSISTANT_URL"], "BUS_BRIDGE_URL="+w.issuer.server.URL,
		"ASSISTANT_READONLY_KEY="+w.Env["ASSISTANT_READONLY_KEY"], "ASSISTANT_OPERATOR_KEY="+w.Env["ASSISTANT_OPERATOR_KEY"],
		"DASHBOARD_ACT_KEY_FILE="+filepath.Join(w.Dir, "delegation.key"), "DASHBOARD_ADMIN_PASSWORD="+w.Secret(t, "dashboard_admin_password"),
		"DASHBOARD_VIEWER_PASSWORD="+w.Secret(t, "dashboard_viewer_password"), "DASHBOARD_JWT_SECRET="+w.Secret(t, "dashboard_jwt_secret"),
		"DASHBOARD_SECRET_KEY="+w.secretKey(t), "DASHBOARD_SESSION_COOKIE_SECURE=false", "DASHBOARD_TRUSTED_PROXIES=127.0.0.1",
		"PLATFORM_IAM_CONFIG="+w.Setting("PLATFORM_IAM_CONFIG"), "E2E_ISSUER_SECRET="+issuerSecret)
	r.env = append(r.env, settings...)
	w.mu.Lock()
	w.logs = append(w.logs, r.log)
	w.mu.Unlock()
	r.start(t)
	t.Cleanup(r.kill)
	return r
}

func (r *replica) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(r.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // the child has its own handle
	r.cmd = exec.Command(harness.Bin(t, "dashboard-bff"))
	r.cmd.Env, r.cmd.Stdout, r.cmd.Stderr = r.env, log, log
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	r.end = ended
	go func(cmd *exec.Cmd) { _ = cmd.Wait(); close(ended) }(r.cmd)
	harness.Eventually(t, startLimit, func() error {
		select {
		case <-ended:
			t.Fatalf("the replica ended:\n%s", readFile(t, r.log))
		default:
		}
		a, err := harness.TryCall(http.MethodGet, r.url+"/readyz", "", nil)
		if err == nil && a.Status != http.StatusOK {
			err = fmt.Errorf("%d %s", a.Status, a.Body)
		}
		return err
	})
}

func (r *replica) kill() {
	_ = r.cmd.Process.Kill()
	<-r.end
}
