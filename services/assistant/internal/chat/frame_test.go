package chat_test

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
)

var (
	head = chat.Head{SessionID: "s-1", ID: "chatcmpl-0f3a9c2be471", Created: time.Unix(1764000000, 0), Model: "cluster-assistant"}
	enc  = chat.NewEncoder(head)

	approval = chat.Approval{
		ActionID: "0198c5a4-0000-7000-8000-000000000001", RiskLevel: "medium",
		HumanSummary: "kubectl scale deployment/api -n shop --replicas=3",
		ExpiresAt:    time.Date(2025, 11, 24, 17, 0, 0, 0, time.FixedZone("CET", 3600)), Digest: "sha256:" + strings.Repeat("ab", 32),
	}
	always = chat.Approval{
		ActionID: "0198c5a4-0000-7000-8000-000000000002", RiskLevel: "high", HumanSummary: `kubectl delete pvc 'a"b' -n shop`,
		AlwaysConfirm: true, ExpiresAt: time.Date(2025, 11, 24, 16, 0, 0, 0, time.UTC), Digest: "sha256:" + strings.Repeat("01", 32),
	}
	// nasty contains every character that is escaped, and text that looks like a frame.
	nasty = "a\x00\b\t\n\v\f\r\x1b[31m\x1c\x7f\u0085\u009f\u2028\u2029 <&> \"\\ \xff\xc3 é\U0001F680\U0001F6D1 \"}],\"usage\":{} ,\"choices\":[\n\ndata: [DONE]\n\n"
)

// kinds is one frame of every kind.
var kinds = map[string][]byte{
	"handshake":           enc.Handshake(nil),
	"status":              enc.Status(nil, chat.Snapshot, "Reading pods and warnings"),
	"plan":                enc.Plan(nil, []chat.Step{{"Compare selector and labels", chat.StepInProgress}, {"Look at endpoints", chat.StepPending}}),
	"plan_empty":          enc.Plan(nil, nil),
	"tool_call":           enc.ToolCall(nil, "list", "Running: kubectl get pods -n shop", "call_1"),
	"tool_result":         enc.ToolResult(nil, chat.ToolResult{Tool: "list", CallID: "call_1", Output: "NAME READY\napi 0/1\n", OK: true}),
	"tool_result_failed":  enc.ToolResult(nil, chat.ToolResult{Tool: "list", CallID: "call_2", Output: "There is no kind gizmo.", Truncated: true}),
	"error":               enc.Error(nil, fault.ClusterUnreachable, true),
	"error_passing":       enc.Error(nil, fault.ModelUnavailable, false),
	"token":               enc.Token(nil, "The "),
	"token_nasty":         enc.Token(nil, nasty),
	"token_empty":         enc.Token(nil, ""),
	"approval":            enc.Approval(nil, "Shall I run it?\n", approval),
	"approval_always":     enc.Approval(nil, "Shall I run it?", always),
	"completion":          enc.Completion(nil, nil, nil),
	"completion_usage":    enc.Completion(nil, nil, &chat.Usage{PromptTokens: 12, CompletionTokens: 30}),
	"completion_no_model": enc.Completion(nil, nil, &chat.Usage{}),
	"completion_pending":  enc.Completion(nil, &approval, nil),
	"completion_both":     enc.Completion(nil, &always, &chat.Usage{PromptTokens: 1, CompletionTokens: 2}),
	"done":                []byte(chat.Done),
	"heartbeat":           []byte(chat.Heartbeat),
}

func renderFrames(t testing.TB, p chat.Profile, ids bool, frames ...[]byte) []byte {
	t.Helper()
	r := chat.NewRenderer(p)
	var out []byte
	for i, f := range frames {
		id := ""
		if ids && string(f) != chat.Heartbeat {
			id = "7." + strconv.Itoa(i)
		}
		var err error
		if out, err = r.Render(out, f, id); err != nil {
			t.Fatalf("%v: %s", err, f)
		}
	}
	return out
}

func TestFramesOfEveryKind(t *testing.T) {
	t.Parallel()
	for name, frame := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assistanttest.CheckGolden(t, "frames/canonical/"+name+".sse", frame)
			if got := renderFrames(t, chat.Canonical, false, frame); !bytes.Equal(got, frame) {
				t.Errorf("the canonical profile changes %s into %s; want bytes.Equal(got, frame)", frame, got)
			}
			// The stream's one role is sent first, so that only the kind's own bytes are compared.
			whole := renderFrames(t, chat.Strict, false, kinds["token_empty"], frame)
			own := bytes.TrimPrefix(whole, renderFrames(t, chat.Strict, false, kinds["token_empty"]))
			assistanttest.CheckGolden(t, "frames/strict/"+name+".sse", own)
			for _, stream := range [][]byte{frame, whole} {
				if _, err := assistanttest.SplitStream(stream); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// turn is a turn with every kind of frame, as it would be stored.
var turn = [][]byte{
	kinds["handshake"], kinds["status"], kinds["plan"], kinds["tool_call"], kinds["tool_result"], kinds["error_passing"],
	kinds["token"], enc.Token(nil, "end.\n"), kinds["approval"], kinds["completion_both"], kinds["done"],
}

func TestTurn(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]chat.Profile{"canonical": chat.Canonical, "strict": chat.Strict} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assistanttest.CheckGolden(t, "turn/"+name+".sse", renderFrames(t, p, false, turn...))
			assistanttest.CheckGolden(t, "turn/"+name+"_ids.sse", renderFrames(t, p, true, turn...))
		})
	}
}

func TestStrictStreamIsAsSDKsAccumulateIt(t *testing.T) {
	t.Parallel()
	plain := assistanttest.DecodeChunks(t, assistanttest.ReadStream(t, bytes.NewReader(renderFrames(t, chat.Canonical, false, turn...))))
	items := assistanttest.ReadStream(t, bytes.NewReader(renderFrames(t, chat.Strict, true, turn...)))
	chunks := assistanttest.DecodeChunks(t, items)
	role, reasoning := "", ""
	for i, c := range chunks {
		if c.Usage != nil {
			if len(c.Choices) != 0 || i != len(chunks)-1 {
				t.Errorf("usage in chunk %d with %d choices; want len(c.Choices) == 0 && i == len(chunks) - 1", i, len(c.Choices))
			}
			continue
		}
		if c.Event != nil || c.Object != "chat.completion.chunk" || len(c.Choices) != 1 || c.ID != head.ID || c.Created != head.Created.Unix() || c.Model != head.Model {
			t.Errorf(`chunk %d: %+v; want c.Event == nil && c.Object == "chat.completion.chunk" && len(c.Choices) == 1 && c.ID == head.ID && c.Created == head.Created.Unix() && c.Model == head.Model`, i, c)
			continue
		}
		role += c.Choices[0].Delta.Role
		if r := c.Choices[0].Delta.ReasoningContent; r != nil {
			reasoning += *r
		}
	}
	if role != "assistant" || chunks[0].Choices[0].Delta.Role == "" || reasoning != "Running: kubectl get pods -n shop\n" {
		t.Errorf("role %q, reasoning %q; want role == \"assistant\" && chunks[0].Choices[0].Delta.Role != \"\" && reasoning == \"Running: kubectl get pods -n shop\\n\"", role, reasoning)
	}
	if got, want := assistanttest.AnswerText(chunks), assistanttest.AnswerText(plain); got != want {
		t.Errorf("answer %q, want %q", got, want)
	}
	seen := map[string]bool{}
	for _, item := range items {
		if item.ID != "" && seen[item.ID] {
			t.Errorf(`id %s twice; want (item.ID == "" || !seen[item.ID])`, item.ID)
		}
		seen[item.ID] = true
	}
}

// A reader that resumes in the middle still gets a role first.
func TestStrictResumption(t *testing.T) {
	t.Parallel()
	for i := 1; i < len(turn)-1; i++ {
		chunks := assistanttest.DecodeChunks(t, assistanttest.ReadStream(t, bytes.NewReader(renderFrames(t, chat.Strict, false, turn[i:]...))))
		if chunks[0].Choices[0].Delta.Role != "assistant" || *chunks[0].Choices[0].Delta.Content != "" {
			t.Errorf(`from %d: %+v; want chunks[0].Choices[0].Delta.Role == "assistant" && *chunks[0].Choices[0].Delta.Content == ""`, i, chunks[0])
		}
	}
}

func TestStopSign(t *testing.T) {
	t.Parallel()
	const sign = "\U0001F6D1"
	for i, frame := range [][]byte{
		enc.Token(nil, sign), enc.Approval(nil, sign, approval), enc.Status(nil, chat.Loading, sign), enc.Plan(nil, []chat.Step{{sign, chat.StepDone}}),
		enc.ToolCall(nil, "list", sign, "c"), enc.ToolResult(nil, chat.ToolResult{Output: sign}),
	} {
		if bytes.Contains(frame, []byte(sign)) || !bytes.Contains(frame, []byte("[stop sign]")) {
			t.Errorf(`%d: %s; want !bytes.Contains(frame, []byte(sign)) && bytes.Contains(frame, []byte("[stop sign]"))`, i, frame)
		}
	}
}

// An approval prompt shows hidden and direction-changing characters by their code.
func TestApprovalIsVisible(t *testing.T) {
	t.Parallel()
	a := approval
	a.HumanSummary = "kubectl create -f - <<'EOF'\nnote: \u202e}dlrow\u200b\u2066\U000e0041 \U0001F6D1\nEOF"
	const want = `note: \\u202e}dlrow\\u200b\\u2066\\U000e0041`
	for i, frame := range [][]byte{enc.Approval(nil, "It reads "+a.HumanSummary, a), enc.Completion(nil, &a, nil)} {
		if n := bytes.Count(frame, []byte(want)); n != 2-i {
			t.Errorf("%d: %d times in %s; want n == 2 - i", i, n, frame)
		}
		for _, hidden := range []string{"\u202e", "\u200b", "\u2066", "\U000e0041", "\U0001F6D1"} {
			if bytes.Contains(frame, []byte(hidden)) {
				t.Errorf("%d: %+q is in %s; want !bytes.Contains(frame, []byte(hidden))", i, hidden, frame)
			}
		}
	}
	if got := chat.Visible("größe 模型 🙂\n\tx"); got != "größe 模型 🙂\n\tx" {
		t.Errorf("%q; want \"größe 模型 🙂\\n\\tx\"", got)
	}
}

func TestOutputIsCut(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in   string
		want int
		cut  bool
	}{
		{"", 0, false}, {strings.Repeat("é", chat.MaxOutput), chat.MaxOutput, false}, {strings.Repeat("é", chat.MaxOutput+1), chat.MaxOutput, true},
		{strings.Repeat("\xff", chat.MaxOutput+1), chat.MaxOutput, true}, {strings.Repeat("x", 1<<20), chat.MaxOutput, true},
		{strings.Repeat("\U0001F6D1", chat.MaxOutput), chat.MaxOutput, true},
	} {
		c := decodeChunk(t, enc.ToolResult(nil, chat.ToolResult{Output: tc.in}))
		if n := utf8.RuneCountInString(c.Event.Output); n != tc.want || c.Event.Truncated != tc.cut {
			t.Errorf("%.8q of %d bytes: %d code points, truncated %v; want n == tc.want && c.Event.Truncated == tc.cut", tc.in, len(tc.in), n, c.Event.Truncated)
		}
	}
}

func decodeChunk(t testing.TB, frame []byte) assistanttest.Chunk {
	t.Helper()
	payload, ok := chat.Payload(frame)
	if !ok {
		t.Fatalf("no frame: %q; want ok", frame)
	}
	var c assistanttest.Chunk
	if err := json.Unmarshal(payload, &c); err != nil {
		t.Fatalf("%v: %s", err, payload)
	}
	return c
}

func TestRenderRefusesForeignBytes(t *testing.T) {
	t.Parallel()
	for _, frame := range []string{
		"", "data: ", "data: {}\n\n", "data: [DONE]", ": ki {}\n\n", `data: {"id":"x"}` + "\n\n", `data: {"id":"x","choices":[]}` + "\n\n",
		`data: {"id":"x","choices":[{"index":0,"delta":{"content":"a` + "\n\n", `data: {"id":"x","choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n",
		`data: {"id":"x","choices":[],"ki_event":{"type":"tool_call"` + "\n\n",
	} {
		out, err := chat.NewRenderer(chat.Strict).Render([]byte("before"), []byte(frame), "1")
		if err == nil || string(out) != "before" {
			t.Errorf(`%q: %q, %v; want an error && string(out) == "before"`, frame, out, err)
		}
	}
}

// FuzzFrame checks that both profiles return what was put into a frame, except for what frames cannot carry, and that
// the stream stays valid.
func FuzzFrame(f *testing.F) {
	f.Add(nasty, "list")
	f.Add("The ", "")
	f.Add("\U0001F6D1", `"}],"usage":{`)
	f.Fuzz(func(t *testing.T, text, other string) {
		want := chat.Prose(strings.ToValidUTF8(text, "\uFFFD"))
		if !utf8.ValidString(text) { // each broken byte becomes one replacement character
			want = chat.Prose(string([]rune(text)))
		}
		a := chat.Approval{ActionID: other, HumanSummary: text, RiskLevel: other, Digest: other}
		e := chat.NewEncoder(chat.Head{SessionID: other, ID: text, Model: other})
		frames := [][]byte{
			e.Handshake(nil), e.Status(nil, chat.Phase(other), text), e.Plan(nil, []chat.Step{{text, chat.StepStatus(other)}}), e.ToolCall(nil, other, text, other),
			e.ToolResult(nil, chat.ToolResult{Tool: other, Output: text, CallID: other}), e.Error(nil, fault.Failure{Code: other, Message: text}, true),
			e.Token(nil, text), e.Approval(nil, text, a), e.Completion(nil, &a, &chat.Usage{PromptTokens: 1}), []byte(chat.Done),
		}
		plain := assistanttest.DecodeChunks(t, assistanttest.ReadStream(t, bytes.NewReader(renderFrames(t, chat.Canonical, true, frames...))))
		strict := assistanttest.DecodeChunks(t, assistanttest.ReadStream(t, bytes.NewReader(renderFrames(t, chat.Strict, true, frames...))))
		if len(plain) != len(frames)-1 {
			t.Fatalf("%d chunks of %d frames; want len(plain) == len(frames) - 1", len(plain), len(frames))
		}
		for name, chunks := range map[string][]assistanttest.Chunk{"canonical": plain, "strict": strict} {
			if got := assistanttest.AnswerText(chunks); got != want+chat.Visible(want) {
				t.Fatalf("%s: answer %q, want %q and what of it is visible", name, got, want)
			}
		}
		if got := plain[1].Event.Message; got != want {
			t.Fatalf("message %q, want %q", got, want)
		}
		summary := chat.Visible(string([]rune(text)))
		for _, c := range []assistanttest.Choice{plain[7].Choices[0], plain[8].Choices[0], strict[len(strict)-2].Choices[0], strict[len(strict)-3].Choices[0]} {
			if c.HumanSummary != summary || !c.HITLRequired {
				t.Fatalf("summary %q, want %q", c.HumanSummary, summary)
			}
		}
		if strict[len(strict)-1].Usage.TotalTokens != 1 || *strict[1].Choices[0].Delta.ReasoningContent != want+"\n" {
			t.Fatalf("%+v; want strict[len(strict)-1].Usage.TotalTokens == 1 && *strict[1].Choices[0].Delta.ReasoningContent == want + \"\\n\"", strict)
		}
	})
}

func BenchmarkTokenFrame(b *testing.B) {
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = enc.Token(dst[:0], " the deployment")
	}
	b.SetBytes(int64(len(dst)))
}

func BenchmarkTokenFrameStrict(b *testing.B) {
	r := chat.NewRenderer(chat.Strict)
	var frame, dst []byte
	b.ReportAllocs()
	for b.Loop() {
		frame = enc.Token(frame[:0], " the deployment")
		var err error
		if dst, err = r.Render(dst[:0], frame, "7.12"); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(dst)))
}

// BenchmarkTokenFrameByReflection is the floor to compare with: the same chunk through encoding/json.
func BenchmarkTokenFrameByReflection(b *testing.B) {
	type delta struct {
		Content string `json:"content"`
		Role    string `json:"role"`
	}
	type choice struct {
		Index        int     `json:"index"`
		Delta        delta   `json:"delta"`
		FinishReason *string `json:"finish_reason"`
	}
	type chunk struct {
		ID      string   `json:"id"`
		Object  string   `json:"object"`
		Created int64    `json:"created"`
		Model   string   `json:"model"`
		Choices []choice `json:"choices"`
	}
	b.ReportAllocs()
	for b.Loop() {
		raw, err := json.Marshal(chunk{head.ID, "chat.completion.chunk", head.Created.Unix(), head.Model, []choice{{Delta: delta{" the deployment", "assistant"}}}})
		if err != nil || len(raw) == 0 {
			b.Fatal(err, "want len(raw) != 0")
		}
	}
}
