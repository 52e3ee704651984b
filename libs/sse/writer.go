package sse

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// ContentType is the media type of an event stream.
const ContentType = "text/event-stream"

// DefaultWriteTimeout limits one write; after it the client counts as gone.
const DefaultWriteTimeout = 10 * time.Second

// Writer sends encoded events on one response. Use it from one goroutine; only Hasten may be called from others.
type Writer struct {
	w   http.ResponseWriter
	ctl *http.ResponseController

	mu      sync.Mutex // guards those below and the order in which deadlines are set
	timeout time.Duration
	set     time.Time // when the deadline was last set
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
	if err := s.setDeadline(); err != nil {
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
	if err := s.setDeadline(); err != nil {
		return err
	}
	if _, err := s.w.Write(events); err != nil {
		return err
	}
	return s.ctl.Flush()
}

// Hasten replaces the timeout of later writes and of the one that may be waiting now: a stream that
// has to end must not wait for a client that does not read.
func (s *Writer) Hasten(timeout time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timeout, s.set = timeout, time.Now()
	_ = s.ctl.SetWriteDeadline(s.set.Add(timeout)) // fails only on a connection that is gone
}

// setDeadline sets the deadline of the next write. A deadline that was set a moment ago stays: setting one costs a good
// part of a small write.
func (s *Writer) setDeadline() error {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.set) < s.timeout/16 {
		return nil
	}
	s.set = now
	return s.ctl.SetWriteDeadline(now.Add(s.timeout))
}
