package model_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/model"
)

// FuzzStream answers with arbitrary bytes. Whatever a model sends, the person gets an answer, a question orders no
// write, and the number of requests to the model is bounded.
func FuzzStream(f *testing.F) {
	for _, s := range []string{
		"", "data: [DONE]\n\n", "data: {}\n\n", "data: {\"choices\":[]}\n\ndata: [DONE]\n\n",
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Well.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
		"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":-1,\"id\":\"a\",\"function\":{\"name\":\"list\",\"arguments\":\"{\\\"kind\\\":\\\"pods\\\"}\"}}]},\"finish_reason\":\"tool_calls\"}],\"usage\":{\"prompt_tokens\":-5,\"completion_tokens\":9223372036854775807}}\n\n",
		"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"delete\",\"arguments\":\"{\\\"kind\\\":\\\"ns\\\",\\\"all\\\":true}\"}},{\"index\":0,\"id\":\"b\"}]},\"finish_reason\":\"stop\"}]}\n\n",
		"data: {\"error\":{\"message\":\"no\"}}\n\n", "event: x\ndata: 1\n\n", "data: {\"choices\":[{\"delta\":null}]}\n\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		requests := 0
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			requests++
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write(stream)
		}))
		defer h.Close()
		e, err := model.New(model.Config{BaseURL: h.URL + "/v1", Model: "m", Time: 10 * time.Second}, &playbooks{}, discard, model.Hooks{})
		if err != nil {
			t.Fatal(err)
		}
		sink := &reader{}
		out, err := e.Investigate(t.Context(), newTurn("why does api crash?"), &cluster{}, sink)
		if err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(sink.text.String()) == "" && len(out.Write) == 0 {
			t.Error("neither an answer nor a proposal")
		}
		if len(out.Write) != 0 && (out.Choice == nil || out.Choice.Requested) {
			t.Errorf("a question led to %+v as %+v; want a proposal that nobody ordered", out.Write, out.Choice)
		}
		if out.Usage.PromptTokens < 0 || out.Usage.CompletionTokens < 0 {
			t.Errorf("usage %+v; want out.Usage.PromptTokens >= 0 && out.Usage.CompletionTokens >= 0", out.Usage)
		}
		if requests > 50 {
			t.Errorf("%d requests; want requests <= 50", requests)
		}
	})
}
