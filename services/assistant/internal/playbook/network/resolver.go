package network

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// checkResolvers explains NameResolution: pods that use name servers other than the cluster's, and look up names that
// only the cluster's knows.
func checkResolvers(x *Index, pod *corev1.Pod, w *engine.Workload) []engine.Finding {
	how, foreign := x.foreignResolver(pod)
	if how == "" || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	f := engine.Finding{Class: engine.NameResolution, Object: w.Ref, Confidence: engine.Medium, Evidence: []string{how}}
	for _, l := range x.lookups(pod) {
		if l.host != "" && x.ServiceNamed(l.host, pod.Namespace) == nil {
			continue // another name server would not know it either
		}
		f.Confidence = engine.High
		f.Evidence = append(f.Evidence, fmt.Sprintf("The log of pod %s says %s.", engine.QuoteCode(pod.Name), engine.QuoteCode(l.line)))
	}
	if calls := x.calls(pod); len(calls) > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("The variable %s names service %s, which only the cluster's name server knows.", engine.QuoteCode(calls[0].by), engine.QuoteCode(calls[0].service.Name)))
	} else if f.Confidence < engine.High {
		return nil // it may need no names of the cluster
	}
	f.Cause = fmt.Sprintf("The pod does not ask the cluster's name server (DNS) but %s, so it cannot look up the names of services.", foreign)
	f.Text = "Let its dnsPolicy be ClusterFirst, or with hostNetwork ClusterFirstWithHostNet, and leave the name servers of dnsConfig out."
	f.Effects = []engine.Effect{{Of: w.Ref, Classes: []engine.Class{engine.CrashLoop, engine.LivenessProbe, engine.ReadinessProbe, engine.InitContainer, engine.JobFailed, engine.RolloutStuck}, Unproved: true}}
	return []engine.Finding{f}
}

// foreignResolver explains why a pod uses name servers other than the cluster's, and names them; both are empty if it
// does not, or if they may forward to the cluster's.
func (x *Index) foreignResolver(pod *corev1.Pod) (how, foreign string) {
	server, _ := x.nameServer()
	switch policy := pod.Spec.DNSPolicy; {
	case policy == corev1.DNSDefault:
		return "Its dnsPolicy is Default.", "those of its node"
	case policy == corev1.DNSClusterFirst && pod.Spec.HostNetwork:
		return "Its dnsPolicy is ClusterFirst and it has the node's network, so that it uses the node's name servers.", "those of its node"
	case policy != corev1.DNSNone || pod.Spec.DNSConfig == nil || len(pod.Spec.DNSConfig.Nameservers) == 0:
		return "", ""
	}
	servers := pod.Spec.DNSConfig.Nameservers
	for _, other := range x.LivingPods { // a node-local cache, or another name server in the cluster
		if other.Status.PodIP != "" && slices.Contains(servers, other.Status.PodIP) {
			return "", ""
		}
	}
	for i := range x.Services {
		if slices.Contains(servers, x.Services[i].Spec.ClusterIP) {
			return "", ""
		}
	}
	if server == nil && x.Within != "" && slices.ContainsFunc(servers, isPrivate) {
		return "", "" // the cluster's name server was not read, and may be one of these
	}
	return fmt.Sprintf("Its dnsPolicy is None, with the name servers %s.", engine.QuoteCodes(servers)), engine.QuoteCodes(servers)
}

// isPrivate reports whether an address is not public: a cluster's services have private ones.
func isPrivate(address string) bool {
	ip, err := netip.ParseAddr(address)
	return err != nil || ip.IsPrivate() || ip.IsLinkLocalUnicast()
}
