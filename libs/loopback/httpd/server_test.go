package httpd_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/loopback/httpd"
)

// limit limits a test's wait for an expected event.
const limit = 10 * time.Second

// startServer serves until the test ends and returns the address.
func startServer(t testing.TB, s *httpd.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveListener(t, s, l)
}

func serveListener(t testing.TB, s *httpd.Server, l net.Listener) string {
	t.Helper()
	if s.RequestTimeout == 0 {
		s.RequestTimeout = limit
	}
	if s.MaxConns == 0 {
		s.MaxConns = 64
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Serve(ctx, l); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return l.Addr().String()
}

// echoRequest answers with the request.
func echoRequest(w *httpd.Writer, r *httpd.Request) {
	_ = w.Answer(200, httpd.Header{{"Content-Type", "text/plain"}}, fmt.Appendf(nil, "%s %s|%s|%v|%d", r.Method, r.Path, r.RawQuery, r.HasQuery, len(r.Header)))
}

func dialServer(t testing.TB, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	return c
}

// exchangeText sends text and reads until the server closes; a reset is an error.
func exchangeText(t testing.TB, addr, text string) string {
	t.Helper()
	c := dialServer(t, addr)
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		t.Fatalf("after %.200q: %v", answer, err)
	}
	return string(answer)
}

// parseAnswer reads one answer and fails if bytes follow it.
func parseAnswer(t testing.TB, method, answer string) (*http.Response, string) {
	t.Helper()
	in := bufio.NewReader(strings.NewReader(answer))
	res, err := http.ReadResponse(in, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%q: %v", answer, err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%q: %v", answer, err)
	}
	if in.Buffered() > 0 {
		t.Fatalf("bytes after the answer: %q; want in.Buffered() <= 0", answer)
	}
	return res, string(body)
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	addr := startServer(t, &httpd.Server{Handler: echoRequest})
	for _, row := range []struct{ name, request, want string }{
		{"get", "GET /a?b HTTP/1.1\r\nHost: h\r\n\r\n", "GET /a|b|true|1"},
		{"1.0", "GET /a HTTP/1.0\r\n\r\n", "GET /a||false|0"},
		{"line feeds", "GET /a HTTP/1.1\nA: b\n\n", "GET /a||false|1"},
		{"raw", "GET /a/../%zz//? HTTP/1.1\r\n\r\n", "GET /a/../%zz//||true|0"},
		{"absolute", "GET http://h:1?x HTTP/1.1\r\n\r\n", "GET /|x|true|0"},
		{"two at once", "GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n", "GET /1||false|0"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			res, body := parseAnswer(t, "GET", exchangeText(t, addr, row.request))
			if res.StatusCode != 200 || body != row.want || !res.Close || res.ContentLength != int64(len(body)) {
				t.Errorf("%v %q, want %q", res, body, row.want)
			}
		})
	}
}
