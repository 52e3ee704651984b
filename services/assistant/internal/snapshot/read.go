package snapshot

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// readLimit is the timeout for all lists together.
const readLimit = 30 * time.Second

// Show shows a read; the returned function is called when the read has ended.
type Show func(operation.Operation) (done func(turn.Output, error))

// Read takes a snapshot of a namespace and of its dependencies; an empty one means the whole cluster. show is called in
// this goroutine, in a fixed order. Kinds that the account may not read are in Unread; an error means that the cluster
// does not respond, or has no such namespace.
func Read(ctx context.Context, c *cluster.Cluster, policy guard.Policy, namespace string, now time.Time, show Show) (*engine.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	s := &engine.Snapshot{Taken: now, Within: namespace}
	r := &reading{cluster: c, policy: policy, namespace: namespace, into: s, slots: make(chan struct{}, atOnce), unread: map[string]bool{}}
	groups := r.groups()
	for _, g := range groups {
		r.start(ctx, g)
	}
	served := make(chan []cluster.Resource, 1)
	go func() { served <- r.served(ctx) }()
	var lost error
	for _, g := range groups {
		if lost != nil {
			<-g.done // nothing writes into the snapshot when this returns
			continue
		}
		done := show(g.op)
		<-g.done
		out, err := g.result()
		switch {
		case g.has("pods"):
			out.Untrusted = listAnnotations(s.Pods)
		case g.has("events"):
			out.Untrusted = eventMessages(s.Events)
		}
		done(out, err)
		if lost = g.lost(); lost != nil {
			cancel() // the others would only time out, too
		}
	}
	kinds := <-served
	s.Served = groupVersions(kinds)
	if lost != nil {
		return nil, lost
	}
	if namespace != "" && !r.unread["namespaces"] && !slices.ContainsFunc(s.Namespaces, func(n corev1.Namespace) bool { return n.Name == namespace }) {
		return nil, operation.Refuse(operation.NotFound, "namespace", "There is no namespace %s.", operation.Quote(namespace))
	}
	if err := r.devices(ctx, show); err != nil {
		return nil, err
	}
	for _, read := range []func(context.Context, Show, []cluster.Resource) error{r.gateways, r.certificates, r.applications} {
		if err := read(ctx, show, kinds); err != nil {
			return nil, err
		}
	}
	r.clean()
	r.logs(ctx, show) // before the pods of other namespaces can crowd these out
	if err := r.elsewhere(ctx, show); err != nil {
		return nil, err
	}
	s.Unread = r.unread
	return s, nil
}

// served returns the kinds that the API serves; nil if they could not be read.
func (r *reading) served(ctx context.Context) []cluster.Resource {
	list, err := r.cluster.Resources(ctx)
	if err != nil {
		return nil
	}
	return list
}

// groupVersions returns the versions of kinds; nil if there are none.
func groupVersions(kinds []cluster.Resource) map[string]bool {
	if kinds == nil {
		return nil
	}
	found := map[string]bool{}
	for _, kind := range kinds {
		found[strings.TrimPrefix(kind.Group+"/"+kind.Version, "/")] = true
	}
	return found
}

// devices reads the resource claims if a pod uses one: most clusters have none, and older ones not even the kind.
func (r *reading) devices(ctx context.Context, show Show) error {
	wants := slices.ContainsFunc(r.into.Pods, func(p corev1.Pod) bool { return len(p.Spec.ResourceClaims) > 0 && p.Spec.NodeName == "" })
	if !wants || !r.into.Served[resourcev1.SchemeGroupVersion.String()] {
		return nil
	}
	client := r.cluster.Typed().ResourceV1()
	g := r.within(readScoped(r, "resourceclaims", func(n string) lister[*resourcev1.ResourceClaimList] { return client.ResourceClaims(n).List }, func(l *resourcev1.ResourceClaimList) []resourcev1.ResourceClaim { return l.Items }, &r.into.ResourceClaims))
	done := show(g.op)
	r.start(ctx, g)
	<-g.done
	done(g.result())
	return g.lost()
}

// elsewhere reads the pods of the other namespaces if a pod waits for a node: the free resources of a node depend on
// all of them.
func (r *reading) elsewhere(ctx context.Context, show Show) error {
	waits := slices.ContainsFunc(r.into.Pods, func(p corev1.Pod) bool {
		return p.Namespace == r.namespace && p.Status.Phase == corev1.PodPending && p.Spec.NodeName == ""
	})
	if r.namespace == "" || !waits {
		return nil
	}
	g := &group{op: operation.Operation{Verb: operation.List, Kind: "pods", AllNamespaces: true}, kinds: []kind{r.pods("")}}
	done := show(g.op)
	r.start(ctx, g)
	<-g.done
	done(g.result())
	r.clean()
	return g.lost()
}

// listAnnotations returns annotations, which workloads may write.
func listAnnotations(pods []corev1.Pod) []string {
	var texts []string
	for i := range pods {
		for _, value := range pods[i].Annotations {
			texts = append(texts, value)
		}
	}
	return texts
}

func eventMessages(events []corev1.Event) []string {
	texts := make([]string, 0, len(events))
	for i := range events {
		texts = append(texts, redact.Text(events[i].Message))
	}
	return texts
}
