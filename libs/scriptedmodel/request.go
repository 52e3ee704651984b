package scriptedmodel

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Request holds the parts of a request that the server evaluates.
type Request struct {
	Model         string          `json:"model"`
	Stream        bool            `json:"stream"`
	Messages      []Message       `json:"messages"`
	Tools         []Tool          `json:"tools"`
	ToolChoice    json.RawMessage `json:"tool_choice"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// Message is one message of a request.
type Message struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// Tool is a tool that a request offers.
type Tool struct {
	Function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// Text is the message's content: a string, or the text parts of a list.
func (m Message) Text() string {
	var s string
	if json.Unmarshal(m.Content, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(m.Content, &parts) // what is neither has no text
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// Text is all text of the request, its tool calls included.
func (r Request) Text() string {
	var b strings.Builder
	for _, m := range r.Messages {
		b.WriteString(m.Text() + "\n")
		for _, c := range m.ToolCalls {
			b.WriteString(c.Function.Name + " " + c.Function.Arguments + "\n")
		}
	}
	return b.String()
}

// Offers reports whether the request offers a tool.
func (r Request) Offers(tool string) bool {
	return slices.ContainsFunc(r.Tools, func(t Tool) bool { return t.Function.Name == tool })
}

// Last is the last message of a role, and where it is; -1: there is none.
func (r Request) Last(role string) (Message, int) {
	for i, m := range slices.Backward(r.Messages) {
		if m.Role == role {
			return m, i
		}
	}
	return Message{}, -1
}

// idMark is the prefix of the server's tool call ids; the number of the step follows.
const idMark = "step"

func callID(step, n int) string { return fmt.Sprintf("%s%dcall%d", idMark, step, n) }

// place is the conversation and step that a request is at.
func (s Script) place(r Request) (conversation, step int, ok bool) {
	query, at := r.Last("user")
	text := query.Text()
	conversation = slices.IndexFunc(s.Conversations, func(c Conversation) bool { return strings.Contains(text, c.When) })
	if conversation < 0 {
		return 0, 0, false
	}
	steps := s.Conversations[conversation].Steps
	for _, m := range r.Messages[at+1:] {
		for _, c := range m.ToolCalls {
			// One that a step wrote as text has an id of the client's.
			if step < len(steps) && len(steps[step].Calls) == 0 && strings.Contains(strings.Join(steps[step].Answer, ""), strconv.Quote(c.Function.Name)) {
				step++
				continue
			}
			number, _, found := strings.Cut(strings.TrimPrefix(c.ID, idMark), "call")
			if n, err := strconv.Atoi(number); err == nil && found && strings.HasPrefix(c.ID, idMark) {
				step = max(step, n+1)
			}
		}
	}
	return conversation, min(step, len(steps)-1), true
}

// fault describes how a request differs from the expected one; empty: it does not.
func (e Expect) fault(r Request) string {
	text := r.Text()
	for _, want := range e.Has {
		if !strings.Contains(text, want) {
			return fmt.Sprintf("the request lacks %q", want)
		}
	}
	for _, not := range e.Lacks {
		if strings.Contains(text, not) {
			return fmt.Sprintf("the request has %q", not)
		}
	}
	for _, want := range e.Tools {
		if !r.Offers(want) {
			return fmt.Sprintf("the request does not offer the tool %q", want)
		}
	}
	for _, not := range e.NoTools {
		if r.Offers(not) {
			return fmt.Sprintf("the request offers the tool %q", not)
		}
	}
	if e.ToolChoice != "" && string(r.ToolChoice) != strconv.Quote(e.ToolChoice) {
		return fmt.Sprintf("tool_choice is %s, not %q", r.ToolChoice, e.ToolChoice)
	}
	return ""
}
