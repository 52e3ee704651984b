package assistant_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
)

// The files contract_*_test.go walk the tables of the API, over HTTP, against the sample cluster: a subtest is one row of
// a table and bears its name.

// TestRequestHeaders walks "Request headers".
func TestRequestHeaders(t *testing.T) {
	t.Parallel()
	b := startBench(t)
	t.Run("Authorization", func(t *testing.T) {
		b := onSubtest(t, b)
		b.refused(401, "unauthenticated", "POST", chatPath, "", chatBody("hello"))
		for _, scheme := range []string{"Bearer ", "bearer ", "BEARER  "} {
			b.want(200, "GET", "/v1/models", "", "", "Authorization", scheme+readonly)
		}
		b.refused(401, "unauthenticated", "GET", "/v1/models?key="+admin, "", "")
	})
	t.Run("X-Session-ID", func(t *testing.T) {
		b := onSubtest(t, b)
		b.say(operator, "chat:1.a_b-C", "hello")
		s := b.say(operator, "chat:1.a_b-C", "and now?")
		if s.chunks[0].SessionID != "chat:1.a_b-C" || s.header.Get("X-Session-ID") != "chat:1.a_b-C" {
			t.Errorf(`session %q; want s.chunks[0].SessionID == "chat:1.a_b-C" && s.header.Get("X-Session-ID") == "chat:1.a_b-C"`, s.chunks[0].SessionID)
		}
		doc := b.want(200, "GET", "/v1/sessions/chat:1.a_b-C", operator, "").document(t)
		if doc["turns"] != 2.0 {
			t.Errorf("turns %v: history was not kept; want 2.0", doc["turns"])
		}
		for _, header := range [][]string{{}, {"X-Session-ID", ""}} {
			made := b.stream(b.want(200, "POST", chatPath, operator, chatBody("hello"), header...))
			if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-`).MatchString(made.chunks[0].SessionID) {
				t.Errorf("made up %q; want regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-`).MatchString(made.chunks[0].SessionID)", made.chunks[0].SessionID)
			}
		}
		for _, id := range []string{"a b", "a/b", "é", strings.Repeat("a", 129), strings.Repeat("a", 4096)} {
			b.refused(422, "validation_error", "POST", chatPath, operator, chatBody("hello"), "X-Session-ID", id)
		}
		webui := b.stream(b.want(200, "POST", chatPath, operator, chatBody("hello"), "X-OpenWebUI-Chat-Id", "webui-1"))
		if webui.chunks[0].SessionID != "webui-1" {
			t.Errorf(`session %q; want "webui-1"`, webui.chunks[0].SessionID)
		}
	})
	t.Run("Content-Type", func(t *testing.T) {
		b := onSubtest(t, b)
		for _, media := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""} {
			b.refused(415, "unsupported_media_type", "POST", chatPath, operator, chatBody("hello"), "Content-Type", media)
		}
		b.want(200, "POST", chatPath, operator, chatBody("hello"), "Content-Type", "application/json; charset=utf-8")
	})
}

// TestRequestBody walks "Request body".
func TestRequestBody(t *testing.T) {
	t.Parallel()
	b := startBench(t)
	t.Run("model", func(t *testing.T) {
		b := onSubtest(t, b)
		for _, c := range b.say(operator, "m-1", "hello", "model", "gpt-4o").chunks[1:] {
			if c.Model != "cluster-assistant" {
				t.Fatalf(`model %q; want "cluster-assistant"`, c.Model)
			}
		}
		b.refused(422, "validation_error", "POST", chatPath, operator, chatBody("hello", "model", 1))
	})
	t.Run("messages", func(t *testing.T) {
		b := onSubtest(t, b)
		for _, body := range []string{`{}`, `{"messages":[]}`, `{"messages":[{"role":"assistant","content":"x"}]}`, `{"messages":[{"role":"system","content":"x"}]}`} {
			doc := b.refused(422, "no_user_message", "POST", chatPath, operator, body)
			if fmt.Sprint(doc["errors"]) == "<nil>" {
				t.Errorf(`%v; want fmt.Sprint(doc["errors"]) != "<nil>"`, doc)
			}
		}
		many := make([]map[string]string, 0, 201)
		for range 100 {
			many = append(many, map[string]string{"role": "user", "content": "x"}, map[string]string{"role": "tool", "content": "y"})
		}
		many = append(many, map[string]string{"role": "user", "content": "hello"})
		raw, err := json.Marshal(map[string]any{"messages": many})
		if err != nil {
			t.Fatal(err)
		}
		b.want(200, "POST", chatPath, operator, string(raw), "X-Session-ID", "m-2")
		var all strings.Builder
		for range 1001 {
			all.WriteString(`{"role":"user","content":"x"},`)
		}
		b.refused(422, "validation_error", "POST", chatPath, operator, `{"messages":[`+strings.TrimSuffix(all.String(), ",")+`]}`)
		b.refused(413, "body_too_large", "POST", chatPath, operator, chatBody(strings.Repeat("a", 1<<20)))
		b.want(200, "POST", chatPath, operator, `{"messages":[{"role":"ogre","content":"x"},{"role":"user","content":[{"type":"text","text":"hel"},{"type":"image_url"},{"type":"text","text":"lo"}]}]}`)
		b.refused(422, "validation_error", "POST", chatPath, operator, `{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`)
		empty := b.say(operator, "m-3", "   ")
		b.contains(empty, "Ask about the cluster")
	})
	t.Run("stream", func(t *testing.T) {
		b := onSubtest(t, b)
		b.say(operator, "m-4", "hello", "stream", true)
		doc := b.refused(422, "stream_required", "POST", chatPath, operator, chatBody("hello", "stream", false))
		member, _ := doc["error"].(map[string]any)
		if member["type"] != "invalid_request_error" || member["param"] != "stream" || member["code"] != "stream_required" || member["message"] != doc["detail"] {
			t.Errorf(`%v; want member["type"] == "invalid_request_error" && member["param"] == "stream" && member["code"] == "stream_required" && member["message"] == doc["detail"]`, doc)
		}
		for _, v := range []any{"true", 1, []int{}} {
			if a := b.call("POST", chatPath, operator, chatBody("hello", "stream", v)); a.StatusCode != 422 {
				t.Errorf("stream %v: %s; want a.StatusCode == 422", v, a)
			}
		}
	})
	t.Run("user", func(t *testing.T) {
		b := onSubtest(t, b)
		b.say(operator, "m-5", "hello", "user", "ann")
		if n := b.count("select count(*) from outbox where payload::text like '%\"user\": \"ann\"%'"); n == 0 {
			t.Error("the user is not in the audit log")
		}
		b.say(operator, "m-5", "hello again")
		if n := b.count("select count(*) from outbox where payload::text like '%\"user\": \"default\"%'"); n == 0 {
			t.Error("the default user is not in the audit log")
		}
		b.refused(422, "validation_error", "POST", chatPath, operator, chatBody("hello", "user", strings.Repeat("a", 257)))
	})
	t.Run("auto_approve", func(t *testing.T) { // what it does: TestStates
		b := onSubtest(t, b)
		b.refused(422, "validation_error", "POST", chatPath, operator, chatBody("hello", "auto_approve", "yes"))
	})
}

// TestContext walks the groups that clients put before a query.
func TestContext(t *testing.T) {
	t.Parallel()
	b := startBench(t)
	const foreign = "your client's context is `prod`"
	first := b.say(operator, "c-1", "[context: namespace=shop] [context: kube_context=prod] kubectl get pods")
	b.contains(first, foreign, "`seeded`")
	for _, s := range []stream{first, b.say(operator, "c-1", "[context: kube_context=prod] kubectl get pods")} {
		if calls := s.events("tool_call"); len(calls) != 1 || calls[0].Message != "Running: kubectl get pods -n shop" {
			t.Errorf(`the namespace is not the default scope: %+v; want len(calls) == 1 && calls[0].Message == "Running: kubectl get pods -n shop"`, calls)
		}
	}
	if s := b.say(operator, "c-1", "[context: kube_context=prod] yes"); strings.Contains(s.text, foreign) || !strings.Contains(s.text, "Nothing is waiting") {
		t.Errorf(`told twice, or not stripped: %s; want !strings.Contains(s.text, foreign) && strings.Contains(s.text, "Nothing is waiting")`, s.text)
	}
	if doc := b.want(200, "GET", "/v1/sessions/c-1", operator, "").document(t); doc["namespace"] != "shop" {
		t.Errorf(`scope %v; want "shop"`, doc["namespace"])
	}
	if s := b.say(operator, "c-1", "kubectl get nodes"); s.events("tool_call")[0].Message != "Running: kubectl get nodes" {
		t.Errorf(`%+v; want s.events("tool_call")[0].Message == "Running: kubectl get nodes"`, s.events("tool_call"))
	}
	if s := b.say(operator, "c-2", "[context: kube_context=seeded] hello"); strings.Contains(s.text, "context") {
		t.Errorf(`its own context is foreign: %s; want !strings.Contains(s.text, "context")`, s.text)
	}
	b.contains(b.say(operator, "c-3", "[context: namespace=No_Name] hello"), "the namespace of your client's context")
}

// TestStreamFrames walks "Stream frames" and "ki_event object".
func TestStreamFrames(t *testing.T) {
	t.Parallel()
	b := startBench(t)
	s := b.say(operator, "f-1", "what is wrong in shop?")
	t.Run("handshake", func(t *testing.T) {
		if string(s.items[0].Data) != `{"protocol_version":"1.0","object":"stream.start","session_id":"f-1"}` {
			t.Errorf("%s; want string(s.items[0].Data) == `{\"protocol_version\":\"1.0\",\"object\":\"stream.start\",\"session_id\":\"f-1\"}`", s.items[0].Data)
		}
	})
	t.Run("every chunk begins alike", func(t *testing.T) {
		begin := regexp.MustCompile(`^\{"id":"chatcmpl-[0-9a-f]{12}","object":"chat\.completion\.chunk",` +
			`"created":\d+,"model":"cluster-assistant",`)
		var first []byte
		for _, item := range s.items[1 : len(s.items)-1] {
			head := begin.Find(item.Data)
			if first == nil {
				first = head
			}
			if head == nil || !bytes.Equal(head, first) {
				t.Fatalf("%.120s; want head != nil && bytes.Equal(head, first)", item.Data)
			}
		}
	})
	t.Run("answer token", func(t *testing.T) {
		tokens := 0
		for _, c := range s.chunks[1:] {
			if len(c.Choices) == 0 || c.Choices[0].FinishReason != nil {
				continue
			}
			tokens++
			if d := c.Choices[0].Delta; d.Role != "assistant" || d.Content == nil || *d.Content == "" {
				t.Errorf(`%+v; want d.Role == "assistant" && d.Content != nil && *d.Content != ""`, c)
			}
		}
		if tokens == 0 {
			t.Error("no answer")
		}
	})
	t.Run("side-channel event", func(t *testing.T) {
		seen := map[string]int{}
		for i, c := range s.chunks[1:] {
			if c.Event == nil {
				continue
			}
			seen[c.Event.Type]++
			if !bytes.Contains(s.items[i+1].Data, []byte(`"choices":[],"ki_event":{"type":"`+c.Event.Type+`"`)) {
				t.Errorf("%s; want bytes.Contains(s.items[i+1].Data, []byte(`\"choices\":[],\"ki_event\":{\"type\":\"`+c.Event.Type+`\"`))", s.items[i+1].Data)
			}
		}
		for _, kind := range []string{"status", "tool_call", "tool_result"} {
			if seen[kind] == 0 {
				t.Errorf("no %s among %v; want seen[kind] != 0", kind, seen)
			}
		}
		if s.chunks[1].Event == nil || s.chunks[1].Event.Type != "status" {
			t.Errorf(`second frame: %s; want s.chunks[1].Event != nil && s.chunks[1].Event.Type == "status"`, s.items[1].Data)
		}
	})
	t.Run("status", func(t *testing.T) {
		phases := []string{"loading", "snapshot", "planning", "investigating", "synthesizing", "awaiting_approval", "executing", "verifying"}
		for _, e := range s.events("status") {
			if !slices.Contains(phases, e.Phase) || e.Message == "" {
				t.Errorf(`%+v; want slices.Contains(phases, e.Phase) && e.Message != ""`, e)
			}
		}
	})
	t.Run("tool_call and tool_result", func(t *testing.T) {
		open := map[string]string{}
		for _, c := range s.chunks {
			if c.Event == nil {
				continue
			}
			switch e := c.Event; e.Type {
			case "tool_call":
				if !strings.HasPrefix(e.Message, "Running: kubectl ") || open[e.CallID] != "" || e.CallID == "" {
					t.Errorf(`%+v; want strings.HasPrefix(e.Message, "Running: kubectl ") && open[e.CallID] == "" && e.CallID != ""`, e)
				}
				open[e.CallID] = e.Tool
			case "tool_result":
				if open[e.CallID] != e.Tool || len([]rune(e.Output)) > 500 {
					t.Errorf("%+v answers %q; want open[e.CallID] == e.Tool && len([]rune(e.Output)) <= 500", e, open[e.CallID])
				}
				delete(open, e.CallID)
			}
		}
		if len(open) > 0 {
			t.Errorf("without result: %v; want len(open) <= 0", open)
		}
	})
	t.Run("approval request", func(t *testing.T) {
		b := onSubtest(t, b)
		s := b.say(operator, "f-2", scaleWeb)
		if len(s.prompts()) != 1 {
			t.Fatalf("%s; want len(s.prompts()) == 1", s.raw)
		}
		p := s.prompts()[0]
		if p.RiskLevel != "medium" || p.HumanSummary != scaleWeb || p.AlwaysConfirm || !strings.HasPrefix(p.Digest, "sha256:") || !strings.HasSuffix(p.ExpiresAt, "Z") || len(p.ActionID) != 36 {
			t.Errorf(`%+v; want p.RiskLevel == "medium" && p.HumanSummary == scaleWeb && !p.AlwaysConfirm && strings.HasPrefix(p.Digest, "sha256:") && strings.HasSuffix(p.ExpiresAt, "Z") && …`, p)
		}
		b.contains(s, "```diff", "replicas: 2", "replicas: 3")
		last := s.chunks[len(s.chunks)-1].Choices[0]
		if !last.HITLRequired || last.ActionID != p.ActionID || last.Digest != p.Digest || last.FinishReason == nil {
			t.Errorf("completion %+v; want last.HITLRequired && last.ActionID == p.ActionID && last.Digest == p.Digest && last.FinishReason != nil", last)
		}
		if before := s.chunks[len(s.chunks)-2].Choices; len(before) != 1 || !before[0].HITLRequired {
			t.Error("something was sent after the prompt")
		}
	})
	t.Run("completion", func(t *testing.T) {
		if n := bytes.Count(s.raw, []byte(`"finish_reason":"stop"`)); n != 1 {
			t.Errorf("%d completions; want 1", n)
		}
		if !bytes.HasSuffix(s.raw, []byte(`"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")) {
			t.Errorf("%s; want bytes.HasSuffix(s.raw, []byte(`\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}`+\"\\n\\ndata: [DONE]\\n\\n\"))", s.raw[max(0, len(s.raw)-300):])
		}
	})
	t.Run("usage", func(t *testing.T) {
		b := onSubtest(t, b)
		s := b.say(operator, "f-3", "hello", "stream_options", map[string]any{"include_usage": true})
		if u := s.chunks[len(s.chunks)-1].Usage; u == nil || *u != (assistanttest.Usage{}) {
			t.Errorf("%+v; want u != nil && *u == (assistanttest.Usage{})", u)
		}
	})
	t.Run("sample cluster", func(t *testing.T) {
		b := onSubtest(t, b)
		for _, query := range []string{"what is wrong in shop?", "yes", "", "kubectl delete ns shop"} {
			s := b.say(operator, "f-4", query)
			lines := strings.Split(strings.TrimSpace(s.text), "\n")
			if last := lines[len(lines)-1]; !strings.Contains(last, "sample cluster") {
				t.Errorf(`%q: last line %q; want strings.Contains(last, "sample cluster")`, query, last)
			}
		}
	})
}
