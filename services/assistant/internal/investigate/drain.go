package investigate

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
)

// drainPlan answers what draining nodes would do.
func (w *work) drainPlan(t *topic) {
	w.synthesize()
	var nodes []string
	for _, r := range t.objects {
		if r.Kind == "Node" {
			nodes = append(nodes, r.Name)
		}
	}
	if len(nodes) == 0 {
		for i := range t.snap.Nodes {
			nodes = append(nodes, t.snap.Nodes[i].Name)
		}
		w.say("No node was named, so this is the plan for each.")
	}
	w.say(report.DrainPlan(t.view(), nodes))
	if elsewhere := func(p corev1.Pod) bool { return p.Namespace != t.namespace }; t.namespace != "" && !slices.ContainsFunc(t.snap.Pods, elsewhere) {
		w.say(fmt.Sprintf("Pods of other namespaces than %s were not read, so those on the node are not listed.", report.Code(t.namespace)))
	}
	for _, f := range playbook.Findings(t.snap, "") {
		if f.Class == engine.PendingPlacement {
			w.say("Pods may not start on other nodes: for " + engine.RefTitle(f.Object) + " this is so already. " + f.Cause)
			break
		}
	}
	w.say("Nothing was drained. To have it proposed, say for example `drain " + firstOr(nodes, "node-1") + "`.")
}

func firstOr(list []string, otherwise string) string {
	if len(list) > 0 {
		return list[0]
	}
	return otherwise
}
