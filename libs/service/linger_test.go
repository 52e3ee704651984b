package service

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service/listener"
)

// A plain client writes its whole body before it reads. It gets the answer, not a connection reset, for as much as is
// read of a refused body.
func TestRefusedBodiesAreAnswered(t *testing.T) {
	t.Parallel()
	s := New(Options{Name: "t", BodyLimit: 1000, BodyLimits: map[string]int64{"/unread": 1 << 30}})
	s.Echo.POST("/", func(c echo.Context) error { _, err := ReadBody(c); return err })
	s.Echo.POST("/unread", func(echo.Context) error { return problem.NotFound.New("nothing here") })
	url, _ := startServer(t, s)
	plain, err := listener.Listen("127.0.0.1:0", "t", 0)
	if err != nil {
		t.Fatal(err)
	}
	server := listener.Server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 1000)
		_, err := io.ReadAll(r.Body)
		http.Error(w, fmt.Sprint(err), http.StatusTeapot)
	}), slog.New(slog.DiscardHandler), slog.LevelDebug)
	go func() { _ = server.Serve(plain) }() // ends with Close
	t.Cleanup(func() { _ = server.Close() })
	const size = 12 << 20
	sized, chunked := fmt.Sprintf("Content-Length: %d", size), "Transfer-Encoding: chunked"
	for path, want := range map[string]int{"/": 413, "/unread": 404, "/plain": http.StatusTeapot} {
		for _, length := range []string{sized, chunked} {
			t.Run(path+" "+length, func(t *testing.T) {
				t.Parallel()
				address := strings.TrimPrefix(url, "http://")
				if path == "/plain" {
					address = plain.Addr().String()
				}
				conn, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				body := strings.Repeat("x", size)
				if length == chunked {
					body = fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", size, body)
				}
				if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%s\r\n\r\n%s", path, length, body); err != nil {
					t.Fatalf("writing: %v, want the body taken", err)
				}
				res, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatalf("reading: %v, want an answer", err)
				}
				defer res.Body.Close()
				if _, err := io.ReadAll(res.Body); err != nil || res.StatusCode != want {
					t.Errorf("got %d %v, want %d", res.StatusCode, err, want)
				}
			})
		}
	}
}
