package change

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// observe reads one object after a write.
func (s *Service) observe(ctx context.Context, e operation.Expanded, t operation.Target) (observation, error) {
	live, err := s.readIf(ctx, t.Ref)
	if err != nil {
		return observation{}, err
	}
	name := t.Ref.String()
	removed := e.Verb == operation.Delete || e.Verb == operation.Evict || isPruned(e, t.Ref)
	switch {
	case removed && (live == nil || string(live.GetUID()) != t.UID):
		return observation{name + " is gone.", true}, nil
	case live == nil:
		return observation{name + " is not there.", false}, nil
	case removed:
		return observeDeletion(t.Ref, live), nil
	}
	switch e.Verb {
	case operation.Label:
		return observeMarks(t.Ref, live.GetLabels(), "label", e.Operation), nil
	case operation.Annotate:
		return observeMarks(t.Ref, live.GetAnnotations(), "annotation", e.Operation), nil
	case operation.Drain:
		return s.emptied(ctx, e.Operation, t.Ref, live)
	}
	switch kindOfRef(t.Ref).String() {
	case "Deployment.apps", "StatefulSet.apps", "ReplicaSet.apps", "DaemonSet.apps":
		return s.rollout(ctx, t.Ref, live)
	case "CronJob.batch":
		return observeSchedule(t.Ref, live), nil
	case "Job.batch":
		return observeJob(t.Ref, live), nil
	case "Service":
		return s.endpoints(ctx, t.Ref, live)
	case "Node":
		return observeNode(t.Ref, live), nil
	case "Pod":
		return observePod(t.Ref, live), nil
	case "PersistentVolumeClaim":
		phase := textAt(live.Object, "status", "phase")
		return observation{fmt.Sprintf("%s is %s.", name, strings.ToLower(phase)), phase == "Bound"}, nil
	case "HorizontalPodAutoscaler.autoscaling":
		spec := live.Object["spec"]
		return observation{fmt.Sprintf("%s keeps %s between %d and %d replicas.", name, textAt(spec, "scaleTargetRef", "name"),
			max(numberAt(spec, "minReplicas"), 1), numberAt(spec, "maxReplicas")), true}, nil
	}
	return observation{name + " is there, as read back.", true}, nil
}

// isPruned reports whether an apply removes this object: no document contains it.
func isPruned(e operation.Expanded, ref operation.Ref) bool {
	if e.Verb != operation.Apply || !e.Prune {
		return false
	}
	docs, err := operation.Documents(e.Manifest)
	return err == nil && !slices.ContainsFunc(docs, func(d operation.Document) bool {
		return d.Kind == ref.Kind && d.Name == ref.Name && (d.Namespace == "" || ref.Namespace == "" || d.Namespace == ref.Namespace)
	})
}

func observeDeletion(ref operation.Ref, live *unstructured.Unstructured) observation {
	if live.GetDeletionTimestamp() == nil {
		return observation{ref.String() + " is still there.", false}
	}
	text := ref.String() + " is being deleted and is still there."
	if f := live.GetFinalizers(); len(f) > 0 {
		text = fmt.Sprintf("%s is being deleted; it waits for the finalizers %s.", ref, strings.Join(f, ", "))
	}
	return observation{text, false}
}

func observeMarks(ref operation.Ref, have map[string]string, what string, op operation.Operation) observation {
	var parts []string
	settled := true
	for _, name := range sortedKeys(op.Set) {
		if have[name] != op.Set[name] {
			settled = false
			parts = append(parts, "does not have the "+what+" "+name+" with the requested value")
			continue
		}
		parts = append(parts, "has the "+what+" "+name)
	}
	for _, name := range op.Remove {
		if _, ok := have[name]; ok {
			settled = false
			parts = append(parts, "still has the "+what+" "+name)
			continue
		}
		parts = append(parts, "has no "+what+" "+name)
	}
	return observation{ref.String() + " " + strings.Join(parts, ", ") + ".", settled}
}

func observeSchedule(ref operation.Ref, live *unstructured.Unstructured) observation {
	state := "not suspended"
	if valueAt(live.Object, "spec", "suspend") == true {
		state = "suspended"
	}
	return observation{fmt.Sprintf("%s is %s, read back; its schedule is %q.", ref, state, textAt(live.Object, "spec", "schedule")), true}
}

func observeJob(ref operation.Ref, live *unstructured.Unstructured) observation {
	for _, c := range objectsAt(live.Object, "status", "conditions") {
		if c["status"] != "True" {
			continue
		}
		switch c["type"] {
		case "Complete":
			return observation{ref.String() + " is complete.", true}
		case "Failed":
			return observation{fmt.Sprintf("%s has failed: %s.", ref, textAt(c, "reason")), true}
		case "Suspended":
			return observation{ref.String() + " is suspended.", true}
		}
	}
	active := numberAt(live.Object, "status", "active")
	return observation{fmt.Sprintf("%s has %d active pods, %d succeeded and %d failed.", ref, active,
		numberAt(live.Object, "status", "succeeded"), numberAt(live.Object, "status", "failed")), active > 0}
}

func observeNode(ref operation.Ref, live *unstructured.Unstructured) observation {
	state := "takes new pods"
	if valueAt(live.Object, "spec", "unschedulable") == true {
		state = "takes no new pods"
	}
	var taints []string
	for _, t := range objectsAt(live.Object, "spec", "taints") {
		text := textAt(t, "key")
		if v := textAt(t, "value"); v != "" {
			text += "=" + v
		}
		taints = append(taints, text+":"+textAt(t, "effect"))
	}
	if len(taints) > 0 {
		return observation{fmt.Sprintf("%s %s; its taints are %s.", ref, state, strings.Join(taints, ", ")), true}
	}
	return observation{fmt.Sprintf("%s %s and has no taints.", ref, state), true}
}

func (s *Service) emptied(ctx context.Context, op operation.Operation, ref operation.Ref, live *unstructured.Unstructured) (observation, error) {
	pods, err := s.podsOn(ctx, ref.Name, op.PodSelector)
	if err != nil {
		return observation{}, err
	}
	left, err := filterEvictable(op, ref, pods)
	if err != nil {
		return observation{err.Error(), true}, nil // the error reports a pod that appeared in the meantime
	}
	v := observeNode(ref, live)
	v.text += fmt.Sprintf(" %d of its pods are left to evict; %d stay with the node.", len(left), len(pods)-len(left))
	v.settled = len(left) == 0
	return v, nil
}

// endpoints describes the endpoints of a service.
func (s *Service) endpoints(ctx context.Context, ref operation.Ref, live *unstructured.Unstructured) (observation, error) {
	if textAt(live.Object, "spec", "type") == "ExternalName" {
		return observation{fmt.Sprintf("%s leads to %s.", ref, textAt(live.Object, "spec", "externalName")), true}, nil
	}
	r, err := s.Cluster.Resolve(ctx, "endpointslices.v1.discovery.k8s.io")
	if err != nil {
		return observation{}, err
	}
	slices, err := s.list(ctx, r.Ref(ref.Namespace, ""), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + ref.Name}, maxAffected)
	if err != nil {
		return observation{}, err
	}
	ready, others := 0, 0
	for _, slice := range slices {
		for _, e := range objectsAt(slice.Object, "endpoints") {
			if valueAt(e, "conditions", "ready") == false {
				others++
			} else {
				ready++
			}
		}
	}
	return observation{fmt.Sprintf("%s has %d ready endpoints and %d that are not ready.", ref, ready, others), ready > 0}, nil
}
