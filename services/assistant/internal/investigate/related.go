package investigate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
)

// concernsObjects returns a filter for findings about the objects, or about their parts and targets.
func concernsObjects(s *engine.Snapshot, objects []operation.Ref) func(engine.Finding) bool {
	near := relatedObjects(s, objects)
	var concern func(f engine.Finding) bool
	concern = func(f engine.Finding) bool {
		return near[plainRef(f.Object)] || slices.ContainsFunc(f.Touches, func(r operation.Ref) bool { return near[plainRef(r)] }) || slices.ContainsFunc(f.Effects, func(e engine.Effect) bool { return near[plainRef(e.Of)] }) || slices.ContainsFunc(f.Pods, func(pod string) bool {
			return near[operation.Ref{Kind: "Pod", Namespace: f.Object.Namespace, Name: pod}]
		}) || slices.ContainsFunc(f.Consequences, concern)
	}
	return concern
}

// plainRef returns a reference for comparison, without the version.
func plainRef(r operation.Ref) operation.Ref {
	return operation.Ref{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// relatedObjects extends objects by their related ones: pods and their workloads, services and ingresses before them,
// autoscalers, budgets, policies, claims and jobs.
func relatedObjects(s *engine.Snapshot, objects []operation.Ref) map[operation.Ref]bool {
	near := map[operation.Ref]bool{}
	for _, r := range objects {
		near[plainRef(r)] = true
	}
	view := report.View{Snapshot: s}
	r := &relations{Snapshot: s, near: near, view: view, owner: view.Owners()}
	r.applications(objects)
	r.releases(objects)
	r.ingresses()
	r.gateways(objects)
	r.attempts(objects)
	r.jobs()
	r.pods()
	r.owners()
	r.drained()
	r.certificates(objects)
	r.issued(objects)
	return near
}

type relations struct {
	*engine.Snapshot
	near  map[operation.Ref]bool
	view  report.View
	owner func(*corev1.Pod) operation.Ref
}

func (r *relations) has(kind, namespace, name string) bool {
	return r.near[operation.Ref{Kind: kind, Namespace: namespace, Name: name}]
}

func (r *relations) put(kind, namespace, name string) {
	r.near[operation.Ref{Kind: kind, Namespace: namespace, Name: name}] = true
}

// ingress joins an Ingress with a Service that it leads to.
func (r *relations) ingress(in *networkingv1.Ingress, to *networkingv1.IngressServiceBackend) {
	if r.has("Ingress", in.Namespace, in.Name) {
		r.put("Service", in.Namespace, to.Name)
	} else if r.has("Service", in.Namespace, to.Name) {
		r.put("Ingress", in.Namespace, in.Name)
	}
}

// ingresses joins ingresses with services: trouble is visible at either.
func (r *relations) ingresses() {
	for i := range r.Ingresses {
		in := &r.Ingresses[i]
		if b := in.Spec.DefaultBackend; b != nil && b.Service != nil {
			r.ingress(in, b.Service)
		}
		for _, rule := range in.Spec.Rules {
			if rule.HTTP == nil {
				continue
			}
			for _, path := range rule.HTTP.Paths {
				if b := path.Backend.Service; b != nil {
					r.ingress(in, b)
				}
			}
		}
	}
}

func (r *relations) jobs() {
	for i := range r.Jobs {
		j := &r.Jobs[i]
		if up := metav1.GetControllerOf(j); up != nil && r.has(up.Kind, j.Namespace, up.Name) {
			r.put("Job", j.Namespace, j.Name)
		}
	}
}

// pods joins pods with the objects that own, select or host them.
func (r *relations) pods() {
	chosen := map[operation.Ref]bool{}
	var services []*corev1.Service
	for i := range r.Services {
		if s := &r.Services[i]; r.has("Service", s.Namespace, s.Name) && len(s.Spec.Selector) > 0 {
			services = append(services, s)
		}
	}
	for i := range r.Pods {
		pod := &r.Pods[i]
		owner := r.owner(pod)
		direct := metav1.GetControllerOf(pod)
		asked := r.has("Pod", pod.Namespace, pod.Name) || r.near[plainRef(owner)] || direct != nil && r.has(direct.Kind, pod.Namespace, direct.Name)
		served := slices.ContainsFunc(services, func(s *corev1.Service) bool {
			return s.Namespace == pod.Namespace && matchesLabels(s.Spec.Selector, pod.Labels)
		})
		if asked || served {
			chosen[plainRef(owner)] = true
			chosen[operation.Ref{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}] = true
			if direct != nil {
				chosen[operation.Ref{Kind: direct.Kind, Namespace: pod.Namespace, Name: direct.Name}] = true
			}
		}
		if asked {
			r.mounts(pod)
		}
	}
	for ref := range chosen {
		r.near[ref] = true
	}
}

func (r *relations) mounts(pod *corev1.Pod) {
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			r.put("PersistentVolumeClaim", pod.Namespace, v.PersistentVolumeClaim.ClaimName)
		}
	}
	for _, secret := range engine.MountedSecrets(&pod.Spec) {
		r.put("Secret", pod.Namespace, secret)
	}
}

// owners returns the objects that act on the workloads in question.
func (r *relations) owners() {
	for _, w := range r.view.Workloads() {
		if !r.near[plainRef(w.Ref)] {
			continue
		}
		in, have := w.Ref.Namespace, w.Template.Labels
		for i := range r.Services {
			s := &r.Services[i]
			// A Service of its name is meant for it, also with a selector that matches nothing.
			if s.Namespace == in && len(s.Spec.Selector) > 0 && (s.Name == w.Ref.Name || matchesLabels(s.Spec.Selector, have)) {
				r.put("Service", in, s.Name)
			}
		}
		for i := range r.Budgets {
			if b := &r.Budgets[i]; b.Namespace == in && chooserMatches(b.Spec.Selector, have) {
				r.put("PodDisruptionBudget", in, b.Name)
			}
		}
		for i := range r.NetworkPolicies {
			if p := &r.NetworkPolicies[i]; p.Namespace == in && chooserMatches(&p.Spec.PodSelector, have) {
				r.put("NetworkPolicy", in, p.Name)
			}
		}
		for i := range r.Autoscalers {
			if h := &r.Autoscalers[i]; h.Namespace == in && h.Spec.ScaleTargetRef.Kind == w.Ref.Kind && h.Spec.ScaleTargetRef.Name == w.Ref.Name {
				r.put("HorizontalPodAutoscaler", in, h.Name)
			}
		}
	}
}

// drained joins a cordoned node with the budgets of its pods: they decide whether its drain ends.
func (r *relations) drained() {
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if !n.Spec.Unschedulable || !r.has("Node", "", n.Name) {
			continue
		}
		for j := range r.Pods {
			pod := &r.Pods[j]
			if pod.Spec.NodeName != n.Name {
				continue
			}
			for k := range r.Budgets {
				if b := &r.Budgets[k]; b.Namespace == pod.Namespace && chooserMatches(b.Spec.Selector, pod.Labels) {
					r.put("PodDisruptionBudget", b.Namespace, b.Name)
				}
			}
		}
	}
}

// certificates joins ingresses with the Secrets of their certificates, and such a Secret that was asked about with the
// ingresses it serves. The backends of these are unrelated to the Secret.
func (r *relations) certificates(asked []operation.Ref) {
	for i := range r.Ingresses {
		in := &r.Ingresses[i]
		near := r.has("Ingress", in.Namespace, in.Name)
		for _, tls := range in.Spec.TLS {
			if tls.SecretName == "" {
				continue
			}
			if near {
				r.put("Secret", in.Namespace, tls.SecretName)
			}
			if slices.ContainsFunc(asked, func(o operation.Ref) bool {
				return o.Kind == "Secret" && o.Namespace == in.Namespace && o.Name == tls.SecretName
			}) {
				r.put("Ingress", in.Namespace, in.Name)
			}
		}
	}
}

func matchesLabels(selector, have map[string]string) bool {
	return labels.SelectorFromSet(selector).Matches(labels.Set(have))
}

func chooserMatches(selector *metav1.LabelSelector, have map[string]string) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(have))
}
