package scriptedmodel_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/scriptedmodel"
	"github.com/mlp-platform/platform/libs/scriptedmodel/scripttest"
)

// postMessages sends a request and returns its status and the streamed text.
func postMessages(t *testing.T, url string, messages ...map[string]any) (int, string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"model": "m", "stream": true, "stream_options": map[string]bool{"include_usage": true}, "messages": messages})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text := ""
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		var e struct {
			Choices []struct {
				Delta struct {
					Content   string           `json:"content"`
					ToolCalls []map[string]any `json:"tool_calls"`
				} `json:"delta"`
			} `json:"choices"`
			Usage map[string]int `json:"usage"`
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || json.Unmarshal([]byte(data), &e) != nil {
			continue
		}
		for _, c := range e.Choices {
			text += c.Delta.Content
			for _, call := range c.Delta.ToolCalls {
				if id, ok := call["id"]; ok {
					text += "<" + id.(string) + ">"
				}
			}
		}
		if e.Usage != nil {
			text += "[counted]"
		}
	}
	return resp.StatusCode, text
}

func userMessage(text string) map[string]any { return map[string]any{"role": "user", "content": text} }

func toolCallMessage(id string) map[string]any {
	return map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{"id": id, "type": "function", "function": map[string]string{"name": "list", "arguments": "{}"}}}}
}

func startModel(t *testing.T, s scriptedmodel.Script, seen io.Writer) (*scriptedmodel.Server, string) {
	t.Helper()
	v, err := scriptedmodel.New(s, seen)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(v)
	t.Cleanup(h.Close)
	return v, h.URL
}

func TestTheRequestTellsTheStep(t *testing.T) {
	t.Parallel()
	second := scripttest.Say("The end.")
	second.Usage = &scriptedmodel.Usage{Prompt: 7, Completion: 2}
	_, url := startModel(t, scriptedmodel.Script{Conversations: []scriptedmodel.Conversation{
		{When: "api", Steps: []scriptedmodel.Step{scripttest.Ask("list", `{"kind":"pods"}`), second}},
		{When: "text", Steps: []scriptedmodel.Step{scripttest.Say(`{"name": "list", "arguments": {}}`), second}},
		{Steps: []scriptedmodel.Step{{Echo: true, Answer: []string{"It says: "}}}},
	}}, nil)
	tool := map[string]any{"role": "tool", "tool_call_id": "x", "content": "<data tool=\"list\">\ntwo pods\n</data>"}
	for _, c := range []struct {
		messages []map[string]any
		want     string
	}{
		{[]map[string]any{userMessage("why does api crash?")}, "<step0call0>"},
		{[]map[string]any{userMessage("why does api crash?"), toolCallMessage("step0call0"), tool}, "The end.[counted]"},
		{[]map[string]any{userMessage("why does api crash?"), toolCallMessage("step0call0"), tool, toolCallMessage("step1call0")}, "The end.[counted]"}, // a request beyond the script
		{[]map[string]any{userMessage("why does api crash?"), toolCallMessage("own"), tool}, "<step0call0>"},                                            // a call of the client's own
		{[]map[string]any{userMessage("text"), toolCallMessage("own"), tool}, "The end.[counted]"},                                                      // a call that was written as text
		{[]map[string]any{userMessage("and web?"), toolCallMessage("own"), tool}, "It says: two pods"},
	} {
		if status, got := postMessages(t, url, c.messages...); status != http.StatusOK || got != c.want {
			t.Errorf("%v: %d %q, want %q", c.messages, status, got, c.want)
		}
	}
}

func TestFaultsComeFirstAndOnce(t *testing.T) {
	t.Parallel()
	s := scripttest.Say("Well.")
	s.Faults = []scriptedmodel.Fault{{Status: 429, Header: map[string]string{"Retry-After": "1"}}, {Status: 500, Body: "broken"}}
	_, url := startModel(t, scripttest.Always(s), nil)
	var got []int
	for range 4 {
		status, _ := postMessages(t, url, userMessage("hello"))
		got = append(got, status)
	}
	if want := []int{429, 500, 200, 200}; !slices.Equal(got, want) {
		t.Errorf("statuses %v, want %v", got, want)
	}
}

func TestWhatIsUnexpectedIsNoted(t *testing.T) {
	t.Parallel()
	s := scripttest.Say("Well.")
	s.Expect = scriptedmodel.Expect{Lacks: []string{"hunter2"}}
	var seen bytes.Buffer
	v, url := startModel(t, scripttest.Always(s), &seen)
	if status, _ := postMessages(t, url, userMessage("the password is hunter2")); status != http.StatusBadRequest {
		t.Errorf("status %d, want 400", status)
	}
	if got := v.Unexpected(); len(got) != 1 || !strings.Contains(got[0], `the request has "hunter2"`) {
		t.Errorf("unexpected: %q; want len(got) == 1 && strings.Contains(got[0], `the request has \"hunter2\"`)", got)
	}
	if strings.Count(seen.String(), "\n") != 1 || !strings.Contains(seen.String(), "hunter2") {
		t.Errorf("the log of bodies is %q; want strings.Count(seen.String(), \"\\n\") == 1 && strings.Contains(seen.String(), \"hunter2\")", seen.String())
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"conversations":[{"steps":[{"answer":["a"]}]}]}`:                      "",
		`{"conversations":[{"steps":[{"answers":["a"]}]}]}`:                     "unknown field",
		`{"conversations":[{"steps":[]}]}`:                                      "no steps",
		`{}`:                                                                    "no conversations",
		`{"conversations":[{"steps":[{"answer":["a"]}]}]} {}`:                   "something after it",
		`{"conversations":[{"steps":[{"faults":[{"status":99}]}]}]}`:            "no HTTP status",
		`{"conversations":[{"steps":[{"calls":[{"name":"x","times":5000}]}]}]}`: "",
	} {
		_, err := scriptedmodel.Parse([]byte(raw))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", raw, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"conversations":[{"when":"x","steps":[{"answer":["a"],"calls":[{"name":"n","arguments":"{"}]}]}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := scriptedmodel.Parse(raw)
		if err != nil {
			return
		}
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := scriptedmodel.Parse(again); err != nil {
			t.Fatalf("a script that was read cannot be read again: %v\n%s", err, again)
		}
	})
}
