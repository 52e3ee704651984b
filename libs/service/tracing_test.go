package service

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

const callersTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func recordSpans(t *testing.T) (*tracetest.InMemoryExporter, trace.TracerProvider) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	return spans, sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
}

// A request is a span named by its route, a call from it a child of that, and the log names the trace; no path, query,
// header or body is in either span.
func TestRequestAndCallAreSpans(t *testing.T) {
	t.Parallel()
	spans, provider := recordSpans(t)
	var passedOn string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { passedOn = r.Header.Get("traceparent") }))
	t.Cleanup(other.Close)
	var log bytes.Buffer
	s := New(Options{Name: "sample", Tracing: provider, Log: NewLogger(&log, "info")})
	s.Echo.GET("/things/:name", func(c echo.Context) error {
		req, err := http.NewRequestWithContext(c.Request().Context(), http.MethodGet, other.URL+"/secret-path?token=secret-query", nil)
		if err != nil {
			return err
		}
		resp, err := HTTPClient(0).Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
	r := httptest.NewRequest(http.MethodGet, "/things/secret-name?token=secret-query", strings.NewReader("secret-body"))
	r.Header.Set("traceparent", callersTrace)
	r.Header.Set("Authorization", "Bearer secret-token")
	s.Echo.ServeHTTP(httptest.NewRecorder(), r)
	s.Echo.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/livez", nil)) // makes none

	got := spans.GetSpans()
	if len(got) != 2 {
		t.Fatalf("%d spans: %v; want the call and the request", len(got), got)
	}
	call, request := got[0], got[1]
	if request.Name != "GET /things/:name" || request.SpanKind != trace.SpanKindServer || request.Parent.SpanID() != SpanContext(callersTrace).SpanID() {
		t.Errorf("the request is %+v; want a server span below the caller's", request)
	}
	if call.SpanKind != trace.SpanKindClient || call.Parent.SpanID() != request.SpanContext.SpanID() || passedOn != formatSpan(call.SpanContext) {
		t.Errorf("the call is %+v and passed on %q; want a client span below the request's, passed on", call, passedOn)
	}
	for _, span := range got {
		for _, a := range span.Attributes {
			if strings.Contains(fmt.Sprint(a.Value.AsInterface()), "secret") {
				t.Errorf("%s has %s=%v; want nothing of the caller's", span.Name, a.Key, a.Value.AsInterface())
			}
		}
	}
	if want := `"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"`; !strings.Contains(log.String(), want) {
		t.Errorf("the log is %s; want %s", log.String(), want)
	}
}

// A service without tracing invents no trace context: one marked "not sampled" would keep a traced service behind it
// from making spans.
func TestServiceWithoutTracingLeavesTheTraceToTheNext(t *testing.T) {
	t.Parallel()
	spans, provider := recordSpans(t)
	traced := New(Options{Name: "traced", Tracing: provider, Log: NewLogger(&bytes.Buffer{}, "info")})
	var id, passedOn string
	traced.Echo.GET("/behind", func(c echo.Context) error {
		id, passedOn = RequestID(c.Request().Context()), c.Request().Header.Get("traceparent")
		return nil
	})
	other := httptest.NewServer(traced.Echo)
	t.Cleanup(other.Close)
	plain := New(Options{Name: "plain", Log: NewLogger(&bytes.Buffer{}, "info")})
	stored := "unset"
	plain.Echo.GET("/", func(c echo.Context) error {
		ctx := c.Request().Context()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, other.URL+"/behind", nil)
		if err != nil {
			return err
		}
		resp, err := HTTPClient(0).Do(req)
		if err != nil {
			return err
		}
		stored = Traceparent(ctx)
		return resp.Body.Close()
	})
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-Request-ID", "req-1")
	plain.Echo.ServeHTTP(httptest.NewRecorder(), r)
	if got := spans.GetSpans(); len(got) != 1 || got[0].Parent.IsValid() || passedOn != "" || stored != "" || id != "req-1" {
		t.Errorf("spans %v behind request %q and traceparent %q, stored %q; want one root span of req-1, and no traceparent", got, id, passedOn, stored)
	}
}

// A method that the caller invented is not in the span.
func TestSpanHasNoMethodOfTheCallersOwn(t *testing.T) {
	t.Parallel()
	spans, provider := recordSpans(t)
	s := New(Options{Name: "sample", Tracing: provider, Log: NewLogger(&bytes.Buffer{}, "error")})
	s.Echo.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(strings.Repeat("X", 60_000), "/things", nil))
	got := spans.GetSpans()
	if len(got) != 1 {
		t.Fatalf("%d spans; want that of the request", len(got))
	}
	if got[0].Name != "other" {
		t.Errorf("the span's name is %.20q, %d bytes; want other", got[0].Name, len(got[0].Name))
	}
	for _, a := range got[0].Attributes {
		if text := a.Value.String(); len(text) > 20 {
			t.Errorf("%s is %.20q, %d bytes; want a short one", a.Key, text, len(text))
		}
	}
}

// Work for a stored record continues the record's trace and links the current request.
func TestContinueTraceLinksTheRequest(t *testing.T) {
	t.Parallel()
	spans, provider := recordSpans(t)
	ctx, request := StartSpan(WithTracing(t.Context(), provider), "request")
	inner, span := ContinueTrace(ctx, callersTrace, "approve")
	if got := Traceparent(inner); got != formatSpan(span.SpanContext()) {
		t.Errorf("passes on %s, want its own span %s", got, formatSpan(span.SpanContext()))
	}
	EndSpan(span, nil)
	got := spans.GetSpans()[0]
	if got.SpanContext.TraceID() != SpanContext(callersTrace).TraceID() || len(got.Links) != 1 || got.Links[0].SpanContext.SpanID() != request.SpanContext().SpanID() {
		t.Errorf("the span is %+v; want it in the record's trace, with a link to the request", got)
	}
	// Without tracing the record's context is passed on as it is.
	if off, _ := ContinueTrace(WithRequestID(t.Context(), "r"), callersTrace, "approve"); Traceparent(off) != callersTrace {
		t.Errorf("passes on %s, want %s", Traceparent(off), callersTrace)
	}
}

func TestTracingSettingsAreChecked(t *testing.T) {
	t.Parallel()
	var cfg struct{ Base }
	err := LoadConfig(&cfg, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4317", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
		"OTEL_TRACES_SAMPLER=sometimes", "OTEL_TRACES_SAMPLER_ARG=2", "OTEL_EXPORTER_OTLP_HEADERS=secret-header"})
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_TRACES_SAMPLER is", "OTEL_TRACES_SAMPLER_ARG", "OTEL_EXPORTER_OTLP_HEADERS"} {
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "secret-header") {
			t.Errorf("the error is %v; want %s in it, and no header", err, name)
		}
	}
}

// Variables of tracing that are not used, as of another program in the same environment, keep no service from starting.
func TestUnusedTracingSettingsAreNotChecked(t *testing.T) {
	t.Parallel()
	wrong := []string{"OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_TRACES_SAMPLER=jaeger_remote", "OTEL_TRACES_SAMPLER_ARG=endpoint=x", "OTEL_EXPORTER_OTLP_HEADERS=none"}
	for name, environ := range map[string][]string{
		"no endpoint": wrong,
		"disabled":    append([]string{"OTEL_SDK_DISABLED=true", "OTEL_EXPORTER_OTLP_ENDPOINT=collector:4317"}, wrong...),
	} {
		var cfg struct{ Base }
		if err := LoadConfig(&cfg, environ); err != nil {
			t.Errorf("%s: got %v, want no error", name, err)
		}
	}
}
