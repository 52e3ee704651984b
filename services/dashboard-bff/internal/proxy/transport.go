package proxy

import (
	"net"
	"net/http"
	"time"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/outbound"
)

// timeouts of calls to services.
type timeouts struct {
	connect time.Duration // the name's resolution and TLS included
	header  time.Duration // from the end of the request to the first byte of the answer
	idle    time.Duration // between two bytes of a body, either way
}

var defaultTimeouts = timeouts{connect: 2 * time.Second, header: 30 * time.Second, idle: time.Minute}

// newTransport connects to services. It follows no redirect, knows no environment's proxy, which would resolve names
// out of the guard's sight, and leaves bodies as they are.
func newTransport(r outbound.Resolver, t timeouts) *http.Transport {
	g := &outbound.Guard{Resolver: r, Dialer: net.Dialer{Timeout: t.connect, KeepAlive: 30 * time.Second}}
	return &http.Transport{
		DialContext: g.Dial, TLSHandshakeTimeout: t.connect, ResponseHeaderTimeout: t.header,
		ExpectContinueTimeout: time.Second, IdleConnTimeout: time.Minute, MaxIdleConns: 256, MaxIdleConnsPerHost: 64,
		MaxResponseHeaderBytes: 256 << 10, DisableCompression: true, ForceAttemptHTTP2: true,
	}
}
