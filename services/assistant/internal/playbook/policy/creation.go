package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// rejection is a workload whose pods the API server rejects: no scheduler, node or kubelet has seen them.
type rejection struct {
	*engine.Workload
	// said is the latest response of the API server.
	said       string
	want, have int32
}

// rejections returns the workloads that lack pods because the last attempt to create one failed, in order.
func (x *Index) rejections() []rejection {
	var all []rejection
	add := func(ref operation.Ref, want, have int32, said string) {
		if w := x.Workloads[ref]; w != nil && said != "" {
			all = append(all, rejection{w, said, want, have})
		}
	}
	for i := range x.ReplicaSets {
		set := &x.ReplicaSets[i]
		ref, owned := x.OwnerOf[engine.Name{Namespace: set.Namespace, Name: set.Name}]
		if !owned {
			ref = operation.Ref{Group: "apps", Version: "v1", Kind: "ReplicaSet", Namespace: set.Namespace, Name: set.Name}
		}
		want := engine.ValueOr(set.Spec.Replicas, 1)
		if set.Status.Replicas >= want {
			continue
		}
		said := x.failedCreate(set.UID)
		for _, c := range set.Status.Conditions {
			if c.Type == "ReplicaFailure" && c.Status == corev1.ConditionTrue && c.Reason == "FailedCreate" {
				said = c.Message // the controller removes it once a pod could be created
			}
		}
		add(ref, want, set.Status.Replicas, said)
	}
	for i := range x.StatefulSets {
		set := &x.StatefulSets[i]
		if want := engine.ValueOr(set.Spec.Replicas, 1); set.Status.Replicas < want {
			add(operation.Ref{Group: "apps", Version: "v1", Kind: "StatefulSet", Namespace: set.Namespace, Name: set.Name}, want, set.Status.Replicas, x.failedCreate(set.UID))
		}
	}
	for i := range x.DaemonSets {
		set := &x.DaemonSets[i]
		if set.Status.CurrentNumberScheduled < set.Status.DesiredNumberScheduled {
			add(operation.Ref{Group: "apps", Version: "v1", Kind: "DaemonSet", Namespace: set.Namespace, Name: set.Name}, set.Status.DesiredNumberScheduled, set.Status.CurrentNumberScheduled, x.failedCreate(set.UID))
		}
	}
	for i := range x.Jobs {
		job := &x.Jobs[i]
		if want := engine.ValueOr(job.Spec.Parallelism, 1); job.Status.CompletionTime == nil && job.Status.Active == 0 && job.Status.Succeeded == 0 && job.Status.Failed == 0 && !engine.ValueOr(job.Spec.Suspend, false) {
			add(operation.Ref{Group: "batch", Version: "v1", Kind: "Job", Namespace: job.Namespace, Name: job.Name}, want, 0, x.failedCreate(job.UID))
		}
	}
	slices.SortFunc(all, func(a, b rejection) int {
		return cmp.Or(cmp.Compare(a.Ref.String(), b.Ref.String()), cmp.Compare(a.said, b.said))
	})
	return slices.CompactFunc(all, func(a, b rejection) bool { return a.Ref == b.Ref })
}

// failedCreate returns the reason why a controller could not create a pod, unless it has created one since.
func (x *Index) failedCreate(uid types.UID) string {
	e := x.EventOf(uid, func(e *corev1.Event) bool { return e.Reason == "FailedCreate" || e.Reason == "SuccessfulCreate" })
	if e == nil || e.Reason != "FailedCreate" {
		return ""
	}
	return strings.TrimPrefix(e.Message, "Error creating: ")
}

// lacks describes how many of its pods a workload has.
func (r rejection) lacks() string {
	return fmt.Sprintf("%s wants %s and has %d: the API server does not let the rest in, so no scheduler has seen them.",
		engine.UpperFirst(engine.RefTitle(r.Ref)), engine.CountNoun(int(r.want), "pod", "pods"), r.have)
}
