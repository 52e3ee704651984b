package sse

import (
	"fmt"
	"net/http"
	"time"
)

// ContentType is the media type of an event stream.
const ContentType = "text/event-stream"

// DefaultWriteTimeout is how long one write may take before the client counts as gone.
const DefaultWriteTimeout = 10 * time.Second

// Writer sends encoded events on one response. Use it from one goroutine.
type Writer struct {
	w       http.ResponseWriter
	ctl     *http.ResponseController
	timeout time.Duration
}

// NewWriter sends the header of an event stream. timeout limits each write; 0
// means DefaultWriteTimeout. It fails if the response cannot be flushed or has no
// write deadlines: without them, a client that stops reading blocks the goroutine
// for ever.
func NewWriter(w http.ResponseWriter, timeout time.Duration) (*Writer, error) {
	if timeout <= 0 {
		timeout = DefaultWriteTimeout
	}
	s := &Writer{w: w, ctl: http.NewResponseController(w), timeout: timeout}
	if err := s.ctl.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
		return nil, fmt.Errorf("sse: write deadline: %w", err)
	}
	h := w.Header()
	h.Set("Content-Type", ContentType)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // nginx would collect events
	h.Del("Content-Length")
	w.WriteHeader(http.StatusOK)
	if err := s.ctl.Flush(); err != nil {
		return nil, fmt.Errorf("sse: flush: %w", err)
	}
	return s, nil
}

// Send writes encoded events and flushes once.
func (s *Writer) Send(events []byte) error {
	if err := s.ctl.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
		return err
	}
	if _, err := s.w.Write(events); err != nil {
		return err
	}
	return s.ctl.Flush()
}
