package copilot_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/assistant"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/assistant/assistanttest"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/copilot"
)

// answerStatus answers with a problem of that status.
func answerStatus(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"title":"x"}`)
	}
}

// say sends the handshake, a token and then these data.
func say(data ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		assistanttest.BeginStream(w)
		assistanttest.Send(w, assistanttest.Token("Half "))
		assistanttest.Send(w, data...)
	}
}

// breakOff sends half an answer and then cuts the connection, as a killed assistant does.
func breakOff(w http.ResponseWriter, r *http.Request) {
	say()(w, r)
	panic(http.ErrAbortHandler)
}

// hang sends what before says, then nothing until its caller gives up.
func hang(before http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		before(w, r)
		<-r.Context().Done()
	}
}

func failEvent(code string) string {
	return `{"choices":[],"ki_event":{"type":"error","fatal":true,"code":"` + code + `","message":"m"}}`
}

// Whatever happens to the assistant: 200, the contract's shape, the output so far, and the error.
func TestTroubleKeepsThePartialAnswerAndNamesIt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		handler      http.HandlerFunc
		answer, code string
	}{
		"killed mid-answer":    {breakOff, "Half ", "agent_unavailable"},
		"ends without DONE":    {say(), "Half ", "agent_unavailable"},
		"draining":             {answerStatus(503), "", "agent_unavailable"},
		"fault":                {answerStatus(500), "", "agent_unavailable"},
		"key refused":          {answerStatus(401), "", "agent_auth"},
		"key too weak":         {answerStatus(403), "", "agent_auth"},
		"session answers":      {answerStatus(409), "", "agent_busy"},
		"too many":             {answerStatus(429), "", "agent_busy"},
		"gateway timeout":      {answerStatus(504), "", "agent_timeout"},
		"refuses the question": {answerStatus(422), "", "agent_response"},
		"redirect":             {answerStatus(304), "", "agent_response"},
		"web page":             {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, "", "agent_response"},
		"no JSON":              {say("{"), "Half ", "agent_response"},
		"another shape":        {say(`{"choices":7}`), "Half ", "agent_response"},
		"frame without end":    {say(strings.Repeat("x", 2<<20)), "Half ", "agent_response"},
		"silent":               {hang(func(http.ResponseWriter, *http.Request) {}), "", "agent_timeout"},
		"header, then silent": {hang(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			assistanttest.Send(w)
		}), "", "agent_timeout"},
		"stops mid-answer":        {hang(say()), "Half ", "agent_timeout"},
		"reports its own timeout": {say(failEvent("turn_timeout"), "[DONE]"), "Half ", "agent_timeout"},
		"reports being replaced":  {say(failEvent("superseded"), "[DONE]"), "Half ", "agent_busy"},
		"reports shutting down":   {say(failEvent("shutting_down"), "[DONE]"), "Half ", "agent_unavailable"},
		"reports a failure":       {say(failEvent("engine_failed"), assistanttest.Token("end"), "[DONE]"), "Half end", "agent_response"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newCopilot(t, assistanttest.Start(t, tc.handler), func(c *copilot.Config) { c.FirstByte, c.Timeout = 300*time.Millisecond, 900*time.Millisecond })
			got := askAs(t, p, ann, question)
			got.Trace = []api.TraceEntry{} // of the reported failures; see TestTraceIsBounded
			want := api.CopilotAnswer{Answer: tc.answer, Proposals: []api.Proposal{}, Trace: []api.TraceEntry{}, Partial: []string{"agent"}, ErrorCode: &tc.code}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAssistantThatCannotBeCalledIsNoError(t *testing.T) {
	t.Parallel()
	noKey, err := assistant.New(assistant.Config{Addresses: assistanttest.Address("http://127.0.0.1:1")})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		clients *assistant.Clients
		code    string
	}{
		"nobody listens": {assistanttest.Connect(t, "http://127.0.0.1:1"), "agent_unavailable"},
		"no address":     {assistanttest.Connect(t, ""), "agent_unavailable"},
		"no key":         {noKey, "agent_auth"},
	} {
		got := askAs(t, newCopilot(t, tc.clients, nil), ann, question)
		want := api.CopilotAnswer{Proposals: []api.Proposal{}, Trace: []api.TraceEntry{}, Partial: []string{"agent"}, ErrorCode: &tc.code}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

func TestTraceIsBounded(t *testing.T) {
	t.Parallel()
	events := []string{
		`{"choices":[],"ki_event":{"type":"status","phase":"loading","message":"Reading"}}`,
		`{"choices":[],"ki_event":{"type":"plan","steps":[{"description":"first","status":"done"},"second",7]}}`,
		`{"choices":[],"ki_event":{"type":"tool_result","tool":"list","output":"` + strings.Repeat("é", 1500) + `"}}`,
		`{"choices":[],"ki_event":{"type":"error","fatal":false,"code":"logs_unavailable","message":"m"}}`,
	}
	for range 200 {
		events = append(events, `{"choices":[],"ki_event":{"type":"tool_call","tool":"top","message":"Running"}}`)
	}
	p := newCopilot(t, assistanttest.Start(t, say(append(events, "[DONE]")...)), nil)
	got := askAs(t, p, ann, question)
	want := []api.TraceEntry{
		{Kind: "status", Name: "loading", Detail: "Reading"},
		{Kind: "plan", Detail: "first\nsecond\n"},
		{Kind: "tool_result", Name: "list", Detail: strings.Repeat("é", 1000)},
		{Kind: "error", Name: "logs_unavailable", Detail: "m"},
		{Kind: "tool_call", Name: "top", Detail: "Running"},
	}
	if diff := cmp.Diff(want, got.Trace[:5]); diff != "" || len(got.Trace) != 100 || got.Partial != nil {
		t.Errorf("%d entries, partial %v; want 100, nil; the first -want +got:\n%s", len(got.Trace), got.Partial, diff)
	}
}

func TestAnswerIsBounded(t *testing.T) {
	t.Parallel()
	tokens := make([]string, 20)
	for i := range tokens {
		tokens[i] = assistanttest.Token(strings.Repeat("é", 10_000))
	}
	got := askAs(t, newCopilot(t, assistanttest.Start(t, say(append(tokens, "[DONE]")...)), nil), ann, question)
	if n := len(got.Answer); n > 256<<10 || n < 255<<10 || got.ErrorCode == nil || *got.ErrorCode != "agent_response" {
		t.Errorf("got %d bytes, error code %v; want at most 256 KiB, agent_response", n, got.ErrorCode)
	}
}

func TestAShutdownEndsTheQuestionWithWhatWasSaid(t *testing.T) {
	t.Parallel()
	said := make(chan struct{})
	clients := assistanttest.Start(t, hang(func(w http.ResponseWriter, r *http.Request) {
		say()(w, r)
		close(said)
	}))
	p := newCopilot(t, clients, nil)
	go func() {
		<-said
		p.Close()
	}()
	began := time.Now()
	a := askAs(t, p, ann, `{"question": "What is wrong?"}`)
	if a.ErrorCode == nil || *a.ErrorCode != "agent_unavailable" || !slices.Equal(a.Partial, []string{"agent"}) {
		t.Errorf("got %+v, want a partial answer with agent_unavailable", a)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the answer came after %s, want it with the shutdown", took)
	}
	if a := askAs(t, p, ann, `{"question": "What is wrong?"}`); a.ErrorCode == nil || *a.ErrorCode != "agent_unavailable" {
		t.Errorf("afterwards: got %+v, want agent_unavailable", a)
	}
}
