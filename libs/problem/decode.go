package problem

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxBody limits the bytes that Decode reads: a problem document is small, another answer
// may be of any size.
const maxBody = 64 << 10

// maxSnippet limits, in bytes, how much of a foreign body goes into Detail.
const maxSnippet = 300

// Decode decodes an error response into the type that made it. A body that is no problem
// document (a proxy's page, nothing at all) results in the kind of its status and the
// start of its text. It does not close the body. A service that returns the error
// unchanged passes the upstream's status on: otherwise wrap it in a kind of the service.
func Decode(resp *http.Response) *Error {
	var raw []byte
	var readErr error
	if resp.Body != nil {
		raw, readErr = io.ReadAll(io.LimitReader(resp.Body, maxBody))
	}
	e := decodeBody(resp.StatusCode, raw)
	e.Cause = readErr
	e.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), time.Now())
	if e.RequestID == "" {
		e.RequestID = resp.Header.Get("X-Request-Id")
	}
	return e
}

func decodeBody(status int, raw []byte) *Error {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return KindOf(status).New(bodySnippet(raw))
	}
	e := &Error{Kind: KindOf(status)}
	text := func(name string) string {
		var s string
		_ = json.Unmarshal(all[name], &s) // another type: as if absent
		return s
	}
	if code := text("code"); code != "" {
		e.Kind.Code, e.Kind.Title = code, ""
	}
	if title := text("title"); title != "" {
		e.Kind.Title = title
	}
	e.RequestID = text("request_id")
	if e.Detail = text("detail"); e.Detail == "" {
		if e.Detail = text("message"); e.Detail == "" {
			e.Detail = bodySnippet(raw)
		}
	}
	var fields []Field
	if json.Unmarshal(all["errors"], &fields) == nil {
		e.Errors = fields
	}
	for _, name := range reserved {
		delete(all, name)
	}
	for name, value := range all {
		var v any
		if json.Unmarshal(value, &v) == nil {
			if e.Extra == nil {
				e.Extra = make(map[string]any, len(all))
			}
			e.Extra[name] = v
		}
	}
	return e
}

// bodySnippet is the printable start of a body.
func bodySnippet(raw []byte) string {
	if !utf8.Valid(raw) {
		return ""
	}
	s := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, string(raw))
	s = strings.TrimSpace(s)
	if len(s) <= maxSnippet {
		return s
	}
	cut := maxSnippet
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// retryAfter reads both forms of RFC 9110 section 10.2.3; 0 when absent, past or neither.
func retryAfter(v string, now time.Time) time.Duration {
	if v == "" {
		return 0
	}
	if n, err := strconv.Atoi(v); err == nil {
		return time.Duration(max(0, min(n, 24*3600))) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, min(at.Sub(now), 24*time.Hour))
	}
	return 0
}
