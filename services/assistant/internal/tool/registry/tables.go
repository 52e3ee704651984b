package registry

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/clip"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// maxText limits the text of a result, in characters.
const maxText = 8000

// shown is a result whose text is redacted and cut to the limit.
func shown(text string, data any, references ...operation.Reference) Result {
	text, cut := clip.Head(redact.Text(text), maxText, "narrow the request")
	return Result{Text: text, Truncated: cut, Data: data, References: references}
}

type drainArguments struct {
	Node string `json:"node" jsonschema:"Name of the node."`
}

// DrainPlan lists the effects of draining a node.
type DrainPlan struct {
	Node string      `json:"node"`
	Pods []DrainStep `json:"pods"`
	// Blocked counts the pods that hold the drain up.
	Blocked int `json:"blocked"`
}

// DrainStep is the effect of a drain on one pod.
type DrainStep struct {
	Pod     operation.Reference `json:"pod"`
	Outcome string              `json:"outcome"`
	Blocks  bool                `json:"blocks"`
}

func drainPlan(ctx context.Context, box turn.Toolbox, a drainArguments) (Result, error) {
	node, err := resolve(ctx, box, "", "nodes", a.Node)
	if err != nil {
		return Result{}, err
	}
	s, err := snapshotOf(ctx, box, "")
	if err != nil {
		return Result{}, err
	}
	view, versions := report.View{Snapshot: s}, newVersions(s)
	plan := &DrainPlan{Node: node.Name, Pods: []DrainStep{}}
	for _, step := range view.DrainSteps(node.Name) {
		pod := versions.cite(operation.Ref{Kind: "Pod", Namespace: step.Namespace, Name: step.Pod})
		plan.Pods = append(plan.Pods, DrainStep{pod, strings.ReplaceAll(step.What, "**", ""), step.Holds})
		if step.Holds {
			plan.Blocked++
		}
	}
	return shown(report.DrainPlan(view, []string{node.Name})+notRead(s.Unread, "pods", "poddisruptionbudgets"), plan, node), nil
}

// notRead names the kinds without which a result may be incomplete.
func notRead(unread map[string]bool, kinds ...string) string {
	var list []string
	for _, kind := range kinds {
		if unread[kind] {
			list = append(list, kind)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return "\nSome of these could not be read, so something may be missing: " + strings.Join(list, ", ") + ".\n"
}

type whoCanArguments struct {
	Verb      string `json:"verb" jsonschema:"API verb, such as delete."`
	Kind      string `json:"kind" jsonschema:"Kind of object, such as pods."`
	Namespace string `json:"namespace,omitempty" jsonschema:"Namespace; left out: all."`
}

// Allowed lists who may do something.
type Allowed struct {
	Grants []Grant `json:"grants"`
	// Unread lists the kinds that could not be read, so that grants may be missing.
	Unread []string `json:"unread"`
}

// Grant is a subject to which a binding grants the right.
type Grant struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty" jsonschema:"Where it holds; left out: everywhere."`
	Binding   string `json:"binding"`
}

func whoCan(ctx context.Context, box turn.Toolbox, a whoCanArguments) (Result, error) {
	kind := strings.ToLower(a.Kind)
	group, plural, ok := report.ResourceNamed(kind)
	if !ok {
		return Result{}, operation.Refuse(operation.InvalidArgument, "kind", "The rules for %s are not known here; name a built-in kind, such as pods or secrets.", operation.Quote(a.Kind))
	}
	s, err := snapshotOf(ctx, box, a.Namespace)
	if err != nil {
		return Result{}, err
	}
	view := report.View{Snapshot: s, Namespace: a.Namespace}
	allowed := &Allowed{Grants: []Grant{}, Unread: unread(s, "roles", "rolebindings", "clusterroles", "clusterrolebindings")}
	for _, g := range view.Grants(a.Verb, group, plural) {
		allowed.Grants = append(allowed.Grants, Grant(g))
	}
	return shown(report.WhoCan(view, a.Verb, plural), allowed), nil
}

// Certificates are those in TLS Secrets.
type Certificates struct {
	Certificates []Certificate `json:"certificates"`
}

// Certificate is the public part of a certificate, which every client sees.
type Certificate struct {
	Secret    operation.Reference `json:"secret"`
	Hosts     []string            `json:"hosts,omitempty"`
	NotBefore *time.Time          `json:"not_before,omitempty"`
	NotAfter  *time.Time          `json:"not_after,omitempty"`
	State     string              `json:"state"`
	ServedBy  []string            `json:"served_by,omitempty"`
}

func certificates(ctx context.Context, box turn.Toolbox, a namespaceArguments) (Result, error) {
	s, err := snapshotOf(ctx, box, a.Namespace)
	if err != nil {
		return Result{}, err
	}
	view := report.View{Snapshot: s, Namespace: a.Namespace}
	list := &Certificates{Certificates: []Certificate{}}
	var references []operation.Reference
	for _, c := range view.CertificateStatuses() {
		secret := operation.Reference{Kind: "Secret", Namespace: c.Namespace, Name: c.Secret}
		references = append(references, secret)
		list.Certificates = append(list.Certificates, Certificate{secret, c.Hosts, timePointer(c.NotBefore), timePointer(c.NotAfter), c.State, c.ServedBy})
	}
	return shown(report.Certificates(view).String()+notRead(s.Unread, "secrets", "ingresses"), list, references...), nil
}

// timePointer is nil for the zero time, which JSON has no way to leave out.
func timePointer(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC()
	return &at
}

type changesArguments struct {
	Namespace string `json:"namespace,omitempty" jsonschema:"Namespace; left out: all."`
	Hours     int    `json:"hours,omitempty" jsonschema:"How many hours back; left out: 24."`
}

// Changes lists the changes that the cluster records. Edits of a value leave no record.
type Changes struct {
	Since   time.Time `json:"since"`
	Changes []Change  `json:"changes"`
}

// Change is one of them.
type Change struct {
	At        time.Time `json:"at"`
	Namespace string    `json:"namespace,omitempty"`
	Object    string    `json:"object"`
	What      string    `json:"what"`
}

const maxHours = 31 * 24

func changesSince(ctx context.Context, box turn.Toolbox, a changesArguments) (Result, error) {
	if a.Hours < 0 || a.Hours > maxHours {
		return Result{}, operation.Refuse(operation.InvalidArgument, "hours", "hours must be 1 to %d.", maxHours)
	}
	s, err := snapshotOf(ctx, box, a.Namespace)
	if err != nil {
		return Result{}, err
	}
	within := time.Duration(a.Hours) * time.Hour
	if within == 0 {
		within = 24 * time.Hour
	}
	view := report.View{Snapshot: s, Namespace: a.Namespace, Within: within}
	list := &Changes{Since: s.Taken.Add(-within).UTC(), Changes: []Change{}}
	for _, c := range view.Changes() {
		list.Changes = append(list.Changes, Change{c.At.UTC(), c.Namespace, strings.ReplaceAll(c.Object, "`", ""), redact.Text(strings.ReplaceAll(c.What, "`", ""))})
	}
	return shown(report.RecentChanges(view).String()+notRead(s.Unread, unread(s)...), list), nil
}

// Capacity is the capacity of the nodes.
type Capacity struct {
	Nodes []NodeCapacity `json:"nodes"`
}

// NodeCapacity is one node, with amounts as Kubernetes writes them.
type NodeCapacity struct {
	Node      operation.Reference `json:"node"`
	Ready     bool                `json:"ready"`
	Cordoned  bool                `json:"cordoned"`
	Pods      int                 `json:"pods"`
	Requested map[string]string   `json:"requested"`
	Total     map[string]string   `json:"allocatable"`
}

func capacity(ctx context.Context, box turn.Toolbox, _ noArguments) (Result, error) {
	s, err := snapshotOf(ctx, box, "")
	if err != nil {
		return Result{}, err
	}
	view, versions := report.View{Snapshot: s}, newVersions(s)
	list := &Capacity{Nodes: []NodeCapacity{}}
	var references []operation.Reference
	for _, n := range view.NodeCapacities() {
		node := versions.cite(operation.Ref{Kind: "Node", Name: n.Node})
		references = append(references, node)
		list.Nodes = append(list.Nodes, NodeCapacity{node, n.Ready, n.Cordoned, n.Pods, amounts(n.Requested), amounts(n.Total)})
	}
	return shown(report.Capacity(view).String()+notRead(s.Unread, "nodes", "pods"), list, references...), nil
}

func amounts(list corev1.ResourceList) map[string]string {
	out := map[string]string{}
	for kind, q := range list {
		out[string(kind)] = q.String()
	}
	return out
}

type eventsArguments struct {
	Namespace string `json:"namespace,omitempty" jsonschema:"Namespace; left out: all."`
	Kind      string `json:"kind,omitempty" jsonschema:"Kind of the object whose events are wanted; with name."`
	Name      string `json:"name,omitempty" jsonschema:"Name of the object whose events are wanted."`
	Minutes   int    `json:"minutes,omitempty" jsonschema:"How many minutes back; left out: as far as the cluster keeps events."`
}

// Timeline is events in the order in which they happened.
type Timeline struct {
	Events []Event `json:"events"`
}

// Event is one of them.
type Event struct {
	First   *time.Time          `json:"first,omitempty"`
	Last    *time.Time          `json:"last,omitempty"`
	Count   int                 `json:"count"`
	Type    string              `json:"type"`
	Reason  string              `json:"reason"`
	Object  operation.Reference `json:"object"`
	Message string              `json:"message"`
	Event   operation.Reference `json:"event"`
}

func formatMoment(at *time.Time) string {
	if at == nil {
		return "unknown time"
	}
	return at.Format(time.RFC3339)
}

func (e Event) line() string {
	return fmt.Sprintf("%s  %s  %s  %d×  %s/%s  %s", formatMoment(e.Last), e.Type, e.Reason, e.Count, e.Object.Kind, e.Object.Name, e.Message)
}
