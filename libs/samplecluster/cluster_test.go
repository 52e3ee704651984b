package samplecluster_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/mlp-platform/platform/libs/samplecluster"
)

// inCluster runs a test against a fresh cluster, in a bubble with its own time.
func inCluster(t *testing.T, test func(*testing.T, context.Context, kubernetes.Interface, *samplecluster.Cluster)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := samplecluster.New(time.Now)
		defer c.Close()
		client, err := kubernetes.NewForConfig(c.Config())
		if err != nil {
			t.Fatal(err)
		}
		test(t, t.Context(), client, c)
	})
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func podOf(t *testing.T, ctx context.Context, k kubernetes.Interface, namespace, prefix string) corev1.Pod {
	t.Helper()
	pods := must[*corev1.PodList](t)(k.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{}))
	for _, pod := range pods.Items {
		if strings.HasPrefix(pod.Name, prefix) {
			for _, st := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
				if !st.Ready {
					return pod
				}
			}
			if pod.Spec.NodeName == "" {
				return pod
			}
		}
	}
	t.Fatalf("no troubled pod %s/%s*", namespace, prefix)
	return corev1.Pod{}
}

// Failures are reported with the messages of a real kubelet, scheduler or
// controller.
func TestSeededTroubles(t *testing.T) {
	inCluster(t, func(t *testing.T, ctx context.Context, k kubernetes.Interface, _ *samplecluster.Cluster) {
		waiting := func(namespace, prefix, container, reason, message string) {
			t.Helper()
			pod := podOf(t, ctx, k, namespace, prefix)
			for _, st := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
				if st.Name == container && st.State.Waiting != nil && st.State.Waiting.Reason == reason && strings.Contains(st.State.Waiting.Message, message) {
					return
				}
			}
			t.Errorf("%s: container %s is not waiting for %s %q: %+v", pod.Name, container, reason, message, pod.Status.ContainerStatuses)
		}
		waiting("shop", "api-", "api", "CrashLoopBackOff", "restarting failed container=api")
		waiting("shop", "web-", "web", "ImagePullBackOff", "registry.example/shop/web:2.4.0: not found")
		waiting("payments", "gateway-", "gateway", "CreateContainerConfigError", "couldn't find key DATABASE_URL in Secret payments/gateway-db")
		waiting("payments", "settlements-", "settlements", "CreateContainerConfigError", `configmap "settlements-config" not found`)
		waiting("crm", "billing-", "billing", "PodInitializing", "")

		ledger := podOf(t, ctx, k, "payments", "ledger-").Status.ContainerStatuses[0]
		if last := ledger.LastTerminationState.Terminated; last == nil || last.Reason != "OOMKilled" || last.ExitCode != 137 || ledger.RestartCount < 2 {
			t.Errorf(`ledger was not killed for memory: %+v; want last != nil && last.Reason == "OOMKilled" && last.ExitCode == 137 && ledger.RestartCount >= 2`, ledger)
		}
		unscheduled := func(namespace, prefix, message string) {
			t.Helper()
			for _, c := range podOf(t, ctx, k, namespace, prefix).Status.Conditions {
				if c.Type == corev1.PodScheduled && c.Reason == "Unschedulable" && strings.Contains(c.Message, message) {
					return
				}
			}
			t.Errorf("%s/%s is not unschedulable with %q", namespace, prefix, message)
		}
		unscheduled("media", "transcoder-", "3 Insufficient cpu")
		unscheduled("reports", "warehouse-0", "pod has unbound immediate PersistentVolumeClaims")

		event := func(namespace, reason, message string) {
			t.Helper()
			list := must[*corev1.EventList](t)(k.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + reason}))
			for _, e := range list.Items {
				if strings.Contains(e.Message, message) {
					return
				}
			}
			t.Errorf("no event %s %q in %s", reason, message, namespace)
		}
		event("team-a", "FailedCreate", "exceeded quota: team-a, requested: pods=1, used: pods=2, limited: pods=2")
		event("media", "Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 404")
		event("media", "Unhealthy", ":9999: connect: connection refused")
		event("reports", "ProvisioningFailed", `storageclass.storage.k8s.io "fast-ssd" not found`)

		logs := func(namespace, pod, container string, previous bool, want string) {
			t.Helper()
			text := must[[]byte](t)(k.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container, Previous: previous}).DoRaw(ctx))
			if !strings.Contains(string(text), want) {
				t.Errorf("log of %s lacks %q: %s", pod, want, text)
			}
		}
		logs("shop", podOf(t, ctx, k, "shop", "api-").Name, "api", true, "required environment variable DATABASE_URL is empty")
		logs("crm", podOf(t, ctx, k, "crm", "billing-").Name, "wait-for-db", false, "connection refused")
		logs("crm", podOf(t, ctx, k, "crm", "app-").Name, "app", false, "i/o timeout")
		for _, name := range []string{"catalog", "web", "cart"} {
			//lint:ignore SA1019 clients still read Endpoints
			ep := must[*corev1.Endpoints](t)(k.CoreV1().Endpoints("shop").Get(ctx, name, metav1.GetOptions{}))
			if (len(ep.Subsets) == 0) != (name == "catalog") {
				t.Errorf(`endpoints of %s: %+v; want (len(ep.Subsets) == 0) == (name == "catalog")`, name, ep.Subsets)
			}
		}
	})
}

func patchDeployment(t *testing.T, ctx context.Context, k kubernetes.Interface, namespace, deployment, patch string) {
	t.Helper()
	must[*appsv1.Deployment](t)(k.AppsV1().Deployments(namespace).Patch(ctx, deployment, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "cluster-assistant"}))
}

// Every trouble goes away within two seconds after its cause has been repaired.
func TestRepairs(t *testing.T) {
	container := func(name, rest string) string {
		return fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":%q,%s}]}}}}`, name, rest)
	}
	for name, repair := range map[string]struct {
		namespace, deployment string
		fix                   func(*testing.T, context.Context, kubernetes.Interface)
	}{
		"empty variable": {"shop", "api", func(t *testing.T, ctx context.Context, k kubernetes.Interface) {
			patchDeployment(t, ctx, k, "shop", "api", container("api", `"env":[{"name":"DATABASE_URL","value":"postgres://db:5432/shop"}]`))
		}},
		"bad tag": {"shop", "web", func(t *testing.T, ctx context.Context, k kubernetes.Interface) {
			patchDeployment(t, ctx, k, "shop", "web", container("web", `"image":"registry.example/shop/web:2.3.1"`))
		}},
		"out of memory": {"payments", "ledger", func(t *testing.T, ctx context.Context, k kubernetes.Interface) {
			patchDeployment(t, ctx, k, "payments", "ledger", container("ledger", `"resources":{"limits":{"memory":"256Mi"}}`))
		}},
		"missing key": {"payments", "gateway", func(t *testing.T, ctx context.Context, k kubernetes.Interface) {
			patchDeployment(t, ctx, k, "payments", "gateway", container("gateway", `"env":[{"name":"DATABASE_URL","valueFrom":{"secretKeyRef":{"name":"gateway-db","key":"DB_URL"}}}]`))
		}},
		"missing map": {"payments", "settlements", func(t *testing.T, ctx context.Context, k kubernetes.Interface) {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settlements-config"}, Data: map[string]string{"currency": "EUR"}}
			must[*corev1.ConfigMap](t)(k.CoreV1().ConfigMaps("payments").Create(ctx, cm, metav1.CreateOptions{}))
		}},
		"too large": {"media", "transcoder", func(t *testing.T, ctx context.Context, k kubernetes.Interface) {
			patchDeployment(t, ctx, k, "media", "transcoder", container("transcoder", `"resources":{"requests":{"cpu":"1"}}`))
		}},
		"liveness path": {"media", "thumbnails", func(t *testing.T, ctx context.Context, k kubernetes.Interface) {
			patchDeployment(t, ctx, k, "media", "thumbnails", container("thumbnails", `"livenessProbe":{"httpGet":{"path":"/healthz","port":8080}}`))
		}},
		"readiness port": {"media", "player", func(t *testing.T, ctx context.Context, k kubernetes.Interface) {
			patchDeployment(t, ctx, k, "media", "player", container("player", `"readinessProbe":{"httpGet":{"path":"/readyz","port":8080}}`))
		}},
		"quota": {"team-a", "worker", func(t *testing.T, ctx context.Context, k kubernetes.Interface) {
			quota := must[*corev1.ResourceQuota](t)(k.CoreV1().ResourceQuotas("team-a").Get(ctx, "team-a", metav1.GetOptions{}))
			quota.Spec.Hard[corev1.ResourcePods] = resource.MustParse("8")
			must[*corev1.ResourceQuota](t)(k.CoreV1().ResourceQuotas("team-a").Update(ctx, quota, metav1.UpdateOptions{}))
		}},
		"init container": {"crm", "billing", func(t *testing.T, ctx context.Context, k kubernetes.Interface) {
			scale := must[*appsv1.Deployment](t)(k.AppsV1().Deployments("crm").Get(ctx, "crm-db", metav1.GetOptions{}))
			sc, err := k.AppsV1().Deployments("crm").GetScale(ctx, scale.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			sc.Spec.Replicas = 1
			if _, err := k.AppsV1().Deployments("crm").UpdateScale(ctx, scale.Name, sc, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}},
		"network policy": {"crm", "app", func(t *testing.T, ctx context.Context, k kubernetes.Interface) {
			patchDeployment(t, ctx, k, "crm", "app", `{"spec":{"template":{"metadata":{"labels":{"role":"frontend"}}}}}`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, ctx context.Context, k kubernetes.Interface, _ *samplecluster.Cluster) {
				repair.fix(t, ctx, k)
				<-time.After(2 * time.Second)
				d := must[*appsv1.Deployment](t)(k.AppsV1().Deployments(repair.namespace).Get(ctx, repair.deployment, metav1.GetOptions{}))
				if want := *d.Spec.Replicas; d.Status.AvailableReplicas != want || d.Status.UpdatedReplicas != want || d.Status.Replicas != want {
					t.Errorf("not repaired: %+v; want d.Status.AvailableReplicas == want && d.Status.UpdatedReplicas == want && d.Status.Replicas == want", d.Status)
				}
			})
		})
	}
}
