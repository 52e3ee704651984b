package httpd

import (
	"context"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestLargeHeadsTakeTurns: beyond the few that may be large at a time, a large head
// waits for its turn, and an ordinary one does not.
func TestLargeHeadsTakeTurns(t *testing.T) {
	t.Parallel()
	const limit = 10 * time.Second
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{RequestTimeout: limit, MaxConns: 64, Handler: func(w *Writer, _ *Request) { _ = w.Answer(200, nil, nil) }}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Serve(ctx, l) })
	defer func() { cancel(); wg.Wait() }()
	send := func(text string) net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(2 * limit))
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		return c
	}
	answered := func(c net.Conn) {
		t.Helper()
		if answer, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200 ") {
			t.Errorf(`%q, %v; want strings.HasPrefix(string(answer), "HTTP/1.1 200 ")`, answer, err)
		}
	}
	large := "GET / HTTP/1.1\r\n" + strings.Repeat("A: "+strings.Repeat("x", 60000)+"\r\n", 3)
	taken := func() int {
		s.mu.Lock() // Serve makes the places under the lock
		defer s.mu.Unlock()
		return len(s.large)
	}
	var held []net.Conn
	for range largeHeads {
		held = append(held, send(large))
	}
	for until := time.Now().Add(limit); taken() < largeHeads; runtime.Gosched() {
		if time.Now().After(until) {
			t.Fatalf("%d large heads; want !time.Now().After(until)", taken())
		}
	}
	waiting := send(large + "\r\n")
	answered(send("GET / HTTP/1.1\r\n\r\n"))
	if err := waiting.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := waiting.Read(make([]byte, 1)); err == nil || n > 0 {
		t.Error("one more large head was answered")
	}
	_ = held[0].Close()
	if err := waiting.SetReadDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	answered(waiting)
}
