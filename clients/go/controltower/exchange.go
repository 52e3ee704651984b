package controltower

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

const (
	maxHead = 64 << 10 // bytes of an answer's head; the server's own are under 2 KiB
	maxBody = 64 << 20 // bytes of an answer that is read
)

// endpoint is the server's address: always 127.0.0.1, whatever a resolver returns for
// localhost.
type endpoint struct {
	authority string
	port      int
}

var basePattern = regexp.MustCompile(`^(?i:http://(127\.0\.0\.1|localhost)(?::([0-9]{1,5}))?/?)$`)

func parseEndpoint(baseURL string) (endpoint, error) {
	port := 80
	var m []string
	// In any case, but a letter beyond ASCII that folds to one of localhost (ſ) is another.
	if !strings.ContainsFunc(baseURL, func(r rune) bool { return r >= utf8.RuneSelf }) {
		m = basePattern.FindStringSubmatch(baseURL)
	}
	if m != nil && m[2] != "" {
		port, _ = strconv.Atoi(m[2]) // at most five digits
	}
	if m == nil || port < 1 || port > 65535 {
		return endpoint{}, misuseError("the base URL must be http://127.0.0.1:PORT or http://localhost:PORT, without a user, " +
			"path, query or fragment: the server listens on the loopback interface only")
	}
	return endpoint{authority: fmt.Sprintf("%s:%d", strings.ToLower(m[1]), port), port: port}, nil
}

// exchange is one request on one connection and the head of its answer.
//
// net/http's client is not used: it may follow redirects, use proxies, keep connections,
// undo content codings and retry a request, and it does not distinguish a broken answer
// from a broken connection.
type exchange struct {
	*http.Response
	ctx    context.Context
	conn   net.Conn
	reader *bufio.Reader
	source *noting
	detach func() bool // from ctx
}

// noting records why reading from the connection failed, so that an error of http's parser
// can be attributed to the connection or to the bytes received.
type noting struct {
	r    io.Reader
	left int64 // bytes that may still come
	err  error
}

func (n *noting) Read(p []byte) (int, error) {
	if n.left <= 0 {
		return 0, io.ErrShortBuffer
	}
	got, err := n.r.Read(p[:min(int64(len(p)), n.left)])
	n.left -= int64(got)
	if err != nil {
		n.err = err
	}
	return got, err
}

func (e endpoint) exchange(ctx context.Context, deadline time.Time, request []byte) (*exchange, error) {
	dialer := net.Dialer{Deadline: deadline}
	conn, err := dialer.DialContext(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", e.port))
	x := &exchange{ctx: ctx, conn: conn, source: &noting{r: conn, left: maxHead}}
	if err != nil {
		return nil, x.broke(fmt.Sprintf("cannot connect to 127.0.0.1:%d; is the server running?", e.port), err)
	}
	x.detach = context.AfterFunc(ctx, func() { _ = conn.Close() })
	x.reader = bufio.NewReader(x.source)
	if err := x.start(deadline, request); err != nil {
		x.close()
		return nil, err
	}
	return x, nil
}

func (x *exchange) start(deadline time.Time, request []byte) error {
	if err := x.conn.SetDeadline(deadline); err != nil {
		return x.broke("cannot use the connection", err)
	}
	// A server at its cap answers a large body unread and closes; its answer may be there.
	if _, err := x.conn.Write(request); err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		return x.broke("cannot send the request", err)
	}
	method, _, _ := strings.Cut(string(request[:min(8, len(request))]), " ")
	resp, err := http.ReadResponse(x.reader, &http.Request{Method: method})
	switch {
	case err != nil && x.source.err != nil:
		return x.broke("no whole answer came", x.source.err)
	case err != nil && x.source.left <= 0:
		return &ProtocolError{Detail: fmt.Sprintf("the head of the answer is longer than %d bytes", maxHead)}
	case err != nil || resp.ProtoMajor != 1:
		return &ProtocolError{Detail: "the head of the answer is no HTTP/1.x"}
	}
	x.source.left = math.MaxInt64
	x.Response = resp
	return nil
}

func (x *exchange) close() {
	x.detach()
	_ = x.conn.Close()
}

// broke returns the error of a failed connection; if the caller gave up, that is its cause.
func (x *exchange) broke(detail string, err error) error {
	if gaveUp := context.Cause(x.ctx); gaveUp != nil {
		err = gaveUp
	}
	return &TransportError{detail, err}
}

// values returns every value of one header field.
func (x *exchange) values(name string) []string { return x.Header.Values(name) }

// body reads the whole body, whose length the answer must state.
func (x *exchange) body() ([]byte, error) {
	if len(x.TransferEncoding) > 0 || x.ContentLength < 0 || len(x.values("Content-Length")) != 1 {
		return nil, &ProtocolError{Detail: "the answer does not state its length in one Content-Length field"}
	}
	if x.ContentLength > maxBody {
		return nil, &ProtocolError{Detail: fmt.Sprintf("the answer is longer than %d bytes", maxBody)}
	}
	body, err := io.ReadAll(io.LimitReader(x.Body, x.ContentLength))
	if err != nil {
		return nil, x.broke("the answer was cut short", err)
	}
	return body, nil
}
