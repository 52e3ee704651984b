//go:build e2e && full

// Package chart checks the Helm chart: its output, its refusals, and its lifecycle against a real cluster's API.
package chart

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/mlp-platform/platform/e2e/harness"
)

// everything enables the optional parts.
const everything = "worker.enabled=true,assistant.rbac.write=true,serviceMonitor.enabled=true,inference.autoscaling.enabled=true," +
	"ingress.enabled=true,ingress.host=ml.example.org,ingress.toolsHost=tools.ml.example.org,ingress.tlsSecret=ml-tls"

// perPod stores the end of the audit ledger in each pod: there is no volume that the replicas could share.
const perPod = "controlPlane.env.AUDIT_STATE_DIR=/tmp"

// helm runs the pinned helm and returns its output, or its error message.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	tool := exec.Command(filepath.Join(harness.Root(t), "scripts", "tool.sh"), "helm")
	tool.Stderr = t.Output()
	path, err := tool.Output()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir() // without the repositories and plugins of the user who runs the test
	cmd := exec.Command(strings.TrimSpace(string(path)), args...)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", errors.New(strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

func chartDir(t *testing.T) string {
	return filepath.Join(harness.Root(t), "deploy", "helm", "mlp-platform")
}

// render returns the rendered objects, by kind.
func render(t *testing.T, set string) map[string][][]byte {
	t.Helper()
	text, err := helm(t, "template", "ml", chartDir(t), "--namespace", "platform", "--set", perPod, "--set", set)
	if err != nil {
		t.Fatal(err)
	}
	byKind := map[string][][]byte{}
	for r := utilyaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(text))); ; {
		raw := make([]byte, 1<<20)
		n, err := r.Read(raw)
		if errors.Is(err, io.EOF) {
			return byKind
		}
		if err != nil {
			t.Fatal(err)
		}
		var meta metav1.TypeMeta
		if err := yaml.Unmarshal(raw[:n], &meta); err != nil {
			t.Fatalf("%v in\n%s", err, raw[:n])
		}
		if meta.Kind != "" {
			byKind[meta.Kind] = append(byKind[meta.Kind], raw[:n])
		}
	}
}

// parse decodes documents of one kind strictly: a field unknown to the API is an error.
func parse[T any](t *testing.T, documents [][]byte) (all []T) {
	t.Helper()
	for _, raw := range documents {
		var v T
		if err := yaml.UnmarshalStrict(raw, &v); err != nil {
			t.Fatalf("%v in\n%s", err, raw)
		}
		all = append(all, v)
	}
	return all
}

func TestChartLints(t *testing.T) {
	t.Parallel()
	for _, set := range []string{"", everything, "networkPolicy.enabled=false,assistant.enabled=false,busBridge.enabled=false"} {
		if out, err := helm(t, "lint", "--strict", chartDir(t), "--set", perPod, "--set", set); err != nil {
			t.Errorf("lint with %q: %v\n%s", set, err, out)
		}
	}
}

// An invalid value is refused before anything is installed, with its name.
func TestChartRefusesWrongValues(t *testing.T) {
	t.Parallel()
	for set, want := range map[string]string{
		"controlPlane.replica=3":   "at '/controlPlane': additional properties 'replica' not allowed",
		"imagetag=x":               "additional properties 'imagetag' not allowed",
		"inference.replicas=many":  "at '/inference/replicas': got string, want integer",
		"natsReplicas=2":           "at '/natsReplicas': value must be one of 1, 3, 5",
		"tracker.url=tracker:5000": "at '/tracker/url'",
		"secrets.tracker=x":        "at '/secrets': additional properties 'tracker' not allowed",
		"ingress.enabled=true":     "ingress.host is the name of the dashboard",
		"ingress.enabled=true,ingress.host=ml.example.org":     "ingress.toolsHost is the second name",
		"inference.autoscaling.targetCPU=140":                  "at '/inference/autoscaling/targetCPU'",
		"worker.enabled=true,modelRepository.fromGit=true":     "name one with a clone of that repository in modelRepository.existingClaim",
		"dashboard.publicUrl=https://ml.example.org/with/path": "at '/dashboard/publicUrl'",
	} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			if _, err := helm(t, "template", "ml", chartDir(t), "--set", perPod, "--set", set); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}

// The end of the audit ledger is not lost with a pod unless the values allow it.
func TestChartRefusesALedgerWithoutMemory(t *testing.T) {
	t.Parallel()
	if _, err := helm(t, "template", "ml", chartDir(t)); err == nil || !strings.Contains(err.Error(), "in controlPlane.auditClaim, or") {
		t.Errorf("got %v, want it to say what to set", err)
	}
	for _, set := range []string{perPod, "controlPlane.auditClaim=ml-audit", "controlPlane.enabled=false"} {
		if _, err := helm(t, "template", "ml", chartDir(t), "--set", set); err != nil {
			t.Errorf("%s: %v", set, err)
		}
	}
}

// pages list the variables of each service, generated from its configuration.
var pages = map[string][]string{
	"control-plane": {"control-plane.md", "replicas.md"}, "inference": {"inference.md", "replicas.md"},
	"bus-bridge": {"bus.md"}, "assistant": {"assistant.md", "replicas.md"}, "dashboard": {"dashboard.md", "replicas.md"},
	"worker": {"trainer.md"},
}

// The chart sets no variable that its service does not read.
func TestChartSetsKnownVariables(t *testing.T) {
	t.Parallel()
	checked := map[string]bool{}
	for _, d := range parse[appsv1.Deployment](t, render(t, everything)["Deployment"]) {
		service := d.Labels["app.kubernetes.io/name"]
		var manual string
		for _, page := range append(pages[service], "operations.md", "security.md") {
			raw, err := os.ReadFile(filepath.Join(harness.Root(t), "docs", page))
			if err != nil {
				t.Fatal(err)
			}
			manual += string(raw)
		}
		for _, v := range d.Spec.Template.Spec.Containers[0].Env {
			name := strings.TrimSuffix(v.Name, "_FILE")
			if _, has := pages[service]; has && !strings.Contains(manual, "`"+name+"`") && !strings.Contains(manual, "`"+name+"=") && !strings.Contains(manual, "`"+v.Name+"`") {
				t.Errorf("%s: %s is in none of its pages", service, v.Name)
			}
		}
		checked[service] = true
	}
	for service := range pages {
		if !checked[service] {
			t.Errorf("the chart renders no %s", service)
		}
	}
}

// The assistant's permissions in a cluster equal those of the stand-alone manifest, read and write apart.
func TestAssistantsRulesAreTheManifests(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join(harness.Root(t), "deploy", "kubernetes", "assistant-account.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]rbacv1.PolicyRule{}
	for _, doc := range bytes.Split(raw, []byte("\n---\n")) {
		var r rbacv1.ClusterRole
		if err := yaml.Unmarshal(doc, &r); err == nil && r.Kind == "ClusterRole" {
			want[r.Name[strings.LastIndexByte(r.Name, '-')+1:]] = r.Rules
		}
	}
	for set, roles := range map[string][]string{"": {"reader"}, everything: {"reader", "writer"}, "assistant.rbac.read=false": {}} {
		got := parse[rbacv1.ClusterRole](t, render(t, set)["ClusterRole"])
		if len(got) != len(roles) {
			t.Errorf("%q: got %d roles, want %v", set, len(got), roles)
		}
		for _, r := range got {
			role := r.Name[strings.LastIndexByte(r.Name, '-')+1:]
			if !slices.Contains(roles, role) || !reflect.DeepEqual(r.Rules, want[role]) {
				t.Errorf("%q: role %s: got %v, want %v", set, r.Name, r.Rules, want[role])
			}
		}
	}
}

// Every container is as restricted as compose.yaml's: no root, no capabilities, a read-only root, a memory limit.
func TestChartsContainersAreHardened(t *testing.T) {
	t.Parallel()
	for _, d := range parse[appsv1.Deployment](t, render(t, everything)["Deployment"]) {
		pod := d.Spec.Template.Spec
		if pod.SecurityContext == nil || pod.SecurityContext.RunAsNonRoot == nil || !*pod.SecurityContext.RunAsNonRoot {
			t.Errorf("%s: it may run as root", d.Name)
		}
		for _, c := range append(slices.Clone(pod.InitContainers), pod.Containers...) {
			if problem := softness(c); problem != "" {
				t.Errorf("%s, container %s: %s", d.Name, c.Name, problem)
			}
		}
	}
}

func softness(c corev1.Container) string {
	s := c.SecurityContext
	switch {
	case s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem:
		return "its root is writable"
	case s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation:
		return "it may escalate"
	case s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}):
		return fmt.Sprintf("got capabilities %v, want all dropped", s.Capabilities)
	case c.Resources.Limits.Memory().IsZero():
		return "it has no limit of memory"
	}
	return ""
}
