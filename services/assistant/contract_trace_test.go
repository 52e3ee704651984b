package assistant_test

import (
	"io"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/scriptedmodel"
	"github.com/mlp-platform/platform/libs/scriptedmodel/scripttest"
	"github.com/mlp-platform/platform/libs/service/otlp/otlptest"
)

// attributesOf are those of each span of a name.
func attributesOf(spans []otlptest.Span, name string) (all []map[string]string) {
	for _, s := range spans {
		if s.Name == name {
			all = append(all, attributes(s))
		}
	}
	return all
}

func attributes(s otlptest.Span) map[string]string {
	all := map[string]string{}
	for _, a := range s.Attributes {
		all[a.Key] = a.Value.GetStringValue()
		if all[a.Key] == "" {
			all[a.Key] = a.Value.String()
		}
	}
	return all
}

// TestTraces walks the spans and attributes of "Operation".
func TestTraces(t *testing.T) {
	t.Parallel()
	collector := otlptest.Start(t)
	look := scripttest.Ask("list", `{"kind":"pods","namespace":"shop"}`)
	look.Usage = &scriptedmodel.Usage{Prompt: 100, Completion: 10}
	script, err := scriptedmodel.New(scripttest.Always(look, scripttest.Say("All is well.")), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	model := httptest.NewServer(script)
	t.Cleanup(model.Close)
	b := startBench(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OPENAI_BASE_URL="+model.URL+"/v1", "ASSISTANT_LLM_MODEL=scripted")
	s := b.say(operator, "traced", "is the sky over shop blue?")
	var shown []string
	for _, e := range s.events("tool_call") {
		shown = append(shown, e.CallID)
	}
	b.stop() // sends the last of them

	all := collector.Spans()
	agent := attributesOf(all, "invoke_agent cluster-assistant")
	if len(agent) != 1 {
		t.Fatalf("%d spans of the agent: %v; want len(agent) == 1", len(agent), all)
	}
	chats := attributesOf(all, "chat scripted")
	if len(chats) == 0 {
		t.Fatal("no span of the model")
	}
	for _, row := range []struct {
		span map[string]string
		keys []string
	}{
		{agent[0], []string{"operation.name", "agent.name", "conversation.id", "request.model", "usage.input_tokens", "usage.output_tokens"}},
		{chats[0], []string{"operation.name", "conversation.id", "request.model", "usage.input_tokens", "usage.output_tokens"}},
	} {
		for _, key := range row.keys {
			if row.span["gen_ai."+key] == "" {
				t.Errorf(`no gen_ai.%s among %v; want row.span["gen_ai."+key] != ""`, key, slices.Sorted(maps.Keys(row.span)))
			}
		}
	}
	var traced []string
	for _, span := range all {
		if text := span.String(); strings.Contains(text, "sky") || strings.Contains(text, "All is well") {
			t.Errorf(`content in a span: %s; want !strings.Contains(text, "sky") && !strings.Contains(text, "All is well")`, text)
		}
		tool, ok := strings.CutPrefix(span.Name, "execute_tool ")
		if !ok {
			continue
		}
		has := attributes(span)
		if has["gen_ai.operation.name"] != "execute_tool" || has["gen_ai.tool.name"] != tool {
			t.Errorf(`%v; want has["gen_ai.operation.name"] == "execute_tool" && has["gen_ai.tool.name"] == tool`, has)
		}
		traced = append(traced, has["gen_ai.tool.call.id"])
	}
	slices.Sort(shown)
	slices.Sort(traced)
	if !slices.Equal(shown, traced) {
		t.Errorf("calls that were shown %v, traced %v; want slices.Equal(shown, traced)", shown, traced)
	}
}
