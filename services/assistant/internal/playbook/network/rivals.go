package network

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// claim is a host and path that an ingress claims.
type claim struct {
	class, host, path string
	kind              networkingv1.PathType
}

// rivalIngresses explains IngressBackend: two ingresses of one class that claim the same host and path and lead to
// different services. The controller serves one of them and reports nothing in any object. Rules that several ingresses
// share on purpose, such as those of a canary, are marked by annotations.
func (x *Index) rivalIngresses() []engine.Finding {
	first := map[claim]*networkingv1.Ingress{}
	backends := map[claim]backend{}
	var found []engine.Finding
	list := make([]*networkingv1.Ingress, 0, len(x.Ingresses))
	for i := range x.Ingresses {
		if in := &x.Ingresses[i]; in.DeletionTimestamp == nil && !isCanary(in) {
			list = append(list, in)
		}
	}
	// Controllers that document the order serve the oldest.
	slices.SortStableFunc(list, func(a, b *networkingv1.Ingress) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	told := map[[2]*networkingv1.Ingress]bool{}
	for _, in := range list {
		for _, b := range listBackends(in) {
			if b.rule < 0 {
				continue
			}
			rule := in.Spec.Rules[b.rule]
			path := rule.HTTP.Paths[b.path]
			c := claim{cmp.Or(engine.ValueOr(in.Spec.IngressClassName, ""), in.Annotations[oldIngressClass]), rule.Host, cmp.Or(path.Path, "/"), engine.ValueOr(path.PathType, networkingv1.PathTypeImplementationSpecific)}
			other, taken := first[c]
			if !taken {
				first[c], backends[c] = in, b
				continue
			}
			same := other.Namespace == in.Namespace && *backends[c].service == *b.service
			if other == in || same || told[[2]*networkingv1.Ingress{other, in}] {
				continue
			}
			told[[2]*networkingv1.Ingress{other, in}] = true
			found = append(found, rivalFinding(other, in, c, backends[c], b))
		}
	}
	return found
}

func rivalFinding(older, newer *networkingv1.Ingress, c claim, first, second backend) engine.Finding {
	f := engine.Finding{Class: engine.IngressBackend, Object: ingressRef(newer), Confidence: engine.Medium}
	f.Touches = append(f.Touches, ingressRef(older))
	name := func(in *networkingv1.Ingress) string {
		if in.Namespace != newer.Namespace {
			return engine.QuoteCode(in.Namespace + "/" + in.Name)
		}
		return engine.QuoteCode(in.Name)
	}
	f.Evidence = []string{
		fmt.Sprintf("Ingress %s leads %s to service %s.", name(older), engine.QuoteCode(c.host+c.path), engine.QuoteCode(first.service.Name)),
		fmt.Sprintf("Ingress %s leads it to service %s.", name(newer), engine.QuoteCode(second.service.Name)),
	}
	f.Cause = fmt.Sprintf("The ingresses %s and %s claim the same host and path, %s: the controller serves one of them (most serve the older), and the other gets no requests.", name(older), name(newer), engine.QuoteCode(c.host+c.path))
	f.Text = fmt.Sprintf("Remove the rule from %s or %s, or give one of them another host or path.", name(older), name(newer))
	return f
}

// isCanary reports whether an ingress is to receive a share of another one's requests.
func isCanary(in *networkingv1.Ingress) bool {
	for key := range in.Annotations {
		if strings.Contains(key, "canary") || strings.Contains(key, "/service-weights") || strings.Contains(key, "mergeable-ingress-type") {
			return true
		}
	}
	return false
}
