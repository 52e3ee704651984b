package change

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// maxCauses limits the server's reasons in a message.
const maxCauses = 5

// callError describes an error of a call for the reader, with the object and the server's
// reasons.
func callError(ref operation.Ref, err error) error {
	var own *operation.Fault
	if errors.As(err, &own) {
		return err // the error names the object itself
	}
	said := cluster.Fail(err)
	var fault *operation.Fault
	if !errors.As(said, &fault) {
		return said
	}
	text := ref.String() + ": " + fault.Sentence
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		var told []string
		for _, cause := range status.Status().Details.Causes {
			switch cause.Type {
			case policyv1.DisruptionBudgetCause:
				if len(told) < maxCauses {
					told = append(told, redact.Text(strings.TrimSuffix(cause.Message, "."))+".")
				}
			}
		}
		text = strings.Join(append([]string{text}, told...), " ")
	}
	return &operation.Fault{Reason: fault.Reason, Field: fault.Field, Sentence: text}
}

// errorSentence is [callError] as text for a result. It omits causes that belong only in the log.
func errorSentence(ref operation.Ref, err error) string {
	err = callError(ref, err)
	var fail *turn.Fail
	if errors.As(err, &fail) {
		return ref.String() + ": " + fail.Failure.Message
	}
	return err.Error()
}

// isUnanswered reports whether it is unknown if a call took effect: the server may have made the change without being
// able to answer.
func isUnanswered(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		// A failing webhook stops the call before the object is stored.
		return code >= http.StatusInternalServerError && !strings.Contains(err.Error(), "failed calling webhook")
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return false // the request was never sent
	}
	var own *operation.Fault
	return !errors.As(err, &own) || errors.Is(err, context.DeadlineExceeded)
}
