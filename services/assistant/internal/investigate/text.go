package investigate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/kubectl"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
	"github.com/mlp-platform/platform/services/assistant/internal/spelling"
)

const examples = `- what is wrong in shop?
- why does api crash?
- which pods are not ready?
- who can delete pods in shop?
- what changed in the last hour?
- roll back web; it is shown and waits for your approval
- any kubectl line, such as ` + "`kubectl get pods -n shop`"

const (
	assentText      = "That approves nothing, and nothing was changed. A pending change runs only on `yes`, `approve` or `proceed`, each as the whole message, and is dropped with `no`; it may also wait."
	assentElsewhere = "That approves nothing, and nothing was changed. A pending change is approved or denied with the buttons of its card; it may also wait."
	unreadOrder     = "I read that as a request for a change and did not understand it, so nothing was changed and no change is proposed. Changes that I understand, for example:\n\n- scale %[1]s to 3\n- restart %[1]s\n- roll back %[1]s\n- set the memory limit of %[1]s to 512Mi\n- set the image of %[1]s to IMAGE:TAG\n- drain NODE, cordon NODE\n\nFor what is wrong with it, ask `what is wrong with %[1]s?`"
	heldText        = "So nothing is changed and nothing is proposed: changes are made at once or not at all, never on a condition or later. When it is time, say only the change, such as `restart api`."
)

func (w *work) greeting() string {
	name := "the cluster"
	if w.cfg.ClusterName != "" {
		name = "cluster " + report.Code(w.cfg.ClusterName)
	}
	return "I look into " + name + " and find out what is wrong. Ask, for example:\n\n" + examples
}

// refuseName answers a name that could be more than a name.
func refuseName(name string) string {
	why := "it is no object name"
	if _, err := kubectl.Parse("kubectl get pod " + name); err != nil {
		why = err.Error()
	}
	return fmt.Sprintf("%s was refused as a name and nothing was sent to the cluster: %s", report.Code(name), why)
}

// refTitle formats an object for a sentence.
func refTitle(r operation.Ref) string {
	if r.Namespace == "" {
		return strings.ToLower(r.Kind) + " " + report.Code(r.Name)
	}
	return fmt.Sprintf("%s %s in namespace %s", strings.ToLower(r.Kind), report.Code(r.Name), report.Code(r.Namespace))
}

// short omits the namespace if the topic has only one.
func (t *topic) short(r operation.Ref) string {
	if r.Namespace == t.namespace {
		r.Namespace = ""
	}
	return refTitle(r)
}

// refTitles formats objects, grouped by name and namespace.
func refTitles(refs []operation.Ref) string {
	if len(refs) == 1 {
		return refTitle(refs[0])
	}
	if len(refs) == 0 {
		return "nothing"
	}
	var list []string
	for i, r := range refs {
		if i == 5 {
			list = append(list, fmt.Sprintf("%d more", len(refs)-5))
			break
		}
		list = append(list, refTitle(r))
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}

func (t *topic) where() string {
	return report.Place(t.namespace, t.except)
}

func (t *topic) view() report.View {
	return report.View{Snapshot: t.snap, Namespace: t.namespace, Except: t.except, Objects: t.objects, Within: t.within}
}

// listUnread lists the kinds that could not be read.
func listUnread(s *engine.Snapshot) string {
	if len(s.Unread) == 0 {
		return ""
	}
	return " Not read, and so not judged: " + strings.Join(slices.Sorted(maps.Keys(s.Unread)), ", ") + "."
}

// describePause reports that the rollout of a deployment is paused, whether or not a change waits for it.
func describePause(s *engine.Snapshot, r operation.Ref) string {
	for i := range s.Deployments {
		if d := &s.Deployments[i]; r.Kind == "Deployment" && d.Name == r.Name && d.Namespace == r.Namespace && d.Spec.Paused {
			return " Its rollout is paused."
		}
	}
	return ""
}

// describeStanding describes the state of an object in one line that begins with its name.
func describeStanding(s *engine.Snapshot, r operation.Ref) string {
	head := strings.ToUpper(r.Kind[:1]) + refTitle(r)[1:]
	v := report.View{Snapshot: s, Namespace: r.Namespace, Objects: []operation.Ref{r}}
	switch r.Kind {
	case "Deployment", "StatefulSet", "DaemonSet":
		for _, w := range v.Workloads() {
			if w.Ref.Kind == r.Kind {
				more := ""
				if w.Unwell > 0 && w.Ready >= w.Wanted {
					more = fmt.Sprintf("; of its further pods %d not healthy", w.Unwell)
				}
				return fmt.Sprintf("%s has %d of %d pods ready%s.%s", head, w.Ready, w.Wanted, more, describePause(s, r)+describeManager(s, r))
			}
		}
	case "Service":
		for i := range s.Services {
			if sv := &s.Services[i]; sv.Name == r.Name && sv.Namespace == r.Namespace && sv.Spec.Type != corev1.ServiceTypeExternalName {
				return fmt.Sprintf("%s has %s.", head, engine.CountNoun(v.Endpoints(r.Namespace, r.Name), "ready endpoint", "ready endpoints"))
			}
		}
	case "Pod":
		for i := range s.Pods {
			if p := &s.Pods[i]; p.Name == r.Name && p.Namespace == r.Namespace {
				return fmt.Sprintf("%s is %s.", head, report.Code(report.State(p)))
			}
		}
	case "CronJob":
		for i := range s.CronJobs {
			if c := &s.CronJobs[i]; c.Name == r.Name && c.Namespace == r.Namespace {
				if c.Spec.Suspend != nil && *c.Spec.Suspend {
					return head + " is suspended."
				}
				return fmt.Sprintf("%s runs at %s; %d of its jobs run now.", head, report.Code(c.Spec.Schedule), len(c.Status.Active))
			}
		}
	case "Job":
		for i := range s.Jobs {
			if j := &s.Jobs[i]; j.Name == r.Name && j.Namespace == r.Namespace {
				return fmt.Sprintf("%s has %d pods that succeeded, %d that failed and %d that run.", head, j.Status.Succeeded, j.Status.Failed, j.Status.Active)
			}
		}
	}
	return standingQuiet(s, r, head)
}

func standingQuiet(s *engine.Snapshot, r operation.Ref, head string) string {
	switch r.Kind {
	case "Node":
		for i := range s.Nodes {
			if n := &s.Nodes[i]; n.Name == r.Name {
				state := "is not ready"
				for _, c := range n.Status.Conditions {
					if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
						state = "is ready"
					}
				}
				if n.Spec.Unschedulable {
					state += " and cordoned"
				}
				return head + " " + state + "."
			}
		}
	case "Namespace":
		for i := range s.Namespaces {
			if n := &s.Namespaces[i]; n.Name == r.Name {
				return fmt.Sprintf("%s is %s.", head, report.Code(string(n.Status.Phase)))
			}
		}
	case "PersistentVolumeClaim":
		for i := range s.Claims {
			if c := &s.Claims[i]; c.Name == r.Name && c.Namespace == r.Namespace {
				return fmt.Sprintf("%s is %s.", head, report.Code(string(c.Status.Phase)))
			}
		}
	case "HorizontalPodAutoscaler":
		for i := range s.Autoscalers {
			if h := &s.Autoscalers[i]; h.Name == r.Name && h.Namespace == r.Namespace {
				return fmt.Sprintf("%s has %d replicas and wants %d, at most %d.", head, h.Status.CurrentReplicas, h.Status.DesiredReplicas, h.Spec.MaxReplicas)
			}
		}
	case "Gateway":
		return describeGateway(s, r, head)
	case "GatewayClass":
		return describeClass(s, r, head)
	case "HTTPRoute", "GRPCRoute", "TLSRoute":
		return describeRoute(s, r, head)
	case "Certificate":
		return describeIssued(s, r, head)
	case "Application":
		return describeApplication(s, r, head)
	case "Issuer", "ClusterIssuer", "CertificateRequest", "Order", "Challenge":
		return describeIssuer(s, r, head)
	case "Secret":
		return cmp.Or(describeRelease(s, r, head), describeCertificate(head, certificateOf(s, r)))
	}
	return ""
}

// describeAbsent answers names and namespaces that do not exist, with similar ones.
func describeAbsent(t *topic) string {
	if t.noNamespace != "" {
		text := fmt.Sprintf("There is no namespace %s.", report.Code(t.noNamespace))
		if t.snap == nil {
			return text
		}
		var near, all []string
		for i := range t.snap.Namespaces {
			name := t.snap.Namespaces[i].Name
			all = append(all, name)
			if spelling.Distance(name, t.noNamespace) <= max(1, len(name)/3) || strings.HasPrefix(name, t.noNamespace) {
				near = append(near, name)
			}
		}
		return text + namesText(" The closest is ", near, " There are ", all)
	}
	var lines []string
	for _, m := range t.missing {
		lines = append(lines, absentName(t, m))
	}
	return strings.Join(lines, " ")
}

func namesText(some string, near []string, many string, all []string) string {
	list, lead := near, some
	if len(near) == 0 {
		list, lead = all, many
	}
	if len(list) == 0 {
		return ""
	}
	slices.Sort(list)
	shown := make([]string, 0, len(list))
	for i, n := range list {
		if i == 15 {
			shown = append(shown, fmt.Sprintf("%d more", len(list)-15))
			break
		}
		shown = append(shown, report.Code(n))
	}
	return lead + strings.Join(shown, ", ") + "."
}

func absentName(t *topic, m question.Mention) string {
	kind := "object with the name"
	if m.Kind != "" {
		kind = m.Kind
	}
	text := fmt.Sprintf("There is no %s %s %s.", kind, report.Code(m.Name), t.where())
	if plural := report.PluralOf(m.Kind); t.snap != nil && t.snap.Unread[plural] {
		text = fmt.Sprintf("Not all %s could be read, so whether there is %s %s is not known.", plural, report.Code(m.Name), t.where())
	}
	if hosts := servedHosts(t.snap); m.Kind == "" && t.lacksHost(m.Name, hosts) {
		return fmt.Sprintf("No ingress, route or gateway is for the host %s. The hosts that are served are %s.", report.Code(m.Name), engine.QuoteCodes(hosts))
	}
	if near := similarNames(t.snap, t.namespace, m); len(near) > 0 {
		var list []string
		for _, r := range near {
			list = append(list, refTitle(r))
		}
		return text + " The closest is " + strings.Join(list, ", ") + "."
	}
	if m.Kind == "node" {
		var all []string
		for i := range t.snap.Nodes {
			all = append(all, t.snap.Nodes[i].Name)
		}
		text += namesText("", nil, " The nodes are ", all)
	}
	return text
}
