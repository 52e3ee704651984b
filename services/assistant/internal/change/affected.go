package change

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// maxAffected bounds the objects that feel a write and are named.
const maxAffected = 1000

// podKind is the kind of all pods.
func podKind(namespace, name string) operation.Ref {
	return operation.Ref{Version: "v1", Kind: "Pod", Resource: "pods", Namespace: namespace, Name: name}
}

// affected names what else feels a write, and notes what stands in its way.
func (s *Service) affected(ctx context.Context, e operation.Expanded, calls []call) (refs []operation.Ref, notes []string, err error) {
	for _, c := range calls {
		if c.live == nil {
			continue
		}
		var found []operation.Ref
		var told []string
		switch e.Verb {
		case operation.Drain:
			found, told, err = s.drained(ctx, e.Operation, c)
		case operation.Taint:
			found, err = s.driven(ctx, e.Operation, c)
		case operation.Delete:
			found, err = s.follows(ctx, c)
		case operation.Scale:
			if found, err = s.ownPods(ctx, c); err == nil {
				told, err = s.scalers(ctx, c.ref)
			}
		case operation.Restart, operation.Undo, operation.SetImage, operation.SetResources, operation.SetEnv, operation.Patch, operation.Apply, operation.Replace:
			found, err = s.ownPods(ctx, c)
		}
		if err != nil {
			return nil, nil, err
		}
		notes = append(notes, told...)
		refs = append(refs, found...)
		if len(refs) > maxAffected {
			return refs[:maxAffected], append(notes, "More objects are affected than are named."), nil
		}
	}
	return refs, notes, nil
}

func refsOf(kind operation.Ref, found []unstructured.Unstructured) []operation.Ref {
	refs := make([]operation.Ref, len(found))
	for i, o := range found {
		refs[i] = kind
		refs[i].Namespace, refs[i].Name = o.GetNamespace(), o.GetName()
	}
	return refs
}

// podsOn are the pods of a node.
func (s *Service) podsOn(ctx context.Context, node, labels string) ([]unstructured.Unstructured, error) {
	return s.list(ctx, podKind("", ""), metav1.ListOptions{LabelSelector: labels, FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()}, maxAffected)
}

// driven are the pods that new NoExecute taints drive off a node.
func (s *Service) driven(ctx context.Context, op operation.Operation, c call) ([]operation.Ref, error) {
	var gone []operation.Ref
	for _, text := range op.Taints {
		t, err := operation.ParseTaint(text, false)
		if err != nil {
			return nil, err
		}
		if t.Effect != string(corev1.TaintEffectNoExecute) {
			continue
		}
		pods, err := s.podsOn(ctx, c.ref.Name, "")
		if err != nil {
			return nil, err
		}
		for _, p := range pods {
			ref := podKind(p.GetNamespace(), p.GetName())
			if !tolerates(p.Object, t) && !slices.Contains(gone, ref) {
				gone = append(gone, ref)
			}
		}
	}
	return gone, nil
}

// follows are the objects that go, or lose their ground, with one that is deleted.
func (s *Service) follows(ctx context.Context, c call) ([]operation.Ref, error) {
	switch kindOfRef(c.ref).String() {
	case "Namespace":
		pods, err := s.list(ctx, podKind(c.ref.Name, ""), metav1.ListOptions{}, maxAffected)
		return refsOf(podKind("", ""), pods), err
	case "Node":
		pods, err := s.podsOn(ctx, c.ref.Name, "")
		return refsOf(podKind("", ""), pods), err
	case "PersistentVolumeClaim":
		pods, err := s.list(ctx, podKind(c.ref.Namespace, ""), metav1.ListOptions{}, maxAffected)
		pods = slices.DeleteFunc(pods, func(p unstructured.Unstructured) bool {
			return !slices.ContainsFunc(objectsAt(p.Object, "spec", "volumes"), func(v object) bool {
				return textAt(v, "persistentVolumeClaim", "claimName") == c.ref.Name
			})
		})
		return refsOf(podKind("", ""), pods), err
	case "CustomResourceDefinition.apiextensions.k8s.io":
		return s.instances(ctx, c)
	case "CronJob.batch":
		return s.runs(ctx, c)
	}
	return s.ownPods(ctx, c)
}

// instances are the objects of a custom kind.
func (s *Service) instances(ctx context.Context, c call) ([]operation.Ref, error) {
	kind := operation.Ref{Group: textAt(c.live.Object, "spec", "group"), Kind: textAt(c.live.Object, "spec", "names", "kind"), Resource: textAt(c.live.Object, "spec", "names", "plural")}
	for _, v := range objectsAt(c.live.Object, "spec", "versions") {
		if v["storage"] == true && v["served"] == true {
			kind.Version = textAt(v, "name")
		}
	}
	if kind.Version == "" {
		return nil, nil // nothing that could be listed
	}
	found, err := s.list(ctx, kind, metav1.ListOptions{}, maxAffected)
	return refsOf(kind, found), err
}

// runs are the jobs of a cron job with their pods.
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

// ownPods are the pods that a workload runs now.
func (s *Service) ownPods(ctx context.Context, c call) ([]operation.Ref, error) {
	pods, err := s.podsOf(ctx, c.ref, c.live)
	return refsOf(podKind("", ""), pods), err
}

func (s *Service) podsOf(ctx context.Context, ref operation.Ref, live *unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	chooses, ok := at(live.Object, "spec", "selector").(object)
	if !ok || podSpecs[kindOfRef(ref)] == nil || ref.Kind == "ReplicationController" {
		return nil, nil
	}
	var by metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(chooses, &by); err != nil {
		return nil, nil // a selector of another form chooses nothing that is known
	}
	pods, err := s.list(ctx, podKind(ref.Namespace, ""), metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(&by)}, maxAffected)
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

// scalers notes the autoscalers that set the same number again.
func (s *Service) scalers(ctx context.Context, ref operation.Ref) (notes []string, err error) {
	r, err := s.cluster.Resolve(ctx, "horizontalpodautoscalers.v2.autoscaling")
	if err != nil {
		return nil, nil // a cluster without autoscalers
	}
	found, err := s.list(ctx, r.Ref(ref.Namespace, ""), metav1.ListOptions{}, maxAffected)
	for _, o := range found {
		to, _ := at(o.Object, "spec", "scaleTargetRef").(object)
		if to["kind"] == ref.Kind && to["name"] == ref.Name {
			notes = append(notes, "The autoscaler "+o.GetName()+" sets this number, too.")
		}
	}
	return notes, err
}
