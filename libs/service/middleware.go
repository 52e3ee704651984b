package service

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/mlp-platform/platform/libs/problem"
)

// Header values as net/http stores them. They are shared by all responses:
// Header.Set replaces the slice and append copies it, as its capacity is its length.
var (
	nosniff     = []string{"nosniff"}
	frameDeny   = []string{"DENY"}
	noReferrer  = []string{"no-referrer"}
	noStore     = []string{"no-store"}
	cspNone     = []string{"default-src 'none'"}
	closeHeader = []string{"close"}
)

// probePath reports whether the route answers while draining, under any host, and is logged only on request.
func probePath(route string) bool {
	switch route {
	case "/livez", "/readyz", "/metrics":
		return true
	}
	return false
}

// middleware does everything that happens around each request. It is one
// function because echo builds a closure per middleware and request.
func (s *Server) middleware(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := time.Now()
		r, res := c.Request(), c.Response()
		sc := requestScope(r)
		route := c.Path()
		probe := probePath(route)
		ctx, span := context.Context(sc), trace.Span(nil)
		if s.tracing != nil && !probe {
			ctx, span = s.startSpan(sc, r.Method, route)
		}
		r = r.WithContext(ctx)
		c.SetRequest(r)

		h := res.Header()
		h[headerRequestID] = sc.header[:]
		h["X-Content-Type-Options"] = nosniff
		h["X-Frame-Options"] = frameDeny
		h["Referrer-Policy"] = noReferrer
		h["Cache-Control"] = noStore
		h["Content-Security-Policy"] = cspNone
		// The next request of the connection is for another replica.
		if s.leaving.Load() && r.Header["Upgrade"] == nil {
			h["Connection"] = closeHeader
		}

		if !probe {
			s.inFlight.n.Add(1)
			s.metrics.inFlight.Inc()
		}
		defer s.finish(c, route, probe, start)
		if span != nil {
			defer s.endSpan(c, span)
		}
		if err := s.admit(c, r, route, probe); err != nil {
			c.Error(err)
			return nil
		}
		if err := next(c); err != nil {
			c.Error(err)
		}
		return nil
	}
}

// startSpan begins the span of a request. It names the route, not the path, which may contain the caller's text, and a
// method only if it is a usual one: a caller may send any word, as long as a header.
func (s *Server) startSpan(sc *scope, method, route string) (context.Context, trace.Span) {
	ctx := WithTracing(sc, s.tracing)
	if sc.trace != "" {
		ctx = trace.ContextWithRemoteSpanContext(ctx, SpanContext(sc.trace))
	}
	method = boundedMethod(method)
	name := method
	if route != "" {
		name += " " + route
	}
	return StartSpan(ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("http.request.method", method), attribute.String("http.route", route)))
}

// endSpan runs before finish, which answers a panic; that one is a 500 here too.
func (s *Server) endSpan(c echo.Context, span trace.Span) {
	status := c.Response().Status
	if p := recover(); p != nil {
		defer panic(p)
		status = http.StatusInternalServerError
	}
	span.SetAttributes(attribute.Int("http.response.status_code", status))
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// requestScope takes over the caller's request id and trace context if valid.
func requestScope(r *http.Request) *scope {
	sc := &scope{Context: r.Context()}
	if v := r.Header[headerRequestID]; len(v) == 1 && validRequestID(v[0]) {
		sc.requestID = v[0]
	} else {
		sc.requestID = newID()
	}
	sc.header[0] = sc.requestID
	if v := r.Header[headerTraceparent]; len(v) == 1 && validTraceparent(v[0]) {
		sc.trace = v[0]
	}
	return sc
}

// admit refuses requests that no handler may see, and limits the body.
func (s *Server) admit(c echo.Context, r *http.Request, route string, probe bool) error {
	if probe {
		return nil
	}
	if s.hosts != nil && !s.hosts[hostOnly(r.Host)] {
		return problem.Misdirected.New(fmt.Sprintf("This service does not serve the host %q.", r.Host))
	}
	// What is no route is 404 or 405 at any time.
	if s.draining.Load() && s.served[[2]string{r.Method, route}] {
		c.Response().Header()["Connection"] = closeHeader
		return problem.Draining.New("The service is shutting down; send the request again, it will reach another or the next process.").After(time.Second)
	}
	if r.ContentLength == 0 {
		return nil
	}
	limit := s.opt.BodyLimit
	if l, ok := s.opt.BodyLimits[route]; ok {
		limit = l
	}
	if r.ContentLength > limit {
		c.Response().Header()["Connection"] = closeHeader // rather than read the rest
		return &problem.Error{Kind: problem.BodyTooLarge, Detail: fmt.Sprintf("The request body is larger than %d bytes.", limit)}
	}
	if r.ContentLength < 0 { // chunked; net/http itself ends a body of known length
		r.Body = http.MaxBytesReader(c.Response().Writer, r.Body, limit)
	}
	if !s.opt.PassCodings[route] {
		DecodeBody(c.Response().Writer, r, limit)
	}
	return nil
}

// hostOnly is a Host header without port, brackets of IPv6 and final dot, in lower case.
func hostOnly(host string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// finish ends every request: it answers panics, counts and logs.
func (s *Server) finish(c echo.Context, route string, probe bool, start time.Time) {
	if p := recover(); p != nil && s.answerPanic(c, p) {
		defer panic(http.ErrAbortHandler)
	}
	took := time.Since(start)
	r, res := c.Request(), c.Response()
	s.metrics.observe(r.Method, route, res.Status, took)
	if !probe {
		s.metrics.inFlight.Dec()
		s.inFlight.done(&s.draining)
	}
	if s.opt.AccessLog == nil && probe || s.opt.AccessLog != nil && !s.opt.AccessLog(c) {
		return
	}
	s.log.LogAttrs(r.Context(), slog.LevelInfo, "request",
		slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.String("route", route),
		slog.Int("status", res.Status), slog.Int64("bytes", res.Size),
		slog.Float64("duration_ms", float64(took.Microseconds())/1000), slog.String("remote", r.RemoteAddr))
}

// answerPanic answers 500. It reports whether the connection must be cut: if the response had begun, so that its reader
// does not take it as complete.
func (s *Server) answerPanic(c echo.Context, p any) (cut bool) {
	if p == http.ErrAbortHandler {
		return true
	}
	s.log.ErrorContext(c.Request().Context(), "handler panicked", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
	if c.Response().Committed {
		return true
	}
	c.Error(problem.Internal.New("The service failed to answer; its log has the cause under this request id."))
	return false
}
