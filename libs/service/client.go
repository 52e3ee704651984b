package service

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// transport is shared by all clients of the process, so that they reuse each other's connections.
var transport = func() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	t.MaxIdleConns = 256
	// A service that calls one other, as the bus bridge does, has hundreds of calls at once; connections beyond this number
	// would be closed after each and opened again.
	t.MaxIdleConnsPerHost = t.MaxIdleConns
	t.IdleConnTimeout = 60 * time.Second
	t.TLSHandshakeTimeout = 5 * time.Second
	t.ExpectContinueTimeout = time.Second
	t.MaxResponseHeaderBytes = 256 << 10
	return t
}()

// HTTPClient is for calls to other services. timeout bounds the whole exchange,
// the body included; 0 leaves that to the request's context, for streams. The
// request id and trace context of the request's context travel along. A redirect
// to another host is an error, since credentials and bodies would follow it.
func HTTPClient(timeout time.Duration) *http.Client {
	return HTTPClientOver(transport, timeout)
}

// HTTPClientOver is HTTPClient whose requests go over another transport than the connections that all clients share.
func HTTPClientOver(over http.RoundTripper, timeout time.Duration) *http.Client {
	return &http.Client{Timeout: timeout, Transport: propagate{over}, CheckRedirect: sameHost}
}

// maxRedirects is net/http's own default.
const maxRedirects = 10

func sameHost(req *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return errors.New("stopped after 10 redirects")
	}
	if from := via[0].URL; req.URL.Host != from.Host || req.URL.Scheme != from.Scheme {
		return fmt.Errorf("redirect from %s to %s://%s refused: another host", from.Host, req.URL.Scheme, req.URL.Host)
	}
	return nil
}

type propagate struct{ next http.RoundTripper }

func (p propagate) RoundTrip(req *http.Request) (_ *http.Response, err error) {
	// Neither path nor query: both may hold names and tokens; the other side's span has the route.
	ctx, span := StartChild(req.Context(), req.Method, trace.WithSpanKind(trace.SpanKindClient))
	if span.IsRecording() {
		span.SetAttributes(attribute.String("http.request.method", req.Method), attribute.String("server.address", req.URL.Hostname()))
		if port, err := strconv.Atoi(req.URL.Port()); err == nil {
			span.SetAttributes(attribute.Int("server.port", port))
		}
		defer func() { EndSpan(span, err) }()
	}
	if id := RequestID(ctx); id != "" {
		req = req.Clone(ctx) // a RoundTripper must not change its request
		setAbsent(req.Header, headerRequestID, id)
		if t := Traceparent(ctx); t != "" {
			setAbsent(req.Header, headerTraceparent, t)
		}
	}
	resp, err := p.next.RoundTrip(req)
	if resp != nil {
		span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
		if resp.StatusCode >= 400 {
			span.SetStatus(codes.Error, "")
		}
	}
	return resp, err
}

func (p propagate) CloseIdleConnections() {
	if c, ok := p.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func setAbsent(h http.Header, name, value string) {
	if h.Get(name) == "" {
		h.Set(name, value)
	}
}
