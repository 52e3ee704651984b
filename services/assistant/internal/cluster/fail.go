package cluster

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// maxSentence limits the quoted text of the server.
const maxSentence = 1000

// longValue matches a value, up to a whole object, that the server quotes before the actual error.
var longValue = regexp.MustCompile(`(Invalid value): "(?:[^"\\]|\\.){100,}"`)

// answered is an error of the cluster with a sentence for the reader.
type answered struct {
	fault *operation.Fault
	cause error
}

func (a *answered) Error() string   { return a.fault.Sentence }
func (a *answered) Unwrap() []error { return []error{a.fault, a.cause} }

// Fail turns an error of a client into one for the reader: an *operation.Fault with the server's redacted message, or a
// *turn.Fail if the cluster does not answer. It wraps the original error. Errors that are meant for the reader, and the
// end of the caller's own context, pass unchanged.
func Fail(err error) error {
	var refused *operation.Fault
	var denied *action.Refused
	var failed *turn.Fail
	if err == nil || errors.As(err, &refused) || errors.As(err, &denied) || errors.As(err, &failed) || errors.Is(err, context.Canceled) {
		return err
	}
	var groups *discovery.ErrGroupDiscoveryFailed
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &groups):
		return explainError(err, operation.Unavailable, "A part of the cluster's API does not answer", groups.Error())
	case meta.IsNoMatchError(err):
		return explainError(err, operation.UnknownKind, "The cluster does not serve this kind", err.Error())
	case errors.As(err, &status):
		return ofStatus(err, status)
	case errors.Is(err, context.DeadlineExceeded):
		return explainError(err, operation.TimedOut, "The cluster took too long to answer; narrow the request", "")
	}
	return &turn.Fail{Failure: fault.ClusterUnreachable, Cause: err}
}

// reasonNotRecorded is the reason with which a recorded cluster refuses what it does not have (package recorded).
const reasonNotRecorded metav1.StatusReason = "NotRecorded"

func ofStatus(err error, status apierrors.APIStatus) error {
	said := status.Status().Message
	switch {
	case apierrors.IsUnauthorized(err):
		return &turn.Fail{Failure: fault.ClusterForbidden, Cause: err}
	case apierrors.IsForbidden(err) && strings.Contains(said, "exceeded quota"):
		return explainError(err, operation.Rejected, "The cluster refuses this", said) // admission, not permission
	case status.Status().Reason == reasonNotRecorded:
		return explainError(err, operation.Forbidden, "The recording does not have this", said)
	case apierrors.IsForbidden(err):
		return explainError(err, operation.Forbidden, "The cluster does not let the assistant do this", said)
	case apierrors.IsNotFound(err):
		return explainError(err, operation.NotFound, "The cluster has no such object", said)
	case apierrors.IsConflict(err) && apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict):
		return explainError(err, operation.Conflict, "Another field manager owns fields that this would set. Either leave those fields out of the manifest, or take them over with --force-conflicts", said)
	case apierrors.IsConflict(err):
		return explainError(err, operation.Conflict, "The object was changed meanwhile", said)
	case apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		return explainError(err, operation.TimedOut, "The cluster took too long to answer", said)
	case status.Status().Code >= http.StatusInternalServerError:
		return explainError(err, operation.Unavailable, "The cluster failed at this", said)
	}
	return explainError(err, operation.Rejected, "The cluster refuses this", said)
}

// explainError returns the sentence followed by the server's message.
func explainError(cause error, reason operation.Reason, what, said string) error {
	said = strings.TrimRight(strings.Join(strings.Fields(redact.Text(longValue.ReplaceAllString(said, "$1"))), " "), ". ")
	if runes := []rune(said); len(runes) > maxSentence {
		said = string(runes[:maxSentence]) + "…"
	}
	if said != "" {
		what += ": " + said
	}
	return &answered{operation.Refuse(reason, "", "%s.", what), cause}
}
