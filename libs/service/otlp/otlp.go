// Package otlp sends a service's spans to an OpenTelemetry collector. A collector that is slow, away or refuses costs
// spans and nothing else: the queue is bounded, a full one drops, and an outage is logged once.
package otlp

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/mlp-platform/platform/libs/service"
)

const (
	// flushTime limits the sending of the last spans at a stop, and of those for a collector that did not answer before.
	flushTime, flushTimeDown = 3 * time.Second, 200 * time.Millisecond
	// exportTime limits one attempt; retryTime is how long a batch is retried while the queue fills.
	exportTime, retryTime = 5 * time.Second, 10 * time.Second
	// maxValue limits the text of an attribute, in bytes: the queue holds 2048 spans.
	maxValue = 1024
)

// Open returns the provider of a service's spans, nil if no endpoint is configured, and a function that sends the last
// of them. It does not connect.
func Open(ctx context.Context, cfg service.Tracing, name string, log *slog.Logger) (_ trace.TracerProvider, end func(), err error) {
	target := cfg.URL()
	if target == "" {
		return nil, func() {}, nil
	}
	headers, err := cfg.HeaderMap()
	if err != nil {
		return nil, nil, fmt.Errorf("OTEL_EXPORTER_OTLP_HEADERS: %w", err)
	}
	sampler, err := samplerOf(cfg)
	if err != nil {
		return nil, nil, err
	}
	client, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(target), otlptracehttp.WithHeaders(headers),
		otlptracehttp.WithTimeout(exportTime), otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
			Enabled: true, InitialInterval: 500 * time.Millisecond, MaxInterval: exportTime, MaxElapsedTime: retryTime,
		}))
	if err != nil {
		return nil, nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: %w", err)
	}
	if cfg.ServiceName != "" {
		name = cfg.ServiceName
	}
	described, err := resource.New(ctx, resource.WithFromEnv(), resource.WithAttributes(
		attribute.String("service.name", name), attribute.String("service.version", service.Version)))
	if err != nil {
		log.WarnContext(ctx, "OTEL_RESOURCE_ATTRIBUTES is read in part", slog.Any("err", err))
	}
	out := &exporter{SpanExporter: client, log: log}
	limits := sdktrace.NewSpanLimits() // the defaults, or OTEL_SPAN_*
	if limits.AttributeValueLengthLimit < 0 || limits.AttributeValueLengthLimit > maxValue {
		limits.AttributeValueLengthLimit = maxValue
	}
	p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(out), sdktrace.WithSampler(sampler), sdktrace.WithResource(described),
		sdktrace.WithRawSpanLimits(limits))
	return p, func() {
		limit := flushTime
		if out.down.Load() {
			limit = flushTimeDown
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := p.Shutdown(ctx); err != nil {
			log.Warn("the last spans could not be sent", slog.Any("err", err))
		}
	}, nil
}

func samplerOf(cfg service.Tracing) (sdktrace.Sampler, error) {
	ratio, err := cfg.Ratio()
	if err != nil {
		return nil, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG: %w", err)
	}
	root, parentBased := strings.CutPrefix(cfg.Sampler, "parentbased_")
	var s sdktrace.Sampler
	switch root {
	case "", "always_on":
		s, parentBased = sdktrace.AlwaysSample(), parentBased || root == ""
	case "always_off":
		s = sdktrace.NeverSample()
	case "traceidratio":
		s = sdktrace.TraceIDRatioBased(ratio)
	default:
		return nil, fmt.Errorf("OTEL_TRACES_SAMPLER: unknown sampler %q", cfg.Sampler)
	}
	if parentBased {
		s = sdktrace.ParentBased(s)
	}
	return s, nil
}

// exporter logs the beginning and the end of an outage instead of every batch that is lost in it.
type exporter struct {
	sdktrace.SpanExporter
	log  *slog.Logger
	down atomic.Bool
}

// ExportSpans reports no error: the SDK would print it to standard error, once for each batch.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err != nil && !e.down.Swap(true):
		e.log.Warn("spans are lost: the collector does not take them", slog.Any("err", err))
	case err == nil && e.down.Swap(false):
		e.log.Info("the collector takes spans again")
	}
	return nil
}
