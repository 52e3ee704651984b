package tool_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/kubectl"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// TestHiddenIsAbsent: a hidden namespace gets the answer of one that is not there, word for word,
// on every read.
func TestHiddenIsAbsent(t *testing.T) {
	t.Parallel()
	tools := setup(t, "payments")
	const absent = "paymenta" // as long as the hidden one
	answer := func(line, scope string) string {
		t.Helper()
		op, err := kubectl.Parse(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		out, err := tools.Run(t.Context(), readerTurn(scope), op)
		if err != nil {
			var fault *operation.Fault
			if !errors.As(err, &fault) {
				t.Errorf("%s: %T %v; want an *operation.Fault", line, err, err)
				return err.Error()
			}
			return string(fault.Reason) + ": " + err.Error()
		}
		return out.Text
	}
	for _, line := range []string{
		"kubectl get pods -n NS", "kubectl get deployments,services -n NS", "kubectl get pod ledger -n NS", "kubectl get pods -n NS -o yaml", "kubectl get pod ledger -n NS -o yaml",
		"kubectl describe deployment ledger -n NS", "kubectl logs deployment/ledger -n NS", "kubectl events -n NS", "kubectl top pods -n NS",
		"kubectl rollout history deployment/ledger -n NS", "kubectl auth can-i list pods -n NS", "kubectl get namespace NS", "kubectl get ns/NS", "kubectl describe namespace NS",
		"kubectl get ns NS -o yaml", "kubectl events --for=ns/NS",
	} {
		hidden := answer(strings.ReplaceAll(line, "NS", "payments"), "")
		if want := strings.ReplaceAll(answer(strings.ReplaceAll(line, "NS", absent), ""), absent, "payments"); hidden != want {
			t.Errorf("%s of a hidden namespace:\n%s\nof an absent one:\n%s", line, hidden, want)
		}
	}
	inScope := answer("kubectl get pods", "payments")
	if want := strings.ReplaceAll(answer("kubectl get pods", absent), absent, "payments"); inScope != want {
		t.Errorf("in the scope of a hidden namespace: %s; want %s", inScope, want)
	}
}

// The snapshot of a hidden namespace fails as that of one that is not there, with the same reads shown.
func TestSnapshotOfAHiddenNamespace(t *testing.T) {
	t.Parallel()
	tools := setup(t, "payments")
	read := func(namespace string) (shown []string, err error) {
		_, err = tools.Snapshot(t.Context(), readerTurn(""), namespace, func(op operation.Operation) func(turn.Output, error) {
			return func(out turn.Output, err error) {
				text := kubectl.Render(op) + "\n" + out.Text
				if err != nil {
					text += err.Error()
				}
				shown = append(shown, strings.ReplaceAll(text, namespace, "NS"))
			}
		})
		return shown, err
	}
	hidden, hiddenErr := read("payments")
	absent, absentErr := read("paymenta")
	var fault *operation.Fault
	if !errors.As(hiddenErr, &fault) || fault.Reason != operation.NotFound || strings.ReplaceAll(hiddenErr.Error(), "payments", "paymenta") != absentErr.Error() {
		t.Errorf("hidden: %v; want %v", hiddenErr, absentErr)
	}
	for _, text := range absent {
		if strings.Contains(text, "payments") {
			t.Errorf("a read of another namespace shows the hidden one:\n%s", text)
		}
	}
	if got, want := strings.Join(hidden, "\n"), strings.Join(absent, "\n"); got != want {
		t.Errorf("shown of a hidden namespace:\n%s\nof an absent one:\n%s", got, want)
	}
}
