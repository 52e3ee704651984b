package network

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// addressGrace is how long a load balancer may take to get its address.
const addressGrace = 5 * time.Minute

// checkAddresses explains ServiceWithoutAddress: a Service of type LoadBalancer without an external address from a
// controller.
func checkAddresses(x *Index) []engine.Finding {
	var found []engine.Finding
	for i := range x.Services {
		s := &x.Services[i]
		if s.Spec.Type != corev1.ServiceTypeLoadBalancer || len(s.Status.LoadBalancer.Ingress) > 0 || s.DeletionTimestamp != nil {
			continue
		}
		warning := x.EventOf(s.UID, func(e *corev1.Event) bool { return e.Type == corev1.EventTypeWarning })
		if warning == nil && x.Taken.Sub(s.CreationTimestamp.Time) < addressGrace {
			continue
		}
		f := engine.Finding{Class: engine.ServiceWithoutAddress, Object: engine.ServiceRef(s), Confidence: engine.Medium}
		f.Evidence = []string{"Its type is LoadBalancer, and its status has no address: `kubectl get service` shows `<pending>`."}
		if class := s.Spec.LoadBalancerClass; class != nil {
			f.Evidence = append(f.Evidence, fmt.Sprintf("It wants the load balancer class %s, so only the controller of that class serves it.", engine.QuoteCode(*class)))
		}
		if s.Spec.LoadBalancerIP != "" {
			f.Evidence = append(f.Evidence, fmt.Sprintf("It requests the address %s.", engine.QuoteCode(s.Spec.LoadBalancerIP)))
		}
		f.Cause = "No controller gave it an address from outside the cluster."
		f.Text = "A cluster needs a load balancer controller (of its cloud, or such as MetalLB). See whether one runs and what it logs; a Service of type NodePort, or an Ingress, needs none."
		if e := warning; e != nil {
			f.Confidence = engine.High
			f.Evidence = append(f.Evidence, fmt.Sprintf("The newest warning, %s, says %s.", engine.QuoteCode(e.Reason), engine.QuoteLine(e.Message)))
			f.Cause = fmt.Sprintf("The load balancer controller could not give it an address (%s).", engine.QuoteCode(e.Reason))
			f.Text = "Correct what the warning says. The controller tries again."
		} else if !x.Unread["events"] {
			f.Evidence = append(f.Evidence, "No event about it is left, as where no controller looks at it.")
		}
		found = append(found, f)
	}
	return found
}
