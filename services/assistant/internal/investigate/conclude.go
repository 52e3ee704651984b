package investigate

import (
	"slices"

	"github.com/mlp-platform/platform/services/assistant/internal/logtext"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/workload"
)

// mostConcluded limits the messages that may be concluded from, those that tell the most.
const mostConcluded = 20

// concluded are the findings that the logs of pods prove which run on: no object shows them.
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

// withConcluded adds what logs prove to findings: behind what is certain, before what merely fits, and above what it explains.
// An object that has a finding of the same class is not told twice.
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
