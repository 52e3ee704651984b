//go:build e2e

package assistant_test

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
)

// breaker sits between a client and the assistant. It records the client's requests, and breaks streams.
type breaker struct {
	url string

	mu   sync.Mutex
	seen []posted    // guarded by mu
	when *breakPoint // guarded by mu: of the next chat request
}

// posted is one request of the client.
type posted struct {
	method, path, query, session, id, agent string
	body                                    string
}

// breakPoint is where a stream is cut: after a text or, without one, before its first byte.
type breakPoint struct {
	behind string
	broken chan struct{} // closed when the stream was cut
}

func openBreaker(t testing.TB, to string) *breaker {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	b := &breaker{}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // the streams that are broken here
		ModifyResponse: func(r *http.Response) error {
			point := b.take(r.Request)
			switch {
			case point == nil:
			case point.behind == "":
				close(point.broken)
				panic(http.ErrAbortHandler)
			default:
				r.Body = &breaking{ReadCloser: r.Body, point: point}
			}
			return nil
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // the assistant refuses a truncated body
		r.Body = io.NopCloser(bytes.NewReader(body))
		b.mu.Lock()
		b.seen = append(b.seen, posted{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Get("X-Session-ID"), r.Header.Get("X-Request-ID"), r.Header.Get("User-Agent"), string(body)})
		b.mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

// next breaks the stream of the next chat request.
func (b *breaker) next(behind string) (broken chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.when = &breakPoint{behind, make(chan struct{})}
	return b.when.broken
}

func (b *breaker) take(r *http.Request) *breakPoint {
	if r.URL.Path != "/v1/chat/completions" {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	point := b.when
	b.when = nil
	return point
}

// requests returns those to a path, in order.
func (b *breaker) requests(path string) (found []posted) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.seen {
		if p.path == path {
			found = append(found, p)
		}
	}
	return found
}

// breaking is a stream that is cut without its end.
type breaking struct {
	io.ReadCloser
	point *breakPoint
	tail  []byte
	over  bool
}

func (r *breaking) Read(p []byte) (int, error) {
	if r.over {
		close(r.point.broken)
		return 0, io.ErrUnexpectedEOF
	}
	n, err := r.ReadCloser.Read(p)
	r.tail = append(r.tail, p[:n]...)
	r.over = bytes.Contains(r.tail, []byte(r.point.behind))
	r.tail = r.tail[max(0, len(r.tail)-len(r.point.behind)):]
	return n, err
}
