package httpd

import (
	"crypto/rand"
	"encoding/hex"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// inOneBuffer is the size up to which a body is copied behind its head. A larger
// one is passed to the kernel beside it, in the same call.
const inOneBuffer = 16 << 10

// answers holds the buffers that answers are put together in.
var answers = sync.Pool{New: func() any { b := make([]byte, 0, 4096+inOneBuffer); return &b }}

// Writer answers one request, once.
type Writer struct {
	c        *conn
	answered bool
}

// Answer sends head and body at once, within the request timeout. It adds
// Content-Length, Connection and Date; HEAD gets the head of GET. A request that
// was answered is [ErrAnswered].
func (w *Writer) Answer(status int, h Header, body []byte) error {
	if w.answered {
		return ErrAnswered
	}
	w.answered = true
	p := answers.Get().(*[]byte)
	defer func() { *p = (*p)[:0]; answers.Put(p) }()
	b := appendHead(*p, status, h)
	b = append(b, "Content-Length: "...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	b = append(b, "\r\n\r\n"...)
	if w.c.request.Method == "HEAD" {
		body = nil
	}
	c := w.c
	if err := c.nc.SetWriteDeadline(time.Now().Add(c.server.RequestTimeout)); err != nil {
		return err
	}
	var err error
	if len(body) <= inOneBuffer {
		b = append(b, body...)
		_, err = c.nc.Write(b)
	} else {
		buffers := net.Buffers{b, body}
		_, err = c.nc.WriteBuffers(&buffers)
	}
	*p = b
	if err != nil {
		c.broken = true
	}
	return err
}

// appendHead writes status line and fields, all but the empty line. A date set by
// the caller is kept.
func appendHead(b []byte, status int, h Header) []byte {
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	b = append(b, http.StatusText(status)...)
	b = append(b, "\r\n"...)
	dated := false
	for i := range h {
		dated = dated || strings.EqualFold(h[i].Name, "Date")
		b = append(b, h[i].Name...)
		b = append(b, ": "...)
		b = appendValue(b, h[i].Value)
		b = append(b, "\r\n"...)
	}
	if !dated {
		b = append(b, "Date: "...)
		b = append(b, dateField()...)
		b = append(b, "\r\n"...)
	}
	return append(b, "Connection: close\r\n"...)
}

// appendValue writes a field's value in one line, whatever it contains: a line
// break in it would let its author inject fields.
func appendValue(b []byte, value string) []byte {
	at := len(b)
	b = append(b, value...)
	for i, c := range b[at:] {
		if c < ' ' && c != '\t' || c == 0x7f {
			b[at+i] = ' '
		}
	}
	return b
}

// stamp is a second and its text.
type stamp struct {
	second int64
	text   string
}

var lastStamp atomic.Pointer[stamp]

// dateField is the value of the Date field; its text is made once a second.
func dateField() string {
	now := time.Now()
	if s := lastStamp.Load(); s != nil && s.second == now.Unix() {
		return s.text
	}
	s := &stamp{now.Unix(), now.UTC().Format(http.TimeFormat)}
	lastStamp.Store(s)
	return s.text
}

// NewID makes a request id: req_ and 32 hex digits.
func NewID() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails
	var text [4 + 32]byte
	hex.Encode(text[copy(text[:], "req_"):], raw[:])
	return string(text[:])
}

// refuse is the parser's own answer.
func (w *Writer) refuse(status int) error {
	h := Header{{"Content-Type", "text/plain; charset=utf-8"}}
	named := false
	if w.c.server.Refused != nil {
		for _, f := range w.c.server.Refused(status) {
			if strings.EqualFold(f.Name, "Content-Type") {
				continue
			}
			named = named || strings.EqualFold(f.Name, "X-Request-ID")
			h = append(h, f)
		}
	}
	if !named {
		h = append(h, Field{"X-Request-ID", NewID()})
	}
	return w.Answer(status, h, []byte(refusals[status]))
}
