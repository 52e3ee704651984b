package workload

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/logtext"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// Messages of programs about missing or wrong settings that Kubernetes provides.
var (
	linkValueExpr  = regexp.MustCompile(`tcp://(\d{1,3}(?:\.\d{1,3}){3}):(\d+)`)
	parseFaultExpr = regexp.MustCompile(`(?i)\b(invalid|pars(e|ing|er)|not a (valid )?(number|integer|port)|malformed|illegal|numberformat\w*|convert|nan)\b`)
	tokenExpr      = regexp.MustCompile(`(?i)service ?(account)? token file does not exist|(/var/run/secrets/kubernetes\.io/serviceaccount\S*|in-?cluster config\w*).*(no such file|not found|does not exist|unable to load)|(no such file|not found|does not exist|unable to load).*(/var/run/secrets/kubernetes\.io/serviceaccount|in-?cluster config)`)
	mountFaultExpr = regexp.MustCompile(`(?i)error mounting|are you trying to mount a directory`)
)

// lastWords is the number of a program's last lines that may give the reason why it ended.
const lastWords = 5

// explainBySurroundings replaces the cause of a container that ends, if an object of the cluster proves another cause
// than the program reports: a volume's path, a variable that Kubernetes set, a token that is not mounted.
func (x *Index) explainBySurroundings(f *engine.Finding, pod *corev1.Pod, lines []string, c engine.Container) {
	end := c.LastEnd()
	if end == nil {
		return
	}
	if mountFaultExpr.MatchString(end.Message) {
		x.explainMount(f, pod, c, end.Message)
		return
	}
	if f.Confidence == engine.High {
		return
	}
	last := lines[:min(len(lines), lastWords)]
	for i, line := range last {
		switch value := linkValueExpr.FindStringSubmatch(line); {
		case value != nil && parseFaultExpr.MatchString(line) && !dependencyExpr.MatchString(line) && engine.ValueOr(pod.Spec.EnableServiceLinks, true):
			x.explainServiceLink(f, pod, c, value, line, last)
			return
		case tokenExpr.MatchString(line):
			if !tellsTrouble(last[:i]) {
				x.explainToken(f, pod, c, line)
			}
			return
		}
	}
}

// tellsTrouble reports whether one of these lines reports an error.
func tellsTrouble(lines []string) bool {
	if slices.ContainsFunc(lines, dependencyExpr.MatchString) || slices.ContainsFunc(lines, noFileExpr.MatchString) {
		return true
	}
	text := slices.Clone(lines)
	slices.Reverse(text)
	groups, _ := logtext.Telling([]logtext.Source{{Text: strings.Join(text, "\n")}})
	return len(groups) > 0 && !groups[0].Hint
}

// explainMount explains which path in a ConfigMap or Secret a mount names that does not exist.
func (x *Index) explainMount(f *engine.Finding, pod *corev1.Pod, c engine.Container, message string) {
	f.Evidence = append(f.Evidence[:1:1], "The runtime says "+engine.QuoteLine(message)+".")
	f.Fix = nil
	f.Cause, f.Confidence = "A volume cannot be mounted where the container wants it, so its program never starts.", engine.Medium
	f.Text = "Compare the path of the mount, and its subPath, with what the volume holds and what the image has there."
	for _, m := range c.Spec.VolumeMounts {
		if at := regexp.MustCompile(regexp.QuoteMeta(m.MountPath) + `(["',:\s]|$)`); m.SubPath == "" || !at.MatchString(message) {
			continue
		}
		i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if i < 0 {
			continue
		}
		kind, name, keys := x.keysOfVolume(pod, &pod.Spec.Volumes[i])
		if name == "" || slices.Contains(keys, m.SubPath) {
			continue
		}
		f.Confidence = engine.High
		f.Cause = fmt.Sprintf("The mount on %s takes the subPath %s, which is no key of the %s %s: an empty directory takes its place, and a file is wanted there.", engine.QuoteCode(m.MountPath), engine.QuoteCode(m.SubPath), kind, engine.QuoteCode(name))
		f.Evidence = append(f.Evidence, fmt.Sprintf("The %s has %s.", kind, engine.QuoteCodes(keys)))
		f.Text = "Name a key that is there in `subPath`, or add the key."
		return
	}
}

// keysOfVolume returns the files of a volume made of one ConfigMap or Secret.
func (x *Index) keysOfVolume(pod *corev1.Pod, v *corev1.Volume) (kind, name string, keys []string) {
	switch {
	case v.ConfigMap != nil && len(v.ConfigMap.Items) == 0:
		keys, known := x.ConfigMapKeys[engine.Name{Namespace: pod.Namespace, Name: v.ConfigMap.Name}]
		if known {
			return "ConfigMap", v.ConfigMap.Name, keys
		}
	case v.Secret != nil && len(v.Secret.Items) == 0:
		keys, known := x.SecretKeys[engine.Name{Namespace: pod.Namespace, Name: v.Secret.SecretName}]
		if known {
			return "Secret", v.Secret.SecretName, keys
		}
	}
	return "", "", nil
}

// explainServiceLink explains a variable that Kubernetes sets for each Service of a namespace and that a program
// mistakes for one of its settings: REDIS_PORT of a Service called redis is tcp://ADDRESS:PORT. value holds the whole
// match, the address and the port; line is the line of last that contains it.
func (x *Index) explainServiceLink(f *engine.Finding, pod *corev1.Pod, c engine.Container, value []string, line string, last []string) {
	for i := range x.Services {
		s := &x.Services[i]
		hasPort := slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return strconv.Itoa(int(p.Port)) == value[2] })
		if s.Namespace != pod.Namespace || s.Spec.ClusterIP != value[1] || !hasPort {
			continue
		}
		variable := strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_")) + "_PORT"
		if x.mayBeSet(pod, c, variable) {
			continue // the template takes precedence
		}
		f.Fix = nil
		f.Cause, f.Confidence = fmt.Sprintf("Kubernetes sets the variable %s to %s, for the Service %s (a service link), and the program mistakes it for one of its settings.", engine.QuoteCode(variable), engine.QuoteCode(value[0]), engine.QuoteCode(s.Name)), engine.Medium
		if slices.ContainsFunc(last, regexp.MustCompile(`\b`+regexp.QuoteMeta(variable)+`\b`).MatchString) {
			f.Confidence = engine.High
		}
		f.Evidence = f.Evidence[:1:1]
		quoteLine(f, c, line)
		f.Evidence = append(f.Evidence, fmt.Sprintf("The Service %s has the address %s, and the pod's `enableServiceLinks` is not false.", engine.QuoteCode(s.Name), engine.QuoteCode(s.Spec.ClusterIP)))
		f.Text = fmt.Sprintf("Set `enableServiceLinks: false` in the pod's template, set %s there yourself, or give the Service another name.", engine.QuoteCode(variable))
		return
	}
}

// mayBeSet reports whether a container's template sets a variable, or may do so by a ConfigMap or Secret.
func (x *Index) mayBeSet(pod *corev1.Pod, c engine.Container, variable string) bool {
	if slices.ContainsFunc(c.Spec.Env, func(e corev1.EnvVar) bool { return e.Name == variable }) {
		return true
	}
	for _, from := range c.Spec.EnvFrom {
		var keys []string
		known := false
		switch {
		case from.ConfigMapRef != nil:
			keys, known = x.ConfigMapKeys[engine.Name{Namespace: pod.Namespace, Name: from.ConfigMapRef.Name}]
		case from.SecretRef != nil:
			keys, known = x.SecretKeys[engine.Name{Namespace: pod.Namespace, Name: from.SecretRef.Name}]
		}
		if key, fits := strings.CutPrefix(variable, from.Prefix); fits && (!known || slices.Contains(keys, key)) {
			return true
		}
	}
	return false
}

// explainToken explains that a pod whose log line reports a missing account token has none mounted.
func (x *Index) explainToken(f *engine.Finding, pod *corev1.Pod, c engine.Container, line string) {
	for _, v := range pod.Spec.Volumes {
		if v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(p corev1.VolumeProjection) bool { return p.ServiceAccountToken != nil }) {
			return // it mounts one explicitly
		}
	}
	account := cmp.Or(pod.Spec.ServiceAccountName, "default")
	who := ""
	switch {
	case pod.Spec.AutomountServiceAccountToken != nil:
		if !*pod.Spec.AutomountServiceAccountToken {
			who = "the pod's template"
		}
	default:
		for i := range x.ServiceAccounts {
			if a := &x.ServiceAccounts[i]; a.Namespace == pod.Namespace && a.Name == account && a.AutomountServiceAccountToken != nil && !*a.AutomountServiceAccountToken {
				who = "the service account " + engine.QuoteCode(account)
			}
		}
	}
	if who == "" {
		return
	}
	f.Fix = nil
	f.Evidence = f.Evidence[:1:1]
	quoteLine(f, c, line)
	f.Cause, f.Confidence = fmt.Sprintf("No token of its service account is mounted into the pod: %s says `automountServiceAccountToken: false`.", who), engine.High
	f.Text = "If the program is to call the API, set `automountServiceAccountToken: true` in the pod's template, which counts before that of the account."
}
