package samplecluster_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	explain "k8s.io/kubectl/pkg/explain/v2"
)

const manager = "cluster-assistant"

// bench is one API server and a namespace of the test's own on it.
type bench struct {
	typed     kubernetes.Interface
	dynamic   dynamic.Interface
	namespace string
}

// runConformance checks any API server for the behaviour that the assistant relies on: the sample cluster has to answer
// as a real one does. It works in a namespace that it makes and removes, and needs no controllers there.
func runConformance(t *testing.T, cfg *rest.Config) {
	typed := orFail(kubernetes.NewForConfig(cfg))(t)
	b := bench{typed: typed, dynamic: orFail(dynamic.NewForConfig(cfg))(t)}
	ns := orFail(typed.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "conformance-"}}, metav1.CreateOptions{}))(t)
	b.namespace = ns.Name
	t.Run("discovery", b.discovery)
	t.Run("lists", b.lists)
	t.Run("preconditions", b.preconditions)
	t.Run("patches", b.patches)
	t.Run("dry runs", b.dryRuns)
	t.Run("refusals", b.refusals)
	t.Run("scale", b.scale)
	t.Run("apply", b.apply)
	t.Run("rights", b.rights)
	t.Run("explain", b.explain)
	if err := typed.CoreV1().Namespaces().Delete(t.Context(), ns.Name, metav1.DeleteOptions{}); err != nil {
		t.Errorf("remove the namespace: %v", err)
	}
}

func orFail[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (b bench) configMap(t *testing.T, name string, labels map[string]string) *corev1.ConfigMap {
	t.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Data: map[string]string{"key": "1"}}
	return orFail(b.typed.CoreV1().ConfigMaps(b.namespace).Create(t.Context(), m, metav1.CreateOptions{FieldManager: manager}))(t)
}

// deployment has no replicas, so that no controller interferes with the test.
func (b bench) deployment(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	none, labels := int32(0), map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: &none, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "main", Image: "registry.example/main:1", Env: []corev1.EnvVar{{Name: "A", Value: "1"}}}, {Name: "side", Image: "registry.example/side:1"},
		}}},
	}}
	return orFail(b.typed.AppsV1().Deployments(b.namespace).Create(t.Context(), d, metav1.CreateOptions{FieldManager: manager}))(t)
}

func (b bench) discovery(t *testing.T) {
	if v := orFail(b.typed.Discovery().ServerVersion())(t); v.Major == "" || v.GitVersion == "" {
		t.Errorf(`version: %+v; want v.Major != "" && v.GitVersion != ""`, v)
	}
	_, lists, err := b.typed.Discovery().ServerGroupsAndResources()
	if err != nil && len(lists) == 0 {
		t.Fatal(err, "want (err == nil || len(lists) != 0)")
	}
	served := map[string]metav1.APIResource{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			served[list.GroupVersion+"/"+r.Name] = r
		}
	}
	for name, want := range map[string]struct {
		kind, short string
		namespaced  bool
	}{
		"v1/pods": {"Pod", "po", true}, "v1/pods/log": {"Pod", "", true}, "v1/pods/eviction": {"Eviction", "", true}, "v1/nodes": {"Node", "no", false},
		"apps/v1/deployments": {"Deployment", "deploy", true}, "apps/v1/deployments/scale": {"Scale", "", true}, "batch/v1/cronjobs": {"CronJob", "cj", true},
		"networking.k8s.io/v1/networkpolicies": {"NetworkPolicy", "netpol", true}, "storage.k8s.io/v1/storageclasses": {"StorageClass", "sc", false},
	} {
		got, ok := served[name]
		if !ok || got.Kind != want.kind || got.Namespaced != want.namespaced || want.short != "" && !slices.Contains(got.ShortNames, want.short) {
			t.Errorf(`%s: %+v; want ok && got.Kind == want.kind && got.Namespaced == want.namespaced && (want.short == "" || slices.Contains(got.ShortNames, want.short))`, name, got)
		}
	}
}

func (b bench) lists(t *testing.T) {
	for _, name := range []string{"list-a", "list-b", "list-c"} {
		b.configMap(t, name, map[string]string{"set": "list", "name": name})
	}
	maps := b.typed.CoreV1().ConfigMaps(b.namespace)
	var seen []string
	o := metav1.ListOptions{LabelSelector: "set=list", Limit: 2}
	for {
		page := orFail(maps.List(t.Context(), o))(t)
		for _, m := range page.Items {
			seen = append(seen, m.Name)
		}
		if o.Continue = page.Continue; o.Continue == "" {
			break
		}
	}
	if !slices.Equal(seen, []string{"list-a", "list-b", "list-c"}) {
		t.Errorf(`pages hold %v; want slices.Equal(seen, []string{"list-a", "list-b", "list-c"})`, seen)
	}
	for selector, want := range map[string]int{"set in (list),name!=list-a": 2, "set,!name": 0, "name notin (list-a,list-b),set": 1} {
		if list := orFail(maps.List(t.Context(), metav1.ListOptions{LabelSelector: selector}))(t); len(list.Items) != want {
			t.Errorf("%s selects %d, want %d", selector, len(list.Items), want)
		}
	}
	if list := orFail(maps.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=list-b"}))(t); len(list.Items) != 1 {
		t.Errorf("a field selector finds %d; want 1", len(list.Items))
	}
	if _, err := maps.List(t.Context(), metav1.ListOptions{FieldSelector: "data.key=1"}); !apierrors.IsBadRequest(err) {
		t.Errorf("unknown field label: %v; want apierrors.IsBadRequest(err)", err)
	}
	list := orFail(b.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(b.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "set=list"}))(t)
	if list.GetKind() != "ConfigMapList" || len(list.Items) != 3 || list.GetResourceVersion() == "" {
		t.Errorf(`dynamic list: %s of %d at %q; want list.GetKind() == "ConfigMapList" && len(list.Items) == 3 && list.GetResourceVersion() != ""`, list.GetKind(), len(list.Items), list.GetResourceVersion())
	}
}

func (b bench) preconditions(t *testing.T) {
	maps := b.typed.CoreV1().ConfigMaps(b.namespace)
	first := b.configMap(t, "held", nil)
	changed := first.DeepCopy()
	changed.Data["key"] = "2"
	second := orFail(maps.Update(t.Context(), changed, metav1.UpdateOptions{}))(t)
	if second.ResourceVersion == first.ResourceVersion || second.UID != first.UID {
		t.Errorf("after an update: %s %s, before %s %s; want second.ResourceVersion != first.ResourceVersion && second.UID == first.UID", second.UID, second.ResourceVersion, first.UID, first.ResourceVersion)
	}
	if _, err := maps.Update(t.Context(), first, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("a stale update: %v; want apierrors.IsConflict(err)", err)
	}
	patch := func(meta string) error {
		_, err := maps.Patch(t.Context(), "held", types.MergePatchType, []byte(`{"metadata":{`+meta+`},"data":{"key":"3"}}`), metav1.PatchOptions{})
		return err
	}
	if err := patch(`"resourceVersion":"` + first.ResourceVersion + `"`); !apierrors.IsConflict(err) {
		t.Errorf("a patch of an old version: %v; want apierrors.IsConflict(err)", err)
	}
	if err := patch(`"uid":"other","resourceVersion":"` + first.ResourceVersion + `"`); !apierrors.IsConflict(err) {
		t.Errorf("a patch of an object that was made anew: %v; want apierrors.IsConflict(err)", err)
	}
	if err := patch(`"uid":"other"`); !apierrors.IsInvalid(err) {
		t.Errorf("a patch of another uid alone: %v; want apierrors.IsInvalid(err)", err)
	}
	other := types.UID("other")
	for what, p := range map[string]metav1.Preconditions{"another uid": {UID: &other}, "an old version": {ResourceVersion: &first.ResourceVersion}} {
		if err := maps.Delete(t.Context(), "held", metav1.DeleteOptions{Preconditions: &p}); !apierrors.IsConflict(err) {
			t.Errorf("a delete of %s: %v; want apierrors.IsConflict(err)", what, err)
		}
	}
	if err := maps.Delete(t.Context(), "held", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &second.UID, ResourceVersion: &second.ResourceVersion}}); err != nil {
		t.Errorf("the delete: %v", err)
	}
	if _, err := maps.Get(t.Context(), "held", metav1.GetOptions{}); !apierrors.IsNotFound(err) || err.Error() != `configmaps "held" not found` {
		t.Errorf("after the delete: %v; want apierrors.IsNotFound(err) && err.Error() == `configmaps \"held\" not found`", err)
	}
}

func (b bench) patches(t *testing.T) {
	deployments := b.typed.AppsV1().Deployments(b.namespace)
	d := b.deployment(t, "patched")
	strategic := `{"spec":{"template":{"spec":{"containers":[{"name":"main","env":[{"name":"B","value":"2"}]}]}}}}`
	d2 := orFail(deployments.Patch(t.Context(), d.Name, types.StrategicMergePatchType, []byte(strategic), metav1.PatchOptions{FieldManager: manager}))(t)
	if c := d2.Spec.Template.Spec.Containers; len(c) != 2 || len(c[0].Env) != 2 || d2.Generation != d.Generation+1 {
		t.Errorf("a strategic patch: generation %d, %+v; want len(c) == 2 && len(c[0].Env) == 2 && d2.Generation == d.Generation + 1", d2.Generation, c)
	}
	for merge, moves := range map[string]int64{`{"metadata":{"annotations":{"note":"x"}}}`: 1, `{"metadata":{"labels":{"note":"x"}}}`: 0} {
		before := orFail(deployments.Get(t.Context(), d.Name, metav1.GetOptions{}))(t)
		after := orFail(deployments.Patch(t.Context(), d.Name, types.MergePatchType, []byte(merge), metav1.PatchOptions{FieldManager: manager}))(t)
		if after.Generation != before.Generation+moves || after.ResourceVersion == before.ResourceVersion {
			t.Errorf("%s: the generation moves from %d to %d; want after.Generation == before.Generation + moves && after.ResourceVersion != before.ResourceVersion", merge, before.Generation, after.Generation)
		}
	}
	d4 := orFail(deployments.Patch(t.Context(), d.Name, types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/annotations/note"}]`), metav1.PatchOptions{}))(t)
	if _, there := d4.Annotations["note"]; there {
		t.Error("a JSON patch leaves the annotation")
	}
	if !slices.ContainsFunc(d4.ManagedFields, func(m metav1.ManagedFieldsEntry) bool { return m.Manager == manager }) {
		t.Errorf("nobody remembers who changed it: %+v; want slices.ContainsFunc(d4.ManagedFields, func(m metav1.ManagedFieldsEntry) bool { return m.Manager == manager })", d4.ManagedFields)
	}
}

func (b bench) dryRuns(t *testing.T) {
	deployments := b.typed.AppsV1().Deployments(b.namespace)
	d := b.deployment(t, "rehearsed")
	all := []string{metav1.DryRunAll}
	got := orFail(deployments.Patch(t.Context(), d.Name, types.MergePatchType, []byte(`{"spec":{"paused":true}}`), metav1.PatchOptions{DryRun: all}))(t)
	if !got.Spec.Paused || got.Generation != d.Generation+1 {
		t.Errorf("a rehearsed patch: %+v; want got.Spec.Paused && got.Generation == d.Generation + 1", got.Spec)
	}
	if err := deployments.Delete(t.Context(), d.Name, metav1.DeleteOptions{DryRun: all}); err != nil {
		t.Error(err)
	}
	if _, err := b.typed.CoreV1().ConfigMaps(b.namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "rehearsed"}}, metav1.CreateOptions{DryRun: all}); err != nil {
		t.Error(err)
	}
	if _, err := b.typed.CoreV1().ConfigMaps(b.namespace).Get(t.Context(), "rehearsed", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a rehearsed create: %v; want apierrors.IsNotFound(err)", err)
	}
	if live := orFail(deployments.Get(t.Context(), d.Name, metav1.GetOptions{}))(t); live.Spec.Paused || live.Generation != d.Generation {
		t.Error("a rehearsal changed the object")
	}
}

func (b bench) refusals(t *testing.T) {
	deployments := b.typed.AppsV1().Deployments(b.namespace)
	d := b.deployment(t, "refused")
	for what, patch := range map[string]string{
		"negative replicas": `{"spec":{"replicas":-1}}`, "another selector": `{"spec":{"selector":{"matchLabels":{"app":"x"}}}}`,
		"no image": `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":""}]}}}}`,
	} {
		if _, err := deployments.Patch(t.Context(), d.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v; want apierrors.IsInvalid(err)", what, err)
		}
	}
	strict := metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}
	if _, err := deployments.Patch(t.Context(), d.Name, types.MergePatchType, []byte(`{"spec":{"replcas":1}}`), strict); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), `unknown field "spec.replcas"`) {
		t.Errorf("an unknown field: %v; want apierrors.IsInvalid(err) && strings.Contains(err.Error(), `unknown field \"spec.replcas\"`)", err)
	}
	maps := func(namespace string) error {
		_, err := b.typed.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "twice"}}, metav1.CreateOptions{})
		return err
	}
	if err := maps("nowhere-" + b.namespace); !apierrors.IsNotFound(err) {
		t.Errorf("no such namespace: %v; want apierrors.IsNotFound(err)", err)
	}
	if err := maps(b.namespace); err != nil {
		t.Error(err)
	}
	if err := maps(b.namespace); !apierrors.IsAlreadyExists(err) {
		t.Errorf("twice: %v; want apierrors.IsAlreadyExists(err)", err)
	}
}

func (b bench) scale(t *testing.T) {
	deployments := b.typed.AppsV1().Deployments(b.namespace)
	d := b.deployment(t, "scaled")
	s := orFail(deployments.GetScale(t.Context(), d.Name, metav1.GetOptions{}))(t)
	if s.Spec.Replicas != 0 || s.UID != d.UID || s.Status.Selector != "app=scaled" {
		t.Errorf(`scale: %+v; want s.Spec.Replicas == 0 && s.UID == d.UID && s.Status.Selector == "app=scaled"`, s)
	}
	stale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: d.Name, Namespace: d.Namespace, ResourceVersion: "1"}}
	if _, err := deployments.UpdateScale(t.Context(), d.Name, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("a stale scale: %v; want apierrors.IsConflict(err)", err)
	}
	s.Spec.Replicas, s.ResourceVersion = 2, "" // a deployment controller may have written the status meanwhile
	if got := orFail(deployments.UpdateScale(t.Context(), d.Name, s, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}))(t); got.Spec.Replicas != 2 {
		t.Errorf("scaled: %+v; want got.Spec.Replicas == 2", got.Spec)
	}
}

func (b bench) apply(t *testing.T) {
	maps := b.typed.CoreV1().ConfigMaps(b.namespace)
	apply := func(who, value string, force bool) (*corev1.ConfigMap, error) {
		body := orFail(json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "applied"}, "data": map[string]any{"key": value}}))(t)
		return maps.Patch(t.Context(), "applied", types.ApplyYAMLPatchType, body, metav1.PatchOptions{FieldManager: who, Force: &force})
	}
	orFail(apply("first", "1", false))(t)
	if _, err := apply("second", "2", false); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "first") {
		t.Errorf(`apply over another's field: %v; want apierrors.IsConflict(err) && strings.Contains(err.Error(), "first")`, err)
	}
	if got := orFail(apply("second", "2", true))(t); got.Data["key"] != "2" {
		t.Errorf(`by force: %v; want got.Data["key"] == "2"`, got.Data)
	}
}

func (b bench) rights(t *testing.T) {
	self := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: b.namespace, Verb: "get", Resource: "pods"}}}
	if got := orFail(b.typed.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), self, metav1.CreateOptions{}))(t); !got.Status.Allowed {
		t.Error("the tests' own account may read no pods")
	}
	rules := orFail(b.typed.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: b.namespace}}, metav1.CreateOptions{}))(t)
	if len(rules.Status.ResourceRules) == 0 {
		t.Error("the tests' own account has no rules")
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}}
	orFail(b.typed.RbacV1().Roles(b.namespace).Create(t.Context(), role, metav1.CreateOptions{}))(t)
	may := func(verb string) bool {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + b.namespace + ":app", ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: b.namespace, Verb: verb, Resource: "pods"},
		}}
		return orFail(b.typed.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{}))(t).Status.Allowed
	}
	if may("get") {
		t.Error("an account without a binding may read pods")
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "app", Namespace: b.namespace}}}
	orFail(b.typed.RbacV1().RoleBindings(b.namespace).Create(t.Context(), binding, metav1.CreateOptions{}))(t)
	// A real server's authorizer sees the binding through a watch, soon.
	for !may("get") {
		if t.Context().Err() != nil {
			t.Fatal("the binding gives no right")
		}
	}
	if may("delete") {
		t.Error("the role gives more than it says")
	}
}

func (b bench) explain(t *testing.T) {
	for _, tc := range []struct {
		path []string
		gvr  schema.GroupVersionResource
		want []string
	}{
		{nil, corev1.SchemeGroupVersion.WithResource("pods"), []string{"KIND:       Pod", "VERSION:    v1", "spec\t<PodSpec>", "Specification of the desired behavior of the pod."}},
		{[]string{"spec", "template", "spec", "containers", "resources"}, appsv1.SchemeGroupVersion.WithResource("deployments"), []string{"GROUP:      apps", "FIELD: resources <ResourceRequirements>", "limits\t<map[string]Quantity>"}},
		{[]string{"spec"}, appsv1.SchemeGroupVersion.WithResource("deployments"), []string{"FIELD: spec <DeploymentSpec>", "selector\t<LabelSelector> -required-", "replicas\t<integer>\n"}},
		{[]string{"spec", "ports"}, corev1.SchemeGroupVersion.WithResource("services"), []string{"targetPort\t<IntOrString>", "port\t<integer> -required-"}},
	} {
		var out bytes.Buffer
		if err := explain.PrintModelDescription(tc.path, &out, b.typed.Discovery().OpenAPIV3(), tc.gvr, false, 0, "plaintext"); err != nil {
			t.Errorf("%s %v: %v", tc.gvr.Resource, tc.path, err)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s %v lacks %q:\n%s", tc.gvr.Resource, tc.path, want, out.String())
			}
		}
	}
}
