package investigate

import (
	"fmt"
	"strings"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// certificateOf returns the public parts of the certificate in a Secret; nil for all other objects.
func certificateOf(s *engine.Snapshot, r operation.Ref) *redact.Certificate {
	if r.Kind != "Secret" {
		return nil
	}
	for _, secret := range s.Secrets {
		if secret.Namespace == r.Namespace && secret.Name == r.Name {
			return secret.Certificate
		}
	}
	return nil
}

// describeCertificate describes what clients see of a certificate. A broken one has a finding.
func describeCertificate(head string, c *redact.Certificate) string {
	if c == nil || c.NotAfter.IsZero() {
		return ""
	}
	names := "no host name"
	if len(c.Names) > 0 {
		names = engine.QuoteCodes(c.Names)
	}
	return fmt.Sprintf("%s has a certificate for %s, valid from %s until %s.", head, names, c.NotBefore.Format(time.RFC3339), c.NotAfter.Format(time.RFC3339))
}

// certificates shows those of TLS Secrets, and what is wrong with them or with those that ingresses and gateways name.
// For a question about all certificates it does not matter that some seem unused.
func (w *work) certificates(t *topic) {
	w.say(report.Certificates(t.view()).String())
	found, _ := partition(playbook.Findings(t.snap, t.namespace), func(f engine.Finding) bool {
		return fitsSymptoms(f, []question.Symptom{question.Certificate})
	})
	for _, f := range playbook.Meant(t.snap) {
		if f.Class == engine.TLSSecret && withinNamespace(f.Object, t.namespace) {
			found = append(found, f)
		}
	}
	if len(found) > 0 {
		w.say(engine.Answer(t.snap, found))
	} else {
		w.say(strings.TrimSpace(listUnread(t.snap)))
	}
}
