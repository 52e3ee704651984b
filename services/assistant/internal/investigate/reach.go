package investigate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/network"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// publicAddress represents the whole internet; it is reserved for documentation, so no policy names it.
var publicAddress = netip.MustParseAddr("203.0.113.1")

// pluginNote names what no object of the cluster shows.
const pluginNote = "This follows from the policies alone: whether they are enforced depends on the cluster's network plug-in."

// passage is a network connection with both ends resolved in the cluster.
type passage struct {
	snap             *engine.Snapshot
	from, to         network.RouteEnd
	fromText, toText string
	asked            int32
	trouble          string // why it cannot be judged, or fails before any policy, as a sentence
	partly           string // why some of the callers do not get through, as a sentence
	assumed          string // which names were taken for others, as sentences
	absent           bool   // an end does not exist, so nothing can be said
}

// reach answers whether one side gets through to the other.
func (w *work) reach(ctx context.Context, a question.Ask) error {
	p, err := w.passage(ctx, a)
	if err != nil {
		return err
	}
	w.say(p.assumed)
	switch {
	case p.absent:
		w.say(p.trouble)
	case p.trouble != "":
		w.say("No. " + p.trouble)
	case p.partly != "":
		w.say("Not everywhere. " + p.partly)
		if open, text := p.judge(); open {
			w.say("Elsewhere no policy stops it. " + pluginNote)
		} else {
			w.say(text)
		}
	default:
		_, text := p.judge()
		w.say(text)
	}
	return nil
}

// withoutUnknownCaller turns a question whose caller is no object ("nobody can reach db") into one about the target. A
// caller that looks like a name is still reported absent.
func (w *work) withoutUnknownCaller(ctx context.Context, a question.Ask) (question.Ask, error) {
	if a.Route == nil || a.Route.From.Name == "" || a.Route.From.Kind != "" || strings.ContainsAny(a.Route.From.Name, "-.0123456789") {
		return a, nil
	}
	all, err := w.snapshot(ctx, "")
	if err != nil || all == nil {
		return a, err
	}
	name := a.Route.From.Name
	if hasNamespace(all, name) || len(objectsNamed(all, "", question.Mention{Name: name})) > 0 || len(similarNames(all, "", question.Mention{Name: name})) > 0 ||
		len(objectsNamed(all, "", question.Mention{Name: a.Route.To.Name})) == 0 {
		return a, nil
	}
	a.Mentions = slices.DeleteFunc(slices.Clone(a.Mentions), func(m question.Mention) bool { return m.Name == name })
	if to := a.Route.To.Name; !slices.ContainsFunc(a.Mentions, func(m question.Mention) bool { return m.Name == to }) {
		a.Mentions = append(a.Mentions, question.Mention{Kind: a.Route.To.Kind, Name: to, Sure: true})
	}
	a.Route, a.Intent = nil, question.Diagnosis
	return a, nil
}

// barrier first answers the question behind a broken connection: whether policies or a missing target stop it.
func (w *work) barrier(ctx context.Context, a question.Ask) (blocked bool, err error) {
	p, err := w.passage(ctx, a)
	if err != nil || p.absent {
		return false, err
	}
	w.say(p.assumed)
	w.say(p.partly)
	if p.trouble != "" {
		w.say(p.trouble)
		if len(p.from.Pods) > 0 && len(p.to.Pods) > 0 {
			if open, text := p.judge(); !open { // once the target is repaired, this is in the way
				w.say(text)
			}
		}
		return false, nil // the diagnosis then explains why
	}
	open, text := p.judge()
	w.say(text)
	return !open, nil
}

// blamesExpr matches a sentence in which one side is said to suffer from the other.
var blamesExpr = question.Pattern(`\b` + wordlist.AnyOf(`complain\w*`, `blam\w+`, `wait\w*`, `hang\w*`, "stuck", "blocked", `times? out`, "timeouts?", `fail\w*`, `los\w+`, `suffer\w*`, "trouble", "problems?", "errors?", "(no|any) (answers?|responses?|repl(y|ies))", `refus\w*`) + `\b.*?\b(about|of|for|on|by|with|to|from|at)\b`)

// refusesExpr matches what the target of a connection does.
var refusesExpr = question.Pattern(`\b(refus\w*|reject\w*|den(y|ies)|with requests|with connections|with calls)\b`)

// barrierBetween looks for policies between two objects of which one complains about the other, if nothing else is
// wrong: "shop complains about vault". The first one named is the caller.
func (w *work) barrierBetween(ctx context.Context, a question.Ask, t *topic) (blocked bool, err error) {
	var there, names []string
	places := map[string]string{}
	for _, r := range t.objects {
		if r.Kind != "Node" && r.Kind != "Namespace" && !slices.Contains(there, r.Name) {
			there = append(there, r.Name)
			places[r.Name] = r.Namespace
		}
	}
	for _, m := range a.Mentions {
		name := m.Name
		if m.Sure && !slices.Contains(there, name) { // read as the existing object that no word names
			if i := slices.IndexFunc(there, func(n string) bool {
				return !slices.ContainsFunc(a.Mentions, func(m question.Mention) bool { return m.Name == n })
			}); i >= 0 {
				name = there[i]
			}
		}
		if slices.Contains(there, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) != 2 || !blamesExpr.MatchString(a.Words) {
		return false, nil
	}
	if m := blamesExpr.FindStringSubmatch(a.Words); m[len(m)-1] == "by" || refusesExpr.MatchString(a.Words) {
		return false, nil // "web is blocked by db", "db refuses connections from web": the first one named may be the target
	}
	a.Route = &question.Route{From: question.End{Name: names[0], Namespace: places[names[0]]}, To: question.End{Name: names[1], Namespace: places[names[1]]}}
	p, err := w.passage(ctx, a)
	if err != nil || p.absent {
		return false, err
	}
	w.say(p.assumed)
	if p.trouble != "" {
		w.say(p.trouble)
		return true, nil
	}
	w.say(p.partly)
	open, text := p.judge()
	if !open {
		w.say(strings.TrimPrefix(text, "No. "))
	}
	return !open || p.partly != "", nil
}

// passage resolves both sides. Either may be in another namespace than the question's, so the whole cluster is read.
func (w *work) passage(ctx context.Context, a question.Ask) (*passage, error) {
	s, err := w.snapshot(ctx, "")
	if err != nil {
		return nil, err
	}
	p := &passage{snap: s, asked: a.Route.Port}
	for _, kind := range []string{"pods", "services", "networkpolicies", "namespaces", "endpointslices"} {
		if s.Unread[kind] {
			p.trouble, p.absent = fmt.Sprintf("Whether they reach each other is not known, since not all %s could be read.", kind), true
			return p, nil
		}
	}
	scope := cmp.Or(a.Namespace, w.turn.Scope)
	if past := w.past(ctx, a); scope == "" {
		scope = past.Namespace
	}
	from := splitPlace(s, a.Route.From)
	from.Namespace = cmp.Or(from.Namespace, scope)
	p.findFrom(from)
	to := splitPlace(s, a.Route.To)
	p.findTo(to, cmp.Or(to.Namespace, p.namespaceOfFrom(), scope))
	return p, nil
}

// splitPlace treats the first of two words as the namespace, if it exists and has an object with the second as its
// name.
func splitPlace(s *engine.Snapshot, e question.End) question.End {
	if e.Namespace == "" && e.Next != "" && hasNamespace(s, e.Name) && len(objectsNamed(s, e.Name, question.Mention{Kind: e.Kind, Name: e.Next})) > 0 {
		e.Namespace, e.Name, e.Next = e.Name, e.Next, ""
	}
	return e
}

func (p *passage) namespaceOfFrom() string {
	if len(p.from.Pods) > 0 {
		return p.from.Pods[0].Namespace
	}
	return ""
}

// stop records the first reason why the passage cannot be judged.
func (p *passage) stop(absent bool, format string, args ...any) {
	if p.trouble == "" {
		p.trouble, p.absent = fmt.Sprintf(format, args...), absent
	}
}

// find returns the one object with a name: in the namespace if it is there, else anywhere.
func (p *passage) find(e question.End, namespace string) []operation.Ref {
	m := question.Mention{Kind: e.Kind, Name: e.Name}
	found := objectsNamed(p.snap, namespace, m)
	if len(found) == 0 && e.Namespace == "" {
		found = objectsNamed(p.snap, "", m)
	}
	if len(found) == 0 && namespace != "" && !strings.Contains(e.Name, ".") {
		near := similarNames(p.snap, namespace, m)
		if len(near) > 0 && !slices.ContainsFunc(near, func(r operation.Ref) bool { return r.Name != near[0].Name }) {
			p.assumed = strings.TrimSpace(p.assumed + fmt.Sprintf(" There is no object with the name %s in namespace %s; I take %s for it.", report.Code(e.Name), report.Code(namespace), refTitle(near[0])))
			return near
		}
	}
	return found
}

func (p *passage) findFrom(e question.End) {
	if e.Name == "" {
		p.stop(true, "Whether something outside the cluster reaches it depends on load balancers and node ports, not on one object. Ask %s.", report.Code("which services are exposed?"))
		return
	}
	found := p.find(e, e.Namespace)
	if len(found) == 0 {
		p.stop(true, "There is no object with the name %s, so whether it reaches anything is not known.", report.Code(e.Name))
		return
	}
	p.fromText = refTitle(found[0])
	if p.from.Pods = p.podsOf(found); len(p.from.Pods) == 0 {
		p.stop(true, "%s has no running pod that could call anything.", engine.UpperFirst(p.fromText))
	}
}

func (p *passage) findTo(e question.End, namespace string) {
	x := network.New(engine.NewIndex(p.snap))
	switch {
	case e.Outside:
		p.to.Address, p.toText = publicAddress, "the internet"
		return
	case e.Address.IsValid():
		p.findAddress(e.Address)
		return
	}
	if s := x.ServiceNamed(e.Name, namespace); s != nil && (e.Kind == "" || e.Kind == "service") {
		p.toService(x, s)
		return
	}
	found := p.find(e, namespace)
	if len(found) == 0 {
		p.stop(true, "There is no object with the name %s, so whether it can be reached is not known.", report.Code(e.Name))
		return
	}
	for _, r := range found {
		if s := x.ServiceByName[engine.Name{Namespace: r.Namespace, Name: r.Name}]; r.Kind == "Service" && s != nil {
			p.toService(x, s)
			return
		}
	}
	p.toText = refTitle(found[0])
	if p.to.Pods = p.podsOf(found[:1]); len(p.to.Pods) == 0 {
		p.stop(false, "%s has no running pod, so nothing answers there.", engine.UpperFirst(p.toText))
	}
}

func (p *passage) toService(x *network.Index, s *corev1.Service) {
	p.to.Service, p.toText = s, refTitle(engine.ServiceRef(s))
	if len(s.Spec.Selector) == 0 || s.Spec.Type == corev1.ServiceTypeExternalName {
		p.stop(true, "%s has no selector, so its target is not a pod of this cluster and only the caller's egress policies count, by address.", engine.UpperFirst(p.toText))
		return
	}
	if p.to.Pods = x.ReadyBackends(s); len(p.to.Pods) > 0 {
		text, everywhere := localOnly(s, p.from.Pods, p.to.Pods)
		if p.partly = text; everywhere {
			p.partly = ""
			p.stop(false, "%s", text)
		}
	} else {
		p.stop(false, "%s has no ready endpoint, so nothing answers there.", engine.UpperFirst(p.toText))
		// Most likely these are meant: they answer once the Service selects them.
		if like := objectsNamed(p.snap, s.Namespace, question.Mention{Kind: "deployment", Name: s.Name}); len(like) > 0 {
			p.to.Pods = p.podsOf(like)
		}
	}
}

// localOnly explains that a Service sends traffic only to pods on the caller's own node, and that some callers' nodes
// have none; everywhere: all of their nodes have none.
func localOnly(s *corev1.Service, callers, backends []*corev1.Pod) (text string, everywhere bool) {
	if s.Spec.InternalTrafficPolicy == nil || *s.Spec.InternalTrafficPolicy != corev1.ServiceInternalTrafficPolicyLocal {
		return "", false
	}
	on := map[string]bool{}
	for _, pod := range backends {
		on[pod.Spec.NodeName] = true
	}
	with, without := map[string]bool{}, map[string]bool{}
	for _, pod := range callers {
		if node := pod.Spec.NodeName; node != "" {
			if on[node] {
				with[node] = true
			} else {
				without[node] = true
			}
		}
	}
	if len(without) == 0 {
		return "", false
	}
	text = fmt.Sprintf("%s has `internalTrafficPolicy: Local`, so it leads only to pods on the caller's own node, and none of its ready pods is on %s, where callers run.",
		engine.UpperFirst(refTitle(engine.ServiceRef(s))), joinCodes(slices.Sorted(maps.Keys(without))))
	if len(with) > 0 {
		text += fmt.Sprintf(" Callers on %s have one there.", joinCodes(slices.Sorted(maps.Keys(with))))
	}
	return text + " Set it to `Cluster`, or run a pod of it on each node.", len(with) == 0
}

// findAddress resolves an address to the Service or pod that has it, else to an outside host.
func (p *passage) findAddress(address netip.Addr) {
	text := address.String()
	for i := range p.snap.Services {
		if p.snap.Services[i].Spec.ClusterIP == text {
			p.toService(network.New(engine.NewIndex(p.snap)), &p.snap.Services[i])
			return
		}
	}
	for i := range p.snap.Pods {
		if pod := &p.snap.Pods[i]; pod.Status.PodIP == text && pod.Name != "" {
			p.to.Pods, p.toText = []*corev1.Pod{pod}, fmt.Sprintf("pod %s in namespace %s", report.Code(pod.Name), report.Code(pod.Namespace))
			return
		}
	}
	p.to.Address, p.toText = address, "the address "+report.Code(text)
}

// podsOf returns the running pods that the objects are, own or select.
func (p *passage) podsOf(objects []operation.Ref) []*corev1.Pod {
	near := relatedObjects(p.snap, objects[:1])
	var pods []*corev1.Pod
	for i := range p.snap.Pods {
		pod := &p.snap.Pods[i]
		if near[operation.Ref{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}] && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	return pods
}

// judge reports whether the policies allow the connection, and names those that do not.
func (p *passage) judge() (open bool, text string) {
	x := network.New(engine.NewIndex(p.snap))
	j := x.JudgeRoute(p.from, p.to, p.asked)
	to := p.toText
	if p.asked != 0 {
		to += fmt.Sprintf(" on port %d", p.asked)
	}
	var lines []string
	names := ""
	if j.NoNames != nil && p.to.Service != nil {
		names = fmt.Sprintf(" But %s cannot look up names, since the network policy %s does not let it out to the name server (DNS, port 53): a call by name fails.", p.fromText, report.Code(j.NoNames.Name))
	}
	switch {
	case j.NoSuchPort && p.asked != 0 && len(j.Barriers) == 0:
		var have []string
		for _, port := range p.to.Service.Spec.Ports {
			have = append(have, fmt.Sprint(port.Port))
		}
		return false, fmt.Sprintf("No. %s has no port %d; it has %s.", engine.UpperFirst(p.toText), p.asked, joinCodes(have))
	case len(j.Barriers) == 0 && !j.Policies:
		return true, fmt.Sprintf("Yes, as far as these objects show: no NetworkPolicy applies to %s or %s. Policies of other kinds, of a network plug-in or a service mesh, were not read.%s", p.fromText, to, names)
	case len(j.Barriers) == 0:
		return names == "", fmt.Sprintf("Yes, the network policies let %s through to %s.%s\n\n%s", p.fromText, to, names, pluginNote)
	}
	for _, b := range j.Barriers {
		lines = append(lines, p.describeBarrier(b))
	}
	lines = slices.Compact(lines)
	head := fmt.Sprintf("No. A network policy does not let %s through to %s:", p.fromText, to)
	if len(j.Open) > 0 {
		var ports []string
		for _, port := range j.Open {
			ports = append(ports, fmt.Sprint(port))
		}
		head = fmt.Sprintf("Not everywhere. %s reaches %s on port %s, but a network policy stops the rest:", engine.UpperFirst(p.fromText), to, joinCodes(ports))
	}
	return false, head + "\n\n- " + strings.Join(lines, "\n- ") + "\n\n" + strings.TrimSpace(names+" "+pluginNote)
}

func (p *passage) describeBarrier(b network.Barrier) string {
	policy := fmt.Sprintf("%s in namespace %s", report.Code(b.Policy.Name), report.Code(b.Policy.Namespace))
	port := ""
	if b.Port != 0 {
		port = fmt.Sprintf(" on %s %d", cmp.Or(b.Protocol, corev1.ProtocolTCP), b.Port)
	}
	if b.Leaves {
		return fmt.Sprintf("Policy %s (egress) does not allow it%s. Allowed egress: %s. Add the target there, if this connection is wanted.", policy, port, b.LetsThrough)
	}
	return fmt.Sprintf("Policy %s (ingress) does not allow it%s. Allowed ingress: %s. The caller's pods have the labels %s, and their namespace %s.", policy, port, b.LetsThrough,
		joinCodes(labelList(p.from.Pods[0].Labels)), p.namespaceLabels())
}

func (p *passage) namespaceLabels() string {
	for i := range p.snap.Namespaces {
		if n := &p.snap.Namespaces[i]; n.Name == p.from.Pods[0].Namespace && len(n.Labels) > 0 {
			return joinCodes(labelList(n.Labels))
		}
	}
	return "none"
}

func labelList(have map[string]string) []string {
	var list []string
	for key, value := range have {
		list = append(list, key+"="+value)
	}
	slices.Sort(list)
	return list
}
