package registry

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mlp-platform/platform/services/assistant/internal/logtext"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/network"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// Dependencies lists what a workload needs, and what refers to it.
type Dependencies struct {
	Workload operation.Reference `json:"workload"`
	Needs    []Dependency        `json:"needs"`
	UsedBy   []Dependency        `json:"used_by"`
	// NotLookedAt lists what could not be read, so that nothing there is reported missing.
	NotLookedAt []string `json:"not_looked_at"`
}

// Dependency is one object.
type Dependency struct {
	Object operation.Reference `json:"object"`
	How    string              `json:"how"`
	// State is present, missing, absent (which is allowed: it is optional) or unknown.
	State string `json:"state" jsonschema:"present, missing, absent (it is optional) or unknown"`
}

// template is the pod template of a workload.
type template struct {
	*engine.Snapshot
	*Dependencies
	index    *network.Index
	versions versions
	of       operation.Reference
	labels   map[string]string
	spec     *corev1.PodSpec
}

func dependencies(ctx context.Context, box turn.Toolbox, a workloadArguments) (Result, error) {
	of, err := resolve(ctx, box, a.Namespace, cmp.Or(a.Kind, "deployment"), a.Name)
	if err != nil {
		return Result{}, err
	}
	s, err := snapshotOf(ctx, box, of.Namespace)
	if err != nil {
		return Result{}, err
	}
	t := &template{
		Snapshot: s, index: network.New(engine.NewIndex(s)), versions: newVersions(s), of: of,
		Dependencies: &Dependencies{Workload: of, Needs: []Dependency{}, UsedBy: []Dependency{}, NotLookedAt: unread(s)},
	}
	if !t.find() {
		return Result{}, operation.Refuse(operation.InvalidArgument, "kind", "A %s owns no pods.", of.Kind)
	}
	t.listNeeds()
	t.listUsers()
	t.listCallers()
	references := []operation.Reference{of}
	for _, d := range slices.Concat(t.Needs, t.UsedBy) {
		references = append(references, d.Object)
	}
	return shown(t.Dependencies.text(), t.Dependencies, references...), nil
}

// find reads the pod template, or that of a pod.
func (t *template) find() bool {
	for ref, w := range t.index.Workloads {
		if ref.Kind == t.of.Kind && ref.Namespace == t.of.Namespace && ref.Name == t.of.Name && w.Template != nil {
			t.labels, t.spec = w.Template.Labels, &w.Template.Spec
			return true
		}
	}
	for i := range t.CronJobs {
		if c := &t.CronJobs[i]; t.of.Kind == "CronJob" && c.Namespace == t.of.Namespace && c.Name == t.of.Name {
			t.labels, t.spec = c.Spec.JobTemplate.Spec.Template.Labels, &c.Spec.JobTemplate.Spec.Template.Spec
			return true
		}
	}
	for i := range t.Pods {
		if p := &t.Pods[i]; t.of.Kind == "Pod" && p.Namespace == t.of.Namespace && p.Name == t.of.Name {
			t.labels, t.spec = p.Labels, &p.Spec
			return true
		}
	}
	return false
}

// plurals maps kinds to the names by which a snapshot reports them as not read.
var plurals = map[string]string{
	"ConfigMap": "configmaps", "Secret": "secrets", "PersistentVolumeClaim": "persistentvolumeclaims", "ServiceAccount": "serviceaccounts", "Service": "services",
}

// need adds an object that the pods need, once. It is missing if anything requires it.
func (t *template) need(kind, name, how, state string) {
	if name == "" {
		return
	}
	if t.Unread[plurals[kind]] && state != "present" {
		state = "unknown"
	}
	object := t.versions.cite(operation.Ref{Kind: kind, Namespace: t.of.Namespace, Name: name})
	if i := slices.IndexFunc(t.Needs, func(d Dependency) bool { return d.Object == object }); i < 0 {
		t.Needs = append(t.Needs, Dependency{object, how, state})
	} else if state == "missing" && t.Needs[i].State == "absent" {
		t.Needs[i].How, t.Needs[i].State = how, state
	}
}

func stateOf(there bool, optional *bool) string {
	switch {
	case there:
		return "present"
	case optional != nil && *optional:
		return "absent"
	}
	return "missing"
}

func (t *template) needConfigMap(name, how string, optional *bool) {
	_, there := t.index.ConfigMapKeys[engine.Name{Namespace: t.of.Namespace, Name: name}]
	t.need("ConfigMap", name, how, stateOf(there, optional))
}

func (t *template) needSecret(name, how string, optional *bool) {
	_, there := t.index.SecretKeys[engine.Name{Namespace: t.of.Namespace, Name: name}]
	t.need("Secret", name, how, stateOf(there, optional))
	for _, keeper := range t.index.CertificatesFor(t.of.Namespace, name) {
		object := t.versions.cite(keeper)
		if !slices.ContainsFunc(t.Needs, func(d Dependency) bool { return d.Object == object }) {
			t.Needs = append(t.Needs, Dependency{object, "keeps Secret " + name, "present"})
		}
	}
}

func (t *template) listNeeds() {
	for _, v := range t.spec.Volumes {
		t.needVolume(v)
	}
	for _, c := range slices.Concat(t.spec.InitContainers, t.spec.Containers) {
		for _, e := range c.EnvFrom {
			if e.ConfigMapRef != nil {
				t.needConfigMap(e.ConfigMapRef.Name, "all variables of container "+c.Name, e.ConfigMapRef.Optional)
			}
			if e.SecretRef != nil {
				t.needSecret(e.SecretRef.Name, "all variables of container "+c.Name, e.SecretRef.Optional)
			}
		}
		for _, e := range c.Env {
			t.needVariable(c.Name, e)
		}
	}
	for _, s := range t.spec.ImagePullSecrets {
		t.needSecret(s.Name, "credentials of the image registry", nil)
	}
	account := cmp.Or(t.spec.ServiceAccountName, "default")
	t.need("ServiceAccount", account, "account of the pods", stateOf(slices.ContainsFunc(t.ServiceAccounts, func(a corev1.ServiceAccount) bool {
		return a.Namespace == t.of.Namespace && a.Name == account
	}), nil))
}

func (t *template) needVolume(v corev1.Volume) {
	how := "volume " + v.Name
	switch {
	case v.ConfigMap != nil:
		t.needConfigMap(v.ConfigMap.Name, how, v.ConfigMap.Optional)
	case v.Secret != nil:
		t.needSecret(v.Secret.SecretName, how, v.Secret.Optional)
	case v.PersistentVolumeClaim != nil:
		name := v.PersistentVolumeClaim.ClaimName
		t.need("PersistentVolumeClaim", name, how, stateOf(t.index.ClaimByName()[engine.Name{Namespace: t.of.Namespace, Name: name}] != nil, nil))
	case v.Projected != nil:
		for _, p := range v.Projected.Sources {
			if p.ConfigMap != nil {
				t.needConfigMap(p.ConfigMap.Name, how, p.ConfigMap.Optional)
			}
			if p.Secret != nil {
				t.needSecret(p.Secret.Name, how, p.Secret.Optional)
			}
		}
	}
}

// needVariable adds what a variable is read from, and the Services of the cluster that its value names.
func (t *template) needVariable(container string, e corev1.EnvVar) {
	how := "variable " + e.Name + " of container " + container
	if from := e.ValueFrom; from != nil && from.ConfigMapKeyRef != nil {
		t.needConfigMap(from.ConfigMapKeyRef.Name, how, from.ConfigMapKeyRef.Optional)
	} else if from != nil && from.SecretKeyRef != nil {
		t.needSecret(from.SecretKeyRef.Name, how, from.SecretKeyRef.Optional)
	}
	for _, s := range t.servicesIn(e.Value, t.of.Namespace) {
		object := t.versions.cite(engine.ServiceRef(s))
		if !slices.ContainsFunc(t.Needs, func(d Dependency) bool { return d.Object == object }) {
			t.Needs = append(t.Needs, Dependency{object, how + " names it", "present"})
		}
	}
}

// servicesIn returns the Services that the value of a variable names, as a pod of that namespace resolves names.
func (t *template) servicesIn(value, namespace string) []*corev1.Service {
	names := []string{value}
	for _, h := range logtext.Hosts(value) {
		names = append(names, h.Name)
	}
	var found []*corev1.Service
	for _, name := range names {
		if s := t.index.ServiceNamed(name, namespace); s != nil && name != "" && !slices.Contains(found, s) {
			found = append(found, s)
		}
	}
	return found
}

// listCallers adds the workloads whose variables name a Service that leads to this one.
func (t *template) listCallers() {
	for _, ref := range slices.SortedFunc(maps.Keys(t.index.Workloads), compareRefs) {
		w := t.index.Workloads[ref]
		if w.Template == nil || ref.Kind == t.of.Kind && ref.Namespace == t.of.Namespace && ref.Name == t.of.Name {
			continue
		}
		for _, c := range slices.Concat(w.Template.Spec.InitContainers, w.Template.Spec.Containers) {
			for _, e := range c.Env {
				t.addCaller(ref, e)
			}
		}
	}
}

func (t *template) addCaller(ref operation.Ref, e corev1.EnvVar) {
	for _, s := range t.servicesIn(e.Value, ref.Namespace) {
		object := t.versions.cite(ref)
		leads := s.Namespace == t.of.Namespace && len(s.Spec.Selector) > 0 && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(t.labels))
		if leads && !slices.ContainsFunc(t.UsedBy, func(d Dependency) bool { return d.Object == object }) {
			t.UsedBy = append(t.UsedBy, Dependency{object, "its variable " + e.Name + " names Service " + s.Name, "present"})
		}
	}
}

func compareRefs(a, b operation.Ref) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
}

// listUsers adds what leads to the workload or acts on it.
func (t *template) listUsers() {
	use := func(group, kind, name, how string) {
		object := t.versions.cite(operation.Ref{Group: group, Kind: kind, Namespace: t.of.Namespace, Name: name})
		if !slices.ContainsFunc(t.UsedBy, func(d Dependency) bool { return d.Object == object }) {
			t.UsedBy = append(t.UsedBy, Dependency{object, how, "present"})
		}
	}
	have := labels.Set(t.labels)
	for i := range t.Services {
		s := &t.Services[i]
		if s.Namespace != t.of.Namespace || len(s.Spec.Selector) == 0 || !labels.SelectorFromSet(s.Spec.Selector).Matches(have) {
			continue
		}
		use("", "Service", s.Name, "sends traffic to its pods")
		for j := range t.Ingresses {
			if in := &t.Ingresses[j]; in.Namespace == s.Namespace && leadsTo(in, s.Name) {
				use("networking.k8s.io", "Ingress", in.Name, "leads to Service "+s.Name)
			}
		}
	}
	for i := range t.Autoscalers {
		if h := &t.Autoscalers[i]; h.Namespace == t.of.Namespace && h.Spec.ScaleTargetRef.Kind == t.of.Kind && h.Spec.ScaleTargetRef.Name == t.of.Name {
			use("autoscaling", "HorizontalPodAutoscaler", h.Name, "scales it")
		}
	}
	for i := range t.Budgets {
		if b := &t.Budgets[i]; b.Namespace == t.of.Namespace && selects(b.Spec.Selector, have) {
			use("policy", "PodDisruptionBudget", b.Name, "limits its disruption")
		}
	}
	for _, a := range t.ApplicationsOf(operation.Ref{Group: t.of.Group, Kind: t.of.Kind, Namespace: t.of.Namespace, Name: t.of.Name}) {
		t.UsedBy = append(t.UsedBy, Dependency{t.versions.cite(engine.ApplicationRef(a)), "it is managed by Argo CD application " + a.Name, "present"})
	}
	for i := range t.NetworkPolicies {
		if p := &t.NetworkPolicies[i]; p.Namespace == t.of.Namespace && selects(&p.Spec.PodSelector, have) {
			use("networking.k8s.io", "NetworkPolicy", p.Name, "limits its traffic")
		}
	}
}

func selects(selector *metav1.LabelSelector, have labels.Set) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(have)
}

func leadsTo(in *networkingv1.Ingress, service string) bool {
	if b := in.Spec.DefaultBackend; b != nil && b.Service != nil && b.Service.Name == service {
		return true
	}
	for _, rule := range in.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for _, path := range rule.HTTP.Paths {
			if path.Backend.Service != nil && path.Backend.Service.Name == service {
				return true
			}
		}
	}
	return false
}

func (d *Dependencies) text() string {
	list := func(head string, all []Dependency) string {
		if len(all) == 0 {
			return head + " nothing that was read."
		}
		lines := []string{head}
		for _, one := range all {
			state := ""
			if one.State != "present" {
				state = " (" + one.State + ")"
			}
			lines = append(lines, fmt.Sprintf("- %s %s%s: %s", one.Object.Kind, engine.QuoteCode(one.Object.Name), state, one.How))
		}
		return strings.Join(lines, "\n")
	}
	notRead := ""
	if len(d.NotLookedAt) > 0 {
		notRead = "Some of these could not be read: " + strings.Join(d.NotLookedAt, ", ") + "."
	}
	title := fmt.Sprintf("%s %s", d.Workload.Kind, engine.QuoteCode(d.Workload.Name))
	return joinLines(list(title+" needs:", d.Needs), list("Used or limited by:", d.UsedBy),
		"Names in a program, in a file or in a Secret are not seen, nor are callers in other namespaces.", notRead)
}
