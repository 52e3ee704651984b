package evidenceapitest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/loopback/httpd"
)

// Request is a request to send. The zero value is GET with Host and token.
type Request struct {
	Method  string // "": GET
	Target  string
	NoHost  bool
	NoToken bool
	Fields  []string // "Name: value"
	Body    []byte
}

// Text returns the request as sent over the wire.
func (r Request) Text(addr string) []byte {
	var b bytes.Buffer
	if r.Method == "" {
		r.Method = "GET"
	}
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", r.Method, r.Target)
	if !r.NoHost {
		fmt.Fprintf(&b, "Host: %s\r\n", addr)
	}
	if !r.NoToken {
		fmt.Fprintf(&b, "X-SVC-UI-Token: %s\r\n", Token)
	}
	for _, f := range r.Fields {
		b.WriteString(f + "\r\n")
	}
	b.WriteString("\r\n")
	b.Write(r.Body)
	return b.Bytes()
}

// Response is the response to a Request.
type Response struct {
	t          testing.TB
	StatusLine string
	Status     int
	Header     httpd.Header
	Body       []byte
}

// Get reads a target with Host, token and further fields.
func (tw *Tower) Get(target string, fields ...string) *Response {
	tw.t.Helper()
	return tw.Do(Request{Target: target, Fields: fields})
}

// Inspect sends a report.
func (tw *Tower) Inspect(body []byte, fields ...string) *Response {
	tw.t.Helper()
	return tw.Do(Request{Method: "POST", Target: "/api/v1/run-evidence/inspect", Body: body,
		Fields: append([]string{"Content-Type: application/json", "Content-Length: " + strconv.Itoa(len(body))}, fields...)})
}

// Do sends a request and checks the answer.
func (tw *Tower) Do(r Request) *Response {
	tw.t.Helper()
	c := tw.Send(r)
	defer c.Close()
	return c.Answer()
}

// Raw sends bytes and reads whatever comes back, nothing perhaps.
func (tw *Tower) Raw(text []byte) []byte {
	tw.t.Helper()
	c := tw.dial()
	defer func() { _ = c.Close() }()
	_, _ = c.Write(text) // an early answer may cut it
	all, _ := io.ReadAll(c)
	return all
}

// Conn is a request whose answer is still to be read.
type Conn struct {
	net.Conn
	t       testing.TB
	tower   *Tower
	request Request
	in      *bufio.Reader
}

// Send sends a request.
func (tw *Tower) Send(r Request) *Conn {
	tw.t.Helper()
	c := &Conn{Conn: tw.dial(), t: tw.t, tower: tw, request: r}
	c.in = bufio.NewReader(c.Conn)
	_, _ = c.Write(r.Text(tw.Addr)) // an early answer may cut a body
	return c
}

// Close closes the connection.
func (c *Conn) Close() { _ = c.Conn.Close() }

// Head reads status line and fields.
func (c *Conn) Head() *Response {
	c.t.Helper()
	r := &Response{t: c.t}
	line := func() string {
		text, err := c.in.ReadString('\n')
		if err != nil || !strings.HasSuffix(text, "\r\n") {
			c.t.Fatalf("%s %s: the head ends with %q: %v; want strings.HasSuffix(text, \"\\r\\n\")", c.request.Method, c.request.Target, text, err)
		}
		return strings.TrimSuffix(text, "\r\n")
	}
	r.StatusLine = line()
	parts := strings.SplitN(r.StatusLine, " ", 3)
	var err error
	if r.Status, err = strconv.Atoi(parts[1]); err != nil || len(parts) != 3 || parts[0] != "HTTP/1.1" {
		c.t.Fatalf(`status line %q; want len(parts) == 3 && parts[0] == "HTTP/1.1"`, r.StatusLine)
	}
	for {
		text := line()
		if text == "" {
			return r
		}
		name, value, _ := strings.Cut(text, ": ")
		r.Header = append(r.Header, httpd.Field{Name: name, Value: value})
	}
}

// Answer reads a whole answer, to the end of the connection, and checks it.
func (c *Conn) Answer() *Response {
	c.t.Helper()
	r := c.Head()
	body, err := io.ReadAll(c.in)
	if err != nil {
		c.t.Fatalf("%s: the body ends with %v", c.request.Target, err)
	}
	r.Body = body
	if c.request.Method != "HEAD" && r.Header.Get("Content-Length") != strconv.Itoa(len(body)) {
		c.t.Errorf(`%s: %d bytes, Content-Length %q; want (c.request.Method == "HEAD" || r.Header.Get("Content-Length") == strconv.Itoa(len(body)))`, c.request.Target, len(body), r.Header.Get("Content-Length"))
	}
	if r.Header.Get("Connection") != "close" {
		c.t.Error("the connection is not to be closed")
	}
	checkResponse(c.t, c.request, r)
	return r
}

// Next reads a stream up to the next empty line.
func (c *Conn) Next() string {
	c.t.Helper()
	var b strings.Builder
	for {
		text, err := c.in.ReadString('\n')
		b.WriteString(text)
		if err != nil {
			c.t.Fatalf("the stream ends with %q: %v", b.String(), err)
		}
		if text == "\n" {
			return b.String()
		}
	}
}

// Rest reads the rest of a stream.
func (c *Conn) Rest() string {
	all, _ := io.ReadAll(c.in)
	return string(all)
}

// JSON returns the body as a document.
func (r *Response) JSON() *canon.Object {
	r.t.Helper()
	v, err := canon.Parse(r.Body, canon.ObjectRoot())
	if err != nil {
		r.t.Fatalf("%v in %.200q", err, r.Body)
	}
	return v.(*canon.Object)
}

// At returns the value under keys and indexes, in form C1; "" if it is absent.
func (r *Response) At(path ...any) string {
	r.t.Helper()
	var v canon.Value = r.JSON()
	for _, p := range path {
		ok := false
		switch at := v.(type) {
		case *canon.Object:
			key, _ := p.(string)
			v, ok = at.Get(key)
		case canon.Array:
			if i, isIndex := p.(int); isIndex && i < len(at) {
				v, ok = at[i], true
			}
		}
		if !ok {
			return ""
		}
	}
	text, err := canon.C1(v)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// Code returns the code of an envelope, or "".
func (r *Response) Code() string {
	r.t.Helper()
	if len(r.Body) == 0 || r.Body[0] != '{' {
		return ""
	}
	return strings.Trim(r.At("error", "code"), `"`)
}

// Want checks status and code of the answer; "" is a success.
func (r *Response) Want(status int, code string) *Response {
	r.t.Helper()
	if r.Status != status || r.Code() != code {
		r.t.Errorf("%d %s, want %d %s: %.300s", r.Status, r.Code(), status, code, r.Body)
	}
	return r
}
