package httpd_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/loopback/httpd"
)

// runServer serves until stop is called, which waits for Serve.
func runServer(t *testing.T, s *httpd.Server) (addr string, cancel func(), done <-chan error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.RequestTimeout, s.MaxConns = limit, 64
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	t.Cleanup(cancel)
	return l.Addr().String(), cancel, ended
}

func awaitEnd(t *testing.T, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(limit):
		t.Fatal("Serve does not return")
	}
}

func TestShutdownCutsHeadsAndWaitsForHandlers(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	addr, cancel, done := runServer(t, &httpd.Server{Handler: func(w *httpd.Writer, r *httpd.Request) {
		close(entered)
		<-leave
		echoRequest(w, r)
	}})
	idle, busy := dialServer(t, addr), dialServer(t, addr)
	if _, err := io.WriteString(idle, "GET /"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(busy, "GET / HTTP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-entered
	cancel()
	if answer, _ := io.ReadAll(idle); len(answer) > 0 {
		t.Errorf("%q; want len(answer) <= 0", answer)
	}
	select {
	case <-done:
		t.Fatal("Serve returned before the handler")
	default:
	}
	if c, err := net.Dial("tcp", addr); err == nil {
		_ = c.Close()
		t.Error("still listening")
	}
	close(leave)
	if answer, err := io.ReadAll(busy); err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 200 ")) {
		t.Errorf(`%q, %v; want bytes.HasPrefix(answer, []byte("HTTP/1.1 200 "))`, answer, err)
	}
	awaitEnd(t, done)
}

func TestAbortCutsHandlers(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{}, 2)
	s := &httpd.Server{Handler: func(w *httpd.Writer, r *httpd.Request) {
		if r.Path == "/stream" {
			s, err := w.Stream(200, nil, limit)
			if err != nil {
				t.Error(err)
				return
			}
			entered <- struct{}{}
			<-s.Gone()
			return
		}
		entered <- struct{}{}
		if _, err := r.ReadBody(10); !errors.Is(err, httpd.ErrTimeout) {
			t.Errorf("%v; want errors.Is(err, httpd.ErrTimeout)", err)
		}
	}}
	addr, cancel, done := runServer(t, s)
	for _, path := range []string{"/body", "/stream"} {
		if _, err := io.WriteString(dialServer(t, addr), "POST "+path+" HTTP/1.1\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		<-entered
	}
	cancel()
	s.Abort()
	awaitEnd(t, done)
}

func TestServeIsCalledOnce(t *testing.T) {
	t.Parallel()
	s := &httpd.Server{Handler: echoRequest}
	_, cancel, done := runServer(t, s)
	cancel()
	awaitEnd(t, done)
	if err := s.Serve(context.Background(), nil); err == nil {
		t.Error("served twice")
	}
}

func TestListenerThatFails(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	if err := (&httpd.Server{Handler: echoRequest, MaxConns: 1}).Serve(context.Background(), l); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v; want errors.Is(err, net.ErrClosed)", err)
	}
}

// scarce fails a few times as a process without file descriptors does.
type scarce struct {
	net.Listener
	mu   sync.Mutex
	left int
}

func (l *scarce) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left > 0 {
		l.left--
		return nil, errors.New("accept: too many open files")
	}
	return l.Listener.Accept()
}

func TestAcceptFaultsPass(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	addr := serveListener(t, &httpd.Server{Handler: echoRequest, Log: slog.New(slog.NewTextHandler(&log, nil)), MaxConns: 1}, &scarce{Listener: l, left: 3})
	exchangeText(t, addr, "GET / HTTP/1.1\r\n\r\n")
	if strings.Count(log.String(), "accept failed") != 3 {
		t.Error(log.String(), `want strings.Count(log.String(), "accept failed") == 3`)
	}
}

func TestPanicAndSilence(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	addr, cancel, done := runServer(t, &httpd.Server{Log: slog.New(slog.NewTextHandler(&log, nil)), Handler: func(w *httpd.Writer, r *httpd.Request) {
		switch r.Path {
		case "/panic":
			panic("oh")
		case "/silent":
		default:
			echoRequest(w, r)
		}
	}})
	for _, path := range []string{"/panic", "/silent"} {
		if answer := exchangeText(t, addr, "GET "+path+" HTTP/1.1\r\n\r\n"); answer != "" {
			t.Errorf(`%q; want ""`, answer)
		}
	}
	if answer := exchangeText(t, addr, "GET / HTTP/1.1\r\n\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 200 ") {
		t.Errorf(`%q; want strings.HasPrefix(answer, "HTTP/1.1 200 ")`, answer)
	}
	cancel()
	awaitEnd(t, done)
	if !strings.Contains(log.String(), "handler panicked") || !strings.Contains(log.String(), "oh") {
		t.Error(log.String(), `want strings.Contains(log.String(), "handler panicked") && strings.Contains(log.String(), "oh")`)
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	next := make(chan string)
	addr := startServer(t, &httpd.Server{Handler: func(w *httpd.Writer, _ *httpd.Request) {
		s, err := w.Stream(200, httpd.Header{{Name: "A", Value: "b"}, {Name: "Date", Value: "now"}}, limit)
		if err != nil {
			t.Error(err)
			return
		}
		for text := range next {
			if _, err := io.WriteString(s, text); err != nil {
				t.Error(err)
			}
		}
	}})
	c := dialServer(t, addr)
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"HTTP/1.1 200 OK\r\nA: b\r\nDate: now\r\nConnection: close\r\n\r\n", "one", "two"} {
		if text[0] != 'H' {
			next <- text
		}
		got := make([]byte, len(text))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != text {
			t.Fatalf("%q, %v; want string(got) == text", got, err)
		}
	}
	close(next)
	if rest, err := io.ReadAll(c); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v; want len(rest) <= 0", rest, err)
	}
}

// TestGone: a peer that leaves, half-closes or floods ends its stream.
func TestGone(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	addr := startServer(t, &httpd.Server{Handler: func(w *httpd.Writer, _ *httpd.Request) {
		s, err := w.Stream(200, nil, limit)
		if err != nil {
			t.Error(err)
			return
		}
		<-s.Gone()
		gone <- struct{}{}
	}})
	for name, leave := range map[string]func(*net.TCPConn){
		"close":      func(c *net.TCPConn) { _ = c.Close() },
		"reset":      func(c *net.TCPConn) { _ = c.SetLinger(0); _ = c.Close() },
		"half-close": func(c *net.TCPConn) { _ = c.CloseWrite() },
		"flood":      func(c *net.TCPConn) { _, _ = c.Write(make([]byte, 300<<10)) },
	} {
		c := dialServer(t, addr)
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 17)); err != nil {
			t.Fatal(err)
		}
		leave(c.(*net.TCPConn))
		select {
		case <-gone:
		case <-time.After(limit):
			t.Errorf("%s is not noticed", name)
		}
	}
}

// TestStreamWriteDeadline: a peer that takes nothing is cut.
func TestStreamWriteDeadline(t *testing.T) {
	t.Parallel()
	const due = 300 * time.Millisecond
	failed := make(chan time.Duration, 1)
	addr := startServer(t, &httpd.Server{Handler: func(w *httpd.Writer, _ *httpd.Request) {
		s, err := w.Stream(200, nil, due)
		if err != nil {
			t.Error(err)
			return
		}
		for {
			began := time.Now()
			if _, err := s.Write(make([]byte, 1<<20)); err != nil {
				failed <- time.Since(began)
				return
			}
		}
	}})
	c := dialServer(t, addr)
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case took := <-failed:
		if took < due {
			t.Errorf("cut after %v; want took >= due", took)
		}
	case <-time.After(limit):
		t.Fatal("a write waits for ever")
	}
}

// TestAnswerDeadline: so is a peer that does not take its answer.
func TestAnswerDeadline(t *testing.T) {
	t.Parallel()
	failed := make(chan error, 1)
	addr := startServer(t, &httpd.Server{RequestTimeout: 300 * time.Millisecond, Handler: func(w *httpd.Writer, _ *httpd.Request) {
		failed <- w.Answer(200, nil, make([]byte, 64<<20))
	}})
	if _, err := io.WriteString(dialServer(t, addr), "GET / HTTP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-failed:
		if ne, ok := errors.AsType[net.Error](err); !ok || !ne.Timeout() {
			t.Errorf("%v; want ok && ne.Timeout()", err)
		}
	case <-time.After(limit):
		t.Fatal("a write waits for ever")
	}
}

// TestNothingIsLeft runs apart from the rest: it counts goroutines.
func TestNothingIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	addr, cancel, done := runServer(t, &httpd.Server{Handler: func(w *httpd.Writer, r *httpd.Request) {
		if r.Path == "/stream" {
			if s, err := w.Stream(200, nil, limit); err == nil {
				_, _ = io.WriteString(s, "x")
			}
			return
		}
		echoRequest(w, r)
	}})
	for range 50 {
		exchangeText(t, addr, "GET / HTTP/1.1\r\n\r\n")
		exchangeText(t, addr, "GET /stream HTTP/1.1\r\n\r\n")
		exchangeText(t, addr, "GET / HTTP/9.1\r\n\r\n")
		_ = dialServer(t, addr).Close()
	}
	dialServer(t, addr) // sends nothing
	cancel()
	awaitEnd(t, done)
	for until := time.Now().Add(limit); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(until) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before\n%s; want !time.Now().After(until)", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}
