package workload

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// gateOwners lists the components that set the conditions of common gates, by prefix of the name.
var gateOwners = []struct{ prefix, owner string }{
	{"target-health.elbv2.k8s.aws/", "the AWS load balancer controller, once the target group reports the pod healthy"},
	{"target-health.alb.ingress.k8s.aws/", "the AWS load balancer controller, once the target group reports the pod healthy"},
	{"cloud.google.com/load-balancer-neg-ready", "the GKE NEG controller, once the load balancer reports the pod healthy"},
	{"readiness.alibabacloud.com/", "the Alibaba Cloud load balancer controller"},
}

// gateGrace is the time a controller gets to set a missing condition.
const gateGrace = time.Minute

// checkReadinessGates explains ReadinessGate: pods whose containers are ready but for which another component has not
// set the condition of a readiness gate to true.
func checkReadinessGates(x *Index, pod *corev1.Pod, w *engine.Workload) []engine.Finding {
	ready := podCondition(pod, corev1.ContainersReady)
	if len(pod.Spec.ReadinessGates) == 0 || ready == nil || ready.Status != corev1.ConditionTrue || engine.PodReady(pod) {
		return nil
	}
	var found []engine.Finding
	for _, gate := range pod.Spec.ReadinessGates {
		c := podCondition(pod, gate.ConditionType)
		f := engine.Finding{Class: engine.ReadinessGate, Object: w.Ref, Confidence: engine.High}
		f.Evidence = []string{"All containers of the pod are ready; the pod is not, for its readiness gates."}
		switch {
		case c == nil && x.Taken.Sub(ready.LastTransitionTime.Time) < gateGrace:
			continue
		case c == nil:
			f.Cause = fmt.Sprintf("The condition %s, which is a readiness gate of the pod, has not been set.", engine.QuoteCode(string(gate.ConditionType)))
		case c.Status != corev1.ConditionTrue:
			f.Cause = fmt.Sprintf("The condition %s, a readiness gate of the pod, is %s.", engine.QuoteCode(string(gate.ConditionType)), c.Status)
			if c.Reason != "" || c.Message != "" {
				f.Evidence = append(f.Evidence, "Who set it says "+engine.QuoteCode(strings.TrimSpace(c.Reason+" "+c.Message))+".")
			}
		default:
			continue
		}
		f.Text = fmt.Sprintf("Look at the controller that has to set it: %s. The pod itself is in order.", gateOwner(string(gate.ConditionType)))
		found = append(found, f)
	}
	return found
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	at := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if at < 0 {
		return nil
	}
	return &pod.Status.Conditions[at]
}

func gateOwner(gate string) string {
	for _, o := range gateOwners {
		if strings.HasPrefix(gate, o.prefix) {
			return o.owner
		}
	}
	if domain, _, ok := strings.Cut(gate, "/"); ok {
		return "the one that belongs to " + engine.QuoteCode(domain)
	}
	return "the one that knows this condition"
}
