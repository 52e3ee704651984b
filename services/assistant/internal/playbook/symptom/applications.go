package symptom

import (
	"fmt"
	"slices"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// badHealth lists the health states of an Argo CD application that are not transient. An application that differs from
// its source is not unhealthy.
var badHealth = []string{"Degraded", "Missing", "Unknown"}

func (l *lister) applications() {
	for i := range l.Applications {
		a := &l.Applications[i]
		if !l.in(a) {
			continue
		}
		of := ref("Application", a)
		if slices.Contains(badHealth, a.Status.Health.Status) {
			l.add(Symptom{Object: of, Text: fmt.Sprintf("%s is %s, says Argo CD.", engine.UpperFirst(engine.RefTitle(of)), engine.QuoteCode(a.Status.Health.Status))})
		}
		if a.HasFailed() && a.Status.Sync.Status != "Synced" {
			l.add(Symptom{Object: of, Text: fmt.Sprintf("The last sync of %s failed: %s.", engine.RefTitle(of), engine.QuoteCode(a.Status.OperationState.Message))})
		}
	}
}
