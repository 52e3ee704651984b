package symptom

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// certificates lists cert-manager's certificates and issuers whose condition does not report them as ready; a condition
// that is missing is a symptom, too.
func (l *lister) certificates() {
	check := func(of operation.Ref, all []metav1.Condition) {
		l.conditions(of, all, "Ready")
		if len(all) == 0 {
			l.add(Symptom{Object: of, Text: fmt.Sprintf("%s has no status: no controller has looked at it.", engine.UpperFirst(engine.RefTitle(of)))})
		}
	}
	for i := range l.Certificates {
		if c := &l.Certificates[i]; l.in(c) {
			check(ref("Certificate", c), c.Status.Conditions)
		}
	}
	for i := range l.Issuers {
		if issuer := &l.Issuers[i]; l.in(issuer) {
			check(ref(issuer.Kind, issuer), issuer.Status.Conditions)
		}
	}
}
