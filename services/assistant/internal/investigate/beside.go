package investigate

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
)

// mostBeside limits the further findings of the same place that are shown with their cause.
const mostBeside = 3

// listBeside lists further findings of the place that was asked about, each with its cause in one line; empty: too
// many.
func (t *topic) listBeside(others []engine.Finding) string {
	if t.namespace == "" || len(others) > mostBeside {
		return ""
	}
	var b strings.Builder
	for _, f := range others {
		if f.Object.Namespace != t.namespace {
			return ""
		}
		fmt.Fprintf(&b, "- %s: %s", refTitle(f.Object), f.Cause)
		if log := quotedLog(f); log != "" {
			b.WriteString(log)
		} else if len(f.Evidence) > 0 {
			b.WriteString(" " + f.Evidence[0])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// lastWarning returns the newest warning about an object, which explains more than its state if no playbook knows the
// cause.
func lastWarning(s *engine.Snapshot, kind, namespace, name string) string {
	text := ""
	var at int64
	uid := uidOf(s, kind, namespace, name)
	for i := range s.Events {
		e := &s.Events[i]
		if e.Type != "Warning" || e.InvolvedObject.Kind != kind || e.InvolvedObject.Namespace != namespace || e.InvolvedObject.Name != name {
			continue
		}
		if about := e.InvolvedObject.UID; kind != "Node" && uid != "" && about != "" && about != uid {
			continue // about an earlier object of that name; kubelets set a node's uid to its name
		}
		when := engine.LastSeen(e).Unix()
		if text == "" || when >= at {
			text, at = fmt.Sprintf(" The newest warning, %s, says %s.", report.Code(e.Reason), engine.QuoteCode(e.Message)), when
		}
	}
	return text
}

// uidOf returns the uid of an object, or "".
func uidOf(s *engine.Snapshot, kind, namespace, name string) types.UID {
	for _, o := range nameableObjects(s) {
		if o.ref.Kind == kind && o.ref.Namespace == namespace && o.ref.Name == name {
			return o.meta.GetUID()
		}
	}
	return ""
}

// gates names the scheduling gates that hold a pod back.
func gates(s *engine.Snapshot, r operation.Ref) string {
	if r.Kind != "Pod" {
		return ""
	}
	for i := range s.Pods {
		pod := &s.Pods[i]
		if pod.Name != r.Name || pod.Namespace != r.Namespace || len(pod.Spec.SchedulingGates) == 0 {
			continue
		}
		var names []string
		for _, g := range pod.Spec.SchedulingGates {
			names = append(names, report.Code(g.Name))
		}
		return " It waits for its scheduling gate " + strings.Join(names, ", ") + ", which its owner must remove."
	}
	return ""
}
