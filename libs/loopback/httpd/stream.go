package httpd

import (
	"time"
)

// Stream is an answer of unknown length. One goroutine writes to it.
type Stream struct {
	c       *conn
	timeout time.Duration
	gone    chan struct{}
}

// Stream sends the head of an answer that ends when the handler returns. Each
// write, the head's too, may take writeTimeout. The body of the request, if it has
// one, is discarded.
func (w *Writer) Stream(status int, h Header, writeTimeout time.Duration) (*Stream, error) {
	if w.answered {
		return nil, ErrAnswered
	}
	w.answered = true
	s := &Stream{c: w.c, timeout: writeTimeout, gone: make(chan struct{})}
	if _, err := s.Write(append(appendHead(nil, status, h), "\r\n"...)); err != nil {
		return nil, err
	}
	if err := w.c.nc.SetReadDeadline(time.Time{}); err != nil {
		return nil, err
	}
	w.c.stream = s
	go s.watch()
	return s, nil
}

// watch reads until the peer leaves. A client that half-closes counts as gone: it
// is indistinguishable from one that went away, which must not hold its place. So
// does one that sends more than is discarded of any request.
func (s *Stream) watch() {
	defer close(s.gone)
	s.c.discard(make([]byte, 512))
}

// Write sends p, or fails once its time is over; the connection is cut then.
func (s *Stream) Write(p []byte) (int, error) {
	if err := s.c.nc.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
		s.c.broken = true
		return 0, err
	}
	n, err := s.c.nc.Write(p)
	if err != nil {
		s.c.broken = true
	}
	return n, err
}

// Gone is closed when the peer went away.
func (s *Stream) Gone() <-chan struct{} { return s.gone }
