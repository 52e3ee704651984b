package service

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
)

type echoBody struct {
	Features map[string]float64 `json:"features"`
}

var benchBody = []byte(`{"features":{"procs":32,"user_id":17,"group_id":2,"app_id":4,"hour":13,"weekday":2,"last":120,"median5":118.5,"median":90,"max":3600,"count":41}}`)

// serveBare is the floor: net/http and encoding/json, nothing else.
func serveBare(w http.ResponseWriter, r *http.Request) {
	var b echoBody
	if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(b)
}

// newStack is the same answer behind everything this package does.
func newStack() *Server {
	s := New(Options{Name: "bench", AccessLog: func(c echo.Context) bool { return c.Path() != "/predict/:model" }})
	s.Echo.POST("/predict/:model", func(c echo.Context) error {
		var b echoBody
		if err := DecodeJSON(c, &b, true); err != nil {
			return err
		}
		return c.JSON(http.StatusOK, b)
	})
	return s
}

// noJSON is the stack without body work: the cost of the middleware alone.
func noJSON() *Server {
	s := New(Options{Name: "bench", AccessLog: func(echo.Context) bool { return false }})
	s.Echo.POST("/predict/:model", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
	return s
}

// Handler calls without sockets: the cost and allocations of each layer.
func BenchmarkHandler(b *testing.B) {
	plain := echo.New()
	plain.POST("/predict/:model", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
	for name, h := range map[string]http.Handler{
		"bare": http.HandlerFunc(serveBare), "stack": newStack().Echo, "echo": plain, "middleware": noJSON().Echo,
	} {
		b.Run(name, func(b *testing.B) {
			w := &discard{header: http.Header{}}
			rd := bytes.NewReader(nil)
			r := httptest.NewRequest(http.MethodPost, "/predict/JPCP", nil)
			r.Header.Set("Content-Type", "application/json")
			r.ContentLength = int64(len(benchBody))
			r.Body = io.NopCloser(rd)
			b.ReportAllocs()
			for b.Loop() {
				rd.Reset(benchBody)
				clear(w.header)
				h.ServeHTTP(w, r)
			}
		})
	}
}

type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}

// The whole stack and the bare handler over loopback, 64 clients each.
func BenchmarkOverHTTP(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		srv := httptest.NewServer(http.HandlerFunc(serveBare))
		defer srv.Close()
		generateLoad(b, srv.URL+"/predict/JPCP")
	})
	b.Run("stack", func(b *testing.B) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		s := newStack()
		s.opt.Listener = ln
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		generateLoad(b, "http://"+ln.Addr().String()+"/predict/JPCP")
		cancel()
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	})
}

func generateLoad(b *testing.B, url string) {
	const clients = 64
	c := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer c.CloseIdleConnections()
	work := make(chan struct{}, clients)
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range work {
				resp, err := c.Post(url, "application/json", bytes.NewReader(benchBody))
				if err != nil {
					b.Error(err)
					continue
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					b.Errorf("status %d; want %v", resp.StatusCode, http.StatusOK)
				}
			}
		})
	}
	b.ResetTimer()
	for range b.N {
		work <- struct{}{}
	}
	close(work)
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}
