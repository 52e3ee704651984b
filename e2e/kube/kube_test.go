//go:build e2e

package kube_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/e2e/kube"
	"github.com/mlp-platform/platform/libs/samplecluster/program"
)

// TestCluster checks the simulation that the assistant's scenarios rely on: a failing program looks as a kubelet would
// show it, its log can be read, and a changed specification repairs it.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := kube.Start(t)
	t.Cleanup(c.Stop)
	ctx := t.Context()
	if err := c.Kubelet.ServeMetrics(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.Namespace(ctx, "shop"); err != nil {
		t.Fatal(err)
	}
	d := kube.Deployment("shop", "api", "registry.test/api:1", 2, program.Program{Start: []string{"starting"}, Needs: []string{"DATABASE_URL"}})
	if _, err := c.Client.AppsV1().Deployments("shop").Create(ctx, d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := func(want string, holds func(*corev1.Pod) bool) *corev1.Pod {
		t.Helper()
		var found *corev1.Pod
		err := kube.Until(func() error {
			list, err := c.Client.CoreV1().Pods("shop").List(ctx, metav1.ListOptions{LabelSelector: "app=api"})
			if err != nil {
				return err
			}
			n := 0
			for i := range list.Items {
				if holds(&list.Items[i]) {
					found, n = &list.Items[i], n+1
				}
			}
			if n != 2 || len(list.Items) != 2 {
				return fmt.Errorf("%d of %d pods %s", n, len(list.Items), want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	pod := pods("crash", func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].State.Waiting != nil && p.Status.ContainerStatuses[0].State.Waiting.Reason == "CrashLoopBackOff"
	})
	stream, err := c.Client.CoreV1().Pods("shop").GetLogs(pod.Name, &corev1.PodLogOptions{Previous: true}).Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	log, err := io.ReadAll(stream)
	if err != nil || !strings.Contains(string(log), "DATABASE_URL is empty") {
		t.Fatalf(`log %q, %v; want strings.Contains(string(log), "DATABASE_URL is empty")`, log, err)
	}
	d, err = c.Client.AppsV1().Deployments("shop").Get(ctx, "api", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "DATABASE_URL", Value: "postgres://db"}}
	if _, err := c.Client.AppsV1().Deployments("shop").Update(ctx, d, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods("run", func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].Ready && p.DeletionTimestamp == nil
	})
	err = kube.Until(func() error {
		raw, err := c.Client.Discovery().RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods").Do(context.Background()).Raw()
		if err == nil && !strings.Contains(string(raw), `"memory":"20Mi"`) {
			err = fmt.Errorf("no usage in %s", raw)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
