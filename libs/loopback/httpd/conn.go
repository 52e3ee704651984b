package httpd

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mlp-platform/platform/libs/service/listener"
)

const (
	bufferSize  = 4 << 10  // of the pooled read buffers
	ordinary    = 64 << 10 // heads up to this size are read without more ado
	largeHeads  = 16       // as many may be larger at a time; the largest is 6.3 MiB
	discardSize = 256 << 10
	discardTime = 500 * time.Millisecond
)

// buffer holds the memory that a connection borrows while it lasts.
type buffer struct {
	first []byte // kept by the pool
	spans []span
}

var buffers = sync.Pool{New: func() any {
	return &buffer{first: make([]byte, bufferSize), spans: make([]span, 0, 24)}
}}

// The states of a connection. Shutting down cuts those that are not yet busy.
const (
	readingHead int32 = iota
	busy
	statusLine
)

// conn is one connection and its one request.
type conn struct {
	nc     *listener.Conn
	server *Server
	state  atomic.Int32

	buf      []byte // head and the bytes read with it: buf[:filled]
	filled   int
	rest     int // where unread bytes start in buf
	bodyLeft bool
	bodyDue  time.Time // zero until the first read
	mayWait  bool      // a read took all that it had room for, so more may be waiting
	large    bool      // counted among the large heads
	broken   bool      // a write failed: the peer is gone
	borrowed *buffer

	request Request
	writer  Writer
	stream  *Stream
	fields  [16]Field // most requests have fewer
}

// readHead fills the request. ok is false if the peer is gone; a status other than
// 0 is the parser's own answer.
func (c *conn) readHead() (status int, ok bool) {
	if c.nc.SetReadDeadline(c.request.Accepted.Add(c.server.RequestTimeout)) != nil {
		return 0, false
	}
	h := head{spans: c.borrowed.spans[:0]}
	defer func() { c.borrowed.spans = h.spans[:0] }()
	for {
		if c.filled == len(c.buf) && !c.grow() {
			return 0, false
		}
		n, err := c.nc.Read(c.buf[c.filled:])
		c.filled += n
		c.mayWait = c.filled == len(c.buf)
		if n > 0 {
			done, status := h.next(c.buf[:c.filled])
			if status != 0 {
				if h.started {
					c.request.Method = string(c.buf[:h.method])
				}
				c.bodyLeft = true
				return status, true
			}
			if done {
				h.fill(c.buf, &c.request)
				c.rest = h.line
				c.bodyLeft = c.request.mayHaveBody()
				return 0, true
			}
		}
		if err != nil {
			return 0, false
		}
	}
}

// grow doubles the buffer. A head beyond the ordinary waits for one of a few
// places, no longer than its own time limit: so a number of connections with the
// largest head cannot fill the memory.
func (c *conn) grow() bool {
	if len(c.buf) >= ordinary && !c.large {
		late := time.NewTimer(time.Until(c.request.Accepted.Add(c.server.RequestTimeout)))
		defer late.Stop()
		select {
		case c.server.large <- struct{}{}:
			c.large = true
		case <-late.C:
			return false
		case <-c.server.ending:
			return false
		}
	}
	bigger := make([]byte, 2*len(c.buf))
	copy(bigger, c.buf)
	c.buf = bigger
	return true
}

func (c *conn) readBody(n int64) ([]byte, error) {
	body := make([]byte, n)
	have := copy(body, c.buf[c.rest:c.filled])
	if c.bodyDue.IsZero() {
		c.bodyDue = time.Now().Add(c.server.RequestTimeout)
		if n > 0 && have == 0 && c.request.wantsContinue() {
			if c.nc.SetWriteDeadline(c.bodyDue) != nil {
				return nil, ErrTimeout
			}
			if _, err := io.WriteString(c.nc, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
				return nil, ErrTimeout
			}
		}
	}
	c.rest += have
	if have < len(body) {
		c.nc.Wait()
		defer c.nc.Work()
		if c.nc.SetReadDeadline(c.bodyDue) != nil {
			return nil, ErrTimeout
		}
		if _, err := io.ReadFull(c.nc, body[have:]); err != nil {
			return nil, ErrTimeout
		}
		c.mayWait = true
	}
	c.bodyLeft = false
	return body, nil
}

// finish ends the connection so that the peer sees all of the answer.
func (c *conn) finish() {
	if c.stream != nil {
		defer func() { <-c.stream.gone }()
	}
	defer func() { _ = c.nc.Close() }()
	unread := c.bodyLeft || c.mayWait || c.rest < c.filled
	if c.broken || !c.writer.answered || !unread && c.stream == nil {
		return
	}
	if c.nc.CloseWrite() != nil || c.nc.SetReadDeadline(time.Now().Add(discardTime)) != nil {
		return
	}
	if c.stream != nil {
		<-c.stream.gone // its goroutine discards
		return
	}
	c.discard(c.borrowed.first)
}

// discard reads and drops input, up to its limit, the peer's end or the deadline.
func (c *conn) discard(b []byte) {
	for left := discardSize; left > 0; {
		n, err := c.nc.Read(b[:min(len(b), left)])
		if err != nil {
			return
		}
		left -= n
	}
}
