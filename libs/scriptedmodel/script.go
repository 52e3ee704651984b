// Package scriptedmodel is a language model with scripted answers: an HTTP server of the
// chat-completions protocol that follows a script, so that a client's handling of a
// model, also a broken or hostile one, can be tested exactly.
//
// A script is JSON or a Go value. Which step answers a request follows from the request
// alone: the conversation is chosen by the last user message, and the step by how many
// of the server's own answers follow that message. So any number of conversations may go
// on at once, and a client that repeats a request gets the same answer. Only a step's
// faults count requests: each is used once, in order, before the step answers.
package scriptedmodel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Script defines the behaviour of the model.
type Script struct {
	Conversations []Conversation `json:"conversations"`
}

// Conversation answers the requests whose last user message it is for. Of several the
// first is taken.
type Conversation struct {
	// When is a text that the last user message has; empty takes every message.
	When string `json:"when,omitempty"`
	// Steps are the answers in order. Asked for more, the last one is given again.
	Steps []Step `json:"steps"`
}

// Step is one answer.
type Step struct {
	// Expect lists requirements for the request; one that fails them is answered with
	// 400 and recorded in [Server.Unexpected].
	Expect Expect `json:"expect,omitzero"`
	// Faults come before the answer, one for each request.
	Faults []Fault `json:"faults,omitempty"`
	// Answer is sent token by token, Repeat times (0 is once).
	Answer []string `json:"answer,omitempty"`
	Repeat int      `json:"repeat,omitempty"`
	// Echo answers with the text of the request's last message of the role tool, so that
	// an answer shows the client's findings and not the script author's knowledge. The
	// tags of an element around the text, each on a separate line, are left out.
	Echo bool `json:"echo,omitempty"`
	// Calls are tool calls, each Times times (0 is once).
	Calls []Call `json:"calls,omitempty"`
	// Finish is the finish reason; empty is stop, or tool_calls where there are some.
	Finish string `json:"finish,omitempty"`
	// Usage is the reported token count; nil sends no counts, as some servers do.
	Usage *Usage `json:"usage,omitempty"`
	// CutAfter ends the connection after so many tokens, without an ending; 0 is never.
	CutAfter int `json:"cut_after,omitempty"`
	// HangAfter goes silent after so many tokens until the client goes; 0 is never.
	HangAfter int `json:"hang_after,omitempty"`
}

// Call is a tool call. Arguments are sent unchanged, so they may be invalid.
type Call struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Times     int    `json:"times,omitempty"`
}

// Usage counts tokens.
type Usage struct {
	Prompt     int64 `json:"prompt"`
	Completion int64 `json:"completion"`
}

// Expect lists requirements for a request.
type Expect struct {
	// Has and Lacks are texts that the body, decoded and joined, must have or lack.
	Has   []string `json:"has,omitempty"`
	Lacks []string `json:"lacks,omitempty"`
	// Tools must be offered, NoTools must not.
	Tools   []string `json:"tools,omitempty"`
	NoTools []string `json:"no_tools,omitempty"`
	// ToolChoice must be this; empty is anything.
	ToolChoice string `json:"tool_choice,omitempty"`
}

// Fault is a failure in the place of an answer: a status, or none and silence.
type Fault struct {
	Status int `json:"status,omitempty"`
	// Header is sent with the status, such as Retry-After.
	Header map[string]string `json:"header,omitempty"`
	Body   string            `json:"body,omitempty"`
	// Hang answers nothing until the client goes.
	Hang bool `json:"hang,omitempty"`
	// Event is sent as the first event of a stream that opened well.
	Event string `json:"event,omitempty"`
}

// Parse reads a script. Members that are not known are refused, since they are typing
// mistakes.
func Parse(raw []byte) (Script, error) {
	var s Script
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return Script{}, fmt.Errorf("read script: %w", err)
	}
	if d.More() {
		return Script{}, errors.New("read script: there is something after it")
	}
	return s, s.Validate()
}

// Validate returns an error for an incomplete script.
func (s Script) Validate() error {
	if len(s.Conversations) == 0 {
		return errors.New("the script has no conversations")
	}
	for i, c := range s.Conversations {
		if len(c.Steps) == 0 {
			return fmt.Errorf("conversation %d (%q) has no steps", i+1, c.When)
		}
		for j, step := range c.Steps {
			for _, f := range step.Faults {
				if f.Status != 0 && (f.Status < 100 || f.Status > 599) {
					return fmt.Errorf("conversation %d, step %d: %d is no HTTP status", i+1, j+1, f.Status)
				}
			}
		}
	}
	return nil
}
