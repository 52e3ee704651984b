package model

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// Limits of one answer of the model.
const (
	maxResponse  = 16 << 20 // bytes on the wire
	maxText      = 256 << 10
	maxArguments = 2*operation.MaxManifest + 1 // one more than is accepted
	maxHeard     = 64                          // tool calls that are read
)

var (
	errStalled = errors.New("the model was silent for too long")
	errCut     = errors.New("the model's answer broke off")
	errEmpty   = errors.New("the model answered nothing")
	errHuge    = errors.New("the model's answer is too large")
)

// heard is a tool call as received from the model.
type heard struct {
	index     int64
	id, name  string
	arguments strings.Builder
}

// reply is one answer of the model.
type reply struct {
	text       strings.Builder
	calls      []*heard
	dropped    bool // there were more calls
	finish     string
	prompt     int // as counted by the endpoint
	completion int
	asked      int  // approximate bytes of the request
	size       int  // bytes of text and arguments
	stop       stop // why reading stopped early
}

// bounded limits the size of a response that may never end.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = &boundedBody{resp.Body, maxResponse}
	return resp, nil
}

type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errHuge
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// ask sends the conversation and reads the answer. It calls token with each piece of the text; a stop that token
// returns ends the reading.
func (r *run) ask(ctx context.Context, last bool, token func(*reply, string) stop) (*reply, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(r.e.config.Stall, func() { cancel(errStalled) })
	defer stalled.Stop()
	p := openai.ChatCompletionNewParams{
		Model: r.e.config.Model, Messages: r.messages, Tools: r.offered.tools,
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
	}
	if last {
		p.ToolChoice = openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: param.NewOpt("none")}
	}
	rep := &reply{asked: r.size()}
	ctx, done := r.span(ctx)
	stream := r.e.service.NewStreaming(ctx, p)
	err := rep.read(stream, token, func() { stalled.Reset(r.e.config.Stall) })
	_ = stream.Close() // the response has been read
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	r.budget.count(rep)
	done(rep, err)
	return rep, err
}

func (rep *reply) read(stream *ssestream.Stream[openai.ChatCompletionChunk], token func(*reply, string) stop, alive func()) error {
	for stream.Next() {
		alive()
		c := stream.Current()
		if c.Usage.PromptTokens > 0 || c.Usage.CompletionTokens > 0 {
			// Some endpoints send a running count with every chunk.
			rep.prompt, rep.completion = clampCount(c.Usage.PromptTokens), clampCount(c.Usage.CompletionTokens)
		}
		if len(c.Choices) == 0 {
			continue
		}
		choice := c.Choices[0]
		rep.finish = cmp.Or(choice.FinishReason, rep.finish)
		for _, d := range choice.Delta.ToolCalls {
			rep.hear(d)
		}
		text := choice.Delta.Content + choice.Delta.Refusal
		if text == "" {
			continue
		}
		rep.size += len(text)
		rep.text.WriteString(text)
		if rep.stop = token(rep, text); rep.stop == "" && rep.text.Len() > maxText {
			rep.stop = stopLong
		}
		if rep.stop != "" {
			rep.prompt, rep.completion = 0, 0 // the count so far is incomplete
			return nil
		}
	}
	switch err := stream.Err(); {
	case err != nil:
		return err
	case rep.finish == "":
		return errCut
	}
	return nil
}

// clampCount keeps a bogus count of an endpoint from overflowing sums.
func clampCount(n int64) int { return int(min(max(n, 0), 1<<30)) }

// hear adds a piece of a tool call. Pieces belong together by index; some servers use one index for all calls and
// distinguish them by id.
func (rep *reply) hear(d openai.ChatCompletionChunkChoiceDeltaToolCall) {
	var c *heard
	for i := len(rep.calls) - 1; i >= 0 && c == nil; i-- {
		if h := rep.calls[i]; h.index == d.Index && (d.ID == "" || h.id == "" || h.id == d.ID) {
			c = h
		}
	}
	if c == nil {
		if len(rep.calls) == maxHeard {
			rep.dropped = true
			return
		}
		c = &heard{index: d.Index}
		rep.calls = append(rep.calls, c)
	}
	if len(d.ID) <= 64 {
		c.id = cmp.Or(c.id, d.ID)
	}
	if len(c.name) < 128 {
		c.name += d.Function.Name
	}
	room := maxArguments - c.arguments.Len()
	piece := d.Function.Arguments[:min(room, len(d.Function.Arguments))]
	c.arguments.WriteString(piece)
	rep.size += len(piece) + len(d.Function.Name)
}

// reasonOf classifies failures of the model, for counters and logs.
func reasonOf(err error) string {
	var api *openai.Error
	var event *ssestream.StreamError
	var wire net.Error
	switch {
	case overflows(err):
		return "context_overflow"
	case errors.Is(err, errStalled):
		return "stalled"
	case errors.Is(err, errCut), errors.Is(err, io.ErrUnexpectedEOF):
		return "cut"
	case errors.Is(err, errEmpty):
		return "empty"
	case errors.Is(err, errHuge):
		return "too_large"
	case errors.As(err, &api):
		switch {
		case api.StatusCode == http.StatusUnauthorized || api.StatusCode == http.StatusForbidden:
			return "unauthorized"
		case api.StatusCode == http.StatusTooManyRequests:
			return "rate_limited"
		case api.StatusCode >= http.StatusInternalServerError:
			return "server_error"
		}
		return "refused"
	case errors.As(err, &event):
		return "error_event"
	case errors.As(err, &wire):
		return "unreachable"
	}
	return "protocol"
}

// redactError redacts an error for the log: endpoints quote keys and prompts in theirs.
func redactError(err error) string {
	var api *openai.Error
	if errors.As(err, &api) {
		return "the endpoint answers " + http.StatusText(api.StatusCode)
	}
	return operation.Quote(redact.Text(err.Error()))
}
