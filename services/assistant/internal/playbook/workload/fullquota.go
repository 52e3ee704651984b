package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// lack is an object that a namespace needs and does not have.
type lack struct {
	what    string        // its name in a sentence
	by      operation.Ref // the object that needs it
	classes []engine.Class
	sure    bool // it is certainly needed
}

// checkFullQuotas explains QuotaExceeded: objects that are missing and that a quota of the namespace would reject. The
// rejection went to the client that tried to create them, so no event records it.
func checkFullQuotas(x *Index) []engine.Finding {
	var found []engine.Finding
	for i := range x.Quotas {
		q := &x.Quotas[i]
		for _, kind := range limitedKinds(q) {
			limited, used := q.Status.Hard[kind], q.Status.Used[kind]
			full := used.Cmp(limited) >= 0
			if !full && !strings.HasSuffix(string(kind), string(corev1.ResourceRequestsStorage)) {
				continue // for an amount, the remainder may be too little for the missing object
			}
			missing := x.lacking(q.Namespace, kind)
			if len(missing) == 0 {
				continue
			}
			f := engine.Finding{Class: engine.QuotaExceeded, Object: operation.Ref{Version: "v1", Kind: "ResourceQuota", Namespace: q.Namespace, Name: q.Name}, Confidence: engine.Medium}
			f.Evidence = []string{fmt.Sprintf("The quota lets the namespace have %s %s; used are %s.", limited.String(), engine.QuoteCode(string(kind)), used.String())}
			var names []string
			for _, m := range missing {
				names = append(names, m.what)
				if m.sure && full {
					f.Confidence = engine.High
				}
				f.Evidence = append(f.Evidence, fmt.Sprintf("%s does not exist; %s needs it.", engine.UpperFirst(m.what), engine.RefTitle(m.by)))
				f.Effects = append(f.Effects, engine.Effect{Of: m.by, Classes: m.classes})
			}
			f.Cause = fmt.Sprintf("The quota %s of the namespace is used up for %s, so that the missing %s cannot be created.", engine.QuoteCode(q.Name), engine.QuoteCode(string(kind)), strings.Join(slices.Compact(names), ", "))
			if !full {
				free := limited.DeepCopy()
				free.Sub(used)
				f.Cause = fmt.Sprintf("The quota %s of the namespace has %s of %s left, so that the API server refuses a larger claim: most likely that is why %s is missing.", engine.QuoteCode(q.Name), free.String(), engine.QuoteCode(string(kind)), strings.Join(slices.Compact(names), ", "))
			}
			f.Text = fmt.Sprintf("Raise the quota for %s, or delete what is not needed, and create what is missing.", engine.QuoteCode(string(kind)))
			found = append(found, f)
		}
	}
	return found
}

// limitedKinds returns the resources that a quota limits, in order.
func limitedKinds(q *corev1.ResourceQuota) []corev1.ResourceName {
	var kinds []corev1.ResourceName
	for kind := range q.Status.Hard {
		if _, counted := q.Status.Used[kind]; counted {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// lacking returns the missing objects of a namespace that count towards a kind of a quota.
func (x *Index) lacking(namespace string, kind corev1.ResourceName) []lack {
	object, _, _ := strings.Cut(strings.TrimPrefix(string(kind), "count/"), ".")
	switch {
	case object == "services":
		return x.lackingServices(namespace)
	case object == "persistentvolumeclaims" || strings.HasSuffix(string(kind), string(corev1.ResourceRequestsStorage)) || strings.HasSuffix(string(kind), "/persistentvolumeclaims"):
		return x.lackingClaims(namespace)
	case object == "configmaps":
		return x.lackingReferences(namespace, "ConfigMap")
	case object == "secrets":
		return x.lackingReferences(namespace, "Secret")
	}
	return nil
}

func (x *Index) lackingServices(namespace string) []lack {
	if x.Unread["services"] {
		return nil
	}
	var all []lack
	seen := map[string]bool{}
	add := func(name string, by operation.Ref, sure bool) {
		if !seen[name] {
			seen[name] = true
			all = append(all, lack{"service " + engine.QuoteCode(name), by, []engine.Class{engine.NameResolution, engine.CrashLoop, engine.ReadinessProbe, engine.LivenessProbe, engine.InitContainer, engine.IngressBackend}, sure})
		}
	}
	for _, pod := range x.LivingPods {
		for _, absent := range x.network.AbsentServices(pod) {
			if absent.Namespace == namespace {
				add(absent.Name.Name, x.WorkloadOf(pod).Ref, absent.Backend != nil)
			}
		}
	}
	for i := range x.Deployments {
		d := &x.Deployments[i]
		if d.Namespace != namespace || seen[d.Name] || d.Spec.Selector == nil || len(declared(d.Spec.Template.Spec.Containers)) == 0 {
			continue
		}
		if !slices.ContainsFunc(x.ServicesIn()[namespace], func(s *corev1.Service) bool { return len(s.Spec.Selector) > 0 && selects(s, d.Spec.Template.Labels) }) {
			add(d.Name, operation.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: namespace, Name: d.Name}, false)
		}
	}
	// Certainly missing objects are enough: programs may name a service that they can do without.
	if slices.ContainsFunc(all, func(l lack) bool { return l.sure }) {
		all = slices.DeleteFunc(all, func(l lack) bool { return !l.sure })
	}
	slices.SortFunc(all, func(a, b lack) int { return cmp.Compare(a.what, b.what) })
	return all
}

func declared(containers []corev1.Container) []int32 {
	var ports []int32
	for i := range containers {
		ports = append(ports, engine.DeclaredPorts(&containers[i])...)
	}
	return ports
}

func selects(s *corev1.Service, labels map[string]string) bool {
	for key, value := range s.Spec.Selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}

func (x *Index) lackingClaims(namespace string) []lack {
	var all []lack
	for _, absent := range x.storage.AbsentClaims() {
		if absent.Namespace == namespace {
			all = append(all, lack{"volume claim " + engine.QuoteCode(absent.Name.Name), x.WorkloadOf(absent.Pods[0]).Ref, []engine.Class{engine.ClaimUnbound, engine.PendingPlacement}, true})
		}
	}
	return all
}

func (x *Index) lackingReferences(namespace, kind string) []lack {
	var all []lack
	for _, pod := range x.LivingPods {
		if pod.Namespace != namespace {
			continue
		}
		w := x.WorkloadOf(pod)
		for _, r := range x.waitedFor(pod) {
			if r.kind != kind || slices.ContainsFunc(all, func(l lack) bool { return l.what == r.kind+" "+engine.QuoteCode(r.name) }) {
				continue
			}
			if missing := x.check(r, pod, w); len(missing) > 0 && missing[0].Class == engine.MissingObject {
				all = append(all, lack{r.kind + " " + engine.QuoteCode(r.name), w.Ref, []engine.Class{engine.MissingObject}, true})
			}
		}
	}
	return all
}
