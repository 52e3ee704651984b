package network

import (
	"fmt"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// NamelessPods explains policies that keep pods from the name server although nothing shows that the pods look up
// names: that may be intentional, but it explains any complaint about names. [checkNameServer] covers the other pods.
func (x *Index) NamelessPods() []engine.Finding {
	server, down := x.nameServer()
	if down || x.Unread["networkpolicies"] || x.Unread["pods"] || len(x.NetworkPolicies) == 0 {
		return nil
	}
	to := x.nameServerOf(server)
	blocked := map[*networkingv1.NetworkPolicy][]string{}
	var order []*networkingv1.NetworkPolicy
	for _, pod := range x.LivingPods {
		if pod.Status.Phase == corev1.PodFailed || len(x.calls(pod)) > 0 || len(x.lookups(pod)) > 0 {
			continue
		}
		leaving, entering := x.policyBlocks(pod, to)
		all := append(slices.Clone(leaving), entering...)
		if len(all) == 0 {
			continue
		}
		if blocked[all[0]] == nil {
			order = append(order, all[0])
		}
		if title := engine.RefTitle(x.WorkloadOf(pod).Ref); !slices.Contains(blocked[all[0]], title) {
			blocked[all[0]] = append(blocked[all[0]], title)
		}
	}
	found := make([]engine.Finding, 0, len(order))
	for _, by := range order {
		names := slices.Sorted(slices.Values(blocked[by]))
		few := names[:min(len(names), 5)]
		f := engine.Finding{Class: engine.NameResolution, Object: policyRef(by), Confidence: engine.Low}
		f.Cause = fmt.Sprintf("The network policy %s does not let %s reach the name server (DNS, port 53), so no name can be looked up there. This may be intentional.", engine.QuoteCode(by.Name), joinTitles(few, len(names)))
		f.Evidence = []string{fmt.Sprintf("It allows, of what leaves the pods, %s.", letThrough(by, networkingv1.PolicyTypeEgress))}
		f.Text = "If these pods are to look up names, let the policy allow UDP and TCP port 53 to the pods with `k8s-app=kube-dns` in namespace `kube-system`."
		for _, pod := range x.LivingPods {
			if slices.Contains(names, engine.RefTitle(x.WorkloadOf(pod).Ref)) && pod.Namespace == by.Namespace && !slices.Contains(f.Touches, x.WorkloadOf(pod).Ref) {
				f.Touches = append(f.Touches, x.WorkloadOf(pod).Ref)
			}
		}
		found = append(found, f)
	}
	return found
}

func joinTitles(few []string, all int) string {
	text := ""
	for i, title := range few {
		if i > 0 {
			text += ", "
		}
		text += title
	}
	if all > len(few) {
		text += fmt.Sprintf(" and %d more", all-len(few))
	}
	return text
}
