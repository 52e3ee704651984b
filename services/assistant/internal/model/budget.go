package model

import (
	"context"
	"errors"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/chat"
)

// stop is why an investigation ends before the model is done; empty: it does not. Turns
// are stored with it.
type stop string

const (
	stopTokens   stop = "budget_tokens"
	stopCalls    stop = "budget_tool_calls"
	stopTime     stop = "budget_seconds"
	stopLoop     stop = "model_loop"
	stopLength   stop = "model_length"
	stopFiltered stop = "model_filtered"
	stopLong     stop = "answer_too_long"
)

var stopSentences = map[stop]string{
	stopTokens:   "the tokens of one answer are used up",
	stopCalls:    "the tool calls of one answer are used up",
	stopTime:     "the time of one answer is used up",
	stopLoop:     "the language model asked for the same thing again and again",
	stopLength:   "the language model reached its own limit",
	stopFiltered: "the language model's provider withheld the rest",
	stopLong:     "the answer is too long",
}

// spends reports whether the answer ended by one of the budgets of the configuration.
func (s stop) spends() bool { return s == stopTokens || s == stopCalls || s == stopTime }

var errTime = errors.New("the time of the investigation is over")

// bytesPerToken is a cautious guess for what the endpoint does not count.
const bytesPerToken = 4

func tokensIn(bytes int) int { return (bytes + bytesPerToken - 1) / bytesPerToken }

// budget is what one investigation has used. It belongs to one goroutine.
type budget struct {
	limit    Config
	began    time.Time
	prompt   int
	answered int
	calls    int
}

func (b *budget) tokens() int { return b.prompt + b.answered }

func (b *budget) usage() chat.Usage {
	return chat.Usage{PromptTokens: int64(b.prompt), CompletionTokens: int64(b.answered)}
}

// before reports whether a request of this size may be made, and why it has to be the last
// one: what is left must do for the answer.
func (b *budget) before(ctx context.Context, size int) (over, last stop) {
	next := b.tokens() + tokensIn(size)
	switch {
	case ctx.Err() != nil:
		return stopTime, ""
	case next >= b.limit.Tokens:
		return stopTokens, ""
	case next+tokensIn(size) >= b.limit.Tokens:
		return "", stopTokens
	case b.calls >= b.limit.ToolCalls:
		return "", stopCalls
	case time.Since(b.began) > b.limit.Time*3/4:
		return "", stopTime
	}
	return "", ""
}

// count adds a request and its answer: as the endpoint counted them, else as guessed.
func (b *budget) count(r *reply) {
	if r.prompt > 0 || r.completion > 0 {
		b.prompt += r.prompt
		b.answered += r.completion
		return
	}
	b.prompt += tokensIn(r.asked)
	if r.size > 0 {
		b.answered += tokensIn(r.size)
	}
}
