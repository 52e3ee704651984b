package investigate

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/argocd"
	"github.com/mlp-platform/platform/services/assistant/internal/certmanager"
	"github.com/mlp-platform/platform/services/assistant/internal/gatewayapi"
	"github.com/mlp-platform/platform/services/assistant/internal/logtext"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
)

// topic is the subject of a sentence, resolved in the cluster.
type topic struct {
	snap      *engine.Snapshot // nil if the namespace does not exist
	namespace string           // empty: all
	// objects have a name that was said; kinds of one name are adjacent.
	objects []operation.Ref
	missing []question.Mention // names that no object has
	absent  []question.Mention // those of missing that the answer has reported
	// namesakes are objects elsewhere whose name was taken to mean the namespace.
	namesakes []operation.Ref
	// noNamespace is a namespace that was named and does not exist.
	noNamespace string
	// placed reports that the sentence begins with its namespace, which excludes all others.
	placed bool
	except report.Exclusion
	within time.Duration    // the period asked about; 0: not said
	logs   []logtext.Source // the logs read of its pods, if any
	// unmeasured reports that the metrics store did not answer, and that the answer mentions it.
	unmeasured bool
	// wayTold reports that the answer names the parts between pods and services that were not examined.
	wayTold bool
}

// thing is one object of a snapshot.
type thing struct {
	ref  operation.Ref
	meta metav1.Object
}

// nameableObjects lists what a sentence can name, workloads first: of several kinds with one name people mean the
// first.
func nameableObjects(s *engine.Snapshot) []thing {
	var all []thing
	add := func(group, version, kind string, o metav1.Object) {
		if o.GetName() != "" { // a hidden namespace has objects without names
			all = append(all, thing{operation.Ref{Group: group, Version: version, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}, o})
		}
	}
	for i := range s.Deployments {
		add("apps", "v1", "Deployment", &s.Deployments[i])
	}
	for i := range s.StatefulSets {
		add("apps", "v1", "StatefulSet", &s.StatefulSets[i])
	}
	for i := range s.DaemonSets {
		add("apps", "v1", "DaemonSet", &s.DaemonSets[i])
	}
	for i := range s.CronJobs {
		add("batch", "v1", "CronJob", &s.CronJobs[i])
	}
	for i := range s.Jobs {
		add("batch", "v1", "Job", &s.Jobs[i])
	}
	for i := range s.Pods {
		add("", "v1", "Pod", &s.Pods[i])
	}
	for i := range s.Services {
		add("", "v1", "Service", &s.Services[i])
	}
	for i := range s.Ingresses {
		add("networking.k8s.io", "v1", "Ingress", &s.Ingresses[i])
	}
	for i := range s.Gateways {
		add(gatewayapi.Group, "v1", "Gateway", &s.Gateways[i])
	}
	for i := range s.Routes {
		add(gatewayapi.Group, "v1", s.Routes[i].Kind, &s.Routes[i])
	}
	for i := range s.Autoscalers {
		add("autoscaling", "v2", "HorizontalPodAutoscaler", &s.Autoscalers[i])
	}
	for i := range s.Budgets {
		add("policy", "v1", "PodDisruptionBudget", &s.Budgets[i])
	}
	for i := range s.NetworkPolicies {
		add("networking.k8s.io", "v1", "NetworkPolicy", &s.NetworkPolicies[i])
	}
	for i := range s.Claims {
		add("", "v1", "PersistentVolumeClaim", &s.Claims[i])
	}
	for i := range s.Applications {
		add(argocd.Group, argocd.Version, "Application", &s.Applications[i])
	}
	for i := range s.ReplicaSets {
		add("apps", "v1", "ReplicaSet", &s.ReplicaSets[i])
	}
	return append(all, quietObjects(s)...)
}

// quietObjects returns the objects that run nothing themselves.
func quietObjects(s *engine.Snapshot) []thing {
	var all []thing
	add := func(group, kind string, o metav1.Object) {
		all = append(all, thing{operation.Ref{Group: group, Version: "v1", Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}, o})
	}
	for i := range s.Certificates {
		add(certmanager.Group, "Certificate", &s.Certificates[i])
	}
	for i := range s.Issuers {
		add(certmanager.Group, s.Issuers[i].Kind, &s.Issuers[i])
	}
	for i := range s.CertificateRequests {
		add(certmanager.Group, "CertificateRequest", &s.CertificateRequests[i])
	}
	for i := range s.Orders {
		add(certmanager.ACMEGroup, "Order", &s.Orders[i])
	}
	for i := range s.Challenges {
		add(certmanager.ACMEGroup, "Challenge", &s.Challenges[i])
	}
	for i := range s.ConfigMaps {
		add("", "ConfigMap", &s.ConfigMaps[i])
	}
	for _, secret := range s.Secrets {
		add("", "Secret", &metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name})
	}
	for i := range s.ServiceAccounts {
		add("", "ServiceAccount", &s.ServiceAccounts[i])
	}
	for i := range s.Quotas {
		add("", "ResourceQuota", &s.Quotas[i])
	}
	for i := range s.Nodes {
		add("", "Node", &s.Nodes[i])
	}
	for i := range s.Volumes {
		add("", "PersistentVolume", &s.Volumes[i])
	}
	for i := range s.StorageClasses {
		add("storage.k8s.io", "StorageClass", &s.StorageClasses[i])
	}
	for i := range s.LimitRanges {
		add("", "LimitRange", &s.LimitRanges[i])
	}
	for i := range s.IngressClasses {
		add("networking.k8s.io", "IngressClass", &s.IngressClasses[i])
	}
	for i := range s.GatewayClasses {
		add(gatewayapi.Group, "GatewayClass", &s.GatewayClasses[i])
	}
	for i := range s.ReferenceGrants {
		add(gatewayapi.Group, "ReferenceGrant", &s.ReferenceGrants[i])
	}
	for i := range s.Validating {
		add("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", &s.Validating[i])
	}
	for i := range s.Mutating {
		add("admissionregistration.k8s.io", "MutatingWebhookConfiguration", &s.Mutating[i])
	}
	for i := range s.Namespaces {
		add("", "Namespace", &s.Namespaces[i])
	}
	return all
}

// webhooksNamed returns the configurations with an admission webhook of that name: errors name the webhook, not its
// configuration.
func webhooksNamed(s *engine.Snapshot, name string) []operation.Ref {
	var found []operation.Ref
	add := func(kind, config, webhook string) {
		r := operation.Ref{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind, Name: config}
		if webhook == name && !slices.Contains(found, r) {
			found = append(found, r)
		}
	}
	for i := range s.Validating {
		for _, h := range s.Validating[i].Webhooks {
			add("ValidatingWebhookConfiguration", s.Validating[i].Name, h.Name)
		}
	}
	for i := range s.Mutating {
		for _, h := range s.Mutating[i].Webhooks {
			add("MutatingWebhookConfiguration", s.Mutating[i].Name, h.Name)
		}
	}
	return found
}

// isKind reports whether an object is of the kind of a mention; webhook means two kinds, route several.
func isKind(said, kind string) bool {
	return said == "" || strings.EqualFold(said, kind) || said == "webhook" && strings.HasSuffix(kind, "WebhookConfiguration") || said == "route" && strings.HasSuffix(kind, "Route")
}

// withinNamespace reports whether an object counts in a namespace; cluster-scoped objects count everywhere.
func withinNamespace(r operation.Ref, namespace string) bool {
	return namespace == "" || r.Namespace == "" || r.Namespace == namespace
}

// boundsNamespace are the kinds that set limits for a whole namespace, and often share its name.
var boundsNamespace = map[string]bool{"ResourceQuota": true, "LimitRange": true, "NetworkPolicy": true, "RoleBinding": true}

// objectsNamed returns the objects with a name, of one kind if given: of the kinds that share a name those that people
// mean together, workload, service and what belongs to them.
func objectsNamed(s *engine.Snapshot, namespace string, m question.Mention) []operation.Ref {
	var found []operation.Ref
	for _, o := range nameableObjects(s) {
		if o.ref.Name == m.Name && withinNamespace(o.ref, namespace) && isKind(m.Kind, o.ref.Kind) {
			if m.Kind == "" && len(found) > 0 && (o.ref.Kind == "Namespace" || o.ref.Kind == "ConfigMap" || o.ref.Kind == "Secret" || o.ref.Kind == "ServiceAccount") {
				continue // it has the name of what it serves
			}
			found = append(found, o.ref)
		}
	}
	if m.Kind == "" && len(found) > 0 && hasNamespace(s, m.Name) && withinNamespace(operation.Ref{Namespace: m.Name}, namespace) &&
		!slices.ContainsFunc(found, func(r operation.Ref) bool { return !boundsNamespace[r.Kind] || r.Namespace != m.Name }) {
		// People never mean a quota by the bare name that it shares with its namespace.
		found = []operation.Ref{{Version: "v1", Kind: "Namespace", Name: m.Name}}
	}
	if len(found) == 0 && isKind(m.Kind, "ValidatingWebhookConfiguration") {
		found = webhooksNamed(s, m.Name)
	}
	if len(found) == 0 && m.Kind == "" {
		found = releasesNamed(s, namespace, m.Name)
	}
	if len(found) == 0 && (m.Kind == "pod" || m.Kind == "replicaset") {
		// "the api pods" are those of a workload.
		for _, kind := range []string{"deployment", "statefulset", "daemonset", "cronjob", "job"} {
			if found = objectsNamed(s, namespace, question.Mention{Kind: kind, Name: m.Name}); len(found) > 0 {
				return found
			}
		}
	}
	return found
}

// Named returns the existing objects among names by kind, as labels give them: what runs comes first, pods before all.
// It returns no namespaces.
func Named(s *engine.Snapshot, namespace string, names map[string]string) []operation.Ref {
	var pods, others []operation.Ref
	for _, o := range nameableObjects(s) {
		kind := strings.ToLower(o.ref.Kind)
		if names[kind] != o.ref.Name || o.ref.Namespace != "" && o.ref.Namespace != namespace {
			continue
		}
		switch kind {
		case "pod":
			pods = append(pods, o.ref)
		case "namespace":
		default:
			others = append(others, o.ref)
		}
	}
	return append(pods, others...)
}

// HasNamespace reports whether a namespace exists.
func HasNamespace(s *engine.Snapshot, name string) bool { return hasNamespace(s, name) }

// look finds the subject of a sentence.
func (w *work) look(ctx context.Context, a question.Ask) (*topic, error) {
	if a.Namespace == "" && a.Perhaps != "" && !a.Everywhere {
		all, err := w.snapshot(ctx, "")
		if err != nil {
			return nil, err
		}
		if hasNamespace(all, a.Perhaps) {
			a.Namespace = a.Perhaps
		}
	}
	if err := w.swapPlace(ctx, &a); err != nil {
		return nil, err
	}
	namespace, past := a.Namespace, question.Ask{}
	if namespace == "" && !a.Everywhere {
		past = w.past(ctx, a)
		namespace = past.Namespace
		if a.Leans {
			a.Mentions = past.Mentions
		}
	}
	s, err := w.snapshot(ctx, namespace)
	if err != nil {
		return nil, err
	}
	t := &topic{snap: s, namespace: namespace, within: a.Within, except: report.Exclusion{Namespaces: a.Except}}
	if s == nil {
		// "what is wrong in api" may be about an object.
		if a.Namespace == "" {
			t.noNamespace = namespace
			return t, nil
		}
		if t.snap, err = w.snapshot(ctx, ""); err != nil {
			return nil, err
		}
		t.namespace = ""
		if t.objects = objectsNamed(t.snap, "", question.Mention{Name: namespace}); len(t.objects) == 0 {
			t.noNamespace, t.namespace = namespace, namespace
			return t, nil
		}
	}
	if namespace == "" && len(a.Mentions) == 0 {
		// "overview of shop" names a namespace, which only the cluster can decide.
		for _, m := range past.Mentions {
			if hasNamespace(t.snap, m.Name) {
				return t, w.move(ctx, t, m.Name)
			}
		}
	}
	if namespace == "" && len(a.Mentions) > 1 && !a.Everywhere && a.Intent >= question.Diagnosis && a.Route == nil {
		first := a.Mentions[0]
		if first.Kind == "" && hasNamespace(t.snap, first.Name) && !slices.ContainsFunc(objectsNamed(t.snap, "", first), func(r operation.Ref) bool { return r.Kind != "Namespace" }) {
			if err := w.move(ctx, t, first.Name); err != nil { // "insurance has trouble with quotes", and something elsewhere is called quotes
				return nil, err
			}
			t.placed = true
		}
	}
	mentions := slices.Clone(a.Mentions)
	slices.SortStableFunc(mentions, func(x, y question.Mention) int { return cmp.Compare(rankMention(x), rankMention(y)) })
	for _, m := range mentions {
		if err := w.find(ctx, t, a, m); err != nil {
			return nil, err
		}
	}
	if len(a.Mentions) == 0 && asksState[a.Intent] {
		t.findByWord(a, a.Kind)
	}
	t.leaveOut(a.Without)
	return t, nil
}

// swapPlace reads "what is in the settings of shop" as meant: the place is shop.
func (w *work) swapPlace(ctx context.Context, a *question.Ask) error {
	if a.Namespace == "" || len(a.Mentions) == 0 {
		return nil
	}
	if s, err := w.snapshot(ctx, a.Namespace); err != nil || s != nil {
		return err
	}
	all, err := w.snapshot(ctx, "")
	if err != nil || all == nil {
		return err
	}
	for i, m := range a.Mentions {
		if hasNamespace(all, m.Name) && (m.Kind == "" || m.Kind == "namespace") {
			a.Mentions = slices.Clone(a.Mentions)
			a.Mentions[i] = question.Mention{Name: a.Namespace, Sure: true}
			a.Namespace = m.Name
			return nil
		}
	}
	return nil
}

// rankMention ranks ordinary words last: if a name gives the place, they mean something there or nothing.
func rankMention(m question.Mention) int {
	if !m.Sure && m.Kind == "" && question.IsOrdinary(m.Name) {
		return 1
	}
	if m.Kind == "" && gatewayWords[m.Name] != nil {
		return 2 // "gateway public" names one
	}
	return 0
}

func hasNamespace(s *engine.Snapshot, name string) bool {
	return slices.ContainsFunc(s.Namespaces, func(n corev1.Namespace) bool { return n.Name == name })
}

// find looks up one name: in the namespace, as a namespace, and, if the sentence named none, everywhere.
func (w *work) find(ctx context.Context, t *topic, a question.Ask, m question.Mention) error {
	found := objectsNamed(t.snap, t.namespace, m)
	if len(found) == 0 {
		found = slices.DeleteFunc(hostsNamed(t.snap, m.Name), func(r operation.Ref) bool { return !withinNamespace(r, t.namespace) })
	}
	if len(found) == 0 && m.Kind == "" && t.findByWord(a, m.Name) {
		return nil
	}
	if len(found) == 0 && m.Kind != "" && m.Kind != "namespace" && a.Namespace == "" && t.namespace == "" && hasNamespace(t.snap, m.Name) {
		return w.move(ctx, t, m.Name) // "vans have no routes, route-planner looks off" names a place behind an ordinary word
	}
	if a.Namespace == "" && t.namespace == "" && m.Kind == "" && len(t.objects) == 0 && len(found) > 0 && hasNamespace(t.snap, m.Name) &&
		!slices.ContainsFunc(found, func(r operation.Ref) bool { return r.Kind == "Namespace" || r.Namespace == "" || r.Namespace == m.Name }) {
		t.namesakes = found
		return w.move(ctx, t, m.Name) // "what is up with storefront?" names a place before an object of another place
	}
	if len(found) > 0 {
		if found[0].Kind == "Namespace" && m.Kind != "namespace" {
			switch {
			case t.placed:
				return nil
			case a.Namespace == "" && len(t.objects) == 0:
				return w.move(ctx, t, found[0].Name)
			case !m.Sure:
				return nil // the place is already named: this word is a namespace by chance
			}
		}
		t.add(found)
		return nil
	}
	if !m.Sure {
		return nil
	}
	if a.Namespace == "" && t.namespace != "" && !(t.placed && m.Kind == "" && !strings.ContainsAny(m.Name, "-.0123456789")) {
		all, err := w.snapshot(ctx, "")
		if err != nil {
			return err
		}
		found := objectsNamed(all, "", m)
		if len(found) == 0 {
			found = hostsNamed(all, m.Name)
		}
		if len(found) > 0 {
			if found[0].Kind == "Namespace" && m.Kind != "namespace" {
				return w.move(ctx, t, found[0].Name)
			}
			t.snap, t.namespace = all, ""
			if first := found[0].Namespace; first != "" && !slices.ContainsFunc(found, func(r operation.Ref) bool { return r.Namespace != first }) {
				t.namespace = first
			}
			t.add(found)
			return nil
		}
	}
	if ranksOrLists[a.Intent] && m.Kind != "" && len(a.Mentions) == 1 && isPlainWord(m.Name) && !strings.Contains(w.turn.Query, "`"+m.Name+"`") {
		return nil // "which pod eats the most cpu": a word beside a kind that is no name is a word of the question
	}
	t.missing = append(t.missing, m)
	return nil
}

// ranksOrLists are the intents whose tables need no object name.
var ranksOrLists = map[question.Intent]bool{question.Usage: true, question.Restarts: true, question.Warnings: true, question.Events: true, question.Capacity: true, question.NoLimits: true, question.UnhealthyPods: true, question.EnvSecrets: true, question.NoProbes: true, question.External: true, question.EmptyServices: true}

// isPlainWord reports whether a word has letters only.
func isPlainWord(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool { return r < 'a' || r > 'z' })
}

// move changes the namespace of the topic.
func (w *work) move(ctx context.Context, t *topic, namespace string) error {
	s, err := w.snapshot(ctx, namespace)
	if s != nil {
		t.snap, t.namespace = s, namespace
	}
	return err
}

func (t *topic) add(refs []operation.Ref) {
	for _, r := range refs {
		if !slices.Contains(t.objects, r) {
			t.objects = append(t.objects, r)
		}
	}
}

var quiet = map[string]bool{"ConfigMap": true, "Secret": true, "ServiceAccount": true, "ReplicaSet": true, "StorageClass": true}
