package harness

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// Proxy sits between two services so that a test can make the far one unreachable, or forward a request and swallow its
// answer, as a crash at the worst moment would.
type Proxy struct {
	URL    string
	mode   atomic.Int32
	seen   chan string // paths of swallowed answers
	target string
	// Authorize is the credential to add to each request; nil: the one in the target's address, if any. It is set
	// before the first request.
	Authorize func() *url.Userinfo
}

const (
	forward int32 = iota
	refuse
	swallow
	hang
)

// NewProxy listens on addr and forwards to target.
func NewProxy(t testing.TB, addr, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{URL: "http://" + addr, seen: make(chan string, 16), target: target}
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	rp := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.URL.User = nil
			user := to.User
			if p.Authorize != nil {
				user = p.Authorize()
			}
			if user != nil {
				password, _ := user.Password()
				r.Out.SetBasicAuth(user.Username(), password)
			}
		},
		// Event streams pass as they come.
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // the far service may be dead on purpose
	}
	stop := make(chan struct{})
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch p.mode.Load() {
		case refuse:
			hijackAndClose(w)
		case hang:
			select {
			case <-r.Context().Done():
			case <-stop:
			}
		case swallow:
			if !strings.HasSuffix(r.URL.Path, "/create_flow_run") {
				rp.ServeHTTP(w, r)
				return
			}
			req, _ := http.NewRequest(r.Method, target+r.URL.Path, r.Body)
			req.Header = r.Header.Clone()
			if resp, err := http.DefaultClient.Do(req); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			select {
			case p.seen <- r.URL.Path:
			default:
			}
			select {
			case <-r.Context().Done():
			case <-stop:
			}
		default:
			rp.ServeHTTP(w, r)
		}
	})}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { close(stop); _ = srv.Close() })
	return p
}

func hijackAndClose(w http.ResponseWriter) {
	if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
		conn.Close()
	}
}

// Forward forwards everything.
func (p *Proxy) Forward() { p.mode.Store(forward) }

// Refuse drops every connection.
func (p *Proxy) Refuse() { p.mode.Store(refuse) }

// Hang accepts every request and answers none.
func (p *Proxy) Hang() { p.mode.Store(hang) }

// Swallow delivers flow run creations and never answers them.
func (p *Proxy) Swallow() { p.mode.Store(swallow) }

// Swallowed receives the path of each request whose answer was swallowed.
func (p *Proxy) Swallowed() <-chan string { return p.seen }
