package change

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// rollout reports how many pods of a workload are ready and new.
func (s *Service) rollout(ctx context.Context, ref operation.Ref, live *unstructured.Unstructured) (observation, error) {
	status := live.Object["status"]
	want, ready, updated, all := int64(1), numberAt(status, "readyReplicas"), numberAt(status, "updatedReplicas"), numberAt(status, "replicas")
	if n := valueAt(live.Object, "spec", "replicas"); n != nil {
		want = numberAt(live.Object, "spec", "replicas")
	}
	switch ref.Kind {
	case "DaemonSet":
		want, ready = numberAt(status, "desiredNumberScheduled"), numberAt(status, "numberReady")
		updated, all = numberAt(status, "updatedNumberScheduled"), want
	case "ReplicaSet":
		updated = all // it has one template
	case "StatefulSet":
		if textAt(live.Object, "spec", "updateStrategy", "type") == "OnDelete" {
			updated = want // old pods stay until they are deleted by hand
		}
	}
	text := fmt.Sprintf("%s: %d of %d replicas are ready, %d are up to date.", ref, ready, want, updated)
	if numberAt(status, "observedGeneration") < live.GetGeneration() {
		return observation{ref.String() + " was written, and its controller has not looked at it yet.", false}, nil
	}
	switch {
	case valueAt(live.Object, "spec", "paused") == true:
		return observation{text + " It is paused, so changes of its pods wait.", true}, nil
	case ready >= want && updated >= want && all <= want:
		return observation{text, true}, nil
	}
	trouble, err := s.trouble(ctx, ref, live)
	if err != nil {
		return observation{}, err
	}
	return observation{text + trouble, rolloutStuck(status)}, nil
}

// rolloutStuck reports whether the controller has given up a rollout.
func rolloutStuck(status any) bool {
	return slices.ContainsFunc(objectsAt(status, "conditions"), func(c object) bool {
		return c["type"] == "Progressing" && c["status"] == "False"
	})
}

// trouble names one pod that is not ready, and the reason; empty if none is known.
func (s *Service) trouble(ctx context.Context, ref operation.Ref, live *unstructured.Unstructured) (string, error) {
	pods, err := s.podsOf(ctx, ref, live)
	if err != nil {
		return "", err
	}
	for i := range pods {
		if why := podAilment(pods[i].Object); why != "" {
			return fmt.Sprintf(" Pod %s: %s.", pods[i].GetName(), why), nil
		}
	}
	return "", nil
}

// podAilment returns the reason in a pod's status for not being ready.
func podAilment(pod object) string {
	for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, c := range objectsAt(pod, "status", list) {
			if why := textAt(c, "state", "waiting", "reason"); why != "" {
				return textAt(c, "name") + " waits, " + why
			}
			if why := textAt(c, "state", "terminated", "reason"); why != "" && list == "containerStatuses" && why != "Completed" {
				return textAt(c, "name") + " has ended, " + why
			}
		}
	}
	for _, c := range objectsAt(pod, "status", "conditions") {
		if c["type"] == "PodScheduled" && c["status"] == "False" {
			return textAt(c, "reason")
		}
	}
	return ""
}

func observePod(ref operation.Ref, live *unstructured.Unstructured) observation {
	phase := textAt(live.Object, "status", "phase")
	ready := slices.ContainsFunc(objectsAt(live.Object, "status", "conditions"), func(c object) bool {
		return c["type"] == "Ready" && c["status"] == "True"
	})
	text := fmt.Sprintf("%s is %s", ref, phase)
	switch {
	case ready:
		text += " and ready."
	default:
		text += " and not ready."
		if why := podAilment(live.Object); why != "" {
			text = fmt.Sprintf("%s %s.", text, why)
		}
	}
	return observation{text, ready || phase == "Succeeded" || phase == "Failed"}
}
