package playbook

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// rejection is a workload whose pods the API server does not let in: no scheduler, node or
// kubelet has seen them.
type rejection struct {
	*workload
	// said is the newest answer of the API server.
	said       string
	want, have int32
}

// rejections are the workloads that lack pods because making one failed last, in order.
func (x *index) rejections() []rejection {
	var all []rejection
	add := func(ref operation.Ref, want, have int32, said string) {
		if w := x.workloads[ref]; w != nil && said != "" {
			all = append(all, rejection{w, said, want, have})
		}
	}
	for i := range x.ReplicaSets {
		set := &x.ReplicaSets[i]
		ref, owned := x.ownerOf[name{Namespace: set.Namespace, Name: set.Name}]
		if !owned {
			ref = operation.Ref{Group: "apps", Version: "v1", Kind: "ReplicaSet", Namespace: set.Namespace, Name: set.Name}
		}
		want := valueOr(set.Spec.Replicas, 1)
		if set.Status.Replicas >= want {
			continue
		}
		said := x.failedCreate(set.UID)
		for _, c := range set.Status.Conditions {
			if c.Type == "ReplicaFailure" && c.Status == corev1.ConditionTrue && c.Reason == "FailedCreate" {
				said = c.Message // the controller takes it away once a pod could be made
			}
		}
		add(ref, want, set.Status.Replicas, said)
	}
	for i := range x.StatefulSets {
		set := &x.StatefulSets[i]
		if want := valueOr(set.Spec.Replicas, 1); set.Status.Replicas < want {
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
		if want := valueOr(job.Spec.Parallelism, 1); job.Status.CompletionTime == nil && job.Status.Active == 0 && job.Status.Succeeded == 0 && job.Status.Failed == 0 && !valueOr(job.Spec.Suspend, false) {
			add(operation.Ref{Group: "batch", Version: "v1", Kind: "Job", Namespace: job.Namespace, Name: job.Name}, want, 0, x.failedCreate(job.UID))
		}
	}
	slices.SortFunc(all, func(a, b rejection) int {
		return cmp.Or(cmp.Compare(a.ref.String(), b.ref.String()), cmp.Compare(a.said, b.said))
	})
	return slices.CompactFunc(all, func(a, b rejection) bool { return a.ref == b.ref })
}

// failedCreate is why a controller could not make a pod, if it has not made one since.
func (x *index) failedCreate(uid types.UID) string {
	e := x.eventOf(uid, func(e *corev1.Event) bool { return e.Reason == "FailedCreate" || e.Reason == "SuccessfulCreate" })
	if e == nil || e.Reason != "FailedCreate" {
		return ""
	}
	return strings.TrimPrefix(e.Message, "Error creating: ")
}

// lacks says how many of its pods a workload has.
func (r rejection) lacks() string {
	return fmt.Sprintf("%s wants %s and has %d: the API server does not let the rest in, so no scheduler has seen them.",
		upperFirst(refTitle(r.ref)), countNoun(int(r.want), "pod", "pods"), r.have)
}

func valueOr[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// formatDuration is a span of time in its largest unit.
func formatDuration(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return countNoun(int(d.Seconds()), "second", "seconds")
	case d < 2*time.Hour:
		return countNoun(int(d.Minutes()), "minute", "minutes")
	case d < 48*time.Hour:
		return countNoun(int(d.Hours()), "hour", "hours")
	}
	return countNoun(int(d.Hours()/24), "day", "days")
}
