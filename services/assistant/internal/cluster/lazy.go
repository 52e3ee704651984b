package cluster

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"k8s.io/client-go/rest"
)

// lazy starts a cluster at the first call to it. Living through the past of the seeded one takes longer than a service
// that may never be asked should take to start.
type lazy struct {
	start func() (*rest.Config, func())
	once  sync.Once
	// What start made: set in once, read after it.
	next http.RoundTripper
	host *url.URL
	stop func()
	err  error
}

// config leads to the cluster that start will make.
func (l *lazy) config() *rest.Config {
	return &rest.Config{Host: "http://cluster.invalid", Transport: l}
}

func (l *lazy) RoundTrip(r *http.Request) (*http.Response, error) {
	l.once.Do(l.begin)
	if l.err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // a transport closes the body on every way out
		}
		return nil, l.err
	}
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = l.host.Scheme, l.host.Host, ""
	return l.next.RoundTrip(r)
}

// CancelRequest exists because client-go writes a warning about a transport without it; the context of a request
// cancels it.
func (*lazy) CancelRequest(*http.Request) {}

func (l *lazy) begin() {
	cfg, stop := l.start()
	l.stop = stop
	if l.next, l.err = rest.TransportFor(cfg); l.err != nil {
		l.err = fmt.Errorf("reach the seeded cluster: %w", l.err)
		return
	}
	l.host, _, l.err = rest.DefaultServerUrlFor(cfg)
}

// close ends the cluster, or keeps it from being started.
func (l *lazy) close() {
	l.once.Do(func() { l.err = errClosed })
	if l.stop != nil {
		l.stop()
	}
}
