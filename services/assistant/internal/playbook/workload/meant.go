package workload

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// Meant explains settings that may be intentional and yet cause a state that a user asks about: a rollout that is held,
// nodes without a daemon's pod, an autoscaler at its bound. These are not findings of a general diagnosis.
func (x *Index) Meant() []engine.Finding {
	return slices.Concat(x.heldRollouts(), x.missedNodes(), x.boundAutoscalers(), x.suspendedJobs(), x.fullCPU(), x.displaced())
}

// heldRollouts returns StatefulSets and DaemonSets whose update strategy keeps their pods at an earlier revision.
func (x *Index) heldRollouts() []engine.Finding {
	var found []engine.Finding
	for i := range x.StatefulSets {
		s := &x.StatefulSets[i]
		ref := operation.Ref{Group: "apps", Version: "v1", Kind: "StatefulSet", Namespace: s.Namespace, Name: s.Name}
		partition := int32(0)
		if r := s.Spec.UpdateStrategy.RollingUpdate; r != nil {
			partition = engine.ValueOr(r.Partition, 0)
		}
		onDelete := s.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
		var old, images []string
		for _, pod := range x.PodsOf(ref) {
			revision := pod.Labels[appsv1.StatefulSetRevisionLabel]
			if revision == "" || s.Status.UpdateRevision == "" || revision == s.Status.UpdateRevision {
				continue
			}
			old = append(old, pod.Name)
			for j := range pod.Spec.Containers {
				if image := pod.Spec.Containers[j].Image; !slices.Contains(images, image) {
					images = append(images, image)
				}
			}
		}
		if len(old) == 0 || s.DeletionTimestamp != nil || !onDelete && partition == 0 {
			continue
		}
		f := engine.Finding{Class: engine.RolloutStuck, Object: ref, Confidence: engine.High}
		f.Evidence = []string{fmt.Sprintf("Of revision %s, not the wanted %s, are %s, with the images %s.", engine.QuoteCode(s.Status.CurrentRevision), engine.QuoteCode(s.Status.UpdateRevision), engine.QuoteCodes(old), engine.QuoteCodes(images))}
		if onDelete {
			f.Cause = "Its update strategy is OnDelete: a pod gets the new revision only when it is deleted."
			f.Text = "Delete the pods one by one, or set the update strategy to RollingUpdate."
		} else {
			f.Cause = fmt.Sprintf("Its update has the partition %d: only pods with this ordinal or a higher one get the new revision, and the others stay as they are.", partition)
			f.Text = fmt.Sprintf("If the new revision is to go everywhere, lower the partition (now %d), to 0 for all pods.", partition)
			f.Fix = engine.NewPatch(ref, engine.Members{"spec": engine.Members{"updateStrategy": engine.Members{"type": "RollingUpdate", "rollingUpdate": engine.Members{"partition": 0}}}})
		}
		found = append(found, f)
	}
	for i := range x.DaemonSets {
		d := &x.DaemonSets[i]
		if d.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType || d.Status.UpdatedNumberScheduled >= d.Status.CurrentNumberScheduled {
			continue
		}
		found = append(found, engine.Finding{
			Class: engine.RolloutStuck, Object: daemonRef(d), Confidence: engine.High,
			Evidence: []string{fmt.Sprintf("%d of %d pods are of the wanted revision.", d.Status.UpdatedNumberScheduled, d.Status.CurrentNumberScheduled)},
			Cause:    "Its update strategy is OnDelete: a pod gets the new revision only when it is deleted.",
			Text:     "Delete the pods one by one, or set the update strategy to RollingUpdate.",
		})
	}
	return found
}

func daemonRef(d *appsv1.DaemonSet) operation.Ref {
	return operation.Ref{Group: "apps", Version: "v1", Kind: "DaemonSet", Namespace: d.Namespace, Name: d.Name}
}

// missedNodes explains the nodes on which a DaemonSet has no pod, by the rule that excludes it.
func (x *Index) missedNodes() []engine.Finding {
	if x.Unread["nodes"] || x.Unread["pods"] {
		return nil
	}
	var found []engine.Finding
	for i := range x.DaemonSets {
		d := &x.DaemonSets[i]
		ref := daemonRef(d)
		there := map[string]bool{}
		for _, pod := range x.PodsOf(ref) {
			there[pod.Spec.NodeName] = true
		}
		// The controller adds these tolerations to every DaemonSet.
		like := &corev1.Pod{Spec: *d.Spec.Template.Spec.DeepCopy()}
		for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable} {
			like.Spec.Tolerations = append(like.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
		}
		required := nodeaffinity.GetRequiredNodeAffinity(like)
		var why refusals
		var missed []string
		for _, node := range x.nodesByName() {
			ready := *node
			ready.Spec.Unschedulable = false
			if !there[node.Name] && why.add(like, &ready, affinityAccepts(required, node)) {
				missed = append(missed, node.Name)
			}
		}
		if len(missed) == 0 || d.DeletionTimestamp != nil {
			continue
		}
		f := engine.Finding{Class: engine.PendingPlacement, Object: ref, Confidence: engine.High}
		x.explainMissed(&f, d, why, missed)
		for _, name := range missed {
			f.Touches = append(f.Touches, engine.NodeRef(name))
		}
		found = append(found, f)
	}
	return found
}

func (x *Index) explainMissed(f *engine.Finding, d *appsv1.DaemonSet, why refusals, missed []string) {
	f.Cause = fmt.Sprintf("It has no pod on %s, since its rules do not let it there.", engine.QuoteCodes(missed))
	if len(why.selector) > 0 {
		text := "Its node selector or required affinity does not match " + engine.QuoteCodes(why.selector) + "."
		if len(d.Spec.Template.Spec.NodeSelector) > 0 {
			var want []string
			for _, key := range slices.Sorted(maps.Keys(d.Spec.Template.Spec.NodeSelector)) {
				want = append(want, key+"="+d.Spec.Template.Spec.NodeSelector[key])
			}
			text = fmt.Sprintf("Its node selector wants %s, which %s do not have.", engine.QuoteCodes(want), engine.QuoteCodes(why.selector))
		}
		f.Evidence = append(f.Evidence, text)
		f.Text = "If it is to run there, label these nodes, or correct the selector."
	}
	for _, taint := range slices.SortedFunc(maps.Keys(why.taints), func(a, b corev1.Taint) int { return strings.Compare(formatTaint(a), formatTaint(b)) }) {
		f.Evidence = append(f.Evidence, fmt.Sprintf("The taint %s keeps it from %s, for it has no toleration.", engine.QuoteCode(formatTaint(taint)), engine.QuoteCodes(why.taints[taint])))
		f.Text = strings.TrimSpace(f.Text + fmt.Sprintf(" If it is to run there, give it the toleration for %s.", engine.QuoteCode(formatTaint(taint))))
	}
}

// scalingDisabled returns the member of an autoscaler's behavior that disables a direction, or "".
func scalingDisabled(b *autoscalingv2.HorizontalPodAutoscalerBehavior) string {
	disabled := func(rules *autoscalingv2.HPAScalingRules) bool {
		return rules != nil && rules.SelectPolicy != nil && *rules.SelectPolicy == autoscalingv2.DisabledPolicySelect
	}
	switch {
	case b == nil:
		return ""
	case disabled(b.ScaleUp):
		return "scaleUp"
	case disabled(b.ScaleDown):
		return "scaleDown"
	}
	return ""
}

// boundAutoscalers returns autoscalers whose own settings prevent or delay scaling.
func (x *Index) boundAutoscalers() []engine.Finding {
	var found []engine.Finding
	for i := range x.Autoscalers {
		a := &x.Autoscalers[i]
		limited, able := autoscalerCondition(a, autoscalingv2.ScalingLimited), autoscalerCondition(a, autoscalingv2.AbleToScale)
		f := engine.Finding{Class: engine.AutoscalerIdle, Object: autoscalerRef(a), Confidence: engine.High}
		switch {
		case scalingDisabled(a.Spec.Behavior) != "":
			member := scalingDisabled(a.Spec.Behavior)
			f.Evidence = []string{fmt.Sprintf("Its member %s is %s.", engine.QuoteCode("behavior."+member+".selectPolicy"), engine.QuoteCode("Disabled"))}
			f.Cause = fmt.Sprintf("Its behavior disables %s, whatever the load.", map[string]string{"scaleUp": "scaling up", "scaleDown": "scaling down"}[member])
			f.Text = fmt.Sprintf("If it should, remove %s or set another policy.", engine.QuoteCode("behavior."+member+".selectPolicy"))
			if member == "scaleDown" {
				f.Confidence = engine.Low // often intended
			}
		case limited.Status == corev1.ConditionTrue && limited.Reason == "TooFewReplicas":
			f.Evidence = []string{conditionText(limited)}
			f.Cause = fmt.Sprintf("It is at its minimum of %d and would want fewer.", engine.ValueOr(a.Spec.MinReplicas, 1))
			f.Text = "If it should scale down further, choose a lower minimum."
			f.Confidence = engine.Low // the load is no fault
		case limited.Status == corev1.ConditionTrue && limited.Reason == "TooManyReplicas":
			f.Evidence = []string{conditionText(limited)}
			f.Cause = fmt.Sprintf("It is at its maximum of %d and would want more.", a.Spec.MaxReplicas)
			f.Text = "If the load must be served, choose a higher maximum."
		case limited.Status == corev1.ConditionTrue:
			f.Evidence = []string{conditionText(limited)}
			f.Cause = "It changes fewer pods at a time than it would want to, by the rates of its behavior."
			f.Text = "Wait, or choose higher rates (behavior.scaleUp, behavior.scaleDown)."
		case able.Reason == "ScaleDownStabilized" || able.Reason == "ScaleUpStabilized":
			f.Evidence = []string{conditionText(able)}
			f.Cause = "It waits for its stabilization window: it follows the load only when that has stayed for some time, by default 5 minutes on the way down."
			f.Text = "Wait, or choose a shorter stabilizationWindowSeconds."
			f.Confidence = engine.Low // autoscalers work like that, and the question may be about something else
		case able.Reason == "BackoffDownscale" || able.Reason == "BackoffBoth" || able.Reason == "BackoffUpscale":
			f.Evidence = []string{conditionText(able)}
			f.Cause = "It has scaled a moment ago and waits before it does so again."
			f.Text = "Wait a few minutes."
		default:
			continue
		}
		found = append(found, f)
	}
	return found
}

// suspendedJobs returns jobs that do not run because a user or a queue has suspended them.
func (x *Index) suspendedJobs() []engine.Finding {
	var found []engine.Finding
	for i := range x.Jobs {
		j := &x.Jobs[i]
		if !engine.ValueOr(j.Spec.Suspend, false) || jobCondition(j, batchv1.JobComplete, batchv1.JobFailed) != nil {
			continue
		}
		f := engine.Finding{Class: engine.JobFailed, Object: jobRef(j), Confidence: engine.High}
		f.Evidence = []string{"Its member suspend is true."}
		f.Cause = "The job is suspended, so it has no pods."
		f.Text = "If it is meant to run, resume it; where a queue such as Kueue admits jobs, look what the queue waits for."
		f.Fix = engine.ValidFix(engine.NewOperation(operation.Resume, f.Object))
		found = append(found, f)
	}
	return found
}

// fullCPU returns workloads with containers that use almost all of their CPU limit.
func (x *Index) fullCPU() []engine.Finding {
	m := engine.NewMerger()
	for _, pod := range x.LivingPods {
		for _, c := range engine.ListContainers(pod) {
			limit, limited := c.Spec.Resources.Limits[corev1.ResourceCPU]
			used, measured := x.Usage[engine.Log{Namespace: pod.Namespace, Pod: pod.Name, Container: c.Spec.Name}]
			if !limited || !measured || limit.MilliValue() == 0 || 100*used.Cpu().MilliValue() < engine.NearCPULimit*limit.MilliValue() {
				continue
			}
			w := x.WorkloadOf(pod)
			f := engine.Finding{Class: engine.CPULimit, Object: w.Ref, Container: c.Spec.Name, Confidence: engine.Medium}
			f.Evidence = []string{fmt.Sprintf("Container %s of pod %s uses %s of its CPU limit of %s.", engine.QuoteCode(c.Spec.Name), engine.QuoteCode(pod.Name), used.Cpu(), limit.String())}
			f.Cause = fmt.Sprintf("Container %s is probably throttled: it uses nearly all the CPU that its limit allows, and waits whenever it needs more.", engine.QuoteCode(c.Spec.Name))
			f.Text = fmt.Sprintf("Choose a higher CPU limit for %s, spread the load over more pods, or find what uses so much.", engine.RefTitle(w.Ref))
			m.Add(f, pod.Name)
		}
	}
	return m.Found
}

// displaced returns workloads whose pods were preempted by others of a higher priority and run again elsewhere.
func (x *Index) displaced() []engine.Finding {
	var found []engine.Finding
	seen := map[operation.Ref]bool{}
	for i := range x.Events {
		e := &x.Events[i]
		if e.Reason != "Preempted" || x.Taken.Sub(engine.LastSeen(e).Time) > engine.Recent {
			continue
		}
		ref := x.workloadOfName(e.InvolvedObject.Namespace, e.InvolvedObject.Name)
		if ref.Name == "" || seen[ref] {
			continue
		}
		seen[ref] = true
		found = append(found, engine.Finding{
			Class: engine.PendingResources, Object: ref, Confidence: engine.High, Evidence: x.preempted(ref),
			Cause: "Pods of it were preempted: ended to make room for pods of a higher priority.",
			Text:  "Give it a PriorityClass as high as its work is important, or add room for both.",
		})
	}
	slices.SortFunc(found, func(a, b engine.Finding) int { return strings.Compare(a.Object.String(), b.Object.String()) })
	return found
}
