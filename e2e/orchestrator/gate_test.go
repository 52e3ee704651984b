//go:build e2e

package orchestrator

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// A training's calls to the tracker: its first, and the first after it has learnt.
const (
	creation  = "/runs/create"
	recording = "/runs/log-batch"
)

// gate sits before the tracker and holds a training at a chosen call, however fast it is.
type gate struct {
	url string

	mu   sync.Mutex // guards path and open
	path string     // calls that end like this are held; empty: none
	open chan struct{}
	held chan struct{} // gets one for each call that is held
}

func newGate(t *testing.T, target string) *gate {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{held: make(chan struct{}, 64)}
	forward := &httputil.ReverseProxy{
		Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ErrorLog: log.New(io.Discard, "", 0), // a killed training leaves its call behind
	}
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		open := g.match(r.URL.Path)
		switch {
		case open == nil:
			forward.ServeHTTP(rw, r)
		case strings.HasSuffix(r.URL.Path, creation):
			// The tracker has the run, and its training has no answer yet.
			forward.ServeHTTP(&late{rw, func() { g.wait(r, open) }}, r)
		default:
			g.wait(r, open)
			forward.ServeHTTP(rw, r)
		}
	}))
	g.url = srv.URL
	t.Cleanup(srv.Close)
	t.Cleanup(g.release) // before the server closes, which waits for held calls
	return g
}

// late answers only after wait has returned.
type late struct {
	http.ResponseWriter
	wait func()
}

func (l *late) WriteHeader(status int) {
	l.wait()
	l.ResponseWriter.WriteHeader(status)
}

func (g *gate) match(path string) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.path == "" || !strings.HasSuffix(path, g.path) {
		return nil
	}
	return g.open
}

// wait returns when the gate opens, or when the calling training is gone.
func (g *gate) wait(r *http.Request, open chan struct{}) {
	g.held <- struct{}{}
	select {
	case <-open:
	case <-r.Context().Done():
	}
}

// hold holds calls whose path ends like path.
func (g *gate) hold(path string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.path, g.open = path, make(chan struct{})
}

// release forwards all calls again, including held ones.
func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.path != "" {
		g.path = ""
		close(g.open)
	}
}

// await returns once a training is held.
func (g *gate) await(t *testing.T) {
	t.Helper()
	select {
	case <-g.held:
	case <-time.After(2 * time.Minute):
		t.Fatal("no training has come to the gate within two minutes; want one held there")
	}
}
