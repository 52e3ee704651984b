package tool_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/mlp-platform/platform/libs/samplecluster"
	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/kubectl"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/tool"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// runLine parses a line and runs it in the scope of shop.
func runLine(t *testing.T, tools *tool.Tools, line string) (string, error) {
	t.Helper()
	op, err := kubectl.Parse(line)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	out, err := tools.Run(t.Context(), readerTurn("shop"), op)
	if n := utf8.RuneCountInString(out.Text); n > 8000 {
		t.Errorf("%s: %d characters; want n <= 8000", line, n)
	}
	return out.Text, err
}

func TestReads(t *testing.T) {
	t.Parallel()
	tools := setup(t)
	for _, c := range []struct {
		line      string
		want, not []string
	}{
		{"kubectl get pods", []string{"api-", "web-"}, []string{"coredns", "rows shown"}},
		{"kubectl get pods -n kube-system", []string{"coredns-"}, []string{"api-"}},
		{"kubectl get pods -A", []string{"NAMESPACE", "kube-system", "shop"}, nil},
		{"kubectl get pods -A --limit=2", []string{"[2 of ", "troubled ones first"}, nil},
		{"kubectl get pods -l app=nothing", []string{"There are no pods in namespace shop."}, nil},
		{"kubectl get deploy,svc", []string{"deployments:", "services:", "web"}, nil},
		{"kubectl get deployment/api deployment/web", []string{"api", "web"}, []string{"catalog"}},
		{"kubectl get nodes -o name", []string{"node/worker-1", "node/control-1"}, nil},
		{"kubectl get pods -n shop -o name", []string{"\npod/"}, []string{"pods/"}},
		{"kubectl get deployments -n shop -o name", []string{"deployment.apps/"}, []string{"deployments.apps/"}},
		{"kubectl get deployment/api -o yaml", []string{"kind: Deployment", "name: api", "replicas:"}, []string{"managedFields"}},
		{"kubectl get secret -A -o yaml", []string{"kind: Secret", "[redacted "}, nil},
		{"kubectl describe deployment/api", []string{"Deployment shop/api (apps/v1)", "Conditions", "Pods (", "template:"}, nil},
		{"kubectl describe service/web", []string{"Service shop/web (v1)", "Endpoints"}, nil},
		{"kubectl describe node/worker-1", []string{"Node worker-1 (v1)", "Conditions", "Pods ("}, nil},
		{"kubectl describe pods -n payments", []string{"Pod payments/", "Containers", "STATE"}, nil},
		{"kubectl logs deployment/db", []string{}, []string{"no such"}},
		{"kubectl events", []string{"LAST SEEN", "Warning"}, nil},
		{"kubectl events -A", []string{"NAMESPACE", "Warning"}, nil},
		{"kubectl rollout history deployment/api", []string{"REVISION", "IMAGES"}, nil},
		{"kubectl get pods -o wide", []string{"NODE", "STATUS", "CrashLoopBackOff"}, nil},
		{"kubectl describe pods -n payments --limit=1", []string{"CreateContainerConfigError", "[1 of 5 pods, troubled ones first"}, []string{"checkout"}},
		{"kubectl rollout history deployment/api --revision=1", []string{"Pod template of Deployment api at revision 1:", "image: "}, nil},
		{"kubectl top pods", []string{"CPU(cores)", "api-"}, nil},
		{"kubectl top pods -A", []string{"NAMESPACE", "coredns-"}, nil},
		{"kubectl top nodes", []string{"MEMORY(%)", "worker-1"}, nil},
		{"kubectl explain pod.spec.containers.resources", []string{"FIELD: resources", "limits"}, nil},
		{"kubectl auth can-i --list", []string{"In namespace shop the assistant's account may:", "*"}, nil},
		{"kubectl auth can-i delete pods", []string{"yes: the assistant's account may delete pods in namespace shop."}, nil},
	} {
		t.Run(c.line, func(t *testing.T) {
			t.Parallel()
			text, err := runLine(t, tools, c.line)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in:\n%s", want, text)
				}
			}
			for _, not := range c.not {
				if strings.Contains(text, not) {
					t.Errorf("%q in:\n%s; want !strings.Contains(text, not)", not, text)
				}
			}
		})
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	tools := setup(t)
	for line, want := range map[string]string{
		"kubectl get unicorns":                                  "no kind",
		"kubectl get pod/absent":                                `pods "absent" not found`,
		"kubectl describe deployment/absent":                    `"absent" not found`,
		"kubectl logs absent":                                   `pods "absent" not found`,
		"kubectl logs -l app=nothing":                           "No pod in namespace shop has the labels",
		"kubectl logs configmap/absent":                         "not found",
		"kubectl logs deployment/db -c sidecar":                 `There is no container "sidecar"; there are`,
		"kubectl logs namespace/shop":                           "chooses no pods",
		"kubectl explain pod.spec.nothing":                      `Pod has no field "spec.nothing".`,
		"kubectl rollout history service/web":                   "has no revisions",
		"kubectl rollout history deployment/api --revision=999": "has no revision 999",
		"query_prometheus -- up":                                "No metrics store is configured; set PROMETHEUS_URL.",
		`query_loki -- '{app="api"}'`:                           "No log store is configured; set LOKI_URL.",
	} {
		text, err := runLine(t, tools, line)
		var fault *operation.Fault
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), want) || text != "" {
			t.Errorf("%s: %q, %v; want %q", line, text, err, want)
		}
	}
}

// A hidden namespace does not exist for any caller, by any kind of request.
func TestHidden(t *testing.T) {
	t.Parallel()
	tools := setup(t, "payments")
	for _, line := range []string{
		"kubectl get pods -n payments", "kubectl events -n payments", "kubectl top pods -n payments",
		"kubectl auth can-i get pods -n payments", "kubectl describe deployment/ledger -n payments",
	} {
		text, err := runLine(t, tools, line) // as of a namespace that is not there: TestHiddenIsAbsent
		for _, name := range []string{"ledger-", "gateway", "settlements", "checkout", "CreateContainerConfigError"} {
			if strings.Contains(text, name) || err != nil && strings.Contains(err.Error(), name) {
				t.Errorf("%s: %q, %v; want no %s", line, text, err, name)
			}
		}
	}
	for _, line := range []string{"kubectl get ns/payments", "kubectl get ns/payments -o yaml", "kubectl describe ns/payments"} {
		if text, err := runLine(t, tools, line); err == nil || !strings.Contains(err.Error(), `namespaces "payments" not found`) {
			t.Errorf("%s: %q, %v; want an error && strings.Contains(err.Error(), `namespaces \"payments\" not found`)", line, text, err)
		}
	}
	for _, line := range []string{
		"kubectl get ns", "kubectl get ns -o yaml", "kubectl get pods,deploy,events,pv -A", "kubectl get secrets -A -o json",
		"kubectl events -A", "kubectl describe nodes", "kubectl describe ns",
	} {
		text, err := runLine(t, tools, line)
		if err != nil || strings.Contains(text, "payments") || strings.Contains(text, "ledger-") {
			t.Errorf("%s: %v\n%s; want !strings.Contains(text, \"payments\") && !strings.Contains(text, \"ledger-\")", line, err, text)
		}
	}
	out, err := tools.Run(t.Context(), readerTurn("payments"), operation.Operation{Verb: operation.List, Kind: "pods"})
	if err != nil || out.Text != "There are no pods in namespace payments.\n" {
		t.Errorf("in the scope of a hidden namespace: %q, %v; want none", out.Text, err)
	}
}

func TestRehearsal(t *testing.T) {
	t.Parallel()
	tools := setup(t)
	text, err := runLine(t, tools, "kubectl scale deployment/api --replicas=3 -n shop --dry-run=server")
	if err != nil || !strings.HasPrefix(text, "This would change, and was only tried:\n") || !strings.Contains(text, "+  replicas: 3") {
		t.Errorf("%q, %v; want strings.HasPrefix(text, \"This would change, and was only tried:\\n\") && strings.Contains(text, \"+ replicas: 3\")", text, err)
	}
	op := operation.Operation{Verb: operation.Diff, Namespace: "shop", Manifest: "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: fresh\ndata:\n  colour: green\n"}
	for range 2 { // the first time has left nothing behind
		out, err := tools.Run(t.Context(), readerTurn("shop"), op)
		if err != nil || !strings.Contains(out.Text, "colour: green") {
			t.Errorf(`%q, %v; want strings.Contains(out.Text, "colour: green")`, out.Text, err)
		}
	}
	if _, err := runLine(t, tools, "kubectl get cm/fresh"); err == nil {
		t.Error("a difference was applied")
	}
	var refused *action.Refused
	if _, err := runLine(t, tools, "kubectl scale deployment/api --replicas=3"); !errors.As(err, &refused) {
		t.Errorf("a write by a reader: %v; want errors.As(err, &refused)", err)
	}
}

// Nothing that is read shows the value of a Secret, or of a variable that holds one.
func TestSecrets(t *testing.T) {
	t.Parallel()
	const value = "hunter2-Correct.Horse9"
	seed := samplecluster.New(time.Now)
	t.Cleanup(seed.Close)
	client, err := kubernetes.NewForConfig(seed.Config()) // the assistant's own would write no Secret
	if err != nil {
		t.Fatal(err)
	}
	tools := toolsOn(t, seed)
	meta := metav1.ObjectMeta{Name: "vault", Namespace: "shop", Annotations: map[string]string{
		"kubectl.kubernetes.io/last-applied-configuration": `{"stringData":{"password":"` + value + `"}}`, "note": "token=" + value,
	}}
	secret := &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"password": value}}
	pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "vault"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "app", Image: "registry.example/vault:1", Args: []string{"--password=" + value}, Env: []corev1.EnvVar{{Name: "DB_PASSWORD", Value: value}},
	}}}}
	deployment := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: pod.Labels}, Template: pod}}
	if _, err := client.CoreV1().Secrets("shop").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.AppsV1().Deployments("shop").Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods, err := client.CoreV1().Pods("shop").Watch(t.Context(), metav1.ListOptions{LabelSelector: "app=vault"})
	if err != nil {
		t.Fatal(err)
	}
	<-pods.ResultChan() // the first one is there
	pods.Stop()
	for line, want := range map[string]string{
		"kubectl get secret/vault -o yaml":                         "password: '[redacted 22 bytes]'",
		"kubectl get secrets,deploy -o json":                       `"password": "[redacted 22 bytes]"`,
		"kubectl get secrets":                                      "vault",
		"kubectl describe secret/vault":                            "password: '[redacted 22 bytes]'",
		"kubectl get deployment/vault -o yaml":                     "name: DB_PASSWORD",
		"kubectl describe deployment/vault":                        "name: DB_PASSWORD",
		"kubectl describe pods -l app=vault":                       "name: DB_PASSWORD",
		"kubectl rollout history deployment/vault --revision=1":    "name: DB_PASSWORD",
		"kubectl get pods,replicasets,deploy -l app=vault -o yaml": "name: DB_PASSWORD",
	} {
		op, err := kubectl.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		out, err := tools.Run(t.Context(), readerTurn("shop"), op)
		if err != nil || !strings.Contains(out.Text, want) && !out.Truncated {
			t.Errorf("%s: %v\n%s; want (strings.Contains(out.Text, want) || out.Truncated)", line, err, out.Text)
		}
		if all := out.Text + strings.Join(out.Untrusted, "\n"); strings.Contains(all, value) || strings.Contains(all, "aHVudGVyMi") {
			t.Errorf("%s shows it:\n%s; want !strings.Contains(all, value) && !strings.Contains(all, \"aHVudGVyMi\")", line, all)
		}
	}
}

// Text from workloads is distinguished from facts that the cluster reports.
func TestUntrusted(t *testing.T) {
	t.Parallel()
	tools := setup(t)
	for _, line := range []string{"kubectl events -A", "kubectl logs deployment/api", "kubectl describe pods"} {
		op, err := kubectl.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := tools.Run(t.Context(), readerTurn("shop"), op); err != nil || len(out.Untrusted) == 0 {
			t.Errorf("%s: nothing untrusted, %v\n%s; want len(out.Untrusted) != 0", line, err, out.Text)
		}
	}
	if got := tools.Line(turn.Turn{}, operation.Operation{Verb: operation.SetEnv, Kind: "deployment", Names: []string{"api"}, Set: map[string]string{"DB_PASSWORD": "hunter2hunter2"}}); strings.Contains(got, "hunter2") {
		t.Errorf(`a line shows a secret: %s; want !strings.Contains(got, "hunter2")`, got)
	}
}
