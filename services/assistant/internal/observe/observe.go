// Package observe counts and traces turns by wrapping the parts that run them: engines, tools and plans. Spans follow
// the semantic conventions for generative AI. Neither they nor the counters contain a question, an answer or a result.
package observe

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/metrics"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// Observer wraps the parts of one process.
type Observer struct {
	metrics *metrics.Metrics
	tracer  trace.Tracer
	agent   string // the service's name for its model
	model   string // the requested language model; empty: none
}

// New returns an observer.
func New(m *metrics.Metrics, t trace.TracerProvider, agent, model string) *Observer {
	if t == nil {
		t = noop.NewTracerProvider()
	}
	return &Observer{m, t.Tracer("github.com/mlp-platform/platform/services/assistant"), agent, model}
}

// joinTrace returns ctx with the trace of the request that it belongs to.
func joinTrace(ctx context.Context) context.Context {
	if trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": service.Traceparent(ctx)})
}

func recordFailure(span trace.Span, err error, code string) {
	if err != nil {
		span.SetStatus(codes.Error, code)
		span.SetAttributes(attribute.String("error.type", code))
	}
}

type observedEngine struct {
	turn.Investigator
	o *Observer
}

// Engine wraps an engine.
func (o *Observer) Engine(e turn.Investigator) turn.Investigator { return observedEngine{e, o} }

// Investigate implements turn.Investigator.
func (e observedEngine) Investigate(ctx context.Context, t turn.Turn, tools turn.Toolbox, sink turn.Sink) (turn.Outcome, error) {
	ctx, span := e.o.tracer.Start(joinTrace(ctx), "invoke_agent "+e.o.agent, trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "invoke_agent"),
		attribute.String("gen_ai.agent.name", e.o.agent),
		attribute.String("gen_ai.conversation.id", t.Session),
	))
	defer span.End()
	if e.o.model != "" {
		span.SetAttributes(attribute.String("gen_ai.request.model", e.o.model))
	}
	out, err := e.Investigator.Investigate(ctx, t, tools, sink)
	span.SetAttributes(
		attribute.Int64("gen_ai.usage.input_tokens", out.Usage.PromptTokens),
		attribute.Int64("gen_ai.usage.output_tokens", out.Usage.CompletionTokens),
	)
	recordFailure(span, err, "engine_failed")
	e.o.metrics.Tokens(out.Usage)
	return out, err
}

type tools struct {
	turn.Tools
	o *Observer
}

// Tools wraps the reads of the cluster.
func (o *Observer) Tools(t turn.Tools) turn.Tools { return tools{t, o} }

// Run implements turn.Tools.
func (w tools) Run(ctx context.Context, t turn.Turn, op operation.Operation) (turn.Output, error) {
	ctx, done := w.o.call(ctx, op)
	out, err := w.Tools.Run(ctx, t, op)
	done(err)
	return out, err
}

// Snapshot implements turn.Tools.
func (w tools) Snapshot(ctx context.Context, t turn.Turn, namespace string, show func(operation.Operation) func(turn.Output, error)) (*engine.Snapshot, error) {
	return w.Tools.Snapshot(ctx, t, namespace, func(op operation.Operation) func(turn.Output, error) {
		shown := show(op) // gives the call its id
		_, done := w.o.call(ctx, op)
		return func(out turn.Output, err error) {
			done(err)
			shown(out, err)
		}
	})
}

// call starts one read; done ends it.
func (o *Observer) call(ctx context.Context, op operation.Operation) (_ context.Context, done func(error)) {
	began, tool := time.Now(), string(op.Verb)
	ctx, span := o.tracer.Start(joinTrace(ctx), "execute_tool "+tool, trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", tool),
	))
	if id := turn.CallID(ctx); id != "" {
		span.SetAttributes(attribute.String("gen_ai.tool.call.id", id))
	}
	return ctx, func(err error) {
		outcome := "ok"
		if err != nil {
			outcome = "failed"
			if reason := refusalReason(err); reason != "" {
				outcome = "refused"
				o.metrics.Refused(reason)
			}
		}
		o.metrics.Tool(tool, outcome, time.Since(began))
		recordFailure(span, err, outcome)
		span.End()
	}
}

// refusalReason returns the reason of a refusal by the rules; empty for other errors.
func refusalReason(err error) string {
	var wrong *operation.Fault
	var refused *action.Refused
	switch {
	case errors.As(err, &refused):
		return refused.Code
	case errors.As(err, &wrong):
		return string(wrong.Reason)
	}
	return ""
}

type planner struct {
	turn.Planner
	o *Observer
}

// Planner wraps a planner.
func (o *Observer) Planner(p turn.Planner) turn.Planner { return planner{p, o} }

// Plan implements turn.Planner.
func (w planner) Plan(ctx context.Context, t turn.Turn, ops []operation.Operation) (action.Plan, error) {
	plan, err := w.Planner.Plan(ctx, t, ops)
	if reason := refusalReason(err); reason != "" {
		w.o.metrics.Refused(reason)
	} else if err == nil && plan.Verdict.Answer == guard.Refuse {
		w.o.metrics.Refused(plan.Verdict.Code)
	}
	return plan, err
}
