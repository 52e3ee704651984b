package investigate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/symptom"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
)

// shows lists the classes of findings that may cause a symptom.
var shows = map[question.Symptom][]engine.Class{
	question.Crash:       {engine.CrashLoop, engine.OutOfMemory, engine.LivenessProbe, engine.InitContainer, engine.Sidecar},
	question.Memory:      {engine.OutOfMemory},
	question.Pending:     {engine.PendingResources, engine.PendingPlacement, engine.ClaimUnbound, engine.QuotaExceeded},
	question.NotStarting: {engine.ImagePull, engine.MissingObject, engine.MissingKey, engine.PendingResources, engine.PendingPlacement, engine.ClaimUnbound, engine.QuotaExceeded, engine.LimitRangeViolated, engine.InitContainer, engine.MissingServiceAccount, engine.AdmissionWebhook, engine.StatefulSetStuck, engine.CrashLoop},
	question.Image:       {engine.ImagePull},
	question.Traffic:     {engine.ReadinessProbe, engine.ServiceWithoutEndpoint, engine.ServicePort, engine.IngressBackend, engine.PolicyBlocks, engine.NameResolution, engine.ReadinessGate},
	question.Terminating: {engine.StuckTerminating},
	question.Scaling:     {engine.AutoscalerIdle, engine.QuotaExceeded},
	question.Drain:       {engine.BudgetDeadlock},
	question.Init:        {engine.InitContainer},
	question.Access:      {engine.AccessForbidden},
	question.Names:       {engine.NameResolution},
	question.Job:         {engine.JobFailed, engine.CronJobIdle},
	question.Rollout:     {engine.RolloutStuck, engine.ImagePull, engine.CrashLoop, engine.ReadinessProbe, engine.QuotaExceeded},
	question.Node:        {engine.NodeTrouble},
	question.Volume:      {engine.ClaimUnbound},
	question.Config:      {engine.MissingObject, engine.MissingKey},
	question.Probe:       {engine.LivenessProbe, engine.ReadinessProbe},
	question.Quota:       {engine.QuotaExceeded, engine.LimitRangeViolated},
	question.Webhook:     {engine.AdmissionWebhook},
}

// fitsSymptoms reports whether a finding, or what follows from it, may be seen as one of the
// symptoms.
func fitsSymptoms(f engine.Finding, symptoms []question.Symptom) bool {
	for _, s := range symptoms {
		if slices.Contains(shows[s], f.Class) || f.As != 0 && slices.Contains(shows[s], f.As) {
			return true
		}
	}
	return slices.ContainsFunc(f.Consequences, func(c engine.Finding) bool { return fitsSymptoms(c, symptoms) })
}

// found is what the playbooks say of a topic: what concerns it, and what else is wrong
// in the same place.
func (t *topic) found(symptoms []question.Symptom) (about, others []engine.Finding) {
	where := t.namespace
	if slices.ContainsFunc(t.objects, func(r operation.Ref) bool { return r.Namespace == "" }) {
		where = "" // of nodes and the like
	}
	all := playbook.Findings(t.snap, where)
	if len(t.objects) > 0 {
		about, others = partition(all, concernsObjects(t.snap, t.objects))
		// Of several troubles of one object, what was asked about comes first.
		first, rest := partition(about, func(f engine.Finding) bool { return fitsSymptoms(f, symptoms) })
		return append(first, rest...), others
	}
	if about, others = partition(all, func(f engine.Finding) bool { return fitsSymptoms(f, symptoms) }); len(about) > 0 {
		return about, others
	}
	return all, nil
}

func partition(all []engine.Finding, ok func(engine.Finding) bool) (yes, no []engine.Finding) {
	for _, f := range all {
		if ok(f) {
			yes = append(yes, f)
		} else {
			no = append(no, f)
		}
	}
	return yes, no
}

// concernsObjects tells findings about the objects, or about what they are made of and lead to.
func concernsObjects(s *engine.Snapshot, objects []operation.Ref) func(engine.Finding) bool {
	near := relatedObjects(s, objects)
	var concern func(f engine.Finding) bool
	concern = func(f engine.Finding) bool {
		return near[plainRef(f.Object)] || slices.ContainsFunc(f.Effects, func(e engine.Effect) bool { return near[plainRef(e.Of)] }) || slices.ContainsFunc(f.Pods, func(pod string) bool {
			return near[operation.Ref{Kind: "Pod", Namespace: f.Object.Namespace, Name: pod}]
		}) || slices.ContainsFunc(f.Consequences, concern)
	}
	return concern
}

// plainRef is a reference to compare with, whatever the version was called.
func plainRef(r operation.Ref) operation.Ref {
	return operation.Ref{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// relatedObjects widens objects by what belongs to them: pods and their workloads, services
// and ingresses before them, autoscalers, budgets, policies, claims and jobs.
func relatedObjects(s *engine.Snapshot, objects []operation.Ref) map[operation.Ref]bool {
	near := map[operation.Ref]bool{}
	for _, r := range objects {
		near[plainRef(r)] = true
	}
	view := report.View{Snapshot: s}
	r := &relations{Snapshot: s, near: near, view: view, owner: view.Owners()}
	r.ingresses()
	r.jobs()
	r.pods()
	r.owners()
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

// ingresses lead to services, and their trouble is seen at either.
func (r *relations) ingresses() {
	for i := range r.Ingresses {
		in := &r.Ingresses[i]
		for _, rule := range in.Spec.Rules {
			if rule.HTTP == nil {
				continue
			}
			for _, path := range rule.HTTP.Paths {
				if b := path.Backend.Service; b != nil && r.has("Ingress", in.Namespace, in.Name) {
					r.put("Service", in.Namespace, b.Name)
				} else if b != nil && r.has("Service", in.Namespace, b.Name) {
					r.put("Ingress", in.Namespace, in.Name)
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

// pods join the objects that own, choose or carry them.
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
			// One of its name is meant for it, also with a selector that chooses nothing.
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

func matchesLabels(selector, have map[string]string) bool {
	return labels.SelectorFromSet(selector).Matches(labels.Set(have))
}

func chooserMatches(selector *metav1.LabelSelector, have map[string]string) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(have))
}

// diagnose answers what is wrong and why.
func (w *work) diagnose(ctx context.Context, a question.Ask, t *topic) error {
	about, others := t.found(a.Symptoms)
	if w.cfg.Found != nil {
		w.cfg.Found(slices.Concat(about, others))
	}
	for _, r := range t.objects {
		if line := describeStanding(t.snap, r); line != "" {
			w.say(line)
		}
		if len(t.objects) > 4 {
			break
		}
	}
	left := t.unexplained(slices.Concat(about, others))
	switch {
	case len(about) > 0:
		w.say(engine.Answer(t.snap, about))
		w.say(besides(left))
		if err := w.sayRunbooks(ctx, t, about, false); err != nil {
			return err
		}
	case len(t.objects) == 0:
		w.say(t.verdict(left, ""))
		if len(left) == 0 {
			w.say("The logs of pods that look healthy were not read for this; ask about one workload to have them read.")
		}
		w.say(report.Health(t.view()))
		return nil
	default:
		if err := w.diagnoseByLogs(ctx, t, left); err != nil {
			return err
		}
	}
	if slices.Contains(a.Symptoms, question.Slow) {
		if err := w.speed(ctx, a, t); err != nil {
			return err
		}
	}
	w.elsewhere(t, others)
	return nil
}

// diagnoseByLogs answers about objects whose status shows no cause: by what their programs wrote.
func (w *work) diagnoseByLogs(ctx context.Context, t *topic, left []symptom.Symptom) error {
	e, err := w.readEvidence(ctx, t)
	if err != nil {
		return err
	}
	t.logs = e.sources
	if len(e.groups) == 0 {
		w.say(strings.TrimSpace(t.verdict(left, e.gap) + " " + e.read))
		return nil
	}
	w.say(fmt.Sprintf("No object shows a fault of %s, but its logs do not look healthy.", refTitles(t.objects)))
	if len(left) > 0 {
		w.say("Not healthy:\n\n" + listSymptoms(left))
	}
	w.say(e.quote(t))
	w.say(e.read + listUnread(t.snap))
	return nil
}

// elsewhere names other problems in one line, without explaining them.
func (w *work) elsewhere(t *topic, others []engine.Finding) {
	if len(others) == 0 {
		return
	}
	const most = 5
	var list []string
	for i, f := range others {
		if i == most {
			list = append(list, fmt.Sprintf("and %d more", len(others)-most))
			break
		}
		list = append(list, t.short(f.Object))
	}
	w.say(fmt.Sprintf("Something else is wrong %s: %s. Ask what is wrong with it.", t.where(), strings.Join(list, ", ")))
}
