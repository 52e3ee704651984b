//go:build e2e && full

package chart

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/e2e/harness"
)

// realValues request less CPU than the defaults: one node of two cores carries everything, and during an upgrade one
// more pod of each service. The loop trains on generated data.
const realValues = `
worker: {enabled: true, resources: {requests: {cpu: 100m, memory: 256Mi}, limits: {memory: 2Gi}}}
inference: {resources: {requests: {cpu: 100m, memory: 256Mi}, limits: {memory: 1536Mi}}}
controlPlane:
  resources: {requests: {cpu: 50m, memory: 128Mi}, limits: {memory: 512Mi}}
  env: {ALLOW_GENERATED_PRODUCTION: "true", PROMOTION_APPROVAL_MODE_DEFAULT: run, AUDIT_STATE_DIR: /tmp}
dashboard: {resources: {requests: {cpu: 50m, memory: 128Mi}, limits: {memory: 512Mi}}}
assistant: {resources: {requests: {cpu: 50m, memory: 128Mi}, limits: {memory: 512Mi}}}
modelRepository: {fromGit: true, existingClaim: models}
`

// version is a chart with the tag of its images.
type version struct{ chart, tag string }

// change is a helm command and the version that it installs.
type change struct {
	verb string
	to   version
}

// TestChartOnARealNode installs the chart on a node whose containers run, trains and promotes a model, upgrades and
// rolls back under load, removes the release and installs it again. The upgrade installs the same images under another
// tag. CHART_BEFORE names a commit whose chart and services are installed first and then upgraded.
func TestChartOnARealNode(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Minute)
	defer cancel()
	w := openWorld(t, ctx)
	local, next := version{chartDir(t), "local"}, version{chartDir(t), "next"}
	first, changes := local, []change{{"upgrade", next}, {"rollback", local}}
	if commit := os.Getenv("CHART_BEFORE"); commit != "" {
		first, changes = w.importCommit(t, ctx, commit), append([]change{{"upgrade", local}}, changes...)
	}
	timed := func(what string, step func()) {
		t.Helper()
		began := time.Now()
		step()
		t.Logf("%s: %s", what, time.Since(began).Round(time.Second))
	}
	timed("helm install --wait", func() { w.release(t, "install", first) })
	w.checkPods(t, ctx, first)
	w.openDoors(t)
	timed("the loop of a model", func() { w.runLoop(t, ctx) })
	w.checkMigrations(t, ctx, 1)

	var noticed []string
	for _, change := range changes {
		tr := w.startTraffic(t, w.requests(t))
		timed("helm "+change.verb+" --wait to "+change.to.tag+", until the pods of before are gone", func() {
			w.release(t, change.verb, change.to)
			w.checkPods(t, ctx, change.to)
		})
		tr.finish(t, change.verb+" to "+change.to.tag)
		noticed = append(noticed, tr.noticed...)
	}
	w.checkMigrations(t, ctx, len(changes)) // a rollback has none

	timed("helm uninstall --wait, until nothing is left", func() {
		w.release(t, "uninstall", local)
		harness.Eventually(t, 3*time.Minute, func() error { return findLeftovers(ctx, w.Cluster) })
	})
	secrets, err := w.Client.CoreV1().Secrets("platform").List(ctx, metav1.ListOptions{})
	if err != nil || len(secrets.Items) != len(ownImages)-1 {
		t.Errorf("got %d Secrets after the uninstall, %v, want one of each of %d services", len(secrets.Items), err, len(ownImages)-1)
	}
	timed("helm install --wait beside the databases of before", func() { w.release(t, "install", next) })
	w.checkPods(t, ctx, next)
	w.openDoors(t)
	w.checkKept(t, noticed)
}

// release runs helm on the release.
func (w *world) release(t *testing.T, verb string, to version) {
	t.Helper()
	args := []string{verb, "ml", "--wait", "--kubeconfig", w.Kubeconfig, "--namespace", "platform", "--timeout", "6m"}
	switch verb {
	case "install", "upgrade":
		values := filepath.Join(t.TempDir(), "values.yaml")
		if err := os.WriteFile(values, []byte(realValues), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, to.chart, "--values", values, "--set", "image.tag="+to.tag)
	}
	if out, err := helm(t, args...); err != nil {
		t.Fatalf("helm %s: %v\n%s", verb, err, out)
	}
}

// checkPods compares the release's pods with the expected ones: two per service and one worker, of this tag, ready, and
// none restarted.
func (w *world) checkPods(t *testing.T, ctx context.Context, of version) {
	t.Helper()
	harness.Eventually(t, 2*time.Minute, func() error { // old pods are still draining
		pods, err := w.Client.CoreV1().Pods("platform").List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=ml"})
		if err != nil {
			return err
		}
		count := map[string]int{}
		for _, p := range pods.Items {
			c := p.Spec.Containers[0]
			if want := "mlp-platform/" + c.Name + ":" + of.tag; c.Image != want || !isReady(p) {
				return fmt.Errorf("got image %s, want %s and ready: %s", c.Image, want, describePod(p))
			}
			if n := p.Status.ContainerStatuses[0].RestartCount; n > 0 {
				t.Errorf("got %d restarts, want 0: %s", n, describePod(p))
			}
			count[c.Name]++
		}
		for _, name := range ownImages[1:] {
			want := 2
			if name == "worker" {
				want = 1
			}
			if count[name] != want {
				return fmt.Errorf("%s: got %d pods, want %d", name, count[name], want)
			}
		}
		return nil
	})
}

// checkMigrations counts the migrations that the node ran for each service that has any.
func (w *world) checkMigrations(t *testing.T, ctx context.Context, want int) {
	t.Helper()
	events, err := w.Client.CoreV1().Events("platform").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Job,reason=Completed"})
	if err != nil {
		t.Fatal(err)
	}
	done := map[types.UID]string{}
	for _, e := range events.Items {
		done[e.InvolvedObject.UID] = e.InvolvedObject.Name
	}
	count := map[string]int{}
	for _, name := range done {
		count[name]++
	}
	for _, service := range []string{"control-plane", "inference", "assistant", "dashboard"} {
		if got := count["ml-"+service+"-migrate"]; got != want {
			t.Errorf("%s: got %d completed migrations, want %d", service, got, want)
		}
	}
}

// requests are those of people and programs during a change of the release: predictions, reads, and notices of changes,
// none of which may be lost.
func (w *world) requests(t *testing.T) []request {
	t.Helper()
	at := func(service, path string) string { return "http://" + w.address(t, "platform", service) + path }
	login := harness.Want(t, http.StatusOK, http.MethodPost, w.env["DASHBOARD_URL"]+"/api/auth/login", "", map[string]string{"password": w.env["DASHBOARD_VIEWER_PASSWORD"]})
	session, _ := login.JSON(t)["token"].(string)
	begun := time.Now().UnixNano()
	return []request{
		{name: "prediction", method: http.MethodPost, url: at("ml-inference", "/predict/LOOPMODEL"), token: w.env["SERVING_TOKEN"], pause: 50 * time.Millisecond,
			body: func(n int) any {
				return map[string]any{"features": map[string]any{"nodes": 8 + n%7, "req_hours": 1 + n%12, "app": "cfd"}}
			}},
		{name: "approvals", method: http.MethodGet, url: at("ml-control-plane", "/approvals?limit=1"), token: w.env["CONTROL_PLANE_TOKEN"], pause: 50 * time.Millisecond},
		{name: "notice of a change", notice: true, method: http.MethodPost, url: at("ml-control-plane", "/api/changes"), token: w.env["CONTROL_PLANE_TOKEN"], pause: 1500 * time.Millisecond,
			body: func(n int) any {
				return map[string]any{"model_ids": []string{fmt.Sprintf("ROLL-%d-%d", begun, n)}, "commit_sha": fmt.Sprintf("%040x", n+1), "commit_msg": "a change under way"}
			}},
		{name: "session", method: http.MethodGet, url: at("ml-dashboard", "/api/auth/me"), token: session, pause: 100 * time.Millisecond},
		{name: "assistant", method: http.MethodGet, url: at("ml-assistant", "/v1/models"), token: w.env["ASSISTANT_READONLY_KEY"], pause: 1500 * time.Millisecond},
	}
}

// checkKept queries a reinstalled release for data of the former one: the model and every accepted notice.
func (w *world) checkKept(t *testing.T, noticed []string) {
	t.Helper()
	if len(noticed) < 10 {
		t.Errorf("got %d accepted notices, want at least 10", len(noticed))
	}
	harness.Eventually(t, time.Minute, func() error { // the models of Production are loaded in the background
		a, err := harness.TryCall(http.MethodPost, w.env["SERVING_URL"]+"/predict/LOOPMODEL", w.env["SERVING_TOKEN"], map[string]any{"features": map[string]any{"nodes": 8, "req_hours": 2, "app": "cfd"}})
		if err == nil && (a.Status != http.StatusOK || fmt.Sprint(a.JSON(t)["model_version"]) != "1") {
			err = fmt.Errorf("a prediction: %d %s, want one of version 1", a.Status, a.Body)
		}
		return err
	})
	for _, id := range noticed {
		if a := harness.Call(t, http.MethodGet, w.env["CONTROL_PLANE_URL"]+"/approvals/"+id, w.env["CONTROL_PLANE_TOKEN"], nil); a.Status != http.StatusOK {
			t.Errorf("the notice %s: got %d %s, want the record that was accepted", id, a.Status, a.Body)
		}
	}
	t.Logf("%d accepted notices are kept", len(noticed))
}

// runLoop runs scripts/loop.sh through the Services: the worker trains a new model, two people promote it and it is
// served; drift retrains it; Production moves forward and back.
func (w *world) runLoop(t *testing.T, ctx context.Context) {
	t.Helper()
	root := harness.Root(t)
	run := func(script string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(ctx, "bash", append([]string{filepath.Join(root, "scripts", script)}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(w.models)}
		for name, value := range w.env {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		cmd.WaitDelay = 10 * time.Second
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
		return string(out)
	}
	run("contexts.sh", "real", filepath.Join(w.secrets, "credentials.json"), harness.Bin(t, "mlp"))
	out := run("loop.sh", "--context", "real", "--repo", w.models, "--mlp", harness.Bin(t, "mlp"))
	if want := "LOOPMODEL: version 1, then 2, then 1 again"; !strings.Contains(out, want) {
		t.Errorf("got\n%s\nwant %s", out, want)
	}
}
