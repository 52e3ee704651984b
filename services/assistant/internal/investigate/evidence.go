package investigate

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/logtext"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// Bounds on the logs that one question reads as evidence.
const (
	evidencePods   = 20
	evidenceBytes  = 10 << 20
	evidenceGroups = 5
)

// logEvidence is what the logs of a workload tell.
type logEvidence struct {
	sources []logtext.Source
	read    string // what was read and what was not, as a sentence
	groups  []logtext.Group
}

// readEvidence reads the logs of the pods of a topic, of all containers and of the run before a
// recent restart, up to the bounds.
func (w *work) readEvidence(ctx context.Context, t *topic) (logEvidence, error) {
	wanted := t.view().LogSources(engine.Recent)
	var e logEvidence
	pods := map[string]bool{}
	bytes, failed, skipped := 0, 0, 0
	for _, log := range wanted {
		pod := log.Namespace + "/" + log.Pod
		if bytes >= evidenceBytes || !pods[pod] && len(pods) == evidencePods {
			skipped++
			continue
		}
		pods[pod] = true
		op := operation.Operation{Verb: operation.Logs, Kind: "pod", Names: []string{log.Pod}, Namespace: log.Namespace, Container: log.Container, Previous: log.Previous, Tail: operation.MaxLimit}
		if t.within > 0 && t.within <= 24*time.Hour && !log.Previous {
			op.Since = t.within.String()
		}
		out, err := w.tools.Call(ctx, operation.Normalize(op))
		if ctx.Err() != nil {
			return e, ctx.Err()
		}
		if err != nil {
			failed++
			continue
		}
		text := out.Whole
		if text == "" {
			text = out.Text
		}
		bytes += len(text)
		e.sources = append(e.sources, logtext.Source{Pod: log.Pod, Container: log.Container, Text: text})
	}
	var lines int
	e.groups, lines = logtext.Telling(e.sources)
	if len(wanted) == 0 {
		return e, nil
	}
	e.read = fmt.Sprintf("Read were %d lines: the last %d at most of each of %d logs of %d pods", lines, operation.MaxLimit, len(e.sources), len(pods))
	if t.within > 0 {
		e.read += ", of the last " + t.within.String()
	}
	if failed > 0 {
		e.read += fmt.Sprintf("; %d logs could not be read", failed)
	}
	if skipped > 0 {
		e.read += fmt.Sprintf("; %d further logs were not read", skipped)
	}
	e.read += "."
	return e, nil
}

// quote shows the lines that tell of trouble, and where they lead.
func (e logEvidence) quote(t *topic) string {
	var b strings.Builder
	b.WriteString("The logs tell of trouble:\n\n")
	for i, g := range e.groups {
		if i == evidenceGroups {
			fmt.Fprintf(&b, "- And %d further kinds of such lines.\n", len(e.groups)-evidenceGroups)
			break
		}
		fmt.Fprintf(&b, "- %s: %s", countLines(g), engine.QuoteCode(g.Line))
		if i == 0 && g.Before != "" {
			fmt.Fprintf(&b, "; the line before it is %s", engine.QuoteCode(g.Before))
		}
		b.WriteString(".\n")
	}
	for _, lead := range t.leads(e.groups) {
		b.WriteString("- " + lead + "\n")
	}
	return b.String()
}

func countLines(g logtext.Group) string {
	text := "Once"
	if g.Count > 1 {
		text = fmt.Sprintf("%d times", g.Count)
	}
	switch {
	case g.First.IsZero():
	case g.Count > 1:
		text += fmt.Sprintf(" from %s to %s", g.First.UTC().Format(time.DateTime), g.Last.UTC().Format(time.DateTime))
	default:
		text += " at " + g.First.UTC().Format(time.DateTime)
	}
	return text + " in " + engine.QuoteCodes(g.Pods)
}

// mostLeads limits the hosts of log lines that are followed.
const mostLeads = 4

// leads follow the hosts in lines to the Services that have these names or addresses.
func (t *topic) leads(groups []logtext.Group) []string {
	var leads []string
	seen := map[string]bool{}
	for _, g := range groups {
		if text := t.fullDisk(g.Line); text != "" && !seen[text] {
			seen[text] = true
			leads = append(leads, text)
		}
		for _, h := range logtext.Hosts(g.Line) {
			s := t.serviceOf(h.Name)
			if s == nil || len(leads) == mostLeads {
				continue
			}
			key := s.Namespace + "/" + s.Name
			if !seen[key] {
				seen[key] = true
				leads = append(leads, t.describeLead(s, h))
			}
		}
	}
	return leads
}

// serviceOf is the Service that a host of a log line names, seen from the topic's namespace.
func (t *topic) serviceOf(host string) *corev1.Service {
	from := t.namespace
	if len(t.objects) > 0 && t.objects[0].Namespace != "" {
		from = t.objects[0].Namespace
	}
	short := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(host, ".cluster.local"), ".svc"), ".")
	name, namespace, qualified := strings.Cut(short, ".")
	for i := range t.snap.Services {
		s := &t.snap.Services[i]
		own := slices.ContainsFunc(t.objects, func(r operation.Ref) bool { return r.Name == s.Name && r.Namespace == s.Namespace })
		switch {
		case s.Spec.ClusterIP == host && host != "":
			return s
		case own || s.Name != name:
		case qualified && s.Namespace == namespace, !qualified && s.Namespace == from:
			return s
		}
	}
	return nil
}

func (t *topic) describeLead(s *corev1.Service, h logtext.Host) string {
	r := engine.ServiceRef(s)
	ready := report.View{Snapshot: t.snap}.Endpoints(s.Namespace, s.Name)
	text := fmt.Sprintf("%s is %s, which has %d ready endpoints.", report.Code(h.Name), refTitle(r), ready)
	if h.Port != "" && !slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return fmt.Sprint(p.Port) == h.Port }) {
		text += fmt.Sprintf(" It has no port %s.", report.Code(h.Port))
	}
	other := &topic{snap: t.snap, namespace: s.Namespace, objects: []operation.Ref{r}}
	if about, _ := other.found(nil); len(about) > 0 {
		return text + " " + about[0].Cause
	}
	if ready == 0 {
		return text + " Nothing answers there."
	}
	return text + fmt.Sprintf(" Ask %s for its own logs.", report.Code("what is wrong with "+s.Name+" in "+s.Namespace+"?"))
}

var (
	fullDiskExpr = regexp.MustCompile(`(?i)\b` + wordlist.AnyOf("no space left on device", "ENOSPC", "disk quota exceeded") + `\b`)
	pathExpr     = regexp.MustCompile(`(?:^|[\s"'=(:])(/[\w./@+-]+)`)
)

// fullDisk leads from a line about a full disk to the volume that is full.
func (t *topic) fullDisk(line string) string {
	if !fullDiskExpr.MatchString(line) {
		return ""
	}
	path := ""
	for _, m := range pathExpr.FindAllStringSubmatch(line, -1) {
		path = m[1]
		for _, w := range t.view().Workloads() {
			for i := range w.Template.Spec.Containers {
				for _, mount := range w.Template.Spec.Containers[i].VolumeMounts {
					if m[1] == mount.MountPath || strings.HasPrefix(m[1], strings.TrimSuffix(mount.MountPath, "/")+"/") {
						return t.describeVolume(w, mount)
					}
				}
			}
		}
	}
	if path == "" {
		return ""
	}
	return fmt.Sprintf("%s is on no volume, so the container's own file system or the node's disk is full.", report.Code(path))
}

func (t *topic) describeVolume(w report.Workload, mount corev1.VolumeMount) string {
	for _, v := range w.Template.Spec.Volumes {
		if v.Name != mount.Name {
			continue
		}
		if v.PersistentVolumeClaim == nil {
			return fmt.Sprintf("The volume %s at %s is full.", report.Code(v.Name), report.Code(mount.MountPath))
		}
		for i := range t.snap.Claims {
			c := &t.snap.Claims[i]
			if c.Name == v.PersistentVolumeClaim.ClaimName && c.Namespace == w.Ref.Namespace {
				size := c.Status.Capacity[corev1.ResourceStorage]
				return fmt.Sprintf("%s is on volume claim %s of %s, and full. To enlarge it, raise its `spec.resources.requests.storage`, if its storage class allows that.", report.Code(mount.MountPath), report.Code(c.Name), size.String())
			}
		}
	}
	return fmt.Sprintf("The volume at %s is full.", report.Code(mount.MountPath))
}
