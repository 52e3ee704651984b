package model

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// scope names this package in traces.
const scope = "github.com/mlp-platform/platform/services/assistant/internal/model"

// span traces one request to the model as a child of the span in ctx; done ends it. It contains no text of question or
// answer.
func (r *run) span(ctx context.Context) (_ context.Context, done func(*reply, error)) {
	tracer := trace.SpanFromContext(ctx).TracerProvider().Tracer(scope)
	ctx, span := tracer.Start(ctx, "chat "+r.e.config.Model, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "chat"),
		attribute.String("gen_ai.request.model", r.e.config.Model),
		attribute.String("gen_ai.conversation.id", r.t.Session),
	))
	prompt, answered := r.budget.prompt, r.budget.answered
	return ctx, func(rep *reply, err error) {
		span.SetAttributes(
			attribute.Int("gen_ai.usage.input_tokens", r.budget.prompt-prompt),
			attribute.Int("gen_ai.usage.output_tokens", r.budget.answered-answered),
		)
		if rep.finish != "" {
			span.SetAttributes(attribute.StringSlice("gen_ai.response.finish_reasons", []string{finishOf(rep.finish)}))
		}
		if err != nil {
			reason := reasonOf(err)
			span.SetStatus(codes.Error, reason)
			span.SetAttributes(attribute.String("error.type", reason))
		}
		span.End()
	}
}

// finishOf keeps arbitrary values of an endpoint out of traces.
func finishOf(reason string) string {
	switch reason {
	case "stop", "length", "tool_calls", "content_filter", "function_call":
		return reason
	}
	return "other"
}
