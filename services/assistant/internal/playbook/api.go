package playbook

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// lastApplied is where kubectl apply keeps the manifest that it sent.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// noMatchExpr is what clients say of a kind in a version that the server does not have.
var noMatchExpr = regexp.MustCompile(`no matches for kind \\?"([A-Za-z][A-Za-z0-9]*)\\?" in version \\?"([a-z0-9][a-z0-9./-]*)\\?"`)

// served says whether the server has a version; true while that is not known.
func (x *index) served(version string) bool {
	return x.Served == nil || x.Served[version]
}

// groupServed says whether the server has any version of a group.
func (x *index) groupServed(version string) bool {
	group, _, named := strings.Cut(version, "/")
	if x.Served == nil || !named {
		return true
	}
	for v := range x.Served {
		if strings.HasPrefix(v, group+"/") {
			return true
		}
	}
	return false
}

// goneAPIs explains class 30: what still speaks to an API that this cluster does not have.
func goneAPIs(x *index) []Finding {
	if x.Served == nil {
		return nil
	}
	var found []Finding
	for i := range x.Autoscalers {
		if f := (Finding{}); f.goneTarget(x, &x.Autoscalers[i]) {
			found = append(found, f)
		}
	}
	for _, pod := range x.byName {
		for _, u := range x.unmatched(pod) {
			w := x.workloadOf(pod)
			f := Finding{Class: DeprecatedAPI, Object: w.ref, Confidence: High, Pods: []string{pod.Name}}
			f.effects = []effect{{of: w.ref, classes: []Class{CrashLoop, ReadinessProbe, JobFailed}}}
			f.Evidence = []string{fmt.Sprintf("A line from its log: no matches for kind %s in version %s.", quoteCode(u.kind), quoteCode(u.version))}
			f.gone(u.kind, u.version, "the program asks for")
			if !slices.ContainsFunc(found, func(o Finding) bool { return o.Object == f.Object && o.Cause == f.Cause }) {
				found = append(found, f)
			}
		}
	}
	for _, o := range x.applied() {
		f := Finding{Class: DeprecatedAPI, Object: o.ref, Confidence: Medium}
		f.Evidence = []string{"It was applied last from a manifest with apiVersion " + quoteCode(o.version) + "; the object itself is in order."}
		f.gone(o.ref.Kind, o.version, "its manifest is written for")
		f.converted(o)
		found = append(found, f)
	}
	return found
}

// gone says what came instead of a version.
func (f *Finding) gone(kind, version, who string) {
	f.Evidence = append(f.Evidence, fmt.Sprintf("Discovery was searched: this cluster does not serve %s.", quoteCode(version)))
	f.Cause = fmt.Sprintf("The API version %s, which %s, is not served here, so every request for %s in it fails.", quoteCode(version), who, quoteCode(kind))
	f.Text = "Say which API is meant, or install what serves this one."
	for _, r := range replaced {
		if !slices.Contains(r.kinds, kind) || !slices.Contains(r.gone, version) {
			continue
		}
		if f.Text = fmt.Sprintf("Write it for %s instead", quoteCode(r.now)); r.now == "" {
			f.Text = "Nothing of this kind came instead"
		}
		if r.note != "" {
			f.Text += "; " + r.note
		}
		f.Text += "."
		return
	}
}

// goneTarget tells of an autoscaler whose target stands in a group that is gone: the
// controller looks for it by group and kind.
func (f *Finding) goneTarget(x *index, a *autoscalingv2.HorizontalPodAutoscaler) bool {
	target := a.Spec.ScaleTargetRef
	if x.groupServed(target.APIVersion) {
		return false
	}
	f.Class, f.Confidence = DeprecatedAPI, High
	f.Object = operation.Ref{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler", Namespace: a.Namespace, Name: a.Name}
	f.effects = []effect{{of: f.Object, classes: []Class{AutoscalerIdle}}}
	f.Evidence = []string{fmt.Sprintf("Its target is %s %s with apiVersion %s.", target.Kind, quoteCode(target.Name), quoteCode(target.APIVersion))}
	f.gone(target.Kind, target.APIVersion, "its target names")
	now := operation.Ref{Group: "apps", Version: "v1", Kind: target.Kind, Namespace: a.Namespace, Name: target.Name}
	if x.workloads[now] == nil {
		return true
	}
	change := members{"apiVersion": "apps/v1", "kind": target.Kind, "name": target.Name}
	if f.Fix = newPatch(f.Object, members{"spec": members{"scaleTargetRef": change}}); f.Fix != nil {
		f.Text = "Let the target name `apps/v1`, under which it exists."
	}
	return true
}

// unserved is a kind in a version that the cluster does not have.
type unserved struct{ kind, version string }

// unmatched is what a pod's log says was asked of such versions, each once. Of a version
// that is served by now, the log is of the past.
func (x *index) unmatched(pod *corev1.Pod) []unserved {
	var all []unserved
	for _, log := range x.logsOf(pod) {
		for line := range strings.Lines(log) {
			for _, m := range noMatchExpr.FindAllStringSubmatch(line[:min(len(line), longestLine)], mostDenials) {
				if u := (unserved{m[1], m[2]}); len(m[1]) < 64 && len(m[2]) < 256 && !x.served(m[2]) && len(all) < mostDenials && !slices.Contains(all, u) {
					all = append(all, u)
				}
			}
		}
	}
	return all
}

// applied is an object with the manifest it was applied from, of a version that is gone.
type applied struct {
	ref      operation.Ref
	version  string
	manifest map[string]any
}

// applied lists the objects whose manifest cannot be applied once more.
func (x *index) applied() []applied {
	var all []applied
	add := func(group, version, kind string, o metav1.Object) {
		text := o.GetAnnotations()[lastApplied]
		if text == "" || len(text) > operation.MaxManifest || strings.Contains(text, "[redacted") || metav1.GetControllerOf(o) != nil {
			return
		}
		var manifest map[string]any
		if json.Unmarshal([]byte(text), &manifest) != nil {
			return
		}
		was, _ := manifest["apiVersion"].(string)
		if was == "" || manifest["kind"] != kind || x.served(was) {
			return
		}
		all = append(all, applied{operation.Ref{Group: group, Version: version, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}, was, manifest})
	}
	for i := range x.Deployments {
		add("apps", "v1", "Deployment", &x.Deployments[i])
	}
	for i := range x.StatefulSets {
		add("apps", "v1", "StatefulSet", &x.StatefulSets[i])
	}
	for i := range x.DaemonSets {
		add("apps", "v1", "DaemonSet", &x.DaemonSets[i])
	}
	for i := range x.CronJobs {
		add("batch", "v1", "CronJob", &x.CronJobs[i])
	}
	for i := range x.Autoscalers {
		add("autoscaling", "v2", "HorizontalPodAutoscaler", &x.Autoscalers[i])
	}
	for i := range x.Budgets {
		add("policy", "v1", "PodDisruptionBudget", &x.Budgets[i])
	}
	for i := range x.Ingresses {
		add("networking.k8s.io", "v1", "Ingress", &x.Ingresses[i])
	}
	for i := range x.NetworkPolicies {
		add("networking.k8s.io", "v1", "NetworkPolicy", &x.NetworkPolicies[i])
	}
	slices.SortFunc(all, func(a, b applied) int { return cmp.Compare(a.ref.String(), b.ref.String()) })
	return all
}

// converted applies the manifest for the version that came instead, where nothing else in
// it changes. Kinds with variables are left out: what was read of them is redacted.
func (f *Finding) converted(o applied) {
	switch o.ref.Kind {
	case "HorizontalPodAutoscaler", "NetworkPolicy":
	case "PodDisruptionBudget":
		if spec, _ := o.manifest["spec"].(map[string]any); spec["selector"] == nil {
			return
		}
	default:
		return
	}
	for _, r := range replaced {
		if !r.same || !slices.Contains(r.kinds, o.ref.Kind) || !slices.Contains(r.gone, o.version) {
			continue
		}
		spec, ok := o.manifest["spec"].(map[string]any)
		if !ok {
			return
		}
		meta := members{"name": o.ref.Name, "namespace": o.ref.Namespace}
		// What an apply leaves out, it takes away.
		was, _ := o.manifest["metadata"].(map[string]any)
		for _, member := range []string{"labels", "annotations"} {
			if was[member] != nil {
				meta[member] = was[member]
			}
		}
		fix := newCreate(members{"apiVersion": r.now, "kind": o.ref.Kind, "metadata": meta, "spec": spec}, o.ref.Namespace)
		if fix == nil {
			return
		}
		fix.Verb = operation.Apply
		if f.Fix = validFix(*fix); f.Fix != nil {
			f.Text = fmt.Sprintf("Apply the same manifest with apiVersion %s, and keep it so where it is stored.", quoteCode(r.now))
		}
		return
	}
}
