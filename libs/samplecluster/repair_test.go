package samplecluster_test

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/mlp-platform/platform/libs/samplecluster"
)

// countEndpoints counts the ready addresses behind a Service that have a port.
func countEndpoints(t *testing.T, ctx context.Context, k kubernetes.Interface, namespace, service string) int {
	t.Helper()
	n := 0
	slices := must[*discoveryv1.EndpointSliceList](t)(k.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service}))
	for _, slice := range slices.Items {
		for _, e := range slice.Endpoints {
			if len(slice.Ports) > 0 && e.Conditions.Ready != nil && *e.Conditions.Ready {
				n++
			}
		}
	}
	return n
}

// Other kinds than deployments recover too, once the cause is repaired.
func TestOtherRepairs(t *testing.T) {
	service := func(namespace, name, patch string) func(*testing.T, context.Context, kubernetes.Interface, *samplecluster.Cluster) {
		return func(t *testing.T, ctx context.Context, k kubernetes.Interface, _ *samplecluster.Cluster) {
			if n := countEndpoints(t, ctx, k, namespace, name); n != 0 {
				t.Fatalf("%d endpoints before the repair; want 0", n)
			}
			must[*corev1.Service](t)(k.CoreV1().Services(namespace).Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}))
			<-time.After(2 * time.Second)
			if countEndpoints(t, ctx, k, namespace, name) == 0 {
				t.Error("no endpoints after the repair")
			}
		}
	}
	for name, test := range map[string]func(*testing.T, context.Context, kubernetes.Interface, *samplecluster.Cluster){
		"selector": service("shop", "catalog", `{"spec":{"selector":{"version":"v1"}}}`),
		"port":     service("media", "gallery", `{"spec":{"ports":[{"port":80,"targetPort":"main"}]}}`),
		"suspended cron job": func(t *testing.T, ctx context.Context, k kubernetes.Interface, _ *samplecluster.Cluster) {
			jobs := k.BatchV1().CronJobs("reports")
			if c := must[*batchv1.CronJob](t)(jobs.Get(ctx, "nightly-report", metav1.GetOptions{})); !*c.Spec.Suspend || c.Status.LastScheduleTime != nil {
				t.Fatalf("before the repair: %+v; want *c.Spec.Suspend && c.Status.LastScheduleTime == nil", c)
			}
			must[*batchv1.CronJob](t)(jobs.Patch(ctx, "nightly-report", types.MergePatchType, []byte(`{"spec":{"suspend":false}}`), metav1.PatchOptions{}))
			<-time.After(11 * time.Minute)
			if c := must[*batchv1.CronJob](t)(jobs.Get(ctx, "nightly-report", metav1.GetOptions{})); *c.Spec.Suspend || c.Status.LastScheduleTime == nil || c.Status.LastSuccessfulTime == nil {
				t.Errorf("after the repair: %+v; want !*c.Spec.Suspend && c.Status.LastScheduleTime != nil && c.Status.LastSuccessfulTime != nil", c.Status)
			}
		},
		"storage class": func(t *testing.T, ctx context.Context, k kubernetes.Interface, _ *samplecluster.Cluster) {
			class := must[*storagev1.StorageClass](t)(k.StorageV1().StorageClasses().Get(ctx, "standard", metav1.GetOptions{}))
			fast := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast-ssd"}, Provisioner: class.Provisioner, VolumeBindingMode: class.VolumeBindingMode}
			must[*storagev1.StorageClass](t)(k.StorageV1().StorageClasses().Create(ctx, fast, metav1.CreateOptions{}))
			<-time.After(20 * time.Second) // a kubelet pulls the image and probes
			claim := must[*corev1.PersistentVolumeClaim](t)(k.CoreV1().PersistentVolumeClaims("reports").Get(ctx, "data-warehouse-0", metav1.GetOptions{}))
			set := must[*appsv1.StatefulSet](t)(k.AppsV1().StatefulSets("reports").Get(ctx, "warehouse", metav1.GetOptions{}))
			if claim.Status.Phase != corev1.ClaimBound || set.Status.ReadyReplicas != 1 {
				t.Errorf("claim %s, %d ready; want claim.Status.Phase == corev1.ClaimBound && set.Status.ReadyReplicas == 1", claim.Status.Phase, set.Status.ReadyReplicas)
			}
		},
		"autoscaler": func(t *testing.T, ctx context.Context, k kubernetes.Interface, _ *samplecluster.Cluster) {
			patchDeployment(t, ctx, k, "media", "player", `{"spec":{"template":{"spec":{"containers":[{"name":"player","resources":{"requests":{"cpu":"50m"}},"readinessProbe":{"httpGet":{"path":"/readyz","port":8080}}}]}}}}`)
			<-time.After(time.Minute)
			h, err := k.AutoscalingV2().HorizontalPodAutoscalers("media").Get(ctx, "player", metav1.GetOptions{})
			if err != nil || len(h.Status.CurrentMetrics) != 1 {
				t.Fatalf("%v: %+v; want len(h.Status.CurrentMetrics) == 1", err, h)
			}
			if got := h.Status.CurrentMetrics[0].Resource.Current.AverageUtilization; got == nil || *got != 24 || h.Status.DesiredReplicas != h.Status.CurrentReplicas {
				t.Errorf("%+v; want got != nil && *got == 24 && h.Status.DesiredReplicas == h.Status.CurrentReplicas", h.Status)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { inCluster(t, test) })
	}
}

func containsAll(s string, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(s, part) {
			return false
		}
	}
	return true
}

// The metrics API reports running pods and no others.
func TestUsage(t *testing.T) {
	inCluster(t, func(t *testing.T, ctx context.Context, k kubernetes.Interface, _ *samplecluster.Cluster) {
		get := func(path string) string {
			path, query, _ := strings.Cut(path, "?")
			raw, err := k.Discovery().RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1/"+path).Param("labelSelector", query).DoRaw(ctx)
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
			return string(raw)
		}
		pods := must[*corev1.PodList](t)(k.CoreV1().Pods("shop").List(ctx, metav1.ListOptions{LabelSelector: "app=cart"}))
		for _, path := range []string{"namespaces/shop/pods/" + pods.Items[0].Name, "namespaces/shop/pods?app=cart", "pods"} {
			if got := get(path); !containsAll(got, `"cpu":"12m"`, `"memory":"70Mi"`, `"kind":"PodMetrics"`) {
				t.Errorf("%s: %s; want containsAll(got, `\"cpu\":\"12m\"`, `\"memory\":\"70Mi\"`, `\"kind\":\"PodMetrics\"`)", path, got)
			}
		}
		if got := get("nodes"); !containsAll(got, `"kind":"NodeMetrics"`, `"cpu":`, `"memory":`) {
			t.Errorf("nodes: %s; want containsAll(got, `\"kind\":\"NodeMetrics\"`, `\"cpu\":`, `\"memory\":`)", got)
		}
		if got := get("namespaces/payments/pods"); containsAll(got, `"name":"gateway"`) {
			t.Errorf("a container that never started uses something: %s", got)
		}
	})
}
