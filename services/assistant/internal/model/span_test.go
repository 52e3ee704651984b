package model_test

import (
	"fmt"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/mlp-platform/platform/libs/scriptedmodel"
	"github.com/mlp-platform/platform/libs/scriptedmodel/scripttest"
	"github.com/mlp-platform/platform/services/assistant/internal/model"
)

func TestSpans(t *testing.T) {
	t.Parallel()
	look := scripttest.Ask("list", `{"kind":"pods","namespace":"shop"}`)
	look.Usage = &scriptedmodel.Usage{Prompt: 100, Completion: 10}
	broken := scripttest.Say("unheard words")
	broken.CutAfter = 1
	b := setup(t, model.Config{}, scripttest.Always(look, broken))
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	ctx, agent := provider.Tracer("test").Start(t.Context(), "invoke_agent")
	if _, err := b.Investigate(ctx, newTurn("why does api crash?"), b.cluster, b.sink); err != nil {
		t.Fatal(err)
	}
	agent.End()
	var got []string
	for _, s := range spans.Ended() {
		text := s.Name()
		for _, a := range s.Attributes() {
			text += fmt.Sprintf(" %s=%s", a.Key, a.Value.String())
		}
		wantNotIn(t, text, "crash", "api", "words", "pods", key)
		if s.Parent().SpanID() == agent.SpanContext().SpanID() {
			got = append(got, text)
		}
	}
	if len(got) != 2 {
		t.Fatalf("spans %q; want len(got) == 2", got)
	}
	wantIn(t, got[0], "chat scripted", "gen_ai.operation.name=chat", "gen_ai.request.model=scripted", "gen_ai.conversation.id=s-1",
		"gen_ai.usage.input_tokens=100", "gen_ai.usage.output_tokens=10", `gen_ai.response.finish_reasons=["tool_calls"]`)
	wantIn(t, strings.Join(got[1:], ""), "error.type=cut")
}
