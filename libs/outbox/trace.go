package outbox

import (
	"cmp"
	"context"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/mlp-platform/platform/libs/outbox/internal/store"
	"github.com/mlp-platform/platform/libs/service"
)

// headerTraceparent carries the trace context of the publication. The envelope's member has that of the event's cause.
const headerTraceparent = "traceparent"

// startPublish begins the span of a publication in the trace that led to the event, and returns the trace context for
// consumers. An event without a trace begins none.
func startPublish(ctx context.Context, w store.ClaimDueRow) (string, trace.Span) {
	if w.Traceparent == "" || !service.Traces(ctx) {
		return w.Traceparent, noop.Span{}
	}
	ctx, span := service.StartSpan(service.WithTrace(ctx, w.RequestID, w.Traceparent), "publish "+w.Namespace+"."+w.Name,
		trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
			attribute.String("messaging.system", "nats"), attribute.String("messaging.operation.type", "send"),
			attribute.String("messaging.message.id", w.ID.String())))
	return service.Traceparent(ctx), span
}

// end ends the message's span; one that has no place in the stream was not published.
func (l letter) end() {
	if l.outcome.seq == 0 {
		l.span.SetStatus(codes.Error, "")
	}
	l.span.End()
}

// parentOf is the trace context to continue with a message.
func parentOf(header nats.Header, e Envelope) string {
	if t := header.Get(headerTraceparent); service.SpanContext(t).IsValid() {
		return t
	}
	return e.Traceparent
}

// startProcess begins the span of one event's handling.
func startProcess(ctx context.Context, consumer, parent string, e Envelope) (context.Context, trace.Span) {
	ctx = service.WithTrace(ctx, e.RequestID, parent)
	if !service.SpanContext(parent).IsValid() {
		return ctx, noop.Span{}
	}
	return service.StartSpan(ctx, "process "+cmp.Or(e.Namespace(), "event")+"."+e.Name(), trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		attribute.String("messaging.system", "nats"), attribute.String("messaging.operation.type", "process"),
		attribute.String("messaging.consumer.group.name", consumer), attribute.String("messaging.message.id", e.ID.String())))
}

// startProcessBatch begins the span of several events' handling, which links the trace of each.
func startProcessBatch(ctx context.Context, consumer string, events []Envelope) (context.Context, trace.Span) {
	if !service.Traces(ctx) {
		return ctx, noop.Span{}
	}
	var links []trace.Link
	for _, e := range events {
		if sc := service.SpanContext(e.Traceparent); sc.IsValid() {
			links = append(links, trace.Link{SpanContext: sc})
		}
	}
	return service.StartSpan(ctx, "process batch", trace.WithSpanKind(trace.SpanKindConsumer), trace.WithLinks(links...), trace.WithAttributes(
		attribute.String("messaging.system", "nats"), attribute.String("messaging.operation.type", "process"),
		attribute.String("messaging.consumer.group.name", consumer), attribute.Int("messaging.batch.message_count", len(events))))
}
