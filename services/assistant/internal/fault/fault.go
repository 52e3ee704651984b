// Package fault is the assistant's table of errors: one row per stable code, for ordinary responses and for events in a
// stream. Its documents have, in addition to the members of RFC 9457, the error object that chat-completions clients
// read.
package fault

import (
	"net/http"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/problem"
)

// The kinds, by status.
var (
	TTLTooLong = problem.Kind{Code: "ttl_too_long", Status: http.StatusBadRequest, Title: "Time to live too long"}

	Unauthenticated = problem.Kind{Code: "unauthenticated", Status: http.StatusUnauthorized, Title: "Key required"}

	Forbidden = problem.Kind{Code: "forbidden", Status: http.StatusForbidden, Title: "Not allowed"}

	SessionNotFound = problem.Kind{Code: "session_not_found", Status: http.StatusNotFound, Title: "No such session"}
	ActionNotFound  = problem.Kind{Code: "action_not_found", Status: http.StatusNotFound, Title: "No such action"}
	ModelNotFound   = problem.Kind{Code: "model_not_found", Status: http.StatusNotFound, Title: "No such model"}

	TurnActive      = problem.Kind{Code: "turn_active", Status: http.StatusConflict, Title: "Session is answering"}
	AlreadyDecided  = problem.Kind{Code: "already_decided", Status: http.StatusConflict, Title: "Already decided"}
	ActionExecuting = problem.Kind{Code: "action_executing", Status: http.StatusConflict, Title: "Action is being executed"}
	OtherCluster    = problem.Kind{Code: "other_cluster", Status: http.StatusConflict, Title: "Session is of another cluster"}

	ActionExpired = problem.Kind{Code: "action_expired", Status: http.StatusGone, Title: "Action expired"}
	ActionStale   = problem.Kind{Code: "action_stale", Status: http.StatusGone, Title: "Target has changed"}

	NoUserMessage  = problem.Kind{Code: "no_user_message", Status: http.StatusUnprocessableEntity, Title: "No user message"}
	StreamRequired = problem.Kind{Code: "stream_required", Status: http.StatusUnprocessableEntity, Title: "Streaming required"}

	DemoKeysUnavailable = problem.Kind{Code: "demo_keys_unavailable", Status: http.StatusServiceUnavailable, Title: "Demo keys unavailable"}
	ClusterUnavailable  = problem.Kind{Code: "cluster_unavailable", Status: http.StatusServiceUnavailable, Title: "Cluster unavailable"}
	StoreUnavailable    = problem.Kind{Code: "store_unavailable", Status: http.StatusServiceUnavailable, Title: "State store unavailable"}
)

const (
	challengeHeader = "WWW-Authenticate"
	challenge       = `Bearer realm="assistant"`
)

// NoKey returns the 401 for a request without a key.
func NoKey(detail string) *problem.Error {
	return Unauthenticated.New(detail).WithHeader(challengeHeader, challenge)
}

// BadKey returns the 401 for a request whose key is not accepted. It gives no reason: unknown, forged and expired look
// alike.
func BadKey(detail string) *problem.Error {
	return Unauthenticated.New(detail).WithHeader(challengeHeader, challenge+`, error="invalid_token"`)
}

// NotPermitted returns the 403 for a caller whose key is valid but lacks the right.
func NotPermitted(detail string) *problem.Error {
	return Forbidden.New(detail).WithHeader(challengeHeader, challenge+`, error="insufficient_scope"`)
}

// busyRetry is the Retry-After of turn_active: most turns are over by then.
const busyRetry = 5 * time.Second

// Busy returns the 409 for a second request while the session answers the first.
func Busy() *problem.Error {
	return TurnActive.New("This session is still answering another request; wait for its end, or send the same request again with its X-Request-ID to follow it.").
		After(busyRetry)
}

// Invalid returns a 422 for all faults found in a request, each with its location. There must be at least one.
func Invalid(fields ...problem.Field) *problem.Error {
	parts := make([]string, len(fields))
	for i, f := range fields {
		parts[i] = strings.Join(f.Loc, ".") + ": " + f.Msg
	}
	return problem.Validation.New(strings.Join(parts, "; ") + ".").WithErrors(fields...)
}

// InvalidHeader returns a 422 for one request header.
func InvalidHeader(name, msg string) *problem.Error {
	return Invalid(problem.Field{Loc: []string{"header", name}, Msg: msg})
}
