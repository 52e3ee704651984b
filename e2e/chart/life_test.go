//go:build e2e && full

package chart

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/mlp-platform/platform/e2e/harness"
	"github.com/mlp-platform/platform/e2e/kube"
)

// The chart is installed, upgraded, rolled back and removed in a namespace that accepts only restricted pods. API
// server, controllers and scheduler are real; nodes are simulated, so containers do not run: the test ends the
// migrations.
func TestChartsLife(t *testing.T) {
	t.Parallel()
	c := kube.Start(t)
	t.Cleanup(c.Stop)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	_, err := c.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "platform", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range secretsOfRelease(t, filepath.Join(t.TempDir(), "secrets")) {
		if _, err := c.Client.CoreV1().Secrets("platform").Create(ctx, &s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	go endMigrations(ctx, c)
	release := func(verb string, args ...string) {
		t.Helper()
		args = append([]string{verb, "ml"}, append(args, "--kubeconfig", c.Kubeconfig, "--namespace", "platform", "--timeout", "3m")...)
		if out, err := helm(t, args...); err != nil {
			t.Fatalf("helm %s: %v\n%s", verb, err, out)
		}
	}
	const all = perPod + ",worker.enabled=true,assistant.rbac.write=true,inference.autoscaling.enabled=true," +
		"ingress.enabled=true,ingress.host=ml.example.org,ingress.toolsHost=tools.ml.example.org"
	release("install", chartDir(t), "--dry-run=server", "--set", all)
	release("install", chartDir(t), "--wait", "--set", perPod)
	images := func(want string) {
		t.Helper()
		list, err := c.Client.AppsV1().Deployments("platform").List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != 5 {
			t.Fatalf("got %d deployments, %v, want 5", len(list.Items), err)
		}
		for _, d := range list.Items {
			got := d.Spec.Template.Spec.Containers[0].Image
			if got != "mlp-platform/"+d.Labels["app.kubernetes.io/name"]+":"+want || d.Status.AvailableReplicas != 2 {
				t.Errorf("%s: got image %s and %d available, want tag %s and 2", d.Name, got, d.Status.AvailableReplicas, want)
			}
		}
	}
	images("local")
	release("upgrade", chartDir(t), "--wait", "--set", perPod, "--set", "image.tag=next")
	images("next")
	release("rollback", "1", "--wait")
	images("local")
	release("uninstall", "--wait")
	if err := kube.Until(func() error { return findLeftovers(ctx, c) }); err != nil {
		t.Error(err)
	}
}

// findLeftovers returns an error while the cluster has objects of a release.
func findLeftovers(ctx context.Context, c *kube.Cluster) error {
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	var names []string
	for _, r := range []schema.GroupVersionResource{
		{Version: "v1", Resource: "pods"}, {Version: "v1", Resource: "services"}, {Version: "v1", Resource: "serviceaccounts"}, {Version: "v1", Resource: "configmaps"},
		{Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "apps", Version: "v1", Resource: "replicasets"}, {Group: "batch", Version: "v1", Resource: "jobs"},
		{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}, {Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
		{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}, {Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	} {
		list, err := client.Resource(r).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=mlp-platform"})
		if err != nil {
			return err
		}
		for _, o := range list.Items {
			names = append(names, r.Resource+"/"+o.GetName())
		}
	}
	if len(names) > 0 {
		return fmt.Errorf("left behind: %v", names)
	}
	return nil
}

// secretsOfRelease creates secrets in a new folder, as docs/kubernetes.md describes.
func secretsOfRelease(t *testing.T, dir string) []corev1.Secret {
	t.Helper()
	stack := harness.Bin(t, "stack")
	if out, err := exec.Command(stack, "secrets", dir).CombinedOutput(); err != nil {
		t.Fatalf("stack secrets: %v\n%s", err, out)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(stack, "manifests", dir, "ml")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("stack manifests: %v\n%s", err, stderr.String())
	}
	var list corev1.SecretList
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// endMigrations acts as the kubelet of the migrations' pods.
func endMigrations(ctx context.Context, c *kube.Cluster) {
	pods := c.Client.CoreV1().Pods("platform")
	for ctx.Err() == nil {
		list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=migration"})
		if err != nil {
			return
		}
		for _, p := range list.Items {
			if p.Status.Phase != corev1.PodSucceeded && p.Spec.NodeName != "" {
				p.Status.Phase = corev1.PodSucceeded
				_, _ = pods.UpdateStatus(ctx, &p, metav1.UpdateOptions{}) // a conflict is retried
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}
