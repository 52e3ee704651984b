package storage

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// checkAttachments explains pods that wait for a volume which another node holds.
func checkAttachments(x *Index, pod *corev1.Pod, w *engine.Workload) []engine.Finding {
	if pod.Spec.NodeName == "" || pod.Status.Phase != corev1.PodPending || slices.ContainsFunc(engine.ListContainers(pod), engine.HasStarted) {
		return nil
	}
	e := x.EventOf(pod.UID, func(e *corev1.Event) bool {
		return e.Reason == "FailedAttachVolume"
	})
	if e == nil {
		return nil
	}
	if !strings.HasPrefix(e.Message, "Multi-Attach error") {
		return []engine.Finding{refusedAttachment(pod, w, e)}
	}
	f := engine.Finding{Class: engine.VolumeNotAttached, Object: w.Ref, Confidence: engine.High}
	f.Evidence = []string{"The volume controller says " + engine.QuoteCode(e.Message) + "."}
	f.Cause = "The pod's volume is attached to another node, and its access mode allows only one node."
	f.Text = "Wait until the pod that holds it has ended; if its node is dead, mark the node as out of service, so that the volume is detached."
	for _, claim := range engine.ClaimsOf(pod) {
		for _, other := range x.Mounts()[engine.Name{Namespace: pod.Namespace, Name: claim}] {
			if other.Spec.NodeName == "" || other.Spec.NodeName == pod.Spec.NodeName {
				continue
			}
			f.Evidence = append(f.Evidence, fmt.Sprintf("The claim %s is mounted by pod %s on node %s.", engine.QuoteCode(claim), engine.QuoteCode(other.Name), engine.QuoteCode(other.Spec.NodeName)))
			if node := x.NodeOf(other); node != nil && !engine.NodeReady(node) {
				f.Because = append(f.Because, engine.NodeRef(node.Name))
			}
			explainSharedVolume(&f, x, w, x.WorkloadOf(other))
		}
	}
	return []engine.Finding{f}
}

// attachLimitExpr matches a refusal because the node has as many volumes as it may.
var attachLimitExpr = regexp.MustCompile(`(?i)ResourceExhausted|attach\w* limit|max(imum)?\w* (number of )?volumes?|too many volumes`)

// refusedAttachment is the finding for a volume that the storage system does not attach to the pod's node.
func refusedAttachment(pod *corev1.Pod, w *engine.Workload, e *corev1.Event) engine.Finding {
	f := engine.Finding{Class: engine.VolumeNotAttached, Object: w.Ref, Confidence: engine.High}
	node := engine.QuoteCode(pod.Spec.NodeName)
	f.Evidence = []string{"The volume controller says " + engine.QuoteCode(e.Message) + "."}
	f.Cause = fmt.Sprintf("The pod's volume cannot be attached to node %s.", node)
	f.Text = "Examine the storage system that gives this reason; the cluster retries by itself."
	if attachLimitExpr.MatchString(e.Message) {
		f.Cause = fmt.Sprintf("The pod's volume cannot be attached to node %s, which has as many volumes as it may have.", node)
		f.Text = "Move pods with volumes to other nodes: cordon the node and delete this pod, so that it is placed elsewhere, or add a node."
	}
	return f
}

// explainSharedVolume checks whether both pods are of one workload, which then blocks itself.
func explainSharedVolume(f *engine.Finding, x *Index, w, other *engine.Workload) {
	d := x.Deployment(w.Ref)
	if d == nil || other.Ref != w.Ref {
		return
	}
	if w.Replicas > 1 {
		f.Cause = fmt.Sprintf("The %d pods of %s share one volume, which only one node may have at a time.", w.Replicas, engine.RefTitle(w.Ref))
		f.Text = "Scale it to 1, let each pod have its own claim (a StatefulSet), or use a class with the access mode ReadWriteMany."
		return
	}
	if d.Spec.Strategy.Type != "Recreate" {
		f.Cause = "The rollout starts the new pod before the old one ends, and the volume they share may be on one node only: they wait for each other."
		f.Text = "Let the rollout end the old pod first: the strategy Recreate."
		f.Fix = engine.NewPatch(w.Ref, engine.Members{"spec": engine.Members{"strategy": engine.Members{"type": "Recreate", "rollingUpdate": nil}}})
	}
}
