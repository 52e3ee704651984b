package sse

import (
	"fmt"
	"net/http"
	"time"
)

// DefaultWriteTimeout is how long one write may take before its reader counts as gone.
const DefaultWriteTimeout = 10 * time.Second

// Writer sends events on one response. Use it from one goroutine.
type Writer struct {
	w       http.ResponseWriter
	ctl     *http.ResponseController
	timeout time.Duration
	buf     []byte
}

// NewWriter sends the header of an event stream. timeout bounds each write; 0
// means DefaultWriteTimeout. It fails when the response cannot be flushed or has
// no write deadlines: a stream without them holds its goroutine for as long as a
// reader pleases.
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

// Send writes one event.
func (s *Writer) Send(e Event) error {
	frame, err := e.Append(s.buf[:0])
	if err != nil {
		return err
	}
	s.buf = frame
	return s.write(frame)
}

// Comment writes a line that readers ignore: a heartbeat.
func (s *Writer) Comment(text string) error {
	s.buf = appendComment(s.buf[:0], text)
	return s.write(s.buf)
}

// Frames writes events that were encoded before and flushes once.
func (s *Writer) Frames(frames []Frame) error {
	s.buf = s.buf[:0]
	for _, f := range frames {
		s.buf = append(s.buf, f.Bytes...)
	}
	return s.write(s.buf)
}

func (s *Writer) write(b []byte) error {
	if err := s.ctl.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
		return err
	}
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.ctl.Flush()
}
