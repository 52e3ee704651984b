package workload

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
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// lastApplied is the annotation in which kubectl apply stores the manifest.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// noMatchExpr matches the error of a client for a version of a kind that the server does not
// have.
var noMatchExpr = regexp.MustCompile(`no matches for kind \\?"([A-Za-z][A-Za-z0-9]*)\\?" ` +
	`in version \\?"([a-z0-9][a-z0-9./-]*)\\?"`)

// served reports whether the server has a version; true if that is unknown.
func (x *Index) served(version string) bool {
	return x.Served == nil || x.Served[version]
}

// groupServed reports whether the server has any version of a group.
func (x *Index) groupServed(version string) bool {
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

// checkAPIs explains DeprecatedAPI: clients and objects that use an API version which this cluster does not have.
func checkAPIs(x *Index) []engine.Finding {
	if x.Served == nil {
		return nil
	}
	var found []engine.Finding
	for i := range x.Autoscalers {
		if f := (engine.Finding{}); explainGoneTarget(&f, x, &x.Autoscalers[i]) {
			found = append(found, f)
		}
	}
	for _, pod := range x.LivingPods {
		for _, u := range x.unmatched(pod) {
			w := x.WorkloadOf(pod)
			f := engine.Finding{Class: engine.DeprecatedAPI, Object: w.Ref, Confidence: engine.High, Pods: []string{pod.Name}}
			f.Effects = []engine.Effect{{Of: w.Ref, Classes: []engine.Class{engine.CrashLoop, engine.ReadinessProbe, engine.JobFailed}}}
			f.Evidence = []string{fmt.Sprintf("A line from its log: no matches for kind %s in version %s.", engine.QuoteCode(u.kind), engine.QuoteCode(u.version))}
			explainGone(&f, u.kind, u.version, "the program asks for")
			if !slices.ContainsFunc(found, func(o engine.Finding) bool { return o.Object == f.Object && o.Cause == f.Cause }) {
				found = append(found, f)
			}
		}
	}
	for _, o := range x.applied() {
		f := engine.Finding{Class: engine.DeprecatedAPI, Object: o.ref, Confidence: engine.Medium}
		f.Evidence = []string{"It was applied last from a manifest with apiVersion " + engine.QuoteCode(o.version) + "; the object itself is in order."}
		explainGone(&f, o.ref.Kind, o.version, "its manifest is written for")
		offerConversion(&f, o)
		found = append(found, f)
	}
	return found
}

// explainGone names the replacement of a version.
func explainGone(f *engine.Finding, kind, version, who string) {
	f.Evidence = append(f.Evidence, fmt.Sprintf("Discovery was searched: this cluster does not serve %s.", engine.QuoteCode(version)))
	f.Cause = fmt.Sprintf("The API version %s, which %s, is not served here, so every request for %s in it fails.", engine.QuoteCode(version), who, engine.QuoteCode(kind))
	f.Text = "Name the right API, or install the component that serves this one."
	for _, r := range engine.Replaced {
		if !slices.Contains(r.Kinds, kind) || !slices.Contains(r.Gone, version) {
			continue
		}
		if f.Text = fmt.Sprintf("Write it for %s instead", engine.QuoteCode(r.Now)); r.Now == "" {
			f.Text = "Nothing of this kind came instead"
		}
		if r.Note != "" {
			f.Text += "; " + r.Note
		}
		f.Text += "."
		return
	}
}

// explainGoneTarget explains an autoscaler whose target is in an API group that no longer exists: the controller looks
// it up by group and kind.
func explainGoneTarget(f *engine.Finding, x *Index, a *autoscalingv2.HorizontalPodAutoscaler) bool {
	target := a.Spec.ScaleTargetRef
	if x.groupServed(target.APIVersion) {
		return false
	}
	f.Class, f.Confidence = engine.DeprecatedAPI, engine.High
	f.Object = operation.Ref{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler", Namespace: a.Namespace, Name: a.Name}
	f.Effects = []engine.Effect{{Of: f.Object, Classes: []engine.Class{engine.AutoscalerIdle}}}
	f.Evidence = []string{fmt.Sprintf("Its target is %s %s with apiVersion %s.", target.Kind, engine.QuoteCode(target.Name), engine.QuoteCode(target.APIVersion))}
	explainGone(f, target.Kind, target.APIVersion, "its target names")
	now := operation.Ref{Group: "apps", Version: "v1", Kind: target.Kind, Namespace: a.Namespace, Name: target.Name}
	if x.Workloads[now] == nil {
		return true
	}
	change := engine.Members{"apiVersion": "apps/v1", "kind": target.Kind, "name": target.Name}
	if f.Fix = engine.NewPatch(f.Object, engine.Members{"spec": engine.Members{"scaleTargetRef": change}}); f.Fix != nil {
		f.Text = "Let the target name `apps/v1`, under which it exists."
	}
	return true
}

// unserved is a kind in a version that the cluster does not have.
type unserved struct{ kind, version string }

// unmatched returns the distinct kinds and versions that a pod's log reports as not served. A version that is served
// now is skipped, since the log line is outdated.
func (x *Index) unmatched(pod *corev1.Pod) []unserved {
	var all []unserved
	for _, log := range x.LogsOf(pod) {
		for line := range strings.Lines(log) {
			for _, m := range noMatchExpr.FindAllStringSubmatch(line[:min(len(line), engine.LongestLine)], engine.MostDenials) {
				if u := (unserved{m[1], m[2]}); len(m[1]) < 64 && len(m[2]) < 256 && !x.served(m[2]) && len(all) < engine.MostDenials && !slices.Contains(all, u) {
					all = append(all, u)
				}
			}
		}
	}
	return all
}

// applied is an object with the manifest from which it was applied, in a removed version.
type applied struct {
	ref      operation.Ref
	version  string
	manifest map[string]any
}

// applied lists the objects whose manifest can no longer be applied.
func (x *Index) applied() []applied {
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

// offerConversion applies the manifest in the successor version, if nothing else in it changes. Kinds with variables
// are left out, since their values were redacted on reading.
func offerConversion(f *engine.Finding, o applied) {
	switch o.ref.Kind {
	case "HorizontalPodAutoscaler", "NetworkPolicy":
	case "PodDisruptionBudget":
		if spec, _ := o.manifest["spec"].(map[string]any); spec["selector"] == nil {
			return
		}
	default:
		return
	}
	for _, r := range engine.Replaced {
		if !r.Same || !slices.Contains(r.Kinds, o.ref.Kind) || !slices.Contains(r.Gone, o.version) {
			continue
		}
		spec, ok := o.manifest["spec"].(map[string]any)
		if !ok {
			return
		}
		meta := engine.Members{"name": o.ref.Name, "namespace": o.ref.Namespace}
		// An apply removes the fields that it omits.
		was, _ := o.manifest["metadata"].(map[string]any)
		for _, member := range []string{"labels", "annotations"} {
			if was[member] != nil {
				meta[member] = was[member]
			}
		}
		fix := engine.NewCreate(engine.Members{"apiVersion": r.Now, "kind": o.ref.Kind, "metadata": meta, "spec": spec}, o.ref.Namespace)
		if fix == nil {
			return
		}
		fix.Verb = operation.Apply
		if f.Fix = engine.ValidFix(*fix); f.Fix != nil {
			f.Text = fmt.Sprintf("Apply the same manifest with apiVersion %s, and keep it so where it is stored.", engine.QuoteCode(r.Now))
		}
		return
	}
}
