package playbook

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// multiAttach explains pods that wait for a volume which another node holds.
func multiAttach(x *index, pod *corev1.Pod, w *workload) []Finding {
	if pod.Spec.NodeName == "" || pod.Status.Phase != corev1.PodPending || slices.ContainsFunc(listContainers(pod), hasStarted) {
		return nil
	}
	e := x.eventOf(pod.UID, func(e *corev1.Event) bool {
		return e.Reason == "FailedAttachVolume" && strings.HasPrefix(e.Message, "Multi-Attach error")
	})
	if e == nil {
		return nil
	}
	f := Finding{Class: ClaimUnbound, Object: w.ref, Confidence: High}
	f.Evidence = []string{"The volume controller says " + quoteCode(e.Message) + "."}
	f.Cause = "The pod's volume is attached to another node, and its access mode lets only one node have it."
	f.Text = "Wait until the pod that holds it has ended; if its node is dead, say that the node is out of service, so that the volume is let go."
	for _, claim := range claimsOf(pod) {
		for _, other := range x.mounts()[name{Namespace: pod.Namespace, Name: claim}] {
			if other.Spec.NodeName == "" || other.Spec.NodeName == pod.Spec.NodeName {
				continue
			}
			f.Evidence = append(f.Evidence, fmt.Sprintf("The claim %s is mounted by pod %s on node %s.", quoteCode(claim), quoteCode(other.Name), quoteCode(other.Spec.NodeName)))
			if node := x.nodeOf(other); node != nil && !nodeReady(node) {
				f.because = append(f.because, nodeRef(node.Name))
			}
			f.sharedVolume(x, w, x.workloadOf(other))
		}
	}
	return []Finding{f}
}

// sharedVolume looks whether both pods are of one workload, which then waits for itself.
func (f *Finding) sharedVolume(x *index, w, other *workload) {
	d := x.deployment(w.ref)
	if d == nil || other.ref != w.ref {
		return
	}
	if w.replicas > 1 {
		f.Cause = fmt.Sprintf("The %d pods of %s share one volume, which only one node may have at a time.", w.replicas, refTitle(w.ref))
		f.Text = "Scale it to 1, let each pod have its own claim (a StatefulSet), or use a class with the access mode ReadWriteMany."
		return
	}
	if d.Spec.Strategy.Type != "Recreate" {
		f.Cause = "The rollout starts the new pod before the old one ends, and the volume they share may be on one node only: they wait for each other."
		f.Text = "Let the rollout end the old pod first: the strategy Recreate."
		f.Fix = newPatch(w.ref, members{"spec": members{"strategy": members{"type": "Recreate", "rollingUpdate": nil}}})
	}
}
