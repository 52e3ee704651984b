package network

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/logtext"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/spelling"
	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// setting is a cluster-internal address in a variable of a container.
type setting struct {
	container, variable string
	value               string
	address
	// portVariable is the variable that holds the port, if it is a separate one: DB_PORT with DB_HOST.
	portVariable string
}

// settings returns the addresses in the variables of a pod's containers.
func (x *Index) settings(pod *corev1.Pod) []setting {
	var all []setting
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			c := &list[i]
			for _, e := range c.Env {
				for _, a := range x.addresses(e) {
					s := setting{container: c.Name, variable: e.Name, value: e.Value, address: a}
					if s.port == 0 && !strings.Contains(e.Value, "://") {
						s.port, s.portVariable = portBeside(c.Env, e.Name)
					}
					all = append(all, s)
				}
			}
		}
	}
	return all
}

// portBeside returns the port in the variable whose name has the same prefix as that of a host.
func portBeside(env []corev1.EnvVar, host string) (port int32, variable string) {
	for _, part := range telling {
		prefix, ok := strings.CutSuffix(strings.ToUpper(host), part)
		if !ok || prefix == "" {
			continue
		}
		for _, e := range env {
			if strings.ToUpper(e.Name) != prefix+"PORT" {
				continue
			}
			if port, err := parsePort(e.Value); err == nil && port > 0 {
				return port, e.Name
			}
		}
	}
	return 0, ""
}

// serviceOf returns the name and the namespace of the service that a host would be; ok is false for one outside the
// cluster, or in a namespace that was not read.
func (x *Index) serviceOf(host string, pod *corev1.Pod) (of engine.Name, ok bool) {
	service, rest, _ := strings.Cut(host, ".")
	namespace, domain, _ := strings.Cut(rest, ".")
	of = engine.Name{Namespace: cmp.Or(namespace, pod.Namespace), Name: service}
	switch {
	case domain != "" && domain != "svc" && !strings.HasPrefix(domain, "svc."):
		return of, false
	case x.Within != "" && of.Namespace != x.Within:
		return of, false
	case domain == "" && rest != "" && len(x.ServicesIn()[namespace]) == 0:
		return of, false // any name of two parts
	case service == "localhost" || service == pod.Name || service == pod.Spec.Hostname:
		return of, false
	}
	for _, alias := range pod.Spec.HostAliases {
		if slices.Contains(alias.Hostnames, host) {
			return of, false
		}
	}
	return of, true
}

// Absent is a service that a variable names and that does not exist.
type Absent struct {
	engine.Name
	Container string
	// Backend is the workload with the service's name, if there is one: it lacks its service.
	Backend *engine.Workload
}

// AbsentServices returns the services that the variables of a pod name and that do not exist.
func (x *Index) AbsentServices(pod *corev1.Pod) []Absent {
	if x.Unread["services"] {
		return nil
	}
	var all []Absent
	for _, s := range x.settings(pod) {
		of, inside := x.serviceOf(s.host, pod)
		if inside && x.ServiceByName[of] == nil && !slices.ContainsFunc(all, func(a Absent) bool { return a.Name == of && a.Container == s.container }) {
			all = append(all, Absent{of, s.container, x.workloadNamed(of)})
		}
	}
	return all
}

// workloadNamed returns the workload with a name, if it serves others, or nil.
func (x *Index) workloadNamed(of engine.Name) *engine.Workload {
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		if w := x.Workloads[operation.Ref{Group: "apps", Version: "v1", Kind: kind, Namespace: of.Namespace, Name: of.Name}]; w != nil {
			return w
		}
	}
	return nil
}

// checkVariables explains NameResolution and ServicePort: a variable that names a service which does not exist, or a
// port that the service does not have. Programs ship with variables for optional dependencies, so a name alone is no
// fault: it takes a workload without its service, a service with a similar name, or a failed lookup to prove it.
func checkVariables(x *Index, pod *corev1.Pod, w *engine.Workload) []engine.Finding {
	if x.Unread["services"] || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	told := map[string]string{} // by container: the name that crashed it; empty if the log does not contain it
	for _, c := range engine.ListContainers(pod) {
		if l, ok := x.failedLookup(pod, c); ok && engine.KeepsCrashing(pod, c) {
			told[c.Spec.Name] = l.host
		}
	}
	var found []engine.Finding
	for _, s := range x.settings(pod) {
		of, inside := x.serviceOf(s.host, pod)
		host, blamed := told[s.container]
		if !inside || blamed && host == s.host {
			continue
		}
		f := engine.Finding{Object: w.Ref, Container: s.container, Confidence: engine.High}
		f.Evidence = []string{fmt.Sprintf("The variable %s of container %s is for %s.", engine.QuoteCode(s.variable), engine.QuoteCode(s.container), engine.QuoteCode(s.text()))}
		service := x.ServiceByName[of]
		ok := service == nil && x.explainAbsentService(&f, s, of, pod) || service != nil && explainAbsentPort(&f, s, service, w)
		if !ok || blamed && f.Confidence < engine.High || slices.ContainsFunc(found, func(other engine.Finding) bool { return other.Cause == f.Cause }) {
			continue
		}
		f.Effects = []engine.Effect{{Of: w.Ref, Classes: []engine.Class{engine.CrashLoop, engine.LivenessProbe, engine.ReadinessProbe, engine.InitContainer, engine.JobFailed, engine.RolloutStuck}, Unproved: true}}
		found = append(found, f)
	}
	return found
}

func (a address) text() string {
	if a.port == 0 {
		return a.host
	}
	return a.host + ":" + strconv.Itoa(int(a.port))
}

// explainAbsentService reports whether there is more evidence than a variable that a service is missing.
func (x *Index) explainAbsentService(f *engine.Finding, s setting, of engine.Name, pod *corev1.Pod) bool {
	f.Class = engine.NameResolution
	f.Evidence = append(f.Evidence, fmt.Sprintf("Namespace %s was searched: no service has the name %s.", engine.QuoteCode(of.Namespace), engine.QuoteCode(of.Name)))
	failed := ""
	for _, l := range x.lookups(pod) {
		if l.host == s.host || strings.HasPrefix(l.host, s.host+".") {
			failed = l.line
			f.Evidence = append(f.Evidence, fmt.Sprintf("The log of pod %s says %s.", engine.QuoteCode(pod.Name), engine.QuoteCode(l.line)))
			break
		}
	}
	near := x.nearService(s.address, of)
	switch backend := x.workloadNamed(of); {
	case backend != nil:
		f.Cause = fmt.Sprintf("The variable %s names the service %s, which does not exist: %s has no service of its name, so it cannot be reached.", engine.QuoteCode(s.variable), engine.QuoteCode(of.Name), engine.RefTitle(backend.Ref))
		f.Text = fmt.Sprintf("Create the service %s for the pods of %s.", engine.QuoteCode(of.Name), engine.RefTitle(backend.Ref))
	case near != nil:
		if failed == "" {
			f.Confidence = engine.Medium
		}
		f.Cause = fmt.Sprintf("The variable %s names the host %s, and there is no service of that name. The nearest is %s, with %s.", engine.QuoteCode(s.variable), engine.QuoteCode(s.host), engine.QuoteCode(near.Name), portsText(near))
		f.Text = fmt.Sprintf("Let the variable name %s, if that is meant.", engine.QuoteCode(near.Name))
	case failed != "":
		f.Cause = fmt.Sprintf("The variable %s names the host %s, and there is no service of that name.", engine.QuoteCode(s.variable), engine.QuoteCode(s.host))
		f.Text = "Correct the name that the program is given, or create the service."
	default:
		return false
	}
	return true
}

// nearService returns the only service with a name similar to that of a host, and with its port if both have one.
func (x *Index) nearService(a address, of engine.Name) *corev1.Service {
	var near *corev1.Service
	for _, s := range x.ServicesIn()[of.Namespace] {
		if !nearlyNamed(of.Name, s.Name) || a.port != 0 && !hasPort(s, a.port) {
			continue
		}
		if near != nil {
			return nil
		}
		near = s
	}
	return near
}

// nearlyNamed reports whether two names differ in one or two letters, or by whole words at either end.
func nearlyNamed(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if strings.HasPrefix(b, a+"-") || strings.HasSuffix(b, "-"+a) {
		return true
	}
	return len(a) > 3 && len(b)-len(a) <= 2 && spelling.Distance(a, b) <= 2
}

func hasPort(s *corev1.Service, port int32) bool {
	return slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port })
}

func portsText(s *corev1.Service) string {
	var all []string
	for _, p := range s.Spec.Ports {
		all = append(all, strconv.Itoa(int(p.Port)))
	}
	if len(all) == 1 {
		return "port " + engine.QuoteCode(all[0])
	}
	return "the ports " + engine.QuoteCodes(all)
}

// explainAbsentPort reports whether a variable contains a port that its service does not have. A headless service leads
// to any port of its pods.
func explainAbsentPort(f *engine.Finding, s setting, service *corev1.Service, w *engine.Workload) bool {
	if s.port == 0 || service.Spec.ClusterIP == corev1.ClusterIPNone || service.Spec.Type == corev1.ServiceTypeExternalName || len(service.Spec.Ports) == 0 || hasPort(service, s.port) {
		return false
	}
	f.Class = engine.ServicePort
	f.Touches = []operation.Ref{engine.ServiceRef(service)}
	variable := cmp.Or(s.portVariable, s.variable)
	f.Evidence = append(f.Evidence, fmt.Sprintf("The service %s has %s.", engine.QuoteCode(service.Name), portsText(service)))
	f.Cause = fmt.Sprintf("The variable %s names port %d of the service %s, which does not have that port: it has %s, so nothing answers.", engine.QuoteCode(variable), s.port, engine.QuoteCode(service.Name), portsText(service))
	f.Text = fmt.Sprintf("Choose the port for the variable %s.", engine.QuoteCode(variable))
	if len(service.Spec.Ports) != 1 {
		return true
	}
	right := strconv.Itoa(int(service.Spec.Ports[0].Port))
	value := s.host + ":" + right
	switch {
	case s.portVariable != "":
		value = right
	case s.value != s.text():
		f.Text = fmt.Sprintf("Let the variable %s name port %s.", engine.QuoteCode(variable), right)
		return true // the rest of a value may be secret
	}
	if f.Fix = engine.PatchPodSpec(w, engine.Members{listOf(w, s.container): []any{engine.Members{"name": s.container, "env": []any{engine.Members{"name": variable, "value": value}}}}}); f.Fix != nil {
		f.Text = fmt.Sprintf("Let the variable %s be %s.", engine.QuoteCode(variable), engine.QuoteCode(value))
	}
	return true
}

// listOf returns the member of a pod's spec that contains a container.
func listOf(w *engine.Workload, container string) string {
	if w.Template != nil && slices.ContainsFunc(w.Template.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == container }) {
		return "initContainers"
	}
	return "containers"
}

// Called returns the services that the variables of a pod name.
func (x *Index) Called(pod *corev1.Pod) []*corev1.Service {
	var all []*corev1.Service
	for _, c := range x.calls(pod) {
		all = append(all, c.service)
	}
	return all
}

// WrongAddress explains a line in which a running program reports an impossible address: a name that no service has, or
// a port that its service does not have.
func (x *Index) WrongAddress(pod *corev1.Pod, line string) (f engine.Finding, ok bool) {
	if x.Unread["services"] {
		return f, false
	}
	said := fmt.Sprintf("The log of pod %s says %s.", engine.QuoteCode(pod.Name), engine.QuoteLine(line))
	for _, expr := range lookupExprs {
		m := expr.FindStringSubmatch(line)
		if m == nil || m[1] == "" {
			continue
		}
		host := strings.TrimSuffix(m[1], ".")
		of, inside := x.serviceOf(host, pod)
		if _, down := x.nameServer(); !inside || down || x.ServiceByName[of] != nil {
			return f, false
		}
		f = engine.Finding{Class: engine.NameResolution, Confidence: engine.High, Evidence: []string{said}}
		explainWrongName(&f, x, pod, host)
		return f, true
	}
	if !dialExpr.MatchString(line) {
		return f, false
	}
	for _, h := range logtext.Hosts(line) {
		port, err := parsePort(h.Port)
		s := x.serviceAt(h.Name, pod)
		if err != nil || port == 0 || s == nil || hasPort(s, port) || s.Spec.ClusterIP == corev1.ClusterIPNone || len(s.Spec.Ports) == 0 || s.Spec.Type == corev1.ServiceTypeExternalName {
			continue
		}
		f = engine.Finding{Class: engine.ServicePort, Confidence: engine.High, Touches: []operation.Ref{engine.ServiceRef(s)}}
		f.Evidence = []string{said, fmt.Sprintf("The service %s has %s.", engine.QuoteCode(s.Name), portsText(s))}
		f.Cause = fmt.Sprintf("The program calls port %d of the service %s, which does not have that port: it has %s, so nothing answers.", port, engine.QuoteCode(s.Name), portsText(s))
		f.Text = "Correct the port that the program is given, in its variables, ConfigMap or Secret."
		return f, true
	}
	return f, false
}

// dialExpr matches a line about a failed outgoing connection.
var dialExpr = regexp.MustCompile(`(?i)\b` + wordlist.AnyOf(`dial(ing)?`, `connect\w*`, `communications link`, `refused`, `timed? ?out`, `timeout`, `unreachable`, `unavailable`) + `\b`)

// serviceAt returns the service that a name or an address leads to.
func (x *Index) serviceAt(host string, pod *corev1.Pod) *corev1.Service {
	if s := x.ServiceNamed(host, pod.Namespace); s != nil {
		return s
	}
	for i := range x.Services {
		if s := &x.Services[i]; s.Spec.ClusterIP == host && host != "" {
			return s
		}
	}
	return nil
}
