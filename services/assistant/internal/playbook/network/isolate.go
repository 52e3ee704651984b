package network

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// policyTable evaluates connections between groups of pods: pods that all policies treat alike are evaluated once.
type policyTable struct {
	about   map[networkingv1.PolicyType]*engine.Selecting[*isolation]
	parsed  map[*metav1.LabelSelector]labels.Selector // nil: cannot be parsed
	numbers bool                                      // some policy names addresses
	kinds   map[string]int
	kindOf  map[*corev1.Pod]int
	judged  map[connection][]*networkingv1.NetworkPolicy
	// behind holds, for each service, ready pods that represent all its pods.
	behind map[engine.Name][]*corev1.Pod
	calls  map[kindCall]verdict
}

// isolation is the part of a policy for one direction.
type isolation struct {
	policy *networkingv1.NetworkPolicy
	rules  []rule
}

// connection is a connection between two groups of pods.
type connection struct {
	from, to  int
	port      int32
	protocol  corev1.Protocol
	direction networkingv1.PolicyType
}

// kindCall is a call by a group of pods.
type kindCall struct {
	from    int
	service engine.Name
	port    int32
}

// verdict is the policy that stops a call, or nil.
type verdict struct {
	by     *networkingv1.NetworkPolicy
	leaves bool // blocked by the egress of the caller
}

func (x *Index) policyTable() *policyTable {
	t := &policyTable{
		about:  map[networkingv1.PolicyType]*engine.Selecting[*isolation]{},
		parsed: map[*metav1.LabelSelector]labels.Selector{}, kinds: map[string]int{}, kindOf: map[*corev1.Pod]int{},
		judged: map[connection][]*networkingv1.NetworkPolicy{}, behind: map[engine.Name][]*corev1.Pod{}, calls: map[kindCall]verdict{},
	}
	for _, direction := range []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress} {
		about := engine.NewSelecting[*isolation]()
		t.about[direction] = about
		for i := range x.NetworkPolicies {
			p := &x.NetworkPolicies[i]
			if !governsDirection(p, direction) {
				continue
			}
			rules := rulesOf(p, direction)
			for _, r := range rules {
				t.numbers = t.numbers || slices.ContainsFunc(r.peers, func(peer networkingv1.NetworkPolicyPeer) bool { return peer.IPBlock != nil })
			}
			want := p.Spec.PodSelector.MatchLabels
			if t.selector(&p.Spec.PodSelector) == nil {
				want = nil // a selector that cannot be parsed applies to every pod
			}
			about.Add(x.PodsByLabel, p.Namespace, want, &isolation{p, rules})
		}
	}
	return t
}

func (t *policyTable) selector(s *metav1.LabelSelector) labels.Selector {
	selector, known := t.parsed[s]
	if !known {
		if parsed, err := metav1.LabelSelectorAsSelector(s); err == nil {
			selector = parsed
		}
		t.parsed[s] = selector
	}
	return selector
}

// matches evaluates a selector of the snapshot, parsing each once.
func (t *policyTable) matches(s *metav1.LabelSelector, have map[string]string) bool {
	selector := t.selector(s)
	return selector == nil || selector.Matches(labels.Set(have))
}

// isolating lists the policies that apply to a pod.
func (t *policyTable) isolating(pod *corev1.Pod, direction networkingv1.PolicyType) []*isolation {
	may := t.about[direction].May(pod.Namespace, pod.Labels)
	return slices.DeleteFunc(slices.Clone(may), func(i *isolation) bool { return !t.matches(&i.policy.Spec.PodSelector, pod.Labels) })
}

// kind numbers the groups of pods that policies cannot distinguish: by namespace, labels, named ports, and address if a
// policy names one.
func (t *policyTable) kind(pod *corev1.Pod) int {
	if k, ok := t.kindOf[pod]; ok {
		return k
	}
	parts := make([]string, 0, len(pod.Labels)+2)
	for key, value := range pod.Labels {
		parts = append(parts, key+"="+value)
	}
	slices.Sort(parts)
	parts = append(parts, "", pod.Namespace) // no label key is empty
	if t.numbers {
		parts = append(parts, pod.Status.PodIP)
	}
	for i := range pod.Spec.Containers {
		for _, p := range pod.Spec.Containers[i].Ports {
			parts = append(parts, p.Name+" "+string(p.Protocol)+" "+strconv.Itoa(int(p.ContainerPort)))
		}
	}
	key := strings.Join(parts, "\n")
	k, ok := t.kinds[key]
	if !ok {
		k = len(t.kinds)
		t.kinds[key] = k
	}
	t.kindOf[pod] = k
	return k
}

// policyBlocks lists the policies that block a connection, first those of the source pod, then those of the target pod.
// A connection that cannot be evaluated counts as allowed.
func (x *Index) policyBlocks(from *corev1.Pod, to target) (leaving, entering []*networkingv1.NetworkPolicy) {
	return x.blocks(from, to, networkingv1.PolicyTypeEgress), x.blocks(from, to, networkingv1.PolicyTypeIngress)
}

// blocks lists the policies that isolate one end and do not allow the other, or none if one of them does: policies are
// additive.
func (x *Index) blocks(from *corev1.Pod, to target, direction networkingv1.PolicyType) []*networkingv1.NetworkPolicy {
	if len(x.NetworkPolicies) == 0 {
		return nil
	}
	t := x.limiting()
	of := connection{t.kind(from), t.kind(to.pod), to.port, to.protocol, direction}
	stopping, known := t.judged[of]
	if !known {
		stopping = slices.Clip(x.stopping(t, from, to, direction))
		t.judged[of] = stopping
	}
	return stopping
}

func (x *Index) stopping(t *policyTable, from *corev1.Pod, to target, direction networkingv1.PolicyType) []*networkingv1.NetworkPolicy {
	end, other := to.pod, from
	if direction == networkingv1.PolicyTypeEgress {
		end, other = from, to.pod
	}
	var stopping []*networkingv1.NetworkPolicy
	for _, i := range t.isolating(end, direction) {
		for _, r := range i.rules {
			if r.allowsPort(to) && (len(r.peers) == 0 || slices.ContainsFunc(r.peers, func(peer networkingv1.NetworkPolicyPeer) bool { return x.isPeer(peer, i.policy.Namespace, other) })) {
				return nil
			}
		}
		stopping = append(stopping, i.policy)
	}
	slices.SortFunc(stopping, func(a, b *networkingv1.NetworkPolicy) int { return cmp.Compare(a.Name, b.Name) })
	return stopping
}

// kindsBehind returns ready pods of a service, the last of each group.
func (x *Index) kindsBehind(s *corev1.Service) []*corev1.Pod {
	t := x.limiting()
	few, known := t.behind[engine.NameOf(s)]
	if known {
		return few
	}
	few = t.ofEachKind(x.readyBackends(s))
	t.behind[engine.NameOf(s)] = few
	return few
}

// ofEachKind returns the last pod of each group that policies cannot distinguish.
func (t *policyTable) ofEachKind(pods []*corev1.Pod) []*corev1.Pod {
	var few []*corev1.Pod
	seen := map[int]bool{}
	for _, pod := range slices.Backward(pods) {
		if k := t.kind(pod); !seen[k] {
			seen[k] = true
			few = append(few, pod)
		}
	}
	slices.Reverse(few)
	return few
}

// stopped returns the policy that blocks a call, if it covers all ready pods of the service.
func (x *Index) stopped(pod *corev1.Pod, c call) verdict {
	t := x.limiting()
	of := kindCall{t.kind(pod), engine.NameOf(c.service), c.port}
	v, known := t.calls[of]
	if !known {
		v = x.judge(pod, c)
		t.calls[of] = v
	}
	return v
}

func (x *Index) judge(pod *corev1.Pod, c call) verdict {
	var v verdict
	for _, backend := range x.kindsBehind(c.service) {
		stopped := false
		for _, port := range c.service.Spec.Ports {
			if c.port != 0 && port.Port != c.port {
				continue
			}
			to := target{backend, portOn(backend, targetPort(port), port.Protocol), port.Protocol}
			leaving, entering := x.policyBlocks(pod, to)
			all := append(slices.Clone(leaving), entering...)
			if stopped = len(all) > 0; !stopped {
				break
			}
			v = verdict{all[0], len(leaving) > 0}
		}
		if !stopped {
			return verdict{}
		}
	}
	return v
}
