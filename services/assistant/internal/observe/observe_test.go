package observe_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/metrics"
	"github.com/mlp-platform/platform/services/assistant/internal/observe"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/runbook"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// parts returns results that depend on the kind of an operation.
type parts struct{}

func (parts) Line(turn.Turn, operation.Operation) string { return "kubectl" }

func (parts) Run(_ context.Context, _ turn.Turn, op operation.Operation) (turn.Output, error) {
	switch op.Kind {
	case "unicorn":
		return turn.Output{}, operation.Refuse(operation.UnknownKind, "kind", "There is no kind unicorn.")
	case "broken":
		return turn.Output{}, errors.New("dial 10.0.0.7")
	}
	return turn.Output{Text: "secret text"}, nil
}

func (parts) Snapshot(_ context.Context, _ turn.Turn, _ string, show func(operation.Operation) func(turn.Output, error)) (*engine.Snapshot, error) {
	show(operation.Operation{Verb: operation.Events})(turn.Output{}, nil)
	return &engine.Snapshot{}, nil
}

func (parts) Plan(_ context.Context, _ turn.Turn, ops []operation.Operation) (action.Plan, error) {
	if ops[0].Kind == "unicorn" {
		return action.Plan{}, operation.Refuse(operation.UnknownKind, "kind", "There is no kind unicorn.")
	}
	return action.Plan{Verdict: guard.Verdict{Answer: guard.Refuse, Code: "protected_namespace"}}, nil
}

// stubEngine calls its tools, which here are those of the test.
type stubEngine struct{ tools turn.Tools }

func (e stubEngine) Investigate(ctx context.Context, t turn.Turn, _ turn.Toolbox, _ turn.Sink) (turn.Outcome, error) {
	for _, kind := range []string{"pods", "unicorn", "broken"} {
		_, _ = e.tools.Run(ctx, t, operation.Operation{Verb: operation.List, Kind: kind}) // the outcome is counted
	}
	_, err := e.tools.Snapshot(ctx, t, "", func(operation.Operation) func(turn.Output, error) { return func(turn.Output, error) {} })
	return turn.Outcome{Usage: chat.Usage{PromptTokens: 7, CompletionTokens: 3}}, err
}

func TestObserver(t *testing.T) {
	t.Parallel()
	spans, reg := tracetest.NewInMemoryExporter(), prometheus.NewRegistry()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	o := observe.New(metrics.New(reg, "llm"), provider, "cluster-assistant", "small")
	ctx := service.WithTrace(t.Context(), "r-1", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	by := turn.Turn{Session: "s-1", Query: "secret question"}
	if _, err := o.Engine(stubEngine{o.Tools(parts{})}).Investigate(ctx, by, nil, nil); err != nil {
		t.Fatal(err)
	}
	planner := o.Planner(parts{})
	for _, kind := range []string{"pods", "unicorn"} {
		_, _ = planner.Plan(ctx, by, []operation.Operation{{Verb: operation.Delete, Kind: kind}}) // the outcome is counted
	}

	var names []string
	var agent attribute.Set
	for _, s := range spans.GetSpans() {
		names = append(names, s.Name)
		if got := s.SpanContext.TraceID().String(); got != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf(`%s is in trace %s, not in the request's; want got == "0af7651916cd43dd8448eb211c80319c"`, s.Name, got)
		}
		if s.Name == "invoke_agent cluster-assistant" {
			agent = attribute.NewSet(s.Attributes...)
		}
		for _, a := range s.Attributes {
			if a.Value.AsString() == "secret question" || a.Value.AsString() == "secret text" {
				t.Errorf(`%s tells content: %v; want a.Value.AsString() != "secret question" && a.Value.AsString() != "secret text"`, s.Name, a)
			}
		}
	}
	want := []string{"execute_tool list", "execute_tool list", "execute_tool list", "execute_tool events", "invoke_agent cluster-assistant"}
	if !slices.Equal(names, want) {
		t.Errorf("spans %q, want %q", names, want)
	}
	for key, want := range map[attribute.Key]string{
		"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "cluster-assistant", "gen_ai.conversation.id": "s-1",
		"gen_ai.request.model": "small", "gen_ai.usage.input_tokens": "7", "gen_ai.usage.output_tokens": "3",
	} {
		if v, ok := agent.Value(key); !ok || v.String() != want {
			t.Errorf("%s is %s, want %s", key, v.String(), want)
		}
	}
	for name, n := range map[string]int{"assistant_tool_calls_total": 4, "assistant_refusals_total": 2, "assistant_tokens_total": 2} {
		if got, err := testutil.GatherAndCount(reg, name); err != nil || got != n {
			t.Errorf("%s has %d series, want %d (%v)", name, got, n, err)
		}
	}
	if outcomes := outcomesOf(t, reg); !maps.Equal(outcomes, map[string]float64{"ok": 2, "refused": 1, "failed": 1}) {
		t.Errorf(`calls by outcome: %v; want maps.Equal(outcomes, map[string]float64{"ok": 2, "refused": 1, "failed": 1})`, outcomes)
	}
}

func outcomesOf(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "assistant_tool_calls_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "outcome" {
					got[l.GetValue()] += m.GetCounter().GetValue()
				}
			}
		}
	}
	return got
}

func (parts) Runbooks(...runbook.Subject) []runbook.Quote { return nil }

func (parts) MetricLabels(context.Context, turn.Turn, string, []types.NamespacedName, []types.NamespacedName) (turn.MetricLabels, error) {
	return turn.MetricLabels{}, errors.New("not called")
}
