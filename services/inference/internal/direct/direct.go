// Package direct carries requests to a service of the same process without a connection. The service's handler gets them
// as its listener would pass them on: credentials, limits, metrics, traces and draining are those of HTTP.
package direct

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
)

// Link joins a client to the handler of a service in the same process. The zero value is ready.
type Link struct{ handler atomic.Pointer[http.Handler] }

// Attach names the handler once it serves.
func (l *Link) Attach(h http.Handler) { l.handler.Store(&h) }

// errNotAttached represents a refused connection over HTTP.
var errNotAttached = errors.New("the service in this process has not started")

// RoundTrip sends a request to the handler. It returns when the handler has answered, which must therefore end with the request's context.
func (l *Link) RoundTrip(req *http.Request) (*http.Response, error) {
	handler := l.handler.Load()
	if handler == nil {
		return nil, errNotAttached
	}
	body := req.Body
	if body == nil {
		body = http.NoBody
	}
	defer body.Close()
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	arrived := (&http.Request{
		Method: req.Method, URL: &url.URL{Path: req.URL.Path, RawPath: req.URL.RawPath, RawQuery: req.URL.RawQuery}, RequestURI: req.URL.RequestURI(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: req.Header.Clone(), // a handler may change it, a transport must not
		Body: body, ContentLength: req.ContentLength, Host: host(req), RemoteAddr: "127.0.0.1:0",
	}).WithContext(req.Context())
	answer := response{header: http.Header{}}
	if !answer.serve(*handler, arrived) {
		return nil, io.ErrUnexpectedEOF
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	return answer.result(req), nil
}

func host(req *http.Request) string {
	if req.Host != "" {
		return req.Host
	}
	return req.URL.Host
}

// response collects a handler's response.
type response struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// serve reports whether the handler has answered; one that aborts its answer closes the connection over HTTP.
func (w *response) serve(h http.Handler, r *http.Request) (answered bool) {
	defer func() {
		if p := recover(); p != nil && p != http.ErrAbortHandler {
			panic(p)
		}
	}()
	h.ServeHTTP(w, r)
	return true
}

func (w *response) Header() http.Header { return w.header }

func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *response) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

func (w *response) result(req *http.Request) *http.Response {
	w.WriteHeader(http.StatusOK)
	return &http.Response{
		Status: strconv.Itoa(w.status) + " " + http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(bytes.NewReader(w.body.Bytes())), ContentLength: int64(w.body.Len()), Request: req,
	}
}
