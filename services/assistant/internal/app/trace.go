package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/mlp-platform/platform/libs/service"
)

// flushTime limits the sending of the last spans.
const flushTime = 3 * time.Second

// openTracing is where spans go; end sends the last of them. The exporter reads
// headers and the like from the standard variables OTEL_EXPORTER_OTLP_*.
func openTracing(ctx context.Context, cfg Config, log *slog.Logger) (_ trace.TracerProvider, end func(), err error) {
	if cfg.TracesURL == "" {
		return noop.NewTracerProvider(), func() {}, nil
	}
	target, err := url.JoinPath(cfg.TracesURL, "v1/traces")
	if err != nil {
		return nil, nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: %w", err)
	}
	out, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(target))
	if err != nil {
		return nil, nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: %w", err)
	}
	// libs/service makes a trace for a request without one; its unset sampled flag is not a decision, so sample it.
	sampler := sdktrace.ParentBased(sdktrace.AlwaysSample(), sdktrace.WithRemoteParentNotSampled(sdktrace.AlwaysSample()))
	p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(out), sdktrace.WithSampler(sampler), sdktrace.WithResource(resource.NewSchemaless(
		attribute.String("service.name", name), attribute.String("service.version", service.Version),
	)))
	return p, func() {
		ctx, cancel := context.WithTimeout(context.Background(), flushTime)
		defer cancel()
		if err := p.Shutdown(ctx); err != nil {
			log.Warn("the last spans could not be sent", slog.Any("err", err))
		}
	}, nil
}
