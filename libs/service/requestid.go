package service

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"
)

// Header names in the canonical form that net/http stores, so that a map access
// needs no conversion.
const (
	headerRequestID   = "X-Request-Id"
	headerTraceparent = "Traceparent"
)

// scope holds the values of one request. It is itself the request's context, which saves an allocation on each.
type scope struct {
	context.Context
	requestID string
	header    [1]string // requestID as a header value, see middleware.go
	trace     string    // the request's W3C traceparent, or ""
}

type scopeKey struct{}

// Value makes scope a context.
func (s *scope) Value(key any) any {
	if key == (scopeKey{}) {
		return s
	}
	return s.Context.Value(key)
}

func scopeFrom(ctx context.Context) *scope {
	if ctx == nil {
		return nil
	}
	s, _ := ctx.Value(scopeKey{}).(*scope)
	return s
}

func newScope(ctx context.Context, requestID, traceparent string) *scope {
	if here := trace.SpanContextFromContext(ctx); traceparent != "" && tracer(ctx) != nil && (!here.IsValid() || formatSpan(here) != traceparent) {
		ctx = trace.ContextWithRemoteSpanContext(ctx, SpanContext(traceparent))
	}
	return &scope{Context: ctx, requestID: requestID, trace: traceparent}
}

// RequestID is the id of the request that ctx belongs to, or "".
func RequestID(ctx context.Context) string {
	if s := scopeFrom(ctx); s != nil {
		return s.requestID
	}
	return ""
}

// WithRequestID adds a request id to work that no HTTP request began (a message, a timer); an invalid or empty one is
// replaced by a new one. A trace context that ctx has stays.
func WithRequestID(ctx context.Context, id string) context.Context {
	return WithTrace(ctx, id, currentTrace(ctx))
}

// WithTrace is WithRequestID with the W3C traceparent of the request; an invalid one is dropped.
func WithTrace(ctx context.Context, id, traceparent string) context.Context {
	if !validRequestID(id) {
		id = newID()
	}
	if !validTraceparent(traceparent) {
		traceparent = ""
	}
	return newScope(ctx, id, traceparent)
}

func currentTrace(ctx context.Context) string {
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		return formatSpan(sc)
	}
	if s := scopeFrom(ctx); s != nil {
		return s.trace
	}
	return ""
}

// Traceparent is the W3C trace context to pass on and to store: that of the current span, else the one received, else
// "". None is invented where no span is made: downstream services would treat the trace as not sampled.
func Traceparent(ctx context.Context) string { return currentTrace(ctx) }

// newID is a UUIDv7.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// validRequestID reports whether id is 1 to 128 of [A-Za-z0-9._-].
func validRequestID(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		c := id[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

// validTraceparent checks the form of W3C Trace Context, section 3.2: version,
// trace id, parent id, flags, in lower-case hex, neither id all zeros. Later
// versions may append fields.
func validTraceparent(t string) bool {
	if len(t) < 55 || len(t) > 256 || t[2] != '-' || t[35] != '-' || t[52] != '-' {
		return false
	}
	if !lowerHex(t[:2]) || !lowerHex(t[3:35]) || !lowerHex(t[36:52]) || !lowerHex(t[53:55]) {
		return false
	}
	if t[:2] == "ff" || (t[:2] == "00" && len(t) != 55) || (len(t) > 55 && t[55] != '-') {
		return false
	}
	return strings.Trim(t[3:35], "0") != "" && strings.Trim(t[36:52], "0") != ""
}

func lowerHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; !('0' <= c && c <= '9' || 'a' <= c && c <= 'f') {
			return false
		}
	}
	return true
}

func traceID(traceparent string) string { return traceparent[3:35] }
