package model

import (
	"context"
	"errors"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/chat"
)

// stop is the reason why an investigation ends before the model is done; empty: it does not. Turns are stored with it.
type stop string

const (
	stopTokens   stop = "budget_tokens"
	stopCalls    stop = "budget_tool_calls"
	stopTime     stop = "budget_seconds"
	stopCost     stop = "budget_cost"
	stopLoop     stop = "model_loop"
	stopLength   stop = "model_length"
	stopFiltered stop = "model_filtered"
	stopLong     stop = "answer_too_long"
)

var stopSentences = map[stop]string{
	stopTokens:   "the tokens of one answer are used up",
	stopCalls:    "the tool calls of one answer are used up",
	stopTime:     "the time of one answer is used up",
	stopCost:     "the cost limit of one answer is reached",
	stopLoop:     "the language model kept repeating the same request",
	stopLength:   "the language model reached its own limit",
	stopFiltered: "the language model's provider withheld the rest",
	stopLong:     "the answer is too long",
}

// spends reports whether the answer ended because of one of the configured budgets.
func (s stop) spends() bool {
	return s == stopTokens || s == stopCalls || s == stopTime || s == stopCost
}

var errTime = errors.New("the time of the investigation is over")

// bytesPerToken is a cautious estimate for endpoints that do not count tokens.
const bytesPerToken = 4

func tokensIn(bytes int) int { return (bytes + bytesPerToken - 1) / bytesPerToken }

// budget counts the resources that one investigation has used. It belongs to one goroutine.
type budget struct {
	limit    Config
	began    time.Time
	prompt   int // of all requests, as a provider bills them
	answered int
	calls    int

	// fresh counts each token once: what each request adds to the previous one, plus the answers. Every request repeats
	// the whole conversation, so sums of prompts would grow with its square and leave long sessions without tools.
	fresh int
	asked int // bytes of the previous request
	last  int // tokens of its prompt and answer, as counted by the endpoint; 0: not counted
}

func (b *budget) usage() chat.Usage {
	return chat.Usage{PromptTokens: int64(b.prompt), CompletionTokens: int64(b.answered)}
}

// added returns how many tokens a request of this size adds to the previous one.
func (b *budget) added(size int) int { return tokensIn(max(0, size-b.asked)) }

// shortened notes that the next request is shorter than the previous one.
func (b *budget) shortened(size int) { b.asked, b.last = min(b.asked, size), 0 }

// cost returns the cost of the investigation so far plus that of further tokens.
func (b *budget) cost(prompt, answered int) float64 {
	return (float64(b.prompt+prompt)*b.limit.PromptPrice + float64(b.answered+answered)*b.limit.AnswerPrice) / 1e6
}

// overCost reports whether this many further tokens would exceed the cost limit of an answer.
func (b *budget) overCost(prompt, answered int) bool {
	return b.limit.Cost > 0 && b.cost(prompt, answered) >= b.limit.Cost
}

// before reports which budget forbids a request of this size (over), or allows only this one more (last), since the
// remainder is needed for the answer.
func (b *budget) before(ctx context.Context, size int) (over, last stop) {
	next := b.fresh + b.added(size)
	whole := tokensIn(size)
	switch {
	case ctx.Err() != nil:
		return stopTime, ""
	case next >= b.limit.Tokens:
		return stopTokens, ""
	case b.overCost(whole, 0):
		return stopCost, ""
	case next+min(b.limit.Tokens/8, maxReserve) >= b.limit.Tokens:
		return "", stopTokens
	case b.overCost(2*whole, 0):
		return "", stopCost
	case b.calls >= b.limit.ToolCalls:
		return "", stopCalls
	case time.Since(b.began) > b.limit.Time*3/4:
		return "", stopTime
	}
	return "", ""
}

// maxReserve limits the tokens reserved for the last answer.
const maxReserve = 4000

// during returns the reason to stop reading an answer, if any.
func (b *budget) during(r *reply) stop {
	switch {
	case b.fresh+b.added(r.asked)+tokensIn(r.size) > b.limit.Tokens:
		return stopTokens
	case b.overCost(tokensIn(r.asked), tokensIn(r.size)):
		return stopCost
	}
	return ""
}

// count adds a request and its answer, with the endpoint's token counts or else an estimate.
func (b *budget) count(r *reply) {
	prompt, answered := r.prompt, r.completion
	counted := prompt > 0 || answered > 0
	if !counted {
		prompt, answered = tokensIn(r.asked), tokensIn(r.size)
	}
	grown := b.added(r.asked)
	switch {
	case counted && b.asked == 0:
		grown = prompt
	case counted && b.last > 0:
		grown = max(0, prompt-b.last)
	}
	b.prompt += prompt
	b.answered += answered
	b.fresh += grown + answered
	b.asked, b.last = r.asked, 0
	if counted {
		b.last = prompt + answered
	}
}
