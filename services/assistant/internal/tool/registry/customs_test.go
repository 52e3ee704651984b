package registry_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/recorded"
	"github.com/mlp-platform/platform/services/assistant/internal/runbook"
	"github.com/mlp-platform/platform/services/assistant/internal/tool"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/registry"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

const customObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, creationTimestamp: "2026-03-01T09:00:00Z"}
status: {phase: Active}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: shop, name: web, resourceVersion: "7"}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "registry.example/web:1"}]
      volumes: [{name: tls, secret: {secretName: web-tls}}]
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {namespace: shop, name: web, resourceVersion: "8"}
spec: {secretName: web-tls, dnsNames: [web.example], issuerRef: {name: ca}}
status: {conditions: [{type: Ready, status: "False", reason: DoesNotExist, lastTransitionTime: "2026-03-01T09:00:00Z"}]}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {namespace: argocd, name: shop, resourceVersion: "9"}
spec:
  source: {repoURL: "https://bot:hunter2hunter2@git.example/shop.git", path: ., targetRevision: main}
  destination: {name: in-cluster, namespace: shop}
  syncPolicy: {automated: {selfHeal: true}}
status:
  sync: {status: OutOfSync}
  health: {status: Degraded}
  operationState: {phase: Failed, message: "one or more objects failed to apply: password=hunter2hunter2", startedAt: "2026-03-01T09:00:00Z"}
  resources: [{group: apps, version: v1, kind: Deployment, namespace: shop, name: web, status: OutOfSync, health: {status: Degraded}}]
`

// recordedBox gives a toolbox on a recording of some manifests.
func recordedBox(t *testing.T, manifests string, hidden ...string) turn.Toolbox {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "objects.yaml"), []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	recording, err := recorded.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	return boxOf(t, recording.Config(), hidden...)
}

// TestDependenciesOnOtherControllers: what keeps a Secret is needed, and what manages a workload is told.
func TestDependenciesOnOtherControllers(t *testing.T) {
	t.Parallel()
	out, _ := callTool(t, recordedBox(t, customObjects), "dependencies", map[string]any{"namespace": "shop", "name": "web"})
	got := map[string]string{}
	data := out.Data.(*registry.Dependencies)
	for _, d := range append(data.Needs, data.UsedBy...) {
		got[d.Object.Kind+"/"+d.Object.Name+"@"+d.Object.ResourceVersion] = d.How
	}
	delete(got, "ServiceAccount/default@")
	delete(got, "Secret/web-tls@")
	want := map[string]string{"Certificate/web@8": "keeps Secret web-tls", "Application/shop@9": "it is managed by Argo CD application shop"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("dependencies (-want +got):\n%s", diff)
	}
}

// TestArgoApplications: applications are told with what Argo CD says, without passwords, where they stand and where they are for.
func TestArgoApplications(t *testing.T) {
	t.Parallel()
	box := recordedBox(t, customObjects)
	for _, namespace := range []string{"shop", "argocd"} {
		s, err := box.Snapshot(t.Context(), "")
		if err != nil || len(s.Applications) != 1 || strings.Contains(s.Applications[0].Spec.Source.RepoURL, "hunter2") {
			t.Fatalf("%+v, %v; want the application without the password of its source", s, err)
		}
		out, data := callTool(t, box, "argo_applications", map[string]any{"namespace": namespace})
		list, _ := data["applications"].([]any)
		if len(list) != 1 || strings.Contains(out.Text, "hunter2") {
			t.Fatalf("%s: %v\n%s; want one application without its password", namespace, data, out.Text)
		}
		one := list[0].(map[string]any)
		if one["health"] != "Degraded" || one["sync"] != "OutOfSync" || one["self_heal"] != true || one["last_sync"] != "Failed" || strings.Contains(one["message"].(string), "hunter2") {
			t.Errorf("%s: %v; want what Argo CD says, redacted", namespace, one)
		}
	}
	if out, _ := callTool(t, recordedBox(t, customObjects, "shop"), "argo_applications", nil); strings.Contains(out.Text, "shop") {
		t.Errorf("%s; want nothing of an application for a hidden namespace", out.Text)
	}
}

// TestFieldsOfOtherControllers: fields of any kind that the cluster serves are read by path.
func TestFieldsOfOtherControllers(t *testing.T) {
	t.Parallel()
	out, _ := callTool(t, recordedBox(t, customObjects), "fields", map[string]any{"kind": "certificates", "paths": []any{".spec.issuerRef.name", ".status.conditions[*].reason"}})
	if !strings.Contains(out.Text, "ca") || !strings.Contains(out.Text, "DoesNotExist") {
		t.Errorf("%s; want the issuer and the reason", out.Text)
	}
}

// TestRunbooks: what a folder has for an object, its labels, a class of findings or an alert is quoted; without a folder there is no
// such tool.
func TestRunbooks(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, match := range map[string]string{"cart.md": "{kinds: [deployment], names: [cart]}", "labels.md": "{labels: {app: cart}}", "alert.md": "{alerts: [CartDown]}", "crash.md": "{findings: [crash loop]}"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("---\ntitle: About "+name+"\nmatches: "+match+"\n---\npassword=hunter2hunter2\nDrain it.\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := runbook.Open(t.Context(), folder, engine.ClassNames(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	box := boxWith(t, shared().Config(), tool.Config{Runbooks: f})
	for arguments, want := range map[string][]string{
		`{"kind":"deploy","namespace":"shop","name":"cart"}`: {"cart.md", "labels.md"},
		`{"alert":"CartDown"}`:                               {"alert.md"},
		`{"finding":"CrashLoop"}`:                            {"crash.md"},
		`{"alert":"Other"}`:                                  nil,
	} {
		out, err := registry.New(registry.Runbooks).Call(t.Context(), box, "runbooks", []byte(arguments))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, one := range out.Data.(*registry.RunbookList).Runbooks {
			got = append(got, one.Path)
		}
		if diff := cmp.Diff(want, got); diff != "" || strings.Contains(out.Text, "hunter2") || len(want) > 0 && !strings.Contains(out.Text, "Drain it.") {
			t.Errorf("%s (-want +got):\n%s\n%s; want the text without the password", arguments, diff, out.Text)
		}
	}
	if _, err := registry.New().Call(t.Context(), box, "runbooks", nil); err == nil {
		t.Error("the tool is offered without a folder")
	}
}
