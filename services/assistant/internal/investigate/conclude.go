package investigate

import (
	"slices"

	"github.com/mlp-platform/platform/services/assistant/internal/logtext"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/workload"
)

// mostConcluded limits the messages used for conclusions to the most telling ones.
const mostConcluded = 20

// concluded returns the findings that the logs of running pods prove: no object shows them.
func (t *topic) concluded(groups []logtext.Group, spaces map[string][]string) []engine.Finding {
	var messages []workload.Message
	for _, g := range groups[:min(len(groups), mostConcluded)] {
		if g.Past() {
			continue
		}
		for _, pod := range g.Pods {
			for _, namespace := range spaces[pod] {
				messages = append(messages, workload.Message{Namespace: namespace, Pod: pod, Lines: g.Texts()})
			}
		}
	}
	return slices.DeleteFunc(playbook.Conclude(t.snap, messages), func(f engine.Finding) bool { return t.except.Has(f.Object) })
}

// withConcluded merges findings from logs into findings: after certain ones, before merely possible ones, and above
// those they explain. An object with a finding of the same class is not repeated.
func withConcluded(found, concluded []engine.Finding) []engine.Finding {
	told := map[operation.Ref][]engine.Class{}
	for _, f := range found {
		told[f.Object] = append(told[f.Object], f.Class)
		for _, c := range f.Consequences {
			told[c.Object] = append(told[c.Object], c.Class)
		}
	}
	concluded = slices.DeleteFunc(concluded, func(f engine.Finding) bool { return slices.Contains(told[f.Object], f.Class) })
	if len(concluded) == 0 {
		return found
	}
	certain, others := partition(found, func(f engine.Finding) bool { return f.Confidence == engine.High })
	return engine.Fold(slices.Concat(certain, concluded, others))
}
