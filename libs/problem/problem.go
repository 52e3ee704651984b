package problem

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"
)

// ContentType is the media type of RFC 9457.
const ContentType = "application/problem+json"

// typePrefix plus the code is the document's type member: a URN, since it is not the
// address of a web page.
const typePrefix = "urn:platform:problem:"

// Kind is one row of a service's table of errors.
type Kind struct {
	Code   string // stable slug, for programs
	Status int    // HTTP status
	Title  string // the kind in a few words, the same for each occurrence
}

// Kinds that every service shares.
var (
	BadRequest       = Kind{"bad_request", http.StatusBadRequest, "Bad request"}
	Unauthorized     = Kind{"unauthorized", http.StatusUnauthorized, "Credential required"}
	Forbidden        = Kind{"forbidden", http.StatusForbidden, "Not allowed"}
	NotFound         = Kind{"not_found", http.StatusNotFound, "Not found"}
	MethodNotAllowed = Kind{"method_not_allowed", http.StatusMethodNotAllowed, "Method not allowed"}
	Conflict         = Kind{"conflict", http.StatusConflict, "Conflict"}
	BodyTooLarge     = Kind{"body_too_large", http.StatusRequestEntityTooLarge, "Request body too large"}
	UnsupportedMedia = Kind{"unsupported_media_type", http.StatusUnsupportedMediaType, "Unsupported media type"}
	Misdirected      = Kind{"host_not_allowed", http.StatusMisdirectedRequest, "Host not served here"}
	Validation       = Kind{"validation_error", http.StatusUnprocessableEntity, "Invalid request"}
	RateLimited      = Kind{"rate_limited", http.StatusTooManyRequests, "Too many requests"}
	ClientClosed     = Kind{"client_closed_request", 499, "Client closed the request"}
	Internal         = Kind{"internal", http.StatusInternalServerError, "Internal error"}
	BadGateway       = Kind{"bad_gateway", http.StatusBadGateway, "Upstream failed"}
	Unavailable      = Kind{"unavailable", http.StatusServiceUnavailable, "Unavailable"}
	DiskFull         = Kind{"disk_full", http.StatusServiceUnavailable, "Disk full"}
	Draining         = Kind{"draining", http.StatusServiceUnavailable, "Shutting down"}
	DeadlineExceeded = Kind{"deadline_exceeded", http.StatusGatewayTimeout, "Deadline exceeded"}
)

// New makes an error of this kind; detail is a sentence for the caller.
func (k Kind) New(detail string) *Error { return &Error{Kind: k, Detail: detail} }

// Errorf is New with a format. An error formatted by %w is kept as Cause, and, as with
// [fmt.Errorf], its text is in the detail: wrap only errors that a caller may read. Use
// WithCause for the rest.
func (k Kind) Errorf(format string, a ...any) *Error {
	err := fmt.Errorf(format, a...)
	e := &Error{Kind: k, Detail: err.Error()}
	switch w := err.(type) {
	case interface{ Unwrap() error }:
		e.Cause = w.Unwrap()
	case interface{ Unwrap() []error }:
		e.Cause = err
	}
	return e
}

// Field is one fault of a request: where (body, features, power …) and what.
type Field struct {
	Loc []string `json:"loc"`
	Msg string   `json:"msg"`
}

// Error is a problem document before it is written, or after it was read.
type Error struct {
	Kind   Kind
	Detail string // a sentence for the caller; empty means the kind's title
	Cause  error  // for the log only
	Errors []Field
	// Extra are further top-level members; names of RFC 9457 and of this
	// package win over them.
	Extra map[string]any
	// RetryAfter becomes the header, in whole seconds, at least 1; 0 sends none.
	RetryAfter time.Duration
	// Header is added to the response, such as WWW-Authenticate.
	Header http.Header
	// RequestID is set by Decode; Handler takes the response's own.
	RequestID string
}

// Error returns detail and cause: it is for logs, not for callers of the API.
func (e *Error) Error() string {
	s := e.Kind.Code
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Cause != nil && (e.Detail == "" || !bytes.Contains([]byte(e.Detail), []byte(e.Cause.Error()))) {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is reports whether target is a problem with the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind.Code == e.Kind.Code
}

// Has reports whether err is, or wraps, a problem of this kind.
func (k Kind) Has(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind.Code == k.Code
}

// With returns a copy with further top-level members.
func (e *Error) With(extra map[string]any) *Error {
	c := *e
	c.Extra = make(map[string]any, len(e.Extra)+len(extra))
	maps.Copy(c.Extra, e.Extra)
	maps.Copy(c.Extra, extra)
	return &c
}

// WithErrors returns a copy with further field faults.
func (e *Error) WithErrors(fields ...Field) *Error {
	c := *e
	c.Errors = append(slices.Clone(e.Errors), fields...)
	return &c
}

// WithCause returns a copy that logs err.
func (e *Error) WithCause(err error) *Error {
	c := *e
	c.Cause = err
	return &c
}

// WithHeader returns a copy that sets a response header.
func (e *Error) WithHeader(name, value string) *Error {
	c := *e
	c.Header = e.Header.Clone()
	if c.Header == nil {
		c.Header = http.Header{}
	}
	c.Header.Set(name, value)
	return &c
}

// After returns a copy with a Retry-After for the caller.
func (e *Error) After(d time.Duration) *Error {
	c := *e
	c.RetryAfter = d
	return &c
}

// Status is the HTTP status; a kind without one is a 500.
func (e *Error) Status() int {
	if e.Kind.Status == 0 {
		return http.StatusInternalServerError
	}
	return e.Kind.Status
}

// members is the fixed part of the document, in the order it is written.
type members struct {
	Type      string  `json:"type"`
	Title     string  `json:"title"`
	Status    int     `json:"status"`
	Detail    string  `json:"detail"`
	Instance  string  `json:"instance,omitempty"`
	Code      string  `json:"code"`
	RequestID string  `json:"request_id,omitempty"`
	Errors    []Field `json:"errors,omitempty"`
}

// reserved are the names that Extra cannot set.
var reserved = []string{"type", "title", "status", "detail", "instance", "code", "request_id", "errors"}

// JSON is the document; instance is the request's path, requestID its id.
func (e *Error) JSON(instance, requestID string) []byte {
	m := members{
		Type: typePrefix + e.Kind.Code, Title: e.Kind.Title, Status: e.Status(), Detail: e.Detail,
		Instance: instance, Code: e.Kind.Code, RequestID: requestID, Errors: e.Errors,
	}
	if m.Detail == "" {
		m.Detail = m.Title
	}
	m.Detail, m.Errors = truncateText(m.Detail, maxDetail), truncateFields(m.Errors)
	if len(m.Instance) > maxInstance {
		m.Instance = "" // a part of a path refers to nothing
	}
	out := encodeJSON(m)
	if len(e.Extra) == 0 {
		return out
	}
	out = out[:len(out)-1]
	for _, name := range slices.Sorted(maps.Keys(e.Extra)) {
		if slices.Contains(reserved, name) {
			continue
		}
		value := encodeJSON(e.Extra[name])
		if value == nil {
			continue // not JSON: the rest of the answer still helps the caller
		}
		out = append(out, ',')
		out = append(out, encodeJSON(name)...)
		out = append(out, ':')
		out = append(out, value...)
	}
	return append(out, '}')
}

// encodeJSON is JSON without HTML escapes or the final line feed; nil when v is not JSON.
func encodeJSON(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return nil
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
