package samplecluster_test

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"github.com/mlp-platform/platform/libs/samplecluster"
)

// Requests that client-go makes to an API server, on one cluster: the parts leave each other's
// objects alone.
func TestAPI(t *testing.T) {
	inCluster(t, func(t *testing.T, ctx context.Context, k kubernetes.Interface, c *samplecluster.Cluster) {
		testDiscovery(t, ctx, k, c)
		testLists(t, ctx, k)
		testPreconditions(t, ctx, k)
		testPatches(t, ctx, k)
		testRefusals(t, ctx, k)
		testEvictions(t, ctx, k)
		testWatches(t, ctx, k)
	})
}

func testDiscovery(t *testing.T, ctx context.Context, k kubernetes.Interface, c *samplecluster.Cluster) {
	cache := memory.NewMemCacheClient(k.Discovery())
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cache), cache, nil)
	for short, want := range map[string]string{"deploy": "deployments", "po": "pods", "svc": "services", "cj": "cronjobs", "netpol": "networkpolicies", "hpa": "horizontalpodautoscalers"} {
		if got := must[schema.GroupVersionResource](t)(mapper.ResourceFor(schema.GroupVersionResource{Resource: short})); got.Resource != want {
			t.Errorf("%s is %s; want got.Resource == %v", short, got.Resource, want)
		}
	}
	dyn := must[*dynamic.DynamicClient](t)(dynamic.NewForConfig(c.Config()))
	list, err := dyn.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace("shop").List(ctx, metav1.ListOptions{LabelSelector: "app=cart"})
	if err != nil || len(list.Items) != 1 || list.Items[0].GetKind() != "Deployment" {
		t.Errorf(`dynamic list: %v %v; want len(list.Items) == 1 && list.Items[0].GetKind() == "Deployment"`, list, err)
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods"}}}
	if got := must[*authorizationv1.SelfSubjectAccessReview](t)(k.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})); !got.Status.Allowed {
		t.Error("the only caller is not allowed")
	}
}

func testLists(t *testing.T, ctx context.Context, k kubernetes.Interface) {
	all := must[*corev1.PodList](t)(k.CoreV1().Pods("").List(ctx, metav1.ListOptions{}))
	seen, token := 0, ""
	for {
		page := must[*corev1.PodList](t)(k.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: 5, Continue: token}))
		seen += len(page.Items)
		if token = page.Continue; token == "" {
			break
		}
	}
	if seen != len(all.Items) || seen < 20 {
		t.Errorf("pages hold %d of %d pods; want seen == len(all.Items) && seen >= 20", seen, len(all.Items))
	}
	running := must[*corev1.PodList](t)(k.CoreV1().Pods("shop").List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"}))
	if len(running.Items) == 0 {
		t.Error("no running pod in shop")
	}
	if _, err := k.CoreV1().Pods("shop").List(ctx, metav1.ListOptions{FieldSelector: "spec.color=red"}); !apierrors.IsBadRequest(err) {
		t.Errorf("unknown field label: %v; want apierrors.IsBadRequest(err)", err)
	}
}

func testPreconditions(t *testing.T, ctx context.Context, k kubernetes.Interface) {
	maps := k.CoreV1().ConfigMaps("default")
	cm := must[*corev1.ConfigMap](t)(maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "1"}}, metav1.CreateOptions{}))
	fresh := cm.DeepCopy()
	fresh.Data["k"] = "2"
	after := must[*corev1.ConfigMap](t)(maps.Update(ctx, fresh, metav1.UpdateOptions{}))
	if after.ResourceVersion == cm.ResourceVersion {
		t.Error("the version stands still")
	}
	if _, err := maps.Update(ctx, cm, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("stale update: %v; want apierrors.IsConflict(err)", err)
	}
	if _, err := maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"uid":"other"},"data":{"k":"3"}}`), metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("other uid: %v; want apierrors.IsInvalid(err)", err)
	}
	other := types.UID("other")
	if err := maps.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}}); !apierrors.IsConflict(err) {
		t.Errorf("delete of another uid: %v; want apierrors.IsConflict(err)", err)
	}
	if err := maps.Delete(ctx, "a", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Error(err)
	}
	same := must[*corev1.ConfigMap](t)(maps.Get(ctx, "a", metav1.GetOptions{}))
	if same.ResourceVersion != after.ResourceVersion {
		t.Error("a dry run changed the object")
	}
	if err := maps.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &same.UID, ResourceVersion: &same.ResourceVersion}}); err != nil {
		t.Error(err)
	}
	if _, err := maps.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) || err.Error() != `configmaps "a" not found` {
		t.Errorf("after the delete: %v; want apierrors.IsNotFound(err) && err.Error() == `configmaps \"a\" not found`", err)
	}
}

func testPatches(t *testing.T, ctx context.Context, k kubernetes.Interface) {
	deployments := k.AppsV1().Deployments("shop")
	before := must[*appsv1.Deployment](t)(deployments.Get(ctx, "cart", metav1.GetOptions{}))
	for kind, patch := range map[types.PatchType]string{
		types.JSONPatchType:           `[{"op":"replace","path":"/spec/replicas","value":3}]`,
		types.MergePatchType:          `{"spec":{"replicas":3}}`,
		types.StrategicMergePatchType: `{"spec":{"replicas":3}}`,
	} {
		got := must[*appsv1.Deployment](t)(deployments.Patch(ctx, "cart", kind, []byte(patch), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}))
		if *got.Spec.Replicas != 3 || got.Generation != before.Generation+1 {
			t.Errorf("%s: %d replicas, generation %d; want *got.Spec.Replicas == 3 && got.Generation == before.Generation + 1", kind, *got.Spec.Replicas, got.Generation)
		}
	}
	if now := must[*appsv1.Deployment](t)(deployments.Get(ctx, "cart", metav1.GetOptions{})); *now.Spec.Replicas != 2 {
		t.Error("a dry run scaled")
	}
	maps := k.CoreV1().ConfigMaps("default")
	applied := applycorev1.ConfigMap("owned", "default").WithData(map[string]string{"k": "1"})
	must[*corev1.ConfigMap](t)(maps.Apply(ctx, applied, metav1.ApplyOptions{FieldManager: "first"}))
	applied.Data["k"] = "2"
	if _, err := maps.Apply(ctx, applied, metav1.ApplyOptions{FieldManager: "second"}); !apierrors.IsConflict(err) {
		t.Errorf("apply over another's field: %v; want apierrors.IsConflict(err)", err)
	}
	forced := must[*corev1.ConfigMap](t)(maps.Apply(ctx, applied, metav1.ApplyOptions{FieldManager: "second", Force: true}))
	if forced.Data["k"] != "2" || len(forced.ManagedFields) == 0 {
		t.Errorf(`forced apply: %+v; want forced.Data["k"] == "2" && len(forced.ManagedFields) != 0`, forced)
	}
}

func testRefusals(t *testing.T, ctx context.Context, k kubernetes.Interface) {
	_, err := k.AppsV1().Deployments("shop").Patch(ctx, "cart", types.MergePatchType, []byte(`{"spec":{"replicas":-1}}`), metav1.PatchOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("negative replicas: %v; want apierrors.IsInvalid(err)", err)
	}
	_, err = k.AppsV1().Deployments("shop").Patch(ctx, "cart", types.MergePatchType, []byte(`{"spec":{"selector":{"matchLabels":{"app":"x"}}}}`), metav1.PatchOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("changed selector: %v; want apierrors.IsInvalid(err)", err)
	}
	if _, err = k.CoreV1().ConfigMaps("nowhere").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("no such namespace: %v; want apierrors.IsNotFound(err)", err)
	}
	strict := metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}
	if _, err = k.AppsV1().Deployments("shop").Patch(ctx, "cart", types.MergePatchType, []byte(`{"spec":{"replcas":1}}`), strict); !apierrors.IsInvalid(err) {
		t.Errorf("unknown field: %v; want apierrors.IsInvalid(err)", err)
	}
}

func testEvictions(t *testing.T, ctx context.Context, k kubernetes.Interface) {
	pods := must[*corev1.PodList](t)(k.CoreV1().Pods("shop").List(ctx, metav1.ListOptions{LabelSelector: "app=cart"}))
	evict := func(name string) error {
		return k.CoreV1().Pods("shop").EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}})
	}
	if err := evict(pods.Items[0].Name); err != nil {
		t.Error(err)
	}
	if err := evict(pods.Items[1].Name); !apierrors.IsTooManyRequests(err) {
		t.Errorf("eviction beyond the budget: %v; want apierrors.IsTooManyRequests(err)", err)
	}
}

func testWatches(t *testing.T, ctx context.Context, k kubernetes.Interface) {
	w, err := k.CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=seen"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	maps := k.CoreV1().ConfigMaps("default")
	must[*corev1.ConfigMap](t)(maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "seen"}}, metav1.CreateOptions{}))
	if err := maps.Delete(ctx, "seen", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint((<-w.ResultChan()).Type, (<-w.ResultChan()).Type); got != "ADDEDDELETED" && got != "ADDED DELETED" {
		t.Errorf(`watched %s; want (got == "ADDEDDELETED" || got == "ADDED DELETED")`, got)
	}
}
