package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/clients/go/assistant"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/libs/cli/printable"
	"github.com/mlp-platform/platform/libs/sse"
)

// maxSilence is how long the assistant may send nothing; it sends a heartbeat every 15 s.
const maxSilence = 60 * time.Second

// errSilent is the cause of an answer that was given up after maxSilence.
var errSilent = errors.New("the assistant is silent")

// chatAnswer is one answer of the assistant.
type chatAnswer struct {
	Text    string
	Tools   []chatTool
	Pending *chatPending
}

// chatTool is one read or write that the assistant made.
type chatTool struct {
	Command string `json:"command"`
	OK      *bool  `json:"ok"` // null: it has no result
	Output  string `json:"output"`
	id      string
}

// chatPending is a change that waits for approval.
type chatPending struct {
	ActionID      string `json:"action_id"`
	HumanSummary  string `json:"command"`
	RiskLevel     string `json:"risk_level"`
	AlwaysConfirm bool   `json:"always_confirm"`
	Digest        string `json:"digest"`
	ExpiresAt     string `json:"expires_at"`
	Diff          string `json:"diff"`
}

// chatFrame is the union of the fields of the stream's frames.
type chatFrame struct {
	Choices []struct {
		Delta struct {
			Content string `json:"content"`
		} `json:"delta"`
		HITLRequired  bool   `json:"hitl_required"`
		ActionID      string `json:"action_id"`
		RiskLevel     string `json:"risk_level"`
		HumanSummary  string `json:"human_summary"`
		AlwaysConfirm bool   `json:"always_confirm"`
		ExpiresAt     string `json:"expires_at"`
		Digest        string `json:"digest"`
	} `json:"choices"`
	Event *struct {
		Type    string `json:"type"`
		Message string `json:"message"`
		CallID  string `json:"call_id"`
		Output  string `json:"output"`
		OK      bool   `json:"ok"`
		Fatal   bool   `json:"fatal"`
		Code    string `json:"code"`
	} `json:"ki_event"`
}

// ask sends one message and shows the answer as it comes.
func (c *conversation) ask(ctx context.Context, keys *keys, message string) (chatAnswer, error) {
	ctx, cancel := keys.during(context.WithoutCancel(ctx))
	defer cancel()
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(context.Canceled)
	idle := time.AfterFunc(maxSilence, func() { giveUp(errSilent) }) // from the request on: its headers may not come either
	defer idle.Stop()
	body, err := c.open(ctx, message)
	if err != nil {
		return chatAnswer{}, c.explain(ctx, err)
	}
	defer body.Close() //nolint:errcheck // only read from
	idle.Reset(maxSilence)
	view := newChatView(c.env)
	frames := sse.NewFrameReader(body)
	for {
		frame, err := frames.Next()
		if err != nil {
			view.end()
			if errors.Is(err, io.EOF) { // without [DONE] it broke off
				err = io.ErrUnexpectedEOF
			}
			return view.answer, c.explain(ctx, err)
		}
		idle.Reset(maxSilence)
		switch {
		case frame.Done():
			view.end()
			return view.answer, nil
		case frame.Data == nil:
			continue
		}
		var f chatFrame
		if err := json.Unmarshal(frame.Data, &f); err != nil {
			view.end()
			return view.answer, c.s.fault("not_json", nil, "the assistant at %s answered with something that is not its stream", c.s.url).
				WithHint("is %s the address of the assistant? See: mlp config show", c.s.url)
		}
		if err := view.add(f); err != nil {
			view.end()
			return view.answer, err
		}
	}
}

// open sends a message; the answer is the body.
func (c *conversation) open(ctx context.Context, message string) (io.ReadCloser, error) {
	payload, err := json.Marshal(map[string]any{"stream": true, "messages": []any{map[string]string{"role": "user", "content": message}}})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.s.url+"/v1/chat/completions", bytes.NewReader(payload))
	if err != nil {
		return nil, fault.New("bad_url", "cannot build a request for the assistant: %v", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("X-Session-ID", c.session)
	if c.cluster != "" {
		req.Header.Set("X-Cluster", c.cluster)
	}
	req.Header.Set("X-Request-ID", uuid.Must(uuid.NewV7()).String())
	if c.s.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.s.token)
	}
	streaming := *c.s.http
	streaming.Timeout = 0 // an answer takes as long as it takes; silence is limited instead
	resp, err := streaming.Do(req)
	if err != nil {
		return nil, c.s.unreachable(err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close() //nolint:errcheck // only read from
		data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		if err != nil {
			return nil, c.s.unreachable(err)
		}
		return nil, c.s.refused(resp, data)
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), sse.ContentType) {
		resp.Body.Close()
		return nil, c.s.notJSON(resp)
	}
	return resp.Body, nil
}

// explain converts the error that ended an answer to a fault.
func (c *conversation) explain(ctx context.Context, err error) error {
	var known *fault.Error
	switch {
	case errors.Is(context.Cause(ctx), errTerminated):
		return errTerminated
	case errors.Is(context.Cause(ctx), errSilent):
		return c.s.fault("timeout", nil, "the assistant at %s sent nothing for %.0f s", c.s.url, maxSilence.Seconds()).
			WithHint("ask again: mlp chat --session %s", c.session)
	case ctx.Err() != nil:
		return fault.New("interrupted", "interrupted; a change in progress runs to its end").WithHint("continue with: mlp chat --session %s", c.session)
	case errors.As(err, &known):
		return err
	case errors.Is(err, sse.ErrFrameTooLarge):
		return c.s.fault("answer_too_large", nil, "the assistant at %s sends what is no answer: %v", c.s.url, err)
	}
	f := c.s.fault("answer_broken_off", nil, "the assistant's answer broke off").WithHint("ask again: mlp chat --session %s", c.session)
	f.Cause = err
	return f
}

// showRestOfDiff fetches the whole change, whose diff the answer truncates: a person must have seen all that they
// approve.
func (c *conversation) showRestOfDiff(ctx context.Context, a chatAnswer) error {
	var action assistant.Action
	path := "/v1/sessions/" + escapeSegment(c.session) + "/actions/" + escapeSegment(a.Pending.ActionID)
	if err := c.s.get(context.WithoutCancel(ctx), path, &action); err != nil {
		return err
	}
	a.Pending.Diff = action.Diff
	if diff := strings.TrimSpace(action.Diff); diff != "" && !strings.Contains(a.Text, diff) && !c.env.Format.Structured() {
		var b strings.Builder
		c.env.writePatch(&b, diff)
		_, err := fmt.Fprintf(c.env.Out, "\nThe whole change:\n%s", b.String())
		return err
	}
	return nil
}

// chatView shows an answer while it comes, and collects it.
type chatView struct {
	env    *Env
	out    io.Writer
	wrap   *wordWrapper             // below out; nil where lines stay as they are
	lines  interface{ breakLine() } // nil where remarks go elsewhere than the answer
	answer chatAnswer
}

func newChatView(env *Env) *chatView {
	v := &chatView{env: env, out: env.Out}
	if env.OutWidth > 0 {
		v.wrap = &wordWrapper{out: env.Out, width: env.OutWidth}
		v.out, v.lines = v.wrap, v.wrap
	} else if env.Joined {
		plain := &lineBreaker{out: env.Out}
		v.out, v.lines = plain, plain
	}
	if env.OutTTY {
		v.out = newMarkdownWriter(v.out, env.Color())
	}
	// Colours are mlp's own: the assistant quotes logs, and a model may write what it likes.
	v.out = printable.NewWriter(v.out)
	return v
}

func (v *chatView) add(f chatFrame) error {
	if e := f.Event; e != nil {
		switch e.Type {
		case "tool_call":
			command := strings.TrimPrefix(e.Message, "Running: ")
			v.answer.Tools = append(v.answer.Tools, chatTool{Command: command, id: e.CallID})
			v.talk("· %s", output.Clean(command))
		case "tool_result":
			v.addResult(e.CallID, e.OK, e.Output)
		case "error":
			if e.Fatal {
				f := fault.New(cmpOr(e.Code, "assistant_failed"), "assistant: %s", e.Message)
				f.Service = "assistant"
				return f
			}
			v.talk("assistant: %s", output.Clean(e.Message))
		}
	}
	for _, choice := range f.Choices {
		if choice.HITLRequired {
			v.answer.Pending = &chatPending{choice.ActionID, choice.HumanSummary, choice.RiskLevel, choice.AlwaysConfirm, choice.Digest, choice.ExpiresAt, ""}
		}
		if text := choice.Delta.Content; text != "" {
			v.answer.Text += text
			if !v.env.Format.Structured() {
				if _, err := io.WriteString(v.out, text); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// addResult pairs a result with its call; a failed one is shown, the others on request.
func (v *chatView) addResult(id string, ok bool, text string) {
	for i := range v.answer.Tools {
		if t := &v.answer.Tools[i]; t.id == id && t.OK == nil {
			t.OK, t.Output = &ok, text
		}
	}
	if ok && !v.env.Verbose {
		return
	}
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		v.talk("    %s", output.Clean(strings.TrimRight(line, "\n")))
	}
}

// talk writes a line to people, below the answer so far.
func (v *chatView) talk(format string, a ...any) {
	if v.lines != nil && !v.env.Quiet && !v.env.Format.Structured() {
		v.lines.breakLine()
	}
	v.env.Talk(format, a...)
}

// end completes the last line.
func (v *chatView) end() {
	if v.wrap != nil {
		v.wrap.flush()
	}
	if !v.env.Format.Structured() && v.answer.Text != "" && !strings.HasSuffix(v.answer.Text, "\n") {
		_, _ = io.WriteString(v.out, "\n") // a closed pipe is reported by the writes before or after
	}
}

// answerGrid returns the document of one question: all its answers as one, since an approved change continues it.
func answerGrid(session, question string, turns []chatAnswer) output.Grid {
	tools := []chatTool{}
	texts := make([]string, 0, len(turns))
	var pending *chatPending
	for _, a := range turns {
		tools = append(tools, a.Tools...)
		texts = append(texts, a.Text)
		pending = a.Pending
	}
	text := strings.Join(texts, "\n\n")
	doc := map[string]any{"session_id": session, "question": question, "answer": text, "tools": tools, "pending": pending}
	var waits any
	if pending != nil {
		waits = pending.ActionID
	}
	return output.Grid{Columns: []string{"Session ID", "Question", "Answer", "Pending"}, Rows: [][]any{{session, question, text, waits}}, Doc: doc}
}
