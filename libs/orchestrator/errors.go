package orchestrator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

var (
	// ErrUnreachable: no whole answer arrived. The call may have been carried out.
	ErrUnreachable = errors.New("orchestrator unreachable")
	// ErrNotFound matches every [*Error] with status 404.
	ErrNotFound = errors.New("orchestrator: not found")
)

// Error is an answer other than 2xx.
type Error struct {
	Status int
	// Detail is the orchestrator's message, as one sentence or list.
	Detail string
	// Call is the method and path that was refused.
	Call string
}

func (e *Error) Error() string {
	return fmt.Sprintf("orchestrator: %s: %d: %s", e.Call, e.Status, e.Detail)
}

// Is reports a 404 as [ErrNotFound].
func (e *Error) Is(target error) bool {
	return target == ErrNotFound && e.Status == http.StatusNotFound
}

// Temporary reports whether the same call may succeed later: 5xx, 429 and 408.
func (e *Error) Temporary() bool {
	return e.Status >= 500 || e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout
}

func decodeError(method, path string, resp *http.Response) error {
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err != nil && len(b) == 0 {
		return transportError(err)
	}
	return &Error{Status: resp.StatusCode, Detail: truncateText(errorDetail(b, resp.StatusCode)), Call: method + " " + path}
}

// maxDetail limits what errors repeat of an answer, in bytes: they go to logs, to health and into records of runs.
const maxDetail = 2 << 10

func truncateText(s string) string {
	if len(s) <= maxDetail {
		return s
	}
	return strings.ToValidUTF8(s[:maxDetail], "") + "…"
}

// ErrUnreadable is wrapped by the error of a call that another program must have answered.
var ErrUnreadable = errors.New("is not what a Prefect 3 API gives (is the address right?)")

// errorDetail reads the error bodies of a Prefect server: {"detail": text}, {"detail": [{loc, msg}]} of its framework's
// own checks, and {"exception_message": text, "exception_detail": [{loc, msg}]}.
func errorDetail(body []byte, status int) string {
	var doc struct {
		Detail           json.RawMessage `json:"detail"`
		Message          string          `json:"message"`
		ExceptionMessage string          `json:"exception_message"`
		ExceptionDetail  json.RawMessage `json:"exception_detail"`
	}
	if json.Unmarshal(body, &doc) != nil {
		text := strings.TrimSpace(string(body))
		if len(text) > 200 {
			text = strings.ToValidUTF8(text[:200], "") + "…"
		}
		if text == "" {
			text = http.StatusText(status)
		}
		return text
	}
	for _, raw := range []json.RawMessage{doc.Detail, doc.ExceptionDetail} {
		if s := formatFaults(raw); s != "" {
			return s
		}
	}
	for _, s := range []string{doc.ExceptionMessage, doc.Message} {
		if s != "" {
			return s
		}
	}
	return http.StatusText(status)
}

func formatFaults(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var list []struct {
		Loc []any  `json:"loc"`
		Msg string `json:"msg"`
	}
	if json.Unmarshal(raw, &list) != nil {
		return ""
	}
	var parts []string
	for _, f := range list {
		var loc []string
		for _, l := range f.Loc {
			loc = append(loc, fmt.Sprint(l))
		}
		parts = append(parts, strings.Join(loc, ".")+": "+f.Msg)
	}
	return strings.Join(parts, "; ")
}
