package assistant_test

import (
	"compress/gzip"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/mlp-platform/platform/libs/scriptedmodel"
	"github.com/mlp-platform/platform/libs/scriptedmodel/scripttest"
)

// receiver takes spans by OTLP over HTTP.
type receiver struct {
	url string

	mu    sync.Mutex
	spans []*traces.Span // guarded by mu
}

func startReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var body io.Reader = req.Body
		if req.Header.Get("Content-Encoding") == "gzip" {
			unzipped, err := gzip.NewReader(body)
			if err != nil {
				t.Error(err)
				return
			}
			body = unzipped
		}
		raw, err := io.ReadAll(body)
		var sent collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(raw, &sent)
		}
		if err != nil || req.URL.Path != "/v1/traces" {
			t.Errorf(`%s: %v; want req.URL.Path == "/v1/traces"`, req.URL, err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, resource := range sent.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				r.spans = append(r.spans, scope.Spans...)
			}
		}
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// named are the spans of a name, each as its attributes.
func (r *receiver) named(name string) (all []map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.spans {
		if s.Name != name {
			continue
		}
		attributes := map[string]string{}
		for _, a := range s.Attributes {
			attributes[a.Key] = a.Value.String()
		}
		all = append(all, attributes)
	}
	return all
}

// TestTraces walks the spans and attributes of "Operation".
func TestTraces(t *testing.T) {
	t.Parallel()
	r := startReceiver(t)
	look := scripttest.Ask("list", `{"kind":"pods","namespace":"shop"}`)
	look.Usage = &scriptedmodel.Usage{Prompt: 100, Completion: 10}
	script, err := scriptedmodel.New(scripttest.Always(look, scripttest.Say("All is well.")), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	model := httptest.NewServer(script)
	t.Cleanup(model.Close)
	b := startBench(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+r.url, "OPENAI_BASE_URL="+model.URL+"/v1", "ASSISTANT_LLM_MODEL=scripted")
	s := b.say(operator, "traced", "is the sky over shop blue?")
	var shown []string
	for _, e := range s.events("tool_call") {
		shown = append(shown, e.CallID)
	}
	b.stop() // sends the last of them

	agent := r.named("invoke_agent cluster-assistant")
	if len(agent) != 1 {
		t.Fatalf("%d spans of the agent: %v; want len(agent) == 1", len(agent), r.spans)
	}
	chats := r.named("chat scripted")
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
	r.mu.Lock()
	all := r.spans
	r.mu.Unlock()
	for _, span := range all {
		if text := span.String(); strings.Contains(text, "sky") || strings.Contains(text, "All is well") {
			t.Errorf(`content in a span: %s; want !strings.Contains(text, "sky") && !strings.Contains(text, "All is well")`, text)
		}
		tool, ok := strings.CutPrefix(span.Name, "execute_tool ")
		if !ok {
			continue
		}
		has := map[string]string{}
		for _, a := range span.Attributes {
			has[a.Key] = a.Value.GetStringValue()
		}
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
