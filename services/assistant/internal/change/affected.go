package change

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// maxAffected limits the affected objects that are named.
const maxAffected = 1000

// podRef returns a reference to a pod; an empty name means all.
func podRef(namespace, name string) operation.Ref {
	return operation.Ref{Version: "v1", Kind: "Pod", Resource: "pods", Namespace: namespace, Name: name}
}

// affected names the other objects that a write affects, and notes obstacles. Objects in
// namespaces out of reach come first, so that no limit hides them.
func (s *Service) affected(ctx context.Context, e operation.Expanded, seen []rehearsal) (refs []operation.Ref, notes []string, err error) {
	for _, r := range seen {
		found, told, err := s.affectedByCall(ctx, e, r)
		if err != nil {
			return nil, nil, err
		}
		notes = append(notes, told...)
		refs = append(append(refs, found...), r.removes...)
		if r.call.live != nil && (r.after != nil || r.call.way == removes) {
			notes = append(notes, s.managers(ctx, &r.call)...)
		}
	}
	slices.SortStableFunc(refs, func(a, b operation.Ref) int { return s.outOfReachRank(b) - s.outOfReachRank(a) })
	if len(refs) > maxAffected {
		return refs[:maxAffected], append(notes, "More objects are affected than are named."), nil
	}
	return refs, notes, nil
}

// outOfReachRank is a sort key: 1 for an object in a namespace that is never written.
func (s *Service) outOfReachRank(ref operation.Ref) int {
	if slices.Contains(s.Policy.Protected, ref.Namespace) || !s.Policy.Visible(ref.Namespace) {
		return 1
	}
	return 0
}

// affectedByCall names the objects that one call affects. It goes by the effect on the
// object, not by the verb alone: several verbs can have the same effect.
func (s *Service) affectedByCall(ctx context.Context, e operation.Expanded, r rehearsal) (found []operation.Ref, told []string, err error) {
	c := r.call
	kind := kindOfRef(c.ref).String()
	switch {
	case c.live == nil:
		return nil, nil, nil
	case e.Verb == operation.Drain:
		return s.drained(ctx, e.Operation, c)
	case c.way == removes, c.way == recreates, r.after != nil && !reflect.DeepEqual(ownerReferences(c.live.Object), ownerReferences(r.after)):
		found, err = s.dependents(ctx, c)
	case c.way == evicts:
	case kind == "Node":
		found, err = s.evictedByTaints(ctx, c, r.after)
	case kind == crdKind && !reflect.DeepEqual(valueAt(c.live.Object, "spec"), valueAt(r.after, "spec")):
		found, err = s.instances(ctx, c)
	case e.Verb == operation.Scale:
		if found, err = s.ownPods(ctx, c); err == nil {
			told, err = s.scalers(ctx, c.ref)
		}
		if len(e.Targets) > 1 && r.after != nil {
			told = append([]string{describeScaling(c, r.after)}, told...)
		}
	case slices.Contains(rollingVerbs, e.Verb):
		found, err = s.ownPods(ctx, c)
	}
	return found, told, err
}

// describeScaling names one of several workloads that are scaled. The diff has only those that change.
func describeScaling(c call, after object) string {
	was, will := numberAt(c.live.Object, "spec", "replicas"), numberAt(after, "spec", "replicas")
	if was == will {
		return fmt.Sprintf("%s stays at %d replicas.", c.ref, will)
	}
	return fmt.Sprintf("%s goes from %d to %d replicas.", c.ref, was, will)
}

// rollingVerbs are the verbs that may replace old pods with new ones.
var rollingVerbs = []operation.Verb{
	operation.Restart, operation.Undo, operation.SetImage, operation.SetResources, operation.SetEnv,
	operation.Patch, operation.Apply, operation.Replace,
}

const crdKind = "CustomResourceDefinition.apiextensions.k8s.io"

func ownerReferences(o object) any { return valueAt(o, "metadata", "ownerReferences") }

func refsOf(kind operation.Ref, found []unstructured.Unstructured) []operation.Ref {
	refs := make([]operation.Ref, len(found))
	for i, o := range found {
		refs[i] = kind
		refs[i].Namespace, refs[i].Name = o.GetNamespace(), o.GetName()
	}
	return refs
}

// podsOn returns the pods of a node.
func (s *Service) podsOn(ctx context.Context, node, labels string) ([]unstructured.Unstructured, error) {
	return s.list(ctx, podRef("", ""), metav1.ListOptions{LabelSelector: labels, FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()}, maxAffected)
}

// evictedByTaints returns the pods that a node's new NoExecute taints evict.
func (s *Service) evictedByTaints(ctx context.Context, c call, after object) ([]operation.Ref, error) {
	var fresh []operation.ParsedTaint
	had := objectsAt(c.live.Object, "spec", "taints")
	for _, t := range objectsAt(after, "spec", "taints") {
		taint := operation.ParsedTaint{Key: textAt(t, "key"), Value: textAt(t, "value"), Effect: textAt(t, "effect")}
		if taint.Effect == string(corev1.TaintEffectNoExecute) && !slices.ContainsFunc(had, func(h object) bool {
			return textAt(h, "key") == taint.Key && textAt(h, "value") == taint.Value && textAt(h, "effect") == taint.Effect
		}) {
			fresh = append(fresh, taint)
		}
	}
	if len(fresh) == 0 {
		return nil, nil
	}
	pods, err := s.podsOn(ctx, c.ref.Name, "")
	if err != nil {
		return nil, err
	}
	pods = slices.DeleteFunc(pods, func(p unstructured.Unstructured) bool {
		return !slices.ContainsFunc(fresh, func(t operation.ParsedTaint) bool { return !toleratesTaint(p.Object, t) })
	})
	return refsOf(podRef("", ""), pods), nil
}

// dependents returns the objects that are deleted with another one, or stop working without it.
func (s *Service) dependents(ctx context.Context, c call) ([]operation.Ref, error) {
	switch kindOfRef(c.ref).String() {
	case "Namespace":
		pods, err := s.list(ctx, podRef(c.ref.Name, ""), metav1.ListOptions{}, maxAffected)
		return refsOf(podRef("", ""), pods), err
	case "Node":
		pods, err := s.podsOn(ctx, c.ref.Name, "")
		return refsOf(podRef("", ""), pods), err
	case "PersistentVolumeClaim":
		pods, err := s.list(ctx, podRef(c.ref.Namespace, ""), metav1.ListOptions{}, maxAffected)
		pods = slices.DeleteFunc(pods, func(p unstructured.Unstructured) bool {
			return !slices.ContainsFunc(objectsAt(p.Object, "spec", "volumes"), func(v object) bool {
				return textAt(v, "persistentVolumeClaim", "claimName") == c.ref.Name
			})
		})
		return refsOf(podRef("", ""), pods), err
	case crdKind:
		return s.instances(ctx, c)
	case "CronJob.batch":
		return s.runs(ctx, c)
	}
	return s.ownPods(ctx, c)
}

// instances returns the objects of a custom kind, those in namespaces out of reach first.
func (s *Service) instances(ctx context.Context, c call) ([]operation.Ref, error) {
	kind := operation.Ref{Group: textAt(c.live.Object, "spec", "group"), Kind: textAt(c.live.Object, "spec", "names", "kind"), Resource: textAt(c.live.Object, "spec", "names", "plural")}
	for _, v := range objectsAt(c.live.Object, "spec", "versions") {
		if v["served"] == true && (kind.Version == "" || v["storage"] == true) {
			kind.Version = textAt(v, "name")
		}
	}
	if kind.Version == "" {
		return nil, operation.Refuse(operation.Unavailable, "", "No version of %s is served, so its objects cannot be listed; serve a version first.", c.ref)
	}
	var refs []operation.Ref
	if textAt(c.live.Object, "spec", "scope") != "Cluster" {
		for _, namespace := range slices.Concat(s.Policy.Protected, s.Policy.Hidden) {
			in := kind
			in.Namespace = namespace
			found, err := s.list(ctx, in, metav1.ListOptions{}, 1)
			if err != nil {
				return nil, err
			}
			refs = append(refs, refsOf(kind, found)...)
		}
	}
	found, err := s.list(ctx, kind, metav1.ListOptions{}, maxAffected)
	for _, ref := range refsOf(kind, found) {
		if s.outOfReachRank(ref) == 0 {
			refs = append(refs, ref)
		}
	}
	return refs, err
}

// runs returns the jobs of a cron job with their pods.
func (s *Service) runs(ctx context.Context, c call) ([]operation.Ref, error) {
	kind := operation.Ref{Group: "batch", Version: "v1", Kind: "Job", Resource: "jobs", Namespace: c.ref.Namespace}
	jobs, err := s.list(ctx, kind, metav1.ListOptions{}, maxAffected)
	if err != nil {
		return nil, err
	}
	var refs []operation.Ref
	for _, j := range jobs {
		if owner := metav1.GetControllerOf(&j); owner == nil || owner.UID != c.live.GetUID() {
			continue
		}
		job := kind
		job.Name = j.GetName()
		pods, err := s.ownPods(ctx, call{ref: job, live: &j})
		if err != nil {
			return nil, err
		}
		refs = append(append(refs, job), pods...)
	}
	return refs, nil
}

// ownPods returns the current pods of a workload.
func (s *Service) ownPods(ctx context.Context, c call) ([]operation.Ref, error) {
	pods, err := s.podsOf(ctx, c.ref, c.live)
	return refsOf(podRef("", ""), pods), err
}

func (s *Service) podsOf(ctx context.Context, ref operation.Ref, live *unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	chooses, ok := valueAt(live.Object, "spec", "selector").(object)
	if !ok || podSpecs[kindOfRef(ref)] == nil || ref.Kind == "ReplicationController" {
		return nil, nil
	}
	var by metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(chooses, &by); err != nil {
		return nil, nil // an unsupported selector selects nothing known
	}
	pods, err := s.list(ctx, podRef(ref.Namespace, ""), metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(&by)}, maxAffected)
	return slices.DeleteFunc(pods, func(p unstructured.Unstructured) bool {
		owner := metav1.GetControllerOf(&p)
		if owner == nil {
			return true
		}
		if ref.Kind == "Deployment" {
			return owner.Kind != "ReplicaSet" || !strings.HasPrefix(owner.Name, ref.Name+"-")
		}
		return owner.UID != live.GetUID()
	}), err
}

// scalers notes the autoscalers that reset the same number.
func (s *Service) scalers(ctx context.Context, ref operation.Ref) (notes []string, err error) {
	r, err := s.Cluster.Resolve(ctx, "horizontalpodautoscalers.v2.autoscaling")
	if err != nil {
		return nil, nil // a cluster without autoscalers
	}
	found, err := s.list(ctx, r.Ref(ref.Namespace, ""), metav1.ListOptions{}, maxAffected)
	for _, o := range found {
		to, _ := valueAt(o.Object, "spec", "scaleTargetRef").(object)
		if to["kind"] == ref.Kind && to["name"] == ref.Name {
			notes = append(notes, "The autoscaler "+o.GetName()+" sets this number, too.")
		}
	}
	return notes, err
}
