package investigate

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/logtext"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/network"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
	"github.com/mlp-platform/platform/services/assistant/internal/spelling"
	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// mostLeads limits the hosts of log lines that are followed.
const mostLeads = 4

// mostHosts limits the hosts of log lines that are looked up: a log line may contain any number.
const mostHosts = 40

// dependencyPods limits the pods of a dependency whose logs are read.
const dependencyPods = 3

// leads follows the hosts and files in lines to their objects in the cluster. A Service without a selector, or with an
// external name, has no pods whose readiness is known.
func (w *work) leads(ctx context.Context, t *topic, groups []logtext.Group) ([]string, error) {
	var leads []string
	seen := map[string]bool{}
	put := func(text string) {
		if text != "" && !seen[text] && len(leads) < mostLeads {
			seen[text] = true
			leads = append(leads, text)
		}
	}
	unread := t.snap.Unread["services"] || t.snap.Unread["endpointslices"]
	looked := 0
	lookup := sync.OnceValue(func() *network.Index { return network.New(engine.NewIndex(t.snap)) }) // costs a pass over all objects
	for _, g := range groups {
		for _, line := range g.Texts() {
			put(t.fullDisk(line, g.Pods))
			if lookupExpr.MatchString(line) {
				if text := t.lookupLead(lookup(), g.Pods); text != "" {
					put(text)
					continue // the target is not at fault
				}
			}
			if unread {
				continue
			}
			for _, h := range logtext.Hosts(line) {
				// Following a host reads logs, so the loop stops before one too many, not after.
				if len(leads) == mostLeads || looked == mostHosts {
					return leads, nil
				}
				looked++
				text, err := w.hostLead(ctx, t, g.Pods, line, h, seen)
				if err != nil {
					return nil, err
				}
				put(text)
			}
		}
	}
	if len(leads) > 0 || unread {
		return leads, nil
	}
	var pods []string
	for _, g := range groups {
		if connectionExpr.MatchString(g.Line + g.Root) {
			pods = append(pods, g.Pods...)
		}
	}
	if len(pods) > 0 {
		return w.environmentLeads(ctx, t, pods)
	}
	return leads, nil
}

// connectionExpr matches a line about a connection, which may not name the target.
var connectionExpr = regexp.MustCompile(`(?i)\b` + wordlist.AnyOf("connect(ion|ing)?", "timed? ?out", "timeout", "refused", "unreachable", "unavailable", "deadline exceeded", "broken pipe", "reset by peer", "upstream", "econn[a-z]+") + `\b`)

// lookupExpr matches a line about a DNS lookup that got no answer.
var lookupExpr = regexp.MustCompile(`(?i)` + wordlist.AnyOf(`\blookup \S+( on \S+)?:.*\b(i/o timeout|timed out|refused|temporary failure|server misbehaving)`, `temporary failure in name resolution`, `\bEAI_AGAIN\b`,
	`\bUnknownHostException\b`, `could not resolve host`, `name or service not known`, `getaddrinfo`, `communications error to \S+#53`))

// lookupLead explains why pods get no answer from DNS, if the cluster shows the cause.
func (t *topic) lookupLead(x *network.Index, pods []string) string {
	for i := range t.snap.Pods {
		pod := &t.snap.Pods[i]
		if !slices.Contains(pods, pod.Name) || t.namespace != "" && pod.Namespace != t.namespace {
			continue
		}
		if f := x.KeptFromNameServer(pod); f != nil {
			return f.Cause + " " + f.Text
		}
	}
	return ""
}

// hostLead describes what a host in a line is in the cluster; empty if it is not there.
func (w *work) hostLead(ctx context.Context, t *topic, pods []string, line string, h logtext.Host, seen map[string]bool) (string, error) {
	if h.Name == "localhost" || strings.HasPrefix(h.Name, "127.") {
		return t.localLead(line, h), nil
	}
	if h.Port == "53" && strings.Contains(line, "lookup") {
		return "", nil // the DNS server that was asked
	}
	s := t.serviceOf(h.Name)
	if s == nil {
		return t.absentService(h), nil
	}
	key := s.Namespace + "/" + s.Name
	if seen[key] || len(s.Spec.Selector) == 0 || s.Spec.Type == corev1.ServiceTypeExternalName {
		return "", nil
	}
	seen[key] = true
	return w.describeLead(ctx, t, pods, s, h)
}

// hostVariableExpr matches the end of a variable's name if its value is a host: in other variables, a plain word such
// as "api" may be anything.
var hostVariableExpr = regexp.MustCompile(`(?i)` + wordlist.AnyOf("hosts?", "hostnames?", "addr", "address(es)?", "servers?", "ur[il]s?", "endpoints?", "brokers?", "dsn", "upstreams?", "_service", "_svc") + `$`)

// environmentLeads follows the hosts in the variables of some pods' containers, if lines about a connection name none.
func (w *work) environmentLeads(ctx context.Context, t *topic, pods []string) ([]string, error) {
	var leads, healthy []string
	var one logtext.Host // one of the healthy hosts
	seen := map[string]bool{}
	for _, wl := range t.workloadsOf(pods) {
		for _, c := range wl.Template.Spec.Containers {
			for _, v := range c.Env {
				hosts := logtext.Hosts(v.Value)
				if hostVariableExpr.MatchString(v.Name) {
					hosts = append(hosts, logtext.Host{Name: v.Value})
				}
				for _, h := range hosts {
					s := t.serviceOf(h.Name)
					if s == nil || seen[s.Namespace+"/"+s.Name] || len(leads)+len(healthy) == mostLeads || len(s.Spec.Selector) == 0 || s.Spec.Type == corev1.ServiceTypeExternalName {
						continue
					}
					seen[s.Namespace+"/"+s.Name] = true
					text, well, err := w.judgeLead(ctx, t, pods, s, h)
					if err != nil {
						return nil, err
					}
					if well {
						healthy, one = append(healthy, s.Name), h
						continue
					}
					leads = append(leads, fmt.Sprintf("No service was recognized in the lines, but the variable %s of the program names one: %s", report.Code(v.Name), text))
				}
			}
		}
	}
	if len(healthy) > 0 && len(leads) < mostLeads {
		leads = append(leads, fmt.Sprintf("Variables name the services %s, which have ready endpoints and no errors in their logs.", engine.QuoteCodes(healthy))+t.wayNotSeen(pods, one))
	}
	return leads, nil
}

var (
	// dialExpr matches a line about a connection that the program itself opens.
	dialExpr = regexp.MustCompile(`(?i)\b` + wordlist.AnyOf("dial(ing)?", "connect", "connecting", "connect(ion)? to", "(could|can) ?not connect", "(connection|connect) (was )?refused", "econnrefused", "upstream") + `\b`)
	// callerExpr matches the text before a client's address.
	callerExpr = regexp.MustCompile(`(?i)\b` + wordlist.AnyOf("from", "client", "by", "peer", "remote") + `[\s:="'/\[]*$`)
)

// localLead describes the target of an address of the pod itself, if a line dials it: in other lines it is a client,
// such as a probe or a sidecar proxy.
func (t *topic) localLead(line string, h logtext.Host) string {
	if h.Port == "" || !dialExpr.MatchString(line) {
		return ""
	}
	if before, _, found := strings.Cut(strings.ToLower(line), h.Name+":"+h.Port); !found || callerExpr.MatchString(before) {
		return ""
	}
	declared := true // by every container that runs beside the others
	for _, wl := range t.view().Workloads() {
		for _, c := range slices.Concat(wl.Template.Spec.InitContainers, wl.Template.Spec.Containers) {
			if slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return fmt.Sprint(p.ContainerPort) == h.Port }) {
				return ""
			}
		}
		for _, c := range wl.Template.Spec.Containers {
			declared = declared && len(c.Ports) > 0
		}
	}
	text := fmt.Sprintf("%s is the pod itself, not another one.", report.Code(h.Name))
	if declared { // declaring ports is optional
		text = fmt.Sprintf("%s is the pod itself, and none of its containers declares port %s.", report.Code(h.Name), report.Code(h.Port))
	}
	for i := range t.snap.Services {
		s := &t.snap.Services[i]
		if s.Namespace == t.ownNamespace() && hasPort(s, h.Port) {
			return text + fmt.Sprintf(" Service %s has that port: it may be the intended one.", report.Code(s.Name))
		}
	}
	return text
}

// absentService reports that a host of the cluster has no Service, and names a similar one.
func (t *topic) absentService(h logtext.Host) string {
	short, cut := strings.CutSuffix(strings.TrimSuffix(h.Name, ".cluster.local"), ".svc")
	name, namespace, qualified := strings.Cut(short, ".")
	if !cut || !qualified || strings.Contains(namespace, ".") || t.namespace != "" && namespace != t.namespace {
		return ""
	}
	if !hasNamespace(t.snap, namespace) && !slices.ContainsFunc(t.snap.Services, func(s corev1.Service) bool { return s.Namespace == namespace }) {
		return ""
	}
	text := fmt.Sprintf("%s names no service: namespace %s has none called %s.", report.Code(h.Name), report.Code(namespace), report.Code(name))
	best, far := "", len(name)/2+1
	for i := range t.snap.Services {
		s := &t.snap.Services[i]
		if s.Namespace != namespace {
			continue
		}
		d := spelling.Distance(name, s.Name)
		if strings.HasPrefix(s.Name, name+"-") || strings.HasPrefix(name, s.Name+"-") {
			d = 1
		}
		if d < far {
			best, far = s.Name, d
		}
	}
	if best != "" {
		text += fmt.Sprintf(" The closest name is service %s.", report.Code(best))
	}
	return text
}

func hasPort(s *corev1.Service, port string) bool {
	return slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return fmt.Sprint(p.Port) == port })
}

func (t *topic) ownNamespace() string {
	if len(t.objects) > 0 && t.objects[0].Namespace != "" {
		return t.objects[0].Namespace
	}
	return t.namespace
}

// serviceOf returns the Service that a host in a log line names, seen from the topic's namespace.
func (t *topic) serviceOf(host string) *corev1.Service {
	from := t.ownNamespace()
	short := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(host, ".cluster.local"), ".svc"), ".")
	name, namespace, qualified := strings.Cut(short, ".")
	for i := range t.snap.Services {
		s := &t.snap.Services[i]
		own := slices.ContainsFunc(t.objects, func(r operation.Ref) bool { return r.Name == s.Name && r.Namespace == s.Namespace })
		switch {
		case s.Spec.ClusterIP == host && host != "" && host != corev1.ClusterIPNone:
			return s
		case own || s.Name != name:
		case qualified && s.Namespace == namespace, !qualified && s.Namespace == from:
			return s
		}
	}
	return nil
}

// describeLead describes whether a dependency answers, whether policies let the caller through, and what its logs show.
func (w *work) describeLead(ctx context.Context, t *topic, pods []string, s *corev1.Service, h logtext.Host) (string, error) {
	text, well, err := w.judgeLead(ctx, t, pods, s, h)
	if well {
		text += t.wayNotSeen(pods, h)
	}
	return text, err
}

// judgeLead is describeLead; well means that the dependency has no fault.
func (w *work) judgeLead(ctx context.Context, t *topic, pods []string, s *corev1.Service, h logtext.Host) (text string, well bool, err error) {
	r := engine.ServiceRef(s)
	ready := report.View{Snapshot: t.snap}.Endpoints(s.Namespace, s.Name)
	text = fmt.Sprintf("%s is %s, which has %s.", report.Code(h.Name), refTitle(r), engine.CountNoun(ready, "ready endpoint", "ready endpoints"))
	if h.Port != "" && !hasPort(s, h.Port) {
		text += fmt.Sprintf(" It has no port %s.", report.Code(h.Port))
	}
	other := &topic{snap: t.snap, namespace: s.Namespace, objects: []operation.Ref{r}, within: t.within}
	about, _ := other.found(nil)
	about = slices.DeleteFunc(about, func(f engine.Finding) bool { return f.Class == engine.StatefulSetStuck && f.Confidence < engine.High })
	if len(about) > 0 {
		text += " " + about[0].Cause + quotedLog(about[0])
		if stopped := t.stoppedBefore(pods, s, h); stopped != "" && ready == 0 {
			text += " Besides: " + stopped
		}
		return text, false, nil
	}
	if ready == 0 {
		return text + " Nothing answers there.", false, nil
	}
	if stopped := t.stoppedBefore(pods, s, h); stopped != "" {
		return text + " " + stopped, false, nil
	}
	ask := fmt.Sprintf(" Ask %s for its own logs.", report.Code("what is wrong with "+s.Name+" in "+s.Namespace+"?"))
	if len(other.view().LogSources(engine.Recent)) == 0 {
		return text + ask, false, nil
	}
	e, err := w.readLogs(ctx, other, dependencyPods)
	if err != nil {
		return "", false, err
	}
	switch {
	case len(e.groups) > 0:
		g := e.groups[0]
		text += fmt.Sprintf(" Its own log says, %s: %s", strings.ToLower(countLines(g)), engine.QuoteLine(g.Line))
		if g.Root != "" {
			text += ", " + engine.QuoteLine(g.Root)
		}
		if g.Past() {
			text += fmt.Sprintf("; none in the %d messages since", g.Since)
		}
		text += "."
		if unread := e.unread(); unread != "" {
			text += " " + unread
		}
		return text, false, nil
	case e.unread() != "":
		return text + " " + e.unread() + ask, false, nil
	}
	left := other.unexplained(nil)
	if len(left) > 0 {
		text += " It is not all healthy: " + strings.TrimSuffix(left[0].Text, ".") + "."
	}
	if len(e.hints) > 0 {
		text += fmt.Sprintf(" Its own log has no error, but says, %s: %s.", strings.ToLower(countLines(e.hints[0])), engine.QuoteLine(e.hints[0].Line))
	}
	if len(left) == 0 && len(e.hints) == 0 {
		return text + " Its own logs show no errors.", true, nil
	}
	return text, false, nil
}

// wayNotSeen names the node components between pods and a healthy Service, which no object of the API shows.
func (t *topic) wayNotSeen(pods []string, h logtext.Host) string {
	var nodes []string
	for i := range t.snap.Pods {
		pod := &t.snap.Pods[i]
		if slices.Contains(pods, pod.Name) && (t.namespace == "" || pod.Namespace == t.namespace) && pod.Spec.NodeName != "" && !slices.Contains(nodes, pod.Spec.NodeName) {
			nodes = append(nodes, pod.Spec.NodeName)
		}
	}
	if len(nodes) == 0 || t.wayTold {
		return ""
	}
	t.wayTold = true // once is enough
	slices.Sort(nodes)
	return fmt.Sprintf(" The path from %s was not examined: its kube-proxy, which routes service addresses (%s) to pods, and its network are not API objects.", engine.QuoteCodes(nodes), report.Code(h.Name))
}

// stoppedBefore names the policy that blocks the pods of the topic from a Service, on the port in a line. If the line
// has no port and some ports are open, the call may have been to one of those.
func (t *topic) stoppedBefore(pods []string, s *corev1.Service, h logtext.Host) string {
	for _, kind := range []string{"pods", "services", "networkpolicies", "namespaces", "endpointslices"} {
		if t.snap.Unread[kind] {
			return ""
		}
	}
	callers := t.objects
	if len(callers) == 0 { // the pods of the lines, if no object is named
		for _, wl := range t.workloadsOf(pods) {
			callers = append(callers, wl.Ref)
		}
	}
	x := network.New(engine.NewIndex(t.snap))
	for _, caller := range callers {
		if text := t.stoppedOnce(x, caller, s, h); text != "" {
			return text
		}
	}
	return ""
}

// stoppedOnce is stoppedBefore for one caller.
func (t *topic) stoppedOnce(x *network.Index, caller operation.Ref, s *corev1.Service, h logtext.Host) string {
	p := &passage{snap: t.snap, toText: refTitle(engine.ServiceRef(s)), fromText: refTitle(caller)}
	p.toService(x, s)
	if p.from.Pods = p.podsOf([]operation.Ref{caller}); len(p.from.Pods) == 0 || len(p.to.Pods) == 0 {
		return ""
	}
	if h.Port != "" {
		port, err := strconv.ParseInt(h.Port, 10, 32)
		if err != nil || !hasPort(s, h.Port) {
			return "" // the missing port is reported elsewhere
		}
		p.asked = int32(port)
	}
	if j := x.JudgeRoute(p.from, p.to, p.asked); len(j.Open) > 0 && len(j.Barriers) > 0 && p.asked == 0 {
		return ""
	}
	if text, _ := localOnly(s, p.from.Pods, p.to.Pods); text != "" {
		return text
	}
	open, text := p.judge()
	if open {
		return ""
	}
	return engine.UpperFirst(strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(text, "No. "), "Yes, "), "\n\n", " "))
}

var (
	fullDiskExpr = regexp.MustCompile(`(?i)\b` + wordlist.AnyOf("no space left on device", "ENOSPC", "disk quota exceeded") + `\b`)
	// otherSpaceExpr matches resources other than disks for which the kernel also reports "no space".
	otherSpaceExpr = regexp.MustCompile(`(?i)inotify|\bwatch|\bshm|/shm\b`)
	pathExpr       = regexp.MustCompile(`(?:^|[\s"'=(:])(/[\w./@+-]+)`)
)

// fullDisk maps a line about a full disk, in the logs of some pods, to the volume that may be full.
func (t *topic) fullDisk(line string, pods []string) string {
	if !fullDiskExpr.MatchString(line) || otherSpaceExpr.MatchString(line) {
		return ""
	}
	path := ""
	for _, m := range pathExpr.FindAllStringSubmatch(line, -1) {
		path = m[1]
		if w, mount := t.mountOf(path, pods); mount != nil {
			return t.describeVolume(w, *mount)
		}
	}
	if path == "" {
		return ""
	}
	return fmt.Sprintf("%s is on no volume, so the container's own file system or the node's disk may be full.", report.Code(path))
}

// mountOf returns the innermost mount of a path in the workloads of some pods, with its workload, or nil.
func (t *topic) mountOf(path string, pods []string) (of report.Workload, found *corev1.VolumeMount) {
	for _, w := range t.workloadsOf(pods) {
		for i := range w.Template.Spec.Containers {
			mounts := w.Template.Spec.Containers[i].VolumeMounts
			for j := range mounts {
				at := strings.TrimSuffix(mounts[j].MountPath, "/")
				if (path == at || strings.HasPrefix(path, at+"/")) && (found == nil || len(at) > len(strings.TrimSuffix(found.MountPath, "/"))) {
					of, found = w, &mounts[j]
				}
			}
		}
	}
	return of, found
}

// workloadsOf returns the topic's workloads that pods with these names belong to.
func (t *topic) workloadsOf(pods []string) []report.Workload {
	near := map[operation.Ref]bool{}
	for i := range t.snap.Pods {
		pod := &t.snap.Pods[i]
		if slices.Contains(pods, pod.Name) && (t.namespace == "" || pod.Namespace == t.namespace) {
			maps.Copy(near, relatedObjects(t.snap, []operation.Ref{{Version: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}}))
		}
	}
	return slices.DeleteFunc(t.view().Workloads(), func(w report.Workload) bool {
		return !near[operation.Ref{Kind: w.Ref.Kind, Namespace: w.Ref.Namespace, Name: w.Ref.Name}]
	})
}

// describeVolume describes the volume of a mount. Only claims and emptyDirs fill up by what a container writes.
func (t *topic) describeVolume(w report.Workload, mount corev1.VolumeMount) string {
	for _, v := range w.Template.Spec.Volumes {
		switch {
		case v.Name != mount.Name:
		case v.EmptyDir != nil:
			return fmt.Sprintf("The volume %s at %s may be full.", report.Code(v.Name), report.Code(mount.MountPath))
		case v.PersistentVolumeClaim != nil:
			return t.describeClaim(w.Ref.Namespace, v.PersistentVolumeClaim.ClaimName, mount.MountPath)
		}
	}
	for i := range t.snap.StatefulSets {
		s := &t.snap.StatefulSets[i]
		if w.Ref.Kind != "StatefulSet" || s.Name != w.Ref.Name || s.Namespace != w.Ref.Namespace {
			continue
		}
		if slices.ContainsFunc(s.Spec.VolumeClaimTemplates, func(c corev1.PersistentVolumeClaim) bool { return c.Name == mount.Name }) {
			return fmt.Sprintf("%s is on a volume claim made from template %s, and may be full.", report.Code(mount.MountPath), report.Code(mount.Name))
		}
	}
	return ""
}

func (t *topic) describeClaim(namespace, name, path string) string {
	for i := range t.snap.Claims {
		c := &t.snap.Claims[i]
		if c.Name == name && c.Namespace == namespace {
			size := c.Status.Capacity[corev1.ResourceStorage]
			return fmt.Sprintf("%s is on volume claim %s of %s, and may be full. To enlarge it, raise its `spec.resources.requests.storage`, if its storage class allows that.", report.Code(path), report.Code(c.Name), size.String())
		}
	}
	return fmt.Sprintf("The volume at %s may be full.", report.Code(path))
}
