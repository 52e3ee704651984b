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
	evidenceTime   = 3 * time.Second // for all of them together
)

// logEvidence is what the logs of a workload tell.
type logEvidence struct {
	sources []logtext.Source
	read    string // what was read and what was not, as a sentence
	groups  []logtext.Group
	gap     string // which logs were not read, as the end of a sentence; empty: none
}

// readEvidence reads the logs of the pods of a topic, of all containers and of the run before a
// recent restart, up to the bounds.
func (w *work) readEvidence(ctx context.Context, t *topic) (logEvidence, error) {
	wanted := t.view().LogSources(engine.Recent)
	var e logEvidence
	pods := map[string]bool{}
	bytes, failed, skipped, late := 0, 0, 0, false
	limited, cancel := context.WithTimeout(ctx, evidenceTime)
	defer cancel()
	for _, log := range wanted {
		pod := log.Namespace + "/" + log.Pod
		if limited.Err() != nil {
			late = true
			skipped++
			continue
		}
		if bytes >= evidenceBytes || !pods[pod] && len(pods) == evidencePods {
			skipped++
			continue
		}
		pods[pod] = true
		op := operation.Operation{Verb: operation.Logs, Kind: "pod", Names: []string{log.Pod}, Namespace: log.Namespace, Container: log.Container, Previous: log.Previous, Tail: operation.MaxLimit}
		if t.within > 0 && t.within <= 24*time.Hour && !log.Previous {
			op.Since = t.within.String()
		}
		out, err := w.tools.Call(limited, operation.Normalize(op))
		if ctx.Err() != nil {
			return e, ctx.Err()
		}
		if limited.Err() != nil && err != nil {
			late = true
			skipped++
			continue
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
	switch {
	case t.snap.Unread["pods"], len(wanted) > 0 && len(e.sources) == 0:
		e.gap = "its logs were not read"
	case failed > 0, skipped > 0:
		e.gap = "not all of its logs were read"
	}
	if len(wanted) == 0 {
		return e, nil
	}
	e.read = fmt.Sprintf("Read %s (at most the last %d per log) from %s of %s", engine.CountNoun(lines, "line", "lines"), operation.MaxLimit,
		engine.CountNoun(len(e.sources), "log", "logs"), engine.CountNoun(len(pods), "pod", "pods"))
	if t.within > 0 {
		e.read += ", from the last " + report.FormatPeriod(t.within)
	}
	if failed > 0 {
		e.read += fmt.Sprintf("; %s could not be read", engine.CountNoun(failed, "log", "logs"))
	}
	if skipped == 1 {
		e.read += "; 1 further log was not read"
	} else if skipped > 1 {
		e.read += fmt.Sprintf("; %d further logs were not read", skipped)
	}
	if late {
		e.read += fmt.Sprintf(", since reading stopped after %s", evidenceTime)
	}
	e.read += "."
	return e, nil
}

// quote shows the lines that tell of trouble, and where they lead.
func (e logEvidence) quote(t *topic) string {
	var b strings.Builder
	b.WriteString("The logs show problems:\n\n")
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
	for _, lead := range t.leads(e.groups[:min(evidenceGroups, len(e.groups))]) {
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

// leads follow the hosts in lines to the Services that have these names or addresses. A Service
// without a selector, or with an external name, has no pods whose readiness could be told.
func (t *topic) leads(groups []logtext.Group) []string {
	unread := t.snap.Unread["services"] || t.snap.Unread["endpointslices"]
	var leads []string
	seen := map[string]bool{}
	for _, g := range groups {
		if text := t.fullDisk(g.Line); text != "" && !seen[text] {
			seen[text] = true
			leads = append(leads, text)
		}
		if unread {
			continue
		}
		for _, h := range logtext.Hosts(g.Line) {
			s := t.serviceOf(h.Name)
			if s == nil || len(leads) == mostLeads || len(s.Spec.Selector) == 0 || s.Spec.Type == corev1.ServiceTypeExternalName {
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
	text := fmt.Sprintf("%s is %s, which has %s.", report.Code(h.Name), refTitle(r), engine.CountNoun(ready, "ready endpoint", "ready endpoints"))
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
	// otherSpaceExpr names what the kernel calls "no space" too, and is no disk.
	otherSpaceExpr = regexp.MustCompile(`(?i)inotify|\bwatch|\bshm|/shm\b`)
	pathExpr       = regexp.MustCompile(`(?:^|[\s"'=(:])(/[\w./@+-]+)`)
)

// fullDisk leads from a line about a full disk to the volume that may be full.
func (t *topic) fullDisk(line string) string {
	if !fullDiskExpr.MatchString(line) || otherSpaceExpr.MatchString(line) {
		return ""
	}
	path := ""
	for _, m := range pathExpr.FindAllStringSubmatch(line, -1) {
		path = m[1]
		if w, mount := t.mountOf(path); mount != nil {
			return t.describeVolume(w, *mount)
		}
	}
	if path == "" {
		return ""
	}
	return fmt.Sprintf("%s is on no volume, so the container's own file system or the node's disk may be full.", report.Code(path))
}

// mountOf is the innermost mount that a path is on, with its workload, or nil.
func (t *topic) mountOf(path string) (of report.Workload, found *corev1.VolumeMount) {
	for _, w := range t.view().Workloads() {
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

// describeVolume tells what a mount leads to; other volumes than claims and emptyDirs do not fill up
// by what a container writes.
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
