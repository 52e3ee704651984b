package httpd

import (
	"errors"
	"strings"
	"time"
)

// The faults of reading a body and of answering.
var (
	ErrTimeout  = errors.New("httpd: the body was not complete in time")
	ErrAnswered = errors.New("httpd: the request was answered already")
)

// Field is one header field, as sent.
type Field struct{ Name, Value string }

// Header is the fields of a head, in order.
type Header []Field

// Values returns the values of all fields of that name, in any case.
func (h Header) Values(name string) []string {
	var values []string
	for i := range h {
		if strings.EqualFold(h[i].Name, name) {
			values = append(values, h[i].Value)
		}
	}
	return values
}

// Get returns the value of the first field of that name, in any case, or "".
func (h Header) Get(name string) string {
	value, _ := h.find(name)
	return value
}

// Sole returns the value of the only field of that name; false if there is none,
// or more than one.
func (h Header) Sole(name string) (string, bool) {
	value, n := h.find(name)
	return value, n == 1
}

func (h Header) find(name string) (value string, n int) {
	for i := range h {
		if len(h[i].Name) == len(name) && strings.EqualFold(h[i].Name, name) {
			if n == 0 {
				value = h[i].Value
			}
			n++
		}
	}
	return value, n
}

// Request is a parsed head and the means to read its body. It is the handler's
// until the handler returns.
type Request struct {
	Method, Target string // as sent
	Path, RawQuery string // raw: nothing is decoded or cleaned; of an absolute-form target its path, "/" if empty
	HasQuery       bool   // a "?" was there
	Authority      string // of an absolute-form target
	Absolute       bool   // the target is in absolute form
	Proto          string // HTTP/1.0 or HTTP/1.1
	Header         Header
	Accepted       time.Time // when the connection was

	c *conn
}

// Keep notes that the caller has shown a credential: its connection stays when the port is full.
func (r *Request) Keep() {
	if r.c != nil {
		r.c.nc.Keep("")
	}
}

// ReadBody reads exactly n bytes, which must arrive within the request timeout from the first
// call; a body that ends early is [ErrTimeout] too. It sends 100 Continue first if the client
// waits for it. The caller limits n.
func (r *Request) ReadBody(n int64) ([]byte, error) {
	if r.c == nil || n < 0 {
		return nil, ErrTimeout
	}
	return r.c.readBody(n)
}

// wantsContinue reports whether the client waits for 100 Continue before it sends the body.
func (r *Request) wantsContinue() bool {
	return r.Proto == "HTTP/1.1" && strings.EqualFold(strings.Trim(r.Header.Get("Expect"), " \t"), "100-continue")
}

// mayHaveBody reports whether bytes of a body may follow the head, even if its framing is
// invalid.
func (r *Request) mayHaveBody() bool {
	switch r.Method {
	case "GET", "HEAD", "OPTIONS":
	default:
		return true
	}
	for i := range r.Header {
		switch len(r.Header[i].Name) {
		case len("Content-Length"), len("Transfer-Encoding"):
			if strings.EqualFold(r.Header[i].Name, "Content-Length") || strings.EqualFold(r.Header[i].Name, "Transfer-Encoding") {
				return true
			}
		}
	}
	return false
}
