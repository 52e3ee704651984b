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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// removed returns the objects that a controller deletes because of a call that names none of
// them.
func (s *Service) removed(ctx context.Context, r rehearsal) ([]operation.Ref, error) {
	switch {
	case r.after == nil:
		return nil, nil
	case kindOfRef(r.call.ref).String() == "Node" && r.call.live != nil:
		return s.misplaced(ctx, r)
	}
	return s.adopted(ctx, r)
}

// misplaced returns the pods of daemon sets that no longer match a node's new labels. Other
// pods stay where they are.
func (s *Service) misplaced(ctx context.Context, r rehearsal) ([]operation.Ref, error) {
	if reflect.DeepEqual(valueAt(r.call.live.Object, "metadata", "labels"), valueAt(r.after, "metadata", "labels")) {
		return nil, nil
	}
	var before, after corev1.Node
	for o, node := range map[*object]*corev1.Node{&r.call.live.Object: &before, &r.after: &after} {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(*o, node); err != nil {
			return nil, fmt.Errorf("%s: %w", r.call.ref, err)
		}
	}
	pods, err := s.podsOn(ctx, r.call.ref.Name, "")
	if err != nil {
		return nil, err
	}
	var gone []operation.Ref
	for _, p := range pods {
		var pod corev1.Pod
		if owner := metav1.GetControllerOf(&p); owner == nil || owner.Kind != "DaemonSet" {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(p.Object, &pod); err != nil {
			return nil, fmt.Errorf("pod %s/%s: %w", p.GetNamespace(), p.GetName(), err)
		}
		wants := nodeaffinity.GetRequiredNodeAffinity(&pod)
		// A rule that cannot be read attracts nothing.
		fit, _ := wants.Match(&before)
		fits, _ := wants.Match(&after)
		if fit && !fits {
			gone = append(gone, podRef(p.GetNamespace(), p.GetName()))
		}
	}
	return gone, nil
}

// adopted returns the objects without a controller that a workload with a new selector adopts
// and then deletes.
func (s *Service) adopted(ctx context.Context, r rehearsal) ([]operation.Ref, error) {
	ref, live := r.call.ref, object(nil)
	if r.call.live != nil {
		live = r.call.live.Object
	}
	of, keeps := podRef(ref.Namespace, ""), int64(0)
	switch kindOfRef(ref).String() {
	case "ReplicationController", "ReplicaSet.apps", "StatefulSet.apps":
		keeps = numberAt(r.after, "spec", "replicas")
	case "DaemonSet.apps":
	case "Deployment.apps":
		of = operation.Ref{Group: "apps", Version: "v1", Kind: "ReplicaSet", Resource: "replicasets", Namespace: ref.Namespace}
	case "Job.batch":
		if valueAt(r.after, "spec", "manualSelector") != true {
			return nil, nil // the server has made a selector that fits nothing else
		}
	default:
		return nil, nil
	}
	if reflect.DeepEqual(valueAt(live, "spec", "selector"), valueAt(r.after, "spec", "selector")) && live != nil {
		return nil, nil
	}
	chooses, _ := valueAt(r.after, "spec", "selector").(object)
	if ref.Kind == "ReplicationController" {
		if len(chooses) == 0 {
			chooses, _ = valueAt(r.after, "spec", "template", "metadata", "labels").(object)
		}
		chooses = object{"matchLabels": chooses}
	}
	var by metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(chooses, &by); err != nil {
		return nil, fmt.Errorf("selector of %s: %w", ref, err)
	}
	if len(by.MatchLabels)+len(by.MatchExpressions) == 0 {
		return nil, nil // not valid for any of these kinds
	}
	found, err := s.list(ctx, of, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(&by)}, maxAffected)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(o unstructured.Unstructured) bool {
		return metav1.GetControllerOf(&o) != nil || o.GetDeletionTimestamp() != nil ||
			ref.Kind == "StatefulSet" && !strings.HasPrefix(o.GetName(), ref.Name+"-")
	})
	if int64(len(found)) <= keeps {
		return nil, nil
	}
	return refsOf(of, found), nil
}
