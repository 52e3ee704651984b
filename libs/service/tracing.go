package service

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Tracing is where spans go, by the variables that OpenTelemetry defines. Without an endpoint there are none, and
// trace contexts are passed on as they came. Limits of queue and batch (OTEL_BSP_…) and the exporter's certificates,
// compression and timeout (OTEL_EXPORTER_OTLP_…) are read by the exporter itself.
type Tracing struct {
	// Endpoint is the base URL of an OTLP collector, over HTTP; /v1/traces is added. If empty, no spans are made.
	Endpoint string `env:"OTEL_EXPORTER_OTLP_ENDPOINT"`
	// TracesEndpoint is the whole URL for spans, in place of Endpoint.
	TracesEndpoint string `env:"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"`
	// Headers are sent to the collector, as name=value pairs between commas, such as a token.
	Headers Secret `env:"OTEL_EXPORTER_OTLP_HEADERS"`
	// Protocol of the collector; http/protobuf is the only one.
	Protocol string `env:"OTEL_EXPORTER_OTLP_PROTOCOL" envDefault:"http/protobuf"`
	// ServiceName replaces the service's own name in spans.
	ServiceName string `env:"OTEL_SERVICE_NAME"`
	// Sampler chooses the traces to record: always_on, always_off, traceidratio, or one of them with parentbased_ before it.
	Sampler string `env:"OTEL_TRACES_SAMPLER" envDefault:"parentbased_always_on"`
	// SamplerRatio is the share of traces that traceidratio records, 0 to 1; if empty, 1.
	SamplerRatio string `env:"OTEL_TRACES_SAMPLER_ARG"`
	// TracingDisabled turns spans off whatever else is set.
	TracingDisabled bool `env:"OTEL_SDK_DISABLED" envDefault:"false"`
}

// URL is the address to which spans are sent; empty if there is none.
func (t Tracing) URL() string {
	switch {
	case t.TracingDisabled:
		return ""
	case t.TracesEndpoint != "":
		return t.TracesEndpoint
	case t.Endpoint != "":
		return strings.TrimSuffix(t.Endpoint, "/") + "/v1/traces"
	}
	return ""
}

// Ratio is the share of traces to record; 1 if none is set.
func (t Tracing) Ratio() (float64, error) {
	if t.SamplerRatio == "" {
		return 1, nil
	}
	r, err := strconv.ParseFloat(t.SamplerRatio, 64)
	if err != nil || !(r >= 0 && r <= 1) {
		return 0, errors.New("it must be a number from 0 to 1")
	}
	return r, nil
}

// HeaderMap decodes the headers; the error quotes none of them.
func (t Tracing) HeaderMap() (map[string]string, error) {
	headers := map[string]string{}
	for _, pair := range strings.Split(t.Headers.Reveal(), ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil {
			return nil, errors.New("it must be name=value pairs between commas, values percent-encoded")
		}
		headers[name] = value
	}
	return headers, nil
}

// samplers are the values of OTEL_TRACES_SAMPLER.
var samplers = []string{"always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"}

// faults lists errors in the settings. Without an endpoint, or disabled, there are none: the variables may be meant for
// other programs of the same environment.
func (t Tracing) faults() (faults []error) {
	if t.URL() == "" {
		return nil
	}
	fault := func(format string, a ...any) { faults = append(faults, fmt.Errorf(format, a...)) }
	for _, e := range [][2]string{{"OTEL_EXPORTER_OTLP_ENDPOINT", t.Endpoint}, {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", t.TracesEndpoint}} {
		if u, err := url.Parse(e[1]); e[1] != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
			fault("%s is not an http or https URL", e[0])
		}
	}
	if t.Protocol != "" && t.Protocol != "http/protobuf" {
		fault("OTEL_EXPORTER_OTLP_PROTOCOL is %q; only http/protobuf is supported", t.Protocol)
	}
	if t.Sampler != "" && !slices.Contains(samplers, t.Sampler) {
		fault("OTEL_TRACES_SAMPLER is %q; it must be one of %s", t.Sampler, strings.Join(samplers, ", "))
	}
	if _, err := t.Ratio(); err != nil {
		fault("OTEL_TRACES_SAMPLER_ARG is %q; %w", t.SamplerRatio, err)
	}
	if _, err := t.HeaderMap(); err != nil {
		fault("OTEL_EXPORTER_OTLP_HEADERS cannot be read: %w", err)
	}
	return faults
}

// instrumentation names this platform as the maker of spans.
const instrumentation = "github.com/mlp-platform/platform"

type tracerKey struct{}

// WithTracing makes work under ctx create spans; nil means none are made.
func WithTracing(ctx context.Context, p trace.TracerProvider) context.Context {
	if p == nil {
		return ctx
	}
	return context.WithValue(ctx, tracerKey{}, p.Tracer(instrumentation))
}

// tracer is the tracer that work under ctx uses; nil without tracing.
func tracer(ctx context.Context) trace.Tracer {
	t, _ := ctx.Value(tracerKey{}).(trace.Tracer)
	return t
}

// Traces reports whether work under ctx makes spans.
func Traces(ctx context.Context) bool { return tracer(ctx) != nil }

// StartSpan begins a span under the one of ctx. Without tracing the span does nothing. Names and attributes must hold no
// secret, no value that a caller chose freely, and no body: traces are read by more people than data is.
func StartSpan(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	t := tracer(ctx)
	if t == nil {
		return ctx, noop.Span{}
	}
	return t.Start(ctx, name, options...)
}

// StartChild is StartSpan for steps that are of interest only as a part of something, such as a query: outside of a
// span that is recorded there is none.
func StartChild(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx, noop.Span{}
	}
	return StartSpan(ctx, name, options...)
}

// ContinueTrace continues the trace that led to a stored record, such as the notice behind an approval. The trace of
// the current request is linked. An empty or invalid traceparent leaves the trace as it is.
func ContinueTrace(ctx context.Context, traceparent, name string) (context.Context, trace.Span) {
	var options []trace.SpanStartOption
	if validTraceparent(traceparent) {
		if here := trace.SpanContextFromContext(ctx); here.IsValid() && here.TraceID().String() != traceID(traceparent) {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: here}))
		}
		ctx = WithTrace(ctx, RequestID(ctx), traceparent)
	}
	return StartSpan(ctx, name, options...)
}

// EndSpan ends a span; an error marks it as failed, without the error's text, which may quote anything.
func EndSpan(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// SpanContext reads a valid W3C traceparent; otherwise the result is not valid.
func SpanContext(traceparent string) trace.SpanContext {
	if !validTraceparent(traceparent) {
		return trace.SpanContext{}
	}
	id, _ := trace.TraceIDFromHex(traceparent[3:35]) // valid, as was checked
	span, _ := trace.SpanIDFromHex(traceparent[36:52])
	flags, _ := strconv.ParseUint(traceparent[53:55], 16, 8)
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: trace.TraceFlags(flags), Remote: true})
}

// formatSpan is the W3C traceparent of a span.
func formatSpan(sc trace.SpanContext) string {
	return "00-" + sc.TraceID().String() + "-" + sc.SpanID().String() + "-" + (sc.TraceFlags() & trace.FlagsSampled).String()
}
