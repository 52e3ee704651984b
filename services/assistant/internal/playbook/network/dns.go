package network

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// lookupExprs match the messages of programs about a name that could not be resolved; the first group, where there is
// one, is the name.
var lookupExprs = []*regexp.Regexp{
	regexp.MustCompile(`\blookup ([A-Za-z0-9._-]+)(?: on \S+)?: ` +
		`(?:no such host|server misbehaving|.*i/o timeout|Temporary failure)`),
	regexp.MustCompile(`getaddrinfo (?:ENOTFOUND|EAI_AGAIN) ([A-Za-z0-9._-]+)`),
	regexp.MustCompile(`UnknownHostException: ([A-Za-z0-9._-]+)`),
	regexp.MustCompile(`(?i)could not resolve host: ([A-Za-z0-9._-]+)`),
	regexp.MustCompile(`(?i)could not translate host name "([A-Za-z0-9._-]+)"`),
	regexp.MustCompile(`(?i)host not found in upstream "([A-Za-z0-9._-]+)`),
	regexp.MustCompile(`(?i)bad address '([A-Za-z0-9._-]+)'`),
	regexp.MustCompile(`(?i)()(?:name or service not known|temporary failure in name resolution|nodename nor servname)`),
}

// unansweredExpr distinguishes a resolver that does not answer from a negative answer.
var unansweredExpr = regexp.MustCompile(`(?i)i/o timeout|EAI_AGAIN|temporary failure|server misbehaving`)

// lookup is a name that a program could not resolve.
type lookup struct {
	host       string // empty: unknown
	line       string
	unanswered bool
}

// failedLookup returns the newest failed lookup in a container's log.
func (x *Index) failedLookup(pod *corev1.Pod, c engine.Container) (lookup, bool) {
	for _, line := range x.LastLines(pod, c) {
		for _, expr := range lookupExprs {
			if m := expr.FindStringSubmatch(line); m != nil {
				return lookup{strings.TrimSuffix(m[1], "."), line, unansweredExpr.MatchString(line)}, true
			}
		}
	}
	return lookup{}, false
}

// lookups returns the failed lookups of a pod's containers.
func (x *Index) lookups(pod *corev1.Pod) []lookup {
	var all []lookup
	for _, c := range engine.ListContainers(pod) {
		if l, ok := x.failedLookup(pod, c); ok {
			all = append(all, l)
		}
	}
	return all
}

// isDNS reports whether a service is the cluster's name server.
func isDNS(s *corev1.Service) bool {
	return s.Namespace == metav1.NamespaceSystem && s.Labels["k8s-app"] == "kube-dns"
}

// nameServing is the name server's service, nil if it was not read.
type nameServing struct {
	server *corev1.Service
	down   bool // it is known to have no endpoints
}

func (x *Index) nameServer() (server *corev1.Service, down bool) {
	n := x.nameServing()
	return n.server, n.down
}

func (x *Index) findNameServer() nameServing {
	var n nameServing
	for i := range x.Services {
		if s := &x.Services[i]; isDNS(s) && (n.server == nil || s.Name <= n.server.Name) {
			n.server = s
		}
	}
	if n.server == nil || x.Unread["endpointslices"] || x.Unread["pods"] {
		return n
	}
	ready, known := 0, false
	for i := range x.EndpointSlices {
		e := &x.EndpointSlices[i]
		if e.Namespace != n.server.Namespace || e.Labels[discoveryv1.LabelServiceName] != n.server.Name {
			continue
		}
		known = true
		for _, end := range e.Endpoints {
			if engine.ValueOr(end.Conditions.Ready, true) {
				ready++
			}
		}
	}
	n.down = known && ready == 0 && len(x.readyBackends(n.server)) == 0
	return n
}

// checkNameServer explains NameResolution, except for mistakes of a single program: a name server that is down, and
// policies that keep pods from it.
func checkNameServer(x *Index) []engine.Finding {
	server, down := x.nameServer()
	if down {
		return []engine.Finding{x.serverDown(server)}
	}
	if x.Unread["networkpolicies"] {
		return nil
	}
	to := x.nameServerOf(server)
	m := engine.NewMerger()
	for _, pod := range x.LivingPods {
		if pod.Status.Phase == corev1.PodFailed {
			continue
		}
		leaving, entering := x.policyBlocks(pod, to)
		blocking := append(leaving, entering...)
		if len(blocking) == 0 {
			continue
		}
		calls, failed := x.calls(pod), x.lookups(pod)
		if len(calls) == 0 && len(failed) == 0 {
			continue // it may well need no names
		}
		m.Add(x.noWayToServer(pod, blocking[0], calls, failed), pod.Name)
	}
	return m.Found
}

// nameServerTarget returns a placeholder for the name server, for use where its pods were not read.
func nameServerTarget() target {
	return target{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Labels: map[string]string{"k8s-app": "kube-dns"}}}, 53, corev1.ProtocolUDP}
}

// nameServerOf returns a pod of the name server, or a placeholder if none was read.
func (x *Index) nameServerOf(server *corev1.Service) target {
	to := nameServerTarget()
	if server != nil {
		if pods := x.readyBackends(server); len(pods) > 0 {
			to.pod = pods[0]
		}
	}
	return to
}

// KeptFromNameServer explains a failed lookup in a pod: the name server is down, or a network policy keeps the pod from
// it. In neither case it returns nil.
func (x *Index) KeptFromNameServer(pod *corev1.Pod) *engine.Finding {
	server, down := x.nameServer()
	if down {
		f := x.serverDown(server)
		return &f
	}
	if x.Unread["networkpolicies"] || x.Unread["namespaces"] {
		return nil
	}
	leaving, entering := x.policyBlocks(pod, x.nameServerOf(server))
	blocking := append(leaving, entering...)
	if len(blocking) == 0 {
		return nil
	}
	f := x.noWayToServer(pod, blocking[0], nil, []lookup{{}})
	return &f
}

func (x *Index) serverDown(s *corev1.Service) engine.Finding {
	f := engine.Finding{Class: engine.NameResolution, Object: engine.ServiceRef(s), Confidence: engine.High}
	pods := x.Selected(s.Namespace, s.Spec.Selector)
	f.Evidence = []string{fmt.Sprintf("The name server is service %s in namespace %s, and has no endpoints.", engine.QuoteCode(s.Name), engine.QuoteCode(s.Namespace))}
	if len(pods) > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("It has %s, none of them ready.", engine.CountNoun(len(pods), "pod", "pods")))
	}
	f.Cause = "The cluster's name server (DNS) has no endpoints, so no pod can look up a name."
	f.Text = "Find out why its pods are not ready, or why it has none."
	for _, pod := range pods {
		f.Because = append(f.Because, x.RootsOf(pod)...)
	}
	for _, pod := range x.LivingPods {
		if !slices.Contains(f.Namespaces, pod.Namespace) {
			f.Namespaces = append(f.Namespaces, pod.Namespace)
		}
		if failed := x.lookups(pod); len(failed) > 0 && pod.Namespace != s.Namespace {
			w := x.WorkloadOf(pod)
			f.Evidence = append(f.Evidence, fmt.Sprintf("The log of pod %s in namespace %s says %s.", engine.QuoteCode(pod.Name), engine.QuoteCode(pod.Namespace), engine.QuoteCode(failed[0].line)))
			f.Effects = append(f.Effects, engine.Effect{Of: w.Ref, Classes: []engine.Class{engine.CrashLoop, engine.LivenessProbe, engine.ReadinessProbe, engine.NameResolution, engine.InitContainer, engine.JobFailed, engine.RolloutStuck}, Unproved: true})
		}
	}
	return f
}

func (x *Index) noWayToServer(pod *corev1.Pod, by *networkingv1.NetworkPolicy, calls []call, failed []lookup) engine.Finding {
	w := x.WorkloadOf(pod)
	f := engine.Finding{Class: engine.NameResolution, Object: policyRef(by), Confidence: engine.Medium}
	f.Evidence = []string{fmt.Sprintf("The policy %s restricts egress from %s; it allows %s: no UDP 53 to the name server.", engine.QuoteCode(by.Name), engine.RefTitle(w.Ref), letThrough(by, networkingv1.PolicyTypeEgress))}
	if by.Namespace != pod.Namespace {
		f.Evidence = []string{fmt.Sprintf("The policy %s in namespace %s blocks ingress from %s to the name server.", engine.QuoteCode(by.Name), engine.QuoteCode(by.Namespace), engine.RefTitle(w.Ref))}
		f.Namespaces = []string{pod.Namespace}
	}
	for _, l := range failed {
		f.Confidence = engine.High
		f.Evidence = append(f.Evidence, fmt.Sprintf("The log of pod %s says %s.", engine.QuoteCode(pod.Name), engine.QuoteCode(l.line)))
	}
	if len(failed) == 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("The variable %s names service %s, which has to be looked up.", engine.QuoteCode(calls[0].by), engine.QuoteCode(calls[0].service.Name)))
	}
	f.Cause = fmt.Sprintf("The network policy %s keeps %s from the name server (DNS, port 53), so it cannot look up names.", engine.QuoteCode(by.Name), engine.RefTitle(w.Ref))
	f.Text = fmt.Sprintf("Let the policy allow UDP and TCP port 53 to the pods with %s in namespace %s.", engine.QuoteCode("k8s-app=kube-dns"), engine.QuoteCode(metav1.NamespaceSystem))
	f.Because = []operation.Ref{policyRef(by)}
	f.Effects = []engine.Effect{{Of: w.Ref, Classes: []engine.Class{engine.CrashLoop, engine.LivenessProbe, engine.ReadinessProbe, engine.NameResolution, engine.InitContainer, engine.JobFailed, engine.RolloutStuck}, Unproved: true}}
	return f
}

// checkLookups explains NameResolution for a single program that looks up a name which does not exist.
func checkLookups(x *Index, pod *corev1.Pod, w *engine.Workload) []engine.Finding {
	var found []engine.Finding
	for _, c := range engine.ListContainers(pod) {
		l, ok := x.WrongName(pod, c)
		if !ok {
			continue
		}
		end := c.LastEnd()
		f := engine.Finding{Class: engine.NameResolution, Object: w.Ref, Container: c.Spec.Name, Confidence: engine.High}
		if l.unanswered {
			f.Confidence = engine.Medium
		}
		f.Evidence = []string{
			fmt.Sprintf("Container %s ended with exit code %d, %s so far.", engine.QuoteCode(c.Spec.Name), end.ExitCode, engine.CountNoun(int(c.Status.RestartCount), "restart", "restarts")),
			fmt.Sprintf("Its log before the restart says %s.", engine.QuoteCode(l.line)),
		}
		explainWrongName(&f, x, pod, l.host)
		found = append(found, f)
	}
	return found
}

// WrongName returns the failed lookup that crashed a container, if the name itself is at fault: either the resolver
// answered or the name has a single label, and the cluster has no such service.
func (x *Index) WrongName(pod *corev1.Pod, c engine.Container) (lookup, bool) {
	if !engine.KeepsCrashing(pod, c) || c.OutOfMemory() || x.Unread["services"] {
		return lookup{}, false
	}
	l, ok := x.failedLookup(pod, c)
	// A name server that forwards a single-label name may get no answer for it; a name of several labels may be right
	// nevertheless.
	if !ok || l.unanswered && strings.Contains(l.host, ".") || l.host == "" || x.ServiceNamed(l.host, pod.Namespace) != nil {
		return lookup{}, false
	}
	_, down := x.nameServer()
	return l, !down
}

func explainWrongName(f *engine.Finding, x *Index, pod *corev1.Pod, host string) {
	service, rest, _ := strings.Cut(host, ".")
	namespace, domain, _ := strings.Cut(rest, ".")
	if rest == "" {
		namespace = pod.Namespace
	}
	inside := rest == "" || domain == "svc" || strings.HasPrefix(domain, "svc.")
	inside = inside || domain == "" && len(x.ServicesIn()[namespace]) > 0 // name.namespace is a short form of both
	if !inside {
		f.Cause, f.Confidence = fmt.Sprintf("The program looks up the name %s, which is outside the cluster and does not resolve.", engine.QuoteCode(host)), engine.Medium
		f.Text = "Correct the name that the program is given, or check whether the cluster's upstream name servers know it."
		return
	}
	f.Evidence = append(f.Evidence, fmt.Sprintf("Namespace %s was searched: no service has the name %s.", engine.QuoteCode(namespace), engine.QuoteCode(service)))
	f.Cause = fmt.Sprintf("The program looks up the name %s, and there is no service %s in namespace %s.", engine.QuoteCode(host), engine.QuoteCode(service), engine.QuoteCode(namespace))
	f.Text = "Correct the name that the program is given, or create the service."
	var here, elsewhere []string
	for _, s := range x.ServicesIn()[namespace] {
		here = append(here, s.Name)
	}
	for in := range x.ServicesIn() {
		if in != namespace && x.ServiceByName[engine.Name{Namespace: in, Name: service}] != nil {
			elsewhere = append(elsewhere, service+"."+in)
		}
	}
	slices.Sort(elsewhere)
	if len(elsewhere) > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("Services of that name elsewhere are reached as %s.", engine.QuoteCodes(elsewhere)))
	}
	if near, ok := engine.NearestName(service, here); ok {
		f.Evidence = append(f.Evidence, fmt.Sprintf("The nearest that exists is %s.", engine.QuoteCode(near)))
	}
	for _, e := range envOf(pod) {
		if strings.Contains(e.Value, host) {
			f.Evidence = append(f.Evidence, fmt.Sprintf("The variable %s gives it this name.", engine.QuoteCode(e.Name)))
		}
	}
}

// envOf returns the environment variables of a pod's containers.
func envOf(pod *corev1.Pod) []corev1.EnvVar {
	var all []corev1.EnvVar
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			all = append(all, list[i].Env...)
		}
	}
	return all
}
