package copilot

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	wire "github.com/mlp-platform/platform/clients/go/assistant"
	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/sse"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/assistant"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
)

// errorCode is why an answer is incomplete.
type errorCode string

// The codes.
const (
	agentUnavailable errorCode = "agent_unavailable" // cannot be reached, or broke off
	agentTimeout     errorCode = "agent_timeout"
	agentAuth        errorCode = "agent_auth"     // no key, or one that is refused
	agentBusy        errorCode = "agent_busy"     // answers another question of this session, or too many at once
	agentResponse    errorCode = "agent_response" // its answer is invalid
)

// Limits of an answer.
const (
	maxAnswer  = 256 << 10 // bytes
	maxTrace   = 100
	maxDetail  = 1000 // characters of a trace entry
	maxMention = 200  // characters of its name
)

// errSlow is why a call ends whose assistant has sent nothing for FirstByte, or not all within Timeout.
var errSlow = errors.New("the assistant is too slow")

// errDraining is why a call ends when the dashboard shuts down; the answer is then partial, agent_unavailable.
var errDraining = errors.New("the dashboard shuts down")

// ask makes the one call. Output received before a failure is kept.
func (p *Copilot) ask(ctx context.Context, who caller.Caller, m assistant.Message) *answer {
	a := &answer{text: cappedText{room: maxAnswer}}
	ctx, stop := context.WithTimeoutCause(ctx, p.Timeout, errSlow)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.drain, func() { cancel(errDraining) })()
	first := time.AfterFunc(p.FirstByte, func() { cancel(errSlow) })
	defer first.Stop()

	resp, err := p.call(ctx, who, m)
	if err == nil {
		defer resp.Body.Close()
		if a.code = classifyResponse(resp); a.code == "" {
			err = a.read(resp.Body, first)
		}
	}
	if err != nil {
		a.code = classifyError(ctx, err)
	}
	if a.code != "" {
		p.Log.WarnContext(ctx, "copilot answer is partial", slog.String("error_code", string(a.code)), slog.Any("err", err))
	}
	return a
}

func (p *Copilot) call(ctx context.Context, who caller.Caller, m assistant.Message) (*http.Response, error) {
	client, err := p.Assistant.With(assistant.ReadOnly, who)
	if err != nil {
		return nil, err
	}
	body, err := assistant.Ask(m.Text(), who.Subject)
	if err != nil {
		return nil, err
	}
	session := p.sessionID(who)
	return client.Chat(ctx, &wire.ChatParams{XSessionID: &session}, body)
}

// classifyResponse returns the error code of a response, "" for a stream.
func classifyResponse(resp *http.Response) errorCode {
	switch resp.StatusCode {
	case http.StatusOK:
		if media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || media != sse.ContentType {
			return agentResponse
		}
		return ""
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return agentAuth
	case http.StatusConflict, http.StatusTooManyRequests:
		return agentBusy
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return agentTimeout
	}
	if resp.StatusCode >= 500 {
		return agentUnavailable
	}
	return agentResponse
}

func classifyError(ctx context.Context, err error) errorCode {
	switch {
	case errors.Is(context.Cause(ctx), errSlow):
		return agentTimeout
	case errors.Is(err, assistant.ErrNoKey):
		return agentAuth
	case errors.Is(err, errNoAnswer), errors.Is(err, sse.ErrFrameTooLarge):
		return agentResponse
	}
	return agentUnavailable
}

// errNoAnswer means that a frame does not have the wire's form, or that there was too much text.
var errNoAnswer = errors.New("the assistant's answer cannot be read")

// read adds the frames of a stream up to its end. An error means that the answer is not complete.
func (a *answer) read(body io.Reader, first *time.Timer) error {
	frames := sse.NewFrameReader(&firstByte{r: body, timer: first})
	for {
		frame, err := frames.Next()
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF // the end is [DONE]
		}
		if err != nil {
			return err
		}
		if frame.Done() {
			return nil
		}
		if frame.Data == nil {
			continue // a heartbeat
		}
		if err := a.add(frame.Data); err != nil {
			return err
		}
	}
}

// firstByte stops a timer when something has been read.
type firstByte struct {
	r     io.Reader
	timer *time.Timer
}

func (f *firstByte) Read(b []byte) (int, error) {
	n, err := f.r.Read(b)
	if n > 0 {
		f.timer.Stop()
	}
	return n, err
}

// chunk holds the members of a frame that an answer is made of.
type chunk struct {
	Choices []struct {
		Delta struct {
			Content string `json:"content"`
		} `json:"delta"`
		HitlRequired bool `json:"hitl_required"`
	} `json:"choices"`
	Event *event `json:"ki_event"`
}

// event is a side-channel event of any type.
type event struct {
	Type    string `json:"type"`
	Phase   string `json:"phase"`
	Tool    string `json:"tool"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Output  string `json:"output"`
	Fatal   bool   `json:"fatal"`
	Steps   []step `json:"steps"`
}

// step is a line of a plan: an object, or text.
type step struct {
	Description string `json:"description"`
}

// UnmarshalJSON accepts both forms; anything else is a step without text.
func (s *step) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &s.Description) == nil {
		return nil
	}
	type object step
	_ = json.Unmarshal(raw, (*object)(s))
	return nil
}

func (a *answer) add(data []byte) error {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return errors.Join(errNoAnswer, err)
	}
	for _, choice := range c.Choices {
		a.awaiting = a.awaiting || choice.HitlRequired
		if !a.text.add(choice.Delta.Content) {
			return errNoAnswer
		}
	}
	if c.Event != nil {
		a.addEvent(*c.Event)
	}
	return nil
}

func (a *answer) addEvent(e event) {
	if e.Type == "error" && e.Fatal {
		a.code = classifyFailure(e.Code)
	}
	if len(a.trace) == maxTrace {
		return
	}
	name, detail := e.Tool, e.Message
	for _, other := range []string{e.Phase, e.Code} {
		if name == "" {
			name = other
		}
	}
	if e.Output != "" {
		detail = e.Output
	}
	if len(e.Steps) > 0 {
		lines := make([]string, len(e.Steps))
		for i, s := range e.Steps {
			lines[i] = s.Description
		}
		detail = strings.Join(lines, "\n")
	}
	a.trace = append(a.trace, api.TraceEntry{
		Kind: cutRunes(e.Type, maxMention), Name: cutRunes(name, maxMention), Detail: cutRunes(detail, maxDetail),
	})
}

// classifyFailure returns the code of an error event that ends an answer.
func classifyFailure(code string) errorCode {
	switch code {
	case "turn_timeout", "budget_spent":
		return agentTimeout
	case "superseded":
		return agentBusy
	case "shutting_down", "interrupted", "store_unavailable", "cluster_unreachable":
		return agentUnavailable
	}
	return agentResponse
}

// cappedText is text up to a number of bytes.
type cappedText struct {
	b    strings.Builder
	room int
}

// add appends s, or of it what there is room for; it reports whether that was all.
func (t *cappedText) add(s string) bool {
	all := len(s) <= t.room
	for len(s) > t.room {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	t.b.WriteString(s)
	t.room -= len(s)
	return all
}

func (t *cappedText) String() string { return t.b.String() }

// cutRunes returns the first limit characters of s.
func cutRunes(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	if runes := []rune(s); len(runes) > limit {
		return string(runes[:limit])
	}
	return s
}
