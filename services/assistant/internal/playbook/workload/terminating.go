package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/argocd"
	"github.com/mlp-platform/platform/services/assistant/internal/certmanager"
	"github.com/mlp-platform/platform/services/assistant/internal/gatewayapi"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// ending limits how long an object may take to disappear before it is a problem. A pod's grace period is already part
// of its deletion time.
const ending = 2 * time.Minute

// keepers maps the cluster's own finalizers to the components that remove them.
var keepers = map[string]string{
	"kubernetes.io/pvc-protection":                            "the volume controller, once no pod mounts the claim",
	"kubernetes.io/pv-protection":                             "the volume controller, once no claim is bound to the volume",
	"foregroundDeletion":                                      "the garbage collector, once all objects that it owns are gone",
	"orphan":                                                  "the garbage collector, once the objects that it owned are cut loose",
	"batch.kubernetes.io/job-tracking":                        "the job controller, once it has counted the pod",
	"service.kubernetes.io/load-balancer-cleanup":             "the cloud's service controller, once the load balancer is gone",
	"snapshot.storage.kubernetes.io/pvc-as-source-protection": "the snapshot controller, once no snapshot is being taken",
}

// dying is an object that was deleted and is still there.
type dying struct {
	ref operation.Ref
	metav1.Object
}

// dyingOf lists the objects of a kind whose deletion is overdue.
func dyingOf[T any, P interface {
	*T
	metav1.Object
}](x *Index, list []T, group, kind string) []dying {
	var all []dying
	for i := range list {
		o := P(&list[i])
		if at := o.GetDeletionTimestamp(); at != nil && x.Taken.Sub(at.Time) > ending {
			all = append(all, dying{operation.Ref{Group: group, Version: "v1", Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}, o})
		}
	}
	return all
}

func (x *Index) dying() []dying {
	all := slices.Concat(
		dyingOf(x, x.Pods, "", "Pod"),
		dyingOf(x, x.Services, "", "Service"),
		dyingOf(x, x.ConfigMaps, "", "ConfigMap"),
		dyingOf(x, x.Claims, "", "PersistentVolumeClaim"),
		dyingOf(x, x.Volumes, "", "PersistentVolume"),
		dyingOf(x, x.ServiceAccounts, "", "ServiceAccount"),
		dyingOf(x, x.Nodes, "", "Node"),
		dyingOf(x, x.Deployments, "apps", "Deployment"),
		dyingOf(x, x.ReplicaSets, "apps", "ReplicaSet"),
		dyingOf(x, x.StatefulSets, "apps", "StatefulSet"),
		dyingOf(x, x.DaemonSets, "apps", "DaemonSet"),
		dyingOf(x, x.Jobs, "batch", "Job"),
		dyingOf(x, x.CronJobs, "batch", "CronJob"),
		dyingOf(x, x.Ingresses, "networking.k8s.io", "Ingress"),
		dyingOf(x, x.Gateways, gatewayapi.Group, "Gateway"),
		dyingOf(x, x.Applications, argocd.Group, "Application"),
		dyingOf(x, x.Certificates, certmanager.Group, "Certificate"),
		dyingOf(x, x.Challenges, certmanager.ACMEGroup, "Challenge"),
		dyingOf(x, x.NetworkPolicies, "networking.k8s.io", "NetworkPolicy"),
	)
	slices.SortFunc(all, func(a, b dying) int { return cmp.Compare(a.ref.String(), b.ref.String()) })
	return all
}

// checkTerminating explains StuckTerminating: objects that were deleted and remain.
func checkTerminating(x *Index) []engine.Finding {
	all := x.dying()
	inside := map[string][]dying{}
	going := map[string]bool{}
	for i := range x.Namespaces {
		if n := &x.Namespaces[i]; n.DeletionTimestamp != nil {
			going[n.Name] = true
		}
	}
	var found []engine.Finding
	for _, d := range all {
		if going[d.ref.Namespace] {
			inside[d.ref.Namespace] = append(inside[d.ref.Namespace], d) // part of the namespace's problem
			continue
		}
		f := engine.Finding{Class: engine.StuckTerminating, Object: d.ref, Confidence: engine.High}
		f.Evidence = []string{x.deletedAt(d)}
		if pod, ok := d.Object.(*corev1.Pod); ok && len(d.GetFinalizers()) == 0 {
			explainStuckPod(&f, x, pod)
		} else if len(d.GetFinalizers()) > 0 {
			explainKept(&f, x, d)
		} else {
			continue // the server is about to remove it
		}
		found = append(found, f)
	}
	for i := range x.Namespaces {
		n := &x.Namespaces[i]
		if at := n.DeletionTimestamp; at != nil && (isHeld(n) || x.Taken.Sub(at.Time) > ending) {
			found = append(found, x.stuckNamespace(n, inside[n.Name]))
		}
	}
	return found
}

// isHeld reports whether the namespace controller has named what blocks it, which it does only after it has tried. Its
// condition about remaining content does not count, since it reports every terminating pod too.
func isHeld(n *corev1.Namespace) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NamespaceCondition) bool {
		return c.Status == corev1.ConditionTrue && (c.Type == corev1.NamespaceFinalizersRemaining || c.Type == corev1.NamespaceDeletionDiscoveryFailure)
	})
}

func (x *Index) deletedAt(d dying) string {
	at := d.GetDeletionTimestamp()
	return fmt.Sprintf("It was deleted at %s, %s ago, and is still there.", at.UTC().Format(time.RFC3339), x.Since(*at))
}

// explainKept names the finalizers that hold an object, and who has to remove them.
func explainKept(f *engine.Finding, x *Index, d dying) {
	list := slices.Sorted(slices.Values(d.GetFinalizers()))
	for _, finalizer := range list {
		f.Evidence = append(f.Evidence, fmt.Sprintf("Finalizer %s: its owner, who has to take it away, is %s.", engine.QuoteCode(finalizer), x.keeper(finalizer)))
	}
	f.Cause = fmt.Sprintf("The finalizer %s holds it: its owner has not finished its clean-up.", engine.QuoteCodes(list))
	switch o := d.Object.(type) {
	case *corev1.PersistentVolumeClaim:
		users := x.storage.Users()[engine.Name{Namespace: o.Namespace, Name: o.Name}]
		if len(users) > 0 && slices.Contains(list, "kubernetes.io/pvc-protection") {
			f.Pods = engine.PodNames(users)
			f.Cause = fmt.Sprintf("The claim is still mounted by %s, and a claim in use is kept until they end.", engine.CountNoun(len(users), "pod", "pods"))
			f.Text = fmt.Sprintf("If the data is to go, end what mounts it: %s.", engine.RefTitle(x.WorkloadOf(users[0]).Ref))
			return
		}
	case *corev1.PersistentVolume:
		if r := o.Spec.ClaimRef; r != nil && slices.Contains(list, "kubernetes.io/pv-protection") && o.Status.Phase == corev1.VolumeBound {
			f.Cause = fmt.Sprintf("The volume is still bound to the claim %s, and is kept until that is gone.", engine.QuoteCode(r.Namespace+"/"+r.Name))
			f.Text = "It goes with its claim, if the data is to go."
			return
		}
	}
	f.Text = describePatience(f)
}

// describePatience returns the advice for finalizers: removing one by hand loses what it guards.
func describePatience(f *engine.Finding) string {
	return "Let the owner finish: look whether its controller runs, and in its log. Only when it will never come back, and what it guards was cleaned up by hand, take the finalizer away yourself, as the last step."
}

// keeper names the component that removes a finalizer: a part of the cluster, or a workload whose name is in the
// finalizer's domain.
func (x *Index) keeper(finalizer string) string {
	who, known := x.keepers[finalizer]
	if !known {
		who = x.findKeeper(finalizer)
		x.keepers[finalizer] = who
	}
	return who
}

func (x *Index) findKeeper(finalizer string) string {
	if who, ok := keepers[finalizer]; ok {
		return who
	}
	domain, _, ok := strings.Cut(finalizer, "/")
	if !ok {
		domain = finalizer
	}
	if _, driver, ok := strings.Cut(finalizer, "external-attacher/"); ok {
		return fmt.Sprintf("the attacher of the volume driver %s, once the volume is detached", engine.QuoteCode(driver))
	}
	who := fmt.Sprintf("the controller of %s", engine.QuoteCode(domain))
	if w := x.controllerOf(domain); w != nil {
		state := "no pod of it runs"
		ready := 0
		for _, pod := range x.PodsOf(w.Ref) {
			if engine.PodReady(pod) {
				ready++
			}
		}
		switch {
		case ready > 0:
			state = engine.CountNoun(ready, "ready pod", "ready pods")
		case w.Replicas == 0:
			state = "scaled to 0"
		}
		return who + fmt.Sprintf(", by its name %s in namespace %s (%s)", engine.RefTitle(w.Ref), engine.QuoteCode(w.Ref.Namespace), state)
	}
	return who
}

// controllerOf returns the only workload whose name shares the first word of a domain.
func (x *Index) controllerOf(domain string) *engine.Workload {
	word, _, _ := strings.Cut(domain, ".")
	if len(word) < 4 {
		return nil
	}
	var match *engine.Workload
	for ref, w := range x.Workloads {
		if ref.Kind == "Job" || ref.Kind == "ReplicaSet" || !slices.Contains(strings.Split(ref.Name, "-"), word) && ref.Name != word {
			continue
		}
		if match != nil {
			return nil
		}
		match = w
	}
	return match
}

// explainStuckPod explains pods without finalizers whose kubelet does not report them gone.
func explainStuckPod(f *engine.Finding, x *Index, pod *corev1.Pod) {
	f.Pods = []string{pod.Name}
	node := x.NodeOf(pod)
	switch {
	case pod.Spec.NodeName != "" && node == nil && !x.Unread["nodes"] && len(x.Nodes) > 0:
		f.Cause = fmt.Sprintf("Its node %s is no longer there, so nothing reports that the pod has ended.", engine.QuoteCode(pod.Spec.NodeName))
		f.Text = "The pod garbage collector removes it after a few minutes."
	case node != nil && !engine.NodeReady(node):
		f.Because = []operation.Ref{engine.NodeRef(node.Name)}
		f.Cause = fmt.Sprintf("Its node %s is not ready, so no kubelet reports that the pod has ended.", engine.QuoteCode(node.Name))
		f.Text = "Bring the node back. Do not delete the pod by force while the node may still run it."
	default:
		f.Confidence = engine.Medium
		f.Cause = "The kubelet cannot end its containers, or take its volumes away."
		f.Text = fmt.Sprintf("Look in the kubelet's log on node %s.", engine.QuoteCode(pod.Spec.NodeName))
		if e := x.EventOf(pod.UID, func(e *corev1.Event) bool { return e.Reason == "FailedKillPod" || e.Reason == "FailedUnmount" }); e != nil {
			f.Evidence = append(f.Evidence, "The kubelet says "+engine.QuoteCode(e.Message)+".")
		}
	}
}

// stuckNamespace evaluates the namespace controller's conditions on the remaining content.
func (x *Index) stuckNamespace(n *corev1.Namespace, inside []dying) engine.Finding {
	f := engine.Finding{Class: engine.StuckTerminating, Object: operation.Ref{Version: "v1", Kind: "Namespace", Name: n.Name}, Confidence: engine.High, Namespaces: []string{n.Name}}
	f.Evidence = []string{x.deletedAt(dying{f.Object, n})}
	said := map[corev1.NamespaceConditionType]string{}
	for _, c := range n.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			said[c.Type] = c.Message
		}
	}
	for _, kind := range []corev1.NamespaceConditionType{corev1.NamespaceDeletionDiscoveryFailure, corev1.NamespaceDeletionGVParsingFailure, corev1.NamespaceDeletionContentFailure, corev1.NamespaceContentRemaining, corev1.NamespaceFinalizersRemaining} {
		if said[kind] != "" {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s.", kind, engine.QuoteCode(said[kind])))
		}
	}
	var holding []string
	hold := func(finalizer, where string) {
		f.Evidence = append(f.Evidence, fmt.Sprintf("Finalizer %s%s: its owner, who has to take it away, is %s.", engine.QuoteCode(finalizer), where, x.keeper(finalizer)))
		if !slices.Contains(holding, finalizer) {
			holding = append(holding, finalizer)
		}
	}
	for _, finalizer := range slices.Sorted(slices.Values(n.Finalizers)) {
		hold(finalizer, " on the namespace itself")
	}
	for _, finalizer := range n.Spec.Finalizers {
		if finalizer != corev1.FinalizerKubernetes {
			hold(string(finalizer), " on the namespace itself")
		}
	}
	for _, d := range inside {
		for _, finalizer := range slices.Sorted(slices.Values(d.GetFinalizers())) {
			hold(finalizer, " on "+engine.RefTitle(d.ref))
		}
	}
	// Objects of kinds that are not read here are known only from the condition.
	for _, finalizer := range parseFinalizers(said[corev1.NamespaceFinalizersRemaining]) {
		if !slices.Contains(holding, finalizer) {
			hold(finalizer, "")
		}
	}
	switch {
	case said[corev1.NamespaceDeletionDiscoveryFailure] != "":
		f.Cause = "An API of the cluster does not answer, and until it does the namespace controller cannot know what is left in the namespace."
		f.Text = "Repair the service behind the API that the message names, or remove its APIService if it is no longer used."
	case len(holding) > 0:
		f.Cause = fmt.Sprintf("The finalizer %s holds the namespace: its owner has not finished its clean-up.", engine.QuoteCodes(holding))
		f.Text = describePatience(&f)
	case said[corev1.NamespaceDeletionContentFailure] != "":
		f.Cause = "The namespace controller cannot delete all that is in the namespace."
		f.Text = "Repair what the message names; often it is an admission webhook or missing rights."
	default:
		f.Cause, f.Confidence = "Objects are left in the namespace, and the namespace controller is not done with them.", engine.Low
		f.Text = "Wait some minutes; then list what is left."
	}
	return f
}

// parseFinalizers parses the finalizers in the condition's message, which lists them as "name in 2 resource instances"
// after a colon.
func parseFinalizers(message string) []string {
	_, list, ok := strings.Cut(message, "finalizers remaining: ")
	if !ok {
		return nil
	}
	var all []string
	for part := range strings.SplitSeq(list, ", ") {
		if finalizer, _, ok := strings.Cut(part, " in "); ok {
			all = append(all, finalizer)
		}
	}
	return all
}
