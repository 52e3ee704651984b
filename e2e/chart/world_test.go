//go:build e2e && full

package chart

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/e2e/harness"
	"github.com/mlp-platform/platform/e2e/kube"
	"github.com/mlp-platform/platform/e2e/kube/node"
)

//go:embed neighbours.yaml
var neighbours string

// neighbourPorts are the dependencies that the chart does not deploy, as the release's Secrets and defaults name them.
var neighbourPorts = map[string]int{"postgres": 5432, "redis": 6379, "nats": 4222, "tracker": 5000, "orchestrator": 4200}

// ownImages are the images that the release runs.
var ownImages = []string{"stack", "control-plane", "inference", "bus-bridge", "assistant", "dashboard", "worker"}

// world is a cluster with one real node, which runs the dependencies.
type world struct {
	*kube.Cluster
	node    *node.Node
	secrets string // the folder written by stack secrets
	models  string // the model repository, which the node mounts
	forge   string // its address on the served forge
	env     map[string]string
}

// openWorld creates the cluster, imports images into its node, and starts the dependencies.
func openWorld(t *testing.T, ctx context.Context) *world {
	t.Helper()
	began := time.Now()
	c := kube.StartWithoutNodes(t)
	t.Cleanup(c.Stop)
	w := &world{Cluster: c, node: node.Start(t, c), secrets: filepath.Join(t.TempDir(), "secrets")}
	t.Cleanup(func() { w.report(t) })
	w.node.ServeDNS(t, c)
	t.Logf("a node with DNS is ready after %s", time.Since(began).Round(time.Second))
	began = time.Now()
	importImages(t, ctx, w.node)
	t.Logf("images are made and on the node after another %s", time.Since(began).Round(time.Second))
	began = time.Now()
	_, err := c.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "platform", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.addModels(t, ctx)
	for _, s := range secretsOfRelease(t, w.secrets) {
		if s.Name == "ml-control-plane" {
			s.Data["MODELREPO_GIT_URL"] = []byte(w.forge)
		}
		if _, err := c.Client.CoreV1().Secrets("platform").Create(ctx, &s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.startNeighbours(t, ctx)
	t.Logf("Postgres, Redis, NATS, MLflow and Prefect are ready after another %s", time.Since(began).Round(time.Second))
	return w
}

// importImages builds the images and imports them into the node. The release's have two tags, so that there is a
// version to upgrade to.
func importImages(t *testing.T, ctx context.Context, n *node.Node) {
	t.Helper()
	names := append([]string{}, ownImages...)
	for name := range neighbourPorts {
		names = append(names, name)
	}
	saveImages(t, ctx, n, names, "PLATFORM_TAG=local")
	for _, name := range ownImages {
		from := "docker.io/mlp-platform/" + name
		if err := n.NameImage(ctx, from+":local", from+":next"); err != nil {
			t.Fatal(err)
		}
	}
}

// saveImages builds images and imports them into the node.
func saveImages(t *testing.T, ctx context.Context, n *node.Node, names []string, settings ...string) {
	t.Helper()
	save := exec.CommandContext(ctx, filepath.Join(harness.Root(t), "scripts", "up.sh"), append([]string{"save"}, names...)...)
	// If a registry answers, the script would leave out Postgres and Redis, which it only assembles.
	save.Env = append(append(os.Environ(), "PLATFORM_IMAGES=assemble", "PLATFORM_IMAGES_PREFIX=mlp-platform"), settings...)
	save.Stderr = t.Output()
	save.Cancel = func() error { return save.Process.Signal(syscall.SIGTERM) } // it ends the engine that it started
	save.WaitDelay = time.Minute
	archive, err := save.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := save.Start(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(n.Import(ctx, archive), save.Wait()); err != nil {
		t.Fatalf("make the images: %v", err)
	}
}

// importCommit gives the node the images of a commit, and returns its chart. The dashboard's have no pages, which these
// tests do not use.
func (w *world) importCommit(t *testing.T, ctx context.Context, commit string) version {
	t.Helper()
	dir := t.TempDir()
	run := func(dir, program string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", program, args, err, out)
		}
	}
	run(harness.Root(t), "git", "archive", "--output", dir+".tar", commit)
	run(dir, "tar", "-xf", dir+".tar")
	run(dir, "sh", "scripts/binaries.sh", filepath.Join(dir, "built"), "before")
	saveImages(t, ctx, w.node, ownImages, "PLATFORM_TAG=before", "IMAGES_BIN="+filepath.Join(dir, "built"))
	return version{filepath.Join(dir, "deploy", "helm", "mlp-platform"), "before"}
}

// addModels creates a git repository of the sample models, serves it to the control plane as a forge, and creates the
// claim through which the worker reads it.
func (w *world) addModels(t *testing.T, ctx context.Context) {
	t.Helper()
	w.models = filepath.Join(t.TempDir(), "models")
	if err := os.CopyFS(w.models, os.DirFS(filepath.Join(harness.Root(t), "deploy", "modelrepo"))); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"-c", "user.name=e2e", "-c", "user.email=e2e@localhost", "commit", "-qm", "Sample models"}} {
		if out, err := exec.CommandContext(ctx, "git", append([]string{"-C", w.models}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args[0], err, out)
		}
	}
	backend, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	forge := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(backend)), "git-http-backend"), Env: []string{"GIT_PROJECT_ROOT=" + w.models, "GIT_HTTP_EXPORT_ALL=1"},
	}}
	listener := w.node.Listen(t)
	go func() { _ = forge.Serve(listener) }() // ends when the node does
	w.forge = "http://" + listener.Addr().String() + "/.git"
	if err := w.Apply(ctx, "platform", fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: models}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteMany], storageClassName: none, hostPath: {path: %s, type: Directory}, claimRef: {namespace: platform, name: models}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: models}
spec: {accessModes: [ReadWriteMany], storageClassName: none, volumeName: models, resources: {requests: {storage: 1Gi}}}
`, w.models)); err != nil {
		t.Fatal(err)
	}
}

// startNeighbours starts them in a separate namespace; their names in the release's namespace point there.
func (w *world) startNeighbours(t *testing.T, ctx context.Context) {
	t.Helper()
	if err := w.Namespace(ctx, "neighbours"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"postgres", "postgres-init", "redis", "nats", "tracker", "orchestrator"} {
		files, err := filepath.Glob(filepath.Join(w.secrets, name, "*"))
		if err != nil || len(files) == 0 {
			t.Fatalf("secrets of %s: got %v, %v, want some", name, files, err)
		}
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{}}
		for _, f := range files {
			if s.Data[filepath.Base(f)], err = os.ReadFile(f); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Client.CoreV1().Secrets("neighbours").Create(ctx, s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, port := range neighbourPorts {
		if err := errors.Join(w.Apply(ctx, "neighbours", fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: %s}
spec: {selector: {app: %[1]s}, ports: [{port: %d}]}
`, name, port)), w.Apply(ctx, "platform", fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: %s}
spec: {type: ExternalName, externalName: %[1]s.neighbours.svc.cluster.local}
`, name))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Apply(ctx, "neighbours", neighbours); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, 8*time.Minute, func() error { return w.checkNeighboursReady(ctx) }) // Python servers on a busy machine
}

func (w *world) checkNeighboursReady(ctx context.Context) error {
	pods, err := w.Client.CoreV1().Pods("neighbours").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var late []string
	for _, p := range pods.Items {
		if !isReady(p) {
			late = append(late, describePod(p))
		}
	}
	if len(late) > 0 || len(pods.Items) != len(neighbourPorts) {
		return fmt.Errorf("%d of %d neighbours are not ready: %v", len(late), len(pods.Items), late)
	}
	return nil
}

func isReady(p corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// describePod describes a pod and its containers in one line.
func describePod(p corev1.Pod) string {
	text := fmt.Sprintf("%s is %s", p.Name, p.Status.Phase)
	for _, c := range p.Status.Conditions {
		if c.Status != corev1.ConditionTrue && c.Message != "" {
			text += fmt.Sprintf("; %s: %s", c.Type, c.Message)
		}
	}
	for _, s := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
		switch {
		case s.State.Waiting != nil:
			text += fmt.Sprintf("; %s waits: %s %s", s.Name, s.State.Waiting.Reason, s.State.Waiting.Message)
		case s.State.Terminated != nil:
			text += fmt.Sprintf("; %s ended with %d: %s", s.Name, s.State.Terminated.ExitCode, s.State.Terminated.Reason)
		}
		if s.LastTerminationState.Terminated != nil {
			text += fmt.Sprintf("; %s had ended with %d: %s", s.Name, s.LastTerminationState.Terminated.ExitCode, s.LastTerminationState.Terminated.Reason)
		}
	}
	return text
}

// address returns the address of a Service in the node's network.
func (w *world) address(t *testing.T, namespace, service string) string {
	t.Helper()
	s, err := w.Client.CoreV1().Services(namespace).Get(t.Context(), service, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort(s.Spec.ClusterIP, fmt.Sprint(s.Spec.Ports[0].Port))
}

var exported = regexp.MustCompile(`(?m)^export ([A-Z_]+)='?([^'\n]*)'?$`)

// openDoors forwards ports of this machine to the Services, and stores the output of stack env for them.
func (w *world) openDoors(t *testing.T) {
	t.Helper()
	cmd := exec.Command(harness.Bin(t, "stack"), "env", w.secrets)
	cmd.Env = os.Environ()
	for variable, service := range map[string]string{"CONTROL_PLANE": "ml-control-plane", "INFERENCE": "ml-inference", "ASSISTANT": "ml-assistant", "DASHBOARD": "ml-dashboard", "BUS_BRIDGE": "ml-bus-bridge", "TRACKER": "tracker", "ORCHESTRATOR": "orchestrator"} {
		namespace := "platform"
		if _, is := neighbourPorts[service]; is {
			namespace = "neighbours"
		}
		_, port, err := net.SplitHostPort(w.node.Open(t, w.address(t, namespace, service)))
		if err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(cmd.Env, variable+"_PORT="+port)
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("stack env: %v", err)
	}
	w.env = map[string]string{}
	for _, m := range exported.FindAllStringSubmatch(string(out), -1) {
		w.env[m[1]] = m[2]
	}
}

// report prints after a failure the state and last output of the pods.
func (w *world) report(t *testing.T) {
	if !t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	lines := int64(6)
	for _, namespace := range []string{"neighbours", "platform"} {
		pods, err := w.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Log(err)
			continue
		}
		for _, p := range pods.Items {
			t.Log(describePod(p))
			for _, c := range append(p.Spec.InitContainers, p.Spec.Containers...) {
				log, _ := w.Client.CoreV1().Pods(namespace).GetLogs(p.Name, &corev1.PodLogOptions{Container: c.Name, TailLines: &lines}).DoRaw(ctx)
				if len(log) > 0 {
					t.Logf("%s of %s:\n%s", c.Name, p.Name, strings.TrimSpace(string(log)))
				}
			}
		}
	}
}
