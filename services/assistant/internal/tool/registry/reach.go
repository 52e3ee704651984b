package registry

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/network"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

type reachArguments struct {
	From sideArguments   `json:"from" jsonschema:"The caller: a pod or workload."`
	To   targetArguments `json:"to" jsonschema:"What is called."`
	Port int             `json:"port,omitempty" jsonschema:"Port of the Service or pod; left out: each port that it declares."`
}

type sideArguments struct {
	Namespace string `json:"namespace" jsonschema:"Namespace."`
	Kind      string `json:"kind,omitempty" jsonschema:"Kind; left out: deployment."`
	Name      string `json:"name" jsonschema:"Name."`
}

type targetArguments struct {
	Namespace string `json:"namespace,omitempty" jsonschema:"Namespace; left out: that of the caller."`
	Kind      string `json:"kind,omitempty" jsonschema:"Kind: service, pod or a workload; left out: service."`
	Name      string `json:"name,omitempty" jsonschema:"Name; left out if address is given."`
	Address   string `json:"address,omitempty" jsonschema:"An IP address outside of the cluster, in place of a name."`
}

// Reachability is the verdict on a connection from the objects alone.
type Reachability struct {
	// Reachable is yes, no, partly (some ports only) or unknown.
	Reachable string    `json:"reachable" jsonschema:"yes, no, partly or unknown"`
	Reason    string    `json:"reason"`
	Barriers  []Barrier `json:"barriers"`
	OpenPorts []int32   `json:"open_ports,omitempty" jsonschema:"Ports of the target's pods that are let through."`
	// NamesBlockedBy is the policy that keeps the caller from the name server.
	NamesBlockedBy *operation.Reference `json:"names_blocked_by,omitempty"`
	// NotLookedAt lists what may stop the connection all the same.
	NotLookedAt []string `json:"not_looked_at"`
}

// Barrier is a network policy that stops the connection.
type Barrier struct {
	Policy    operation.Reference `json:"policy"`
	Direction string              `json:"direction" jsonschema:"egress of the caller or ingress of the target"`
	Port      int32               `json:"port,omitempty"`
	Protocol  string              `json:"protocol,omitempty"`
	Allows    string              `json:"allows" jsonschema:"What the policy lets through in that direction."`
}

// route is a connection with its two sides as found in the cluster.
type route struct {
	index    *network.Index
	versions versions
	from, to network.RouteEnd
	refs     []operation.Reference
	toText   string
}

func reachability(ctx context.Context, box turn.Toolbox, a reachArguments) (Result, error) {
	if (a.To.Name == "") == (a.To.Address == "") {
		return Result{}, operation.Refuse(operation.InvalidArgument, "to", "Give the name or the address of the target, not both.")
	}
	if a.Port < 0 || a.Port > 65535 {
		return Result{}, operation.Refuse(operation.InvalidArgument, "port", "port must be 1 to 65535.")
	}
	s, err := snapshotOf(ctx, box, "") // either side may be in any namespace
	if err != nil {
		return Result{}, err
	}
	found := &Reachability{Reachable: "unknown", Barriers: []Barrier{}, NotLookedAt: []string{
		"whether the network plug-in enforces policies, and policies of other kinds or of a service mesh", "whether the program listens, and answers",
	}}
	r := &route{index: network.New(engine.NewIndex(s)), versions: newVersions(s)}
	if missing := unread(s, "pods", "services", "networkpolicies", "namespaces", "endpointslices"); len(missing) > 0 {
		found.Reason = "Some of these could not be read: " + strings.Join(missing, ", ") + "."
	} else if found.Reason, err = r.find(ctx, box, a); err != nil {
		return Result{}, err
	}
	if found.Reason == "" {
		found.judge(r, int32(a.Port))
	}
	return shown(found.text(), found, r.refs...), nil
}

// find looks both sides up. The reason is why the connection cannot be judged or fails before any policy.
func (r *route) find(ctx context.Context, box turn.Toolbox, a reachArguments) (reason string, err error) {
	from, err := resolve(ctx, box, a.From.Namespace, cmp.Or(a.From.Kind, "deployment"), a.From.Name)
	if err != nil {
		return "", err
	}
	r.refs = append(r.refs, from)
	if r.from.Pods = r.running(from); len(r.from.Pods) == 0 {
		return fmt.Sprintf("%s %s has no running pod that could call anything.", from.Kind, engine.QuoteCode(from.Name)), nil
	}
	if a.To.Address != "" {
		r.toText = a.To.Address
		if r.to.Address, err = netip.ParseAddr(a.To.Address); err != nil {
			return "", operation.Refuse(operation.InvalidArgument, "to.address", "%s is no IP address.", operation.Quote(a.To.Address))
		}
		return "", nil
	}
	to, err := resolve(ctx, box, cmp.Or(a.To.Namespace, a.From.Namespace), cmp.Or(a.To.Kind, "service"), a.To.Name)
	if err != nil {
		return "", err
	}
	r.refs = append(r.refs, to)
	r.toText = to.Kind + " " + to.Name
	if to.Kind != "Service" {
		r.to.Pods = r.running(to)
	} else if s := r.index.ServiceByName[engine.Name{Namespace: to.Namespace, Name: to.Name}]; s != nil {
		if len(s.Spec.Selector) == 0 || s.Spec.Type == corev1.ServiceTypeExternalName {
			return fmt.Sprintf("Service %s has no selector, so where it leads is not told by pods.", engine.QuoteCode(s.Name)), nil
		}
		r.to.Service, r.to.Pods = s, r.index.ReadyBackends(s)
	}
	if len(r.to.Pods) == 0 {
		return fmt.Sprintf("%s %s has no ready pod, so nothing answers there.", to.Kind, engine.QuoteCode(to.Name)), nil
	}
	return "", nil
}

// running are the running pods of a workload, or the pod itself.
func (r *route) running(of operation.Reference) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range r.index.LivingPods {
		top := r.index.WorkloadOf(pod).Ref
		own := top.Kind == of.Kind && top.Name == of.Name || of.Kind == "Pod" && pod.Name == of.Name || isOwnedBy(pod, of)
		if pod.Namespace == of.Namespace && own && pod.Status.Phase == corev1.PodRunning {
			pods = append(pods, pod)
		}
	}
	return pods
}

func isOwnedBy(pod *corev1.Pod, of operation.Reference) bool {
	for _, owner := range pod.OwnerReferences {
		if owner.Kind == of.Kind && owner.Name == of.Name {
			return true
		}
	}
	return false
}

// judge evaluates the policies of both sides.
func (found *Reachability) judge(r *route, port int32) {
	j := r.index.JudgeRoute(r.from, r.to, port)
	for _, b := range j.Barriers {
		direction := "ingress of the target"
		if b.Leaves {
			direction = "egress of the caller"
		}
		policy := r.versions.cite(operation.Ref{Group: "networking.k8s.io", Kind: "NetworkPolicy", Namespace: b.Policy.Namespace, Name: b.Policy.Name})
		found.Barriers = append(found.Barriers, Barrier{policy, direction, b.Port, string(b.Protocol), b.LetsThrough})
		if !slices.Contains(r.refs, policy) {
			r.refs = append(r.refs, policy)
		}
	}
	slices.Sort(j.Open)
	found.OpenPorts = j.Open
	if j.NoNames != nil {
		policy := r.versions.cite(operation.Ref{Group: "networking.k8s.io", Kind: "NetworkPolicy", Namespace: j.NoNames.Namespace, Name: j.NoNames.Name})
		found.NamesBlockedBy = &policy
	}
	switch {
	case j.NoSuchPort && port != 0 && len(j.Barriers) == 0:
		found.Reachable, found.Reason = "no", fmt.Sprintf("%s has no port %d.", r.toText, port)
	case len(j.Barriers) > 0 && len(j.Open) > 0:
		found.Reachable, found.Reason = "partly", "A network policy stops some ports."
	case len(j.Barriers) > 0:
		found.Reachable, found.Reason = "no", "A network policy stops it."
	case !j.Policies:
		found.Reachable, found.Reason = "yes", "No NetworkPolicy is about either side."
	default:
		found.Reachable, found.Reason = "yes", "The network policies of both sides let it through."
	}
}

func (found *Reachability) text() string {
	lines := []string{engine.UpperFirst(found.Reachable) + ". " + found.Reason}
	for _, b := range found.Barriers {
		port := ""
		if b.Port != 0 {
			port = fmt.Sprintf(" on %s %d", b.Protocol, b.Port)
		}
		lines = append(lines, fmt.Sprintf("- Policy %s in namespace %s (%s)%s. It allows %s.", engine.QuoteCode(b.Policy.Name), engine.QuoteCode(b.Policy.Namespace), b.Direction, port, b.Allows))
	}
	if len(found.Barriers) > 0 && len(found.OpenPorts) > 0 {
		lines = append(lines, fmt.Sprintf("Open ports of its pods: %v.", found.OpenPorts))
	}
	if found.NamesBlockedBy != nil {
		lines = append(lines, fmt.Sprintf("The caller cannot look up names: policy %s does not let it out to the name server (port 53), so a call by name fails.", engine.QuoteCode(found.NamesBlockedBy.Name)))
	}
	return joinLines(append(lines, "Not looked at: "+strings.Join(found.NotLookedAt, "; ")+".")...)
}
