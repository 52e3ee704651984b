// Package accesslog writes a line for every request: method, path, status and duration,
// never a body, a query or a token.
package accesslog

import (
	"io"
	"math"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/document"
)

// Limits of values that the caller chooses.
const (
	maxMethod = 32
	maxPath   = 2048
)

// Log writes lines. A nil Log writes nothing.
type Log struct {
	mu  sync.Mutex // one line at a time; guards out
	out io.Writer
}

// New returns a log that writes to out, or nil if out is nil.
func New(out io.Writer) *Log {
	if out == nil {
		return nil
	}
	return &Log{out: out}
}

// Entry is one request.
type Entry struct {
	RequestID string
	Method    string
	Path      string // without the query
	Status    int
	Bytes     int64 // of the body as it was sent
	Took      time.Duration
	At        time.Time // when it came
}

type line struct {
	Event         string  `json:"event"`
	Service       string  `json:"service"`
	RequestID     string  `json:"request_id"`
	Method        string  `json:"method"`
	Path          string  `json:"path"`
	Status        int     `json:"status"`
	ResponseBytes int64   `json:"response_bytes"`
	DurationMS    float64 `json:"duration_ms"`
	OccurredAt    string  `json:"occurred_at"`
}

// Write writes the line of a request. A failed write does not fail the request.
func (l *Log) Write(e Entry) {
	if l == nil {
		return
	}
	text, err := canon.C1(line{
		Event: "http_request", Service: document.ServiceName, RequestID: e.RequestID,
		Method: clipText(e.Method, maxMethod), Path: clipText(e.Path, maxPath), Status: e.Status, ResponseBytes: e.Bytes,
		DurationMS: math.Round(float64(e.Took)/float64(time.Microsecond)) / 1000,
		OccurredAt: e.At.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano),
	})
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.out.Write(append(text, '\n'))
}

// clipText limits caller-chosen text to most bytes of UTF-8.
func clipText(s string, most int) string {
	if len(s) > most {
		s = s[:most]
	}
	if utf8.ValidString(s) {
		return s
	}
	b := make([]rune, 0, len(s))
	n := 0
	for _, r := range s { // invalid UTF-8 yields the replacement character
		if n += utf8.RuneLen(r); n > most {
			break
		}
		b = append(b, r)
	}
	return string(b)
}
