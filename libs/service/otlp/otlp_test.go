package otlp_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/service/otlp"
)

// A collector that refuses is logged once, however many batches are lost, and so is its return.
func TestOutageOfTheCollectorIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var refuse atomic.Bool
	refuse.Store(true)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if refuse.Load() {
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(server.Close)
	var out bytes.Buffer
	provider, end, err := otlp.Open(t.Context(), service.Tracing{Endpoint: server.URL}, "sample", slog.New(slog.NewTextHandler(&out, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx := service.WithTracing(t.Context(), provider)
	send := func() {
		_, span := service.StartSpan(ctx, "work")
		span.End()
		if err := provider.(*sdktrace.TracerProvider).ForceFlush(ctx); err != nil {
			t.Error(err)
		}
	}
	for range 3 {
		send()
	}
	refuse.Store(false)
	send()
	send()
	end()
	if got := out.String(); strings.Count(got, "spans are lost") != 1 || strings.Count(got, "takes spans again") != 1 {
		t.Errorf("the log is %q; want one line for the outage and one for its end", got)
	}
}

// Without an endpoint, or disabled, nothing is opened and work makes no spans.
func TestNoEndpointMeansNoSpans(t *testing.T) {
	t.Parallel()
	for _, cfg := range []service.Tracing{{}, {Endpoint: "http://127.0.0.1:1", TracingDisabled: true}} {
		provider, end, err := otlp.Open(t.Context(), cfg, "sample", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		end()
		if ctx := service.WithTracing(t.Context(), provider); provider != nil || service.Traces(ctx) {
			t.Errorf("%+v: provider %v; want none", cfg, provider)
		}
	}
}

// Long attribute values are truncated, from every source.
func TestLongAttributesAreCut(t *testing.T) {
	t.Parallel()
	provider, end, err := otlp.Open(t.Context(), service.Tracing{Endpoint: "http://127.0.0.1:1"}, "sample", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	_, span := service.StartSpan(service.WithTracing(t.Context(), provider), "work")
	span.SetAttributes(attribute.String("note", strings.Repeat("x", 60_000)))
	read, ok := span.(sdktrace.ReadOnlySpan)
	if !ok || len(read.Attributes()) != 1 {
		t.Fatalf("the span is a %T; want one with the attribute", span)
	}
	if got := len(read.Attributes()[0].Value.AsString()); got != 1024 {
		t.Errorf("the attribute has %d bytes; want 1024", got)
	}
	span.End()
}

// A queue without a reader drops spans and blocks no caller; the stop gives up on the collector without help.
func TestDeadCollectorStopsNothing(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	provider, end, err := otlp.Open(t.Context(), service.Tracing{Endpoint: "http://127.0.0.1:1"}, "sample", slog.New(slog.NewTextHandler(&out, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx := service.WithTracing(t.Context(), provider)
	started := time.Now()
	for range 10_000 { // five times the queue
		_, span := service.StartSpan(ctx, "work")
		span.End()
	}
	end()
	if took, limit := time.Since(started), 10*time.Second; took > limit {
		t.Errorf("spans and the stop took %s, want at most %s", took, limit)
	}
	if got := out.String(); strings.Count(got, "\n") > 2 {
		t.Errorf("the log is %q; want at most the outage and the spans lost at the stop", got)
	}
}
