package model

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// result is the output of a tool in the conversation.
type result struct {
	at   int    // index in r.messages
	key  string // key of r.ran; empty: the server made the call
	tool string
	text string // without the mark; empty once summarized
	size int
}

const (
	headOfSummary = 400 // code points
	tailOfSummary = 200
	worthSummary  = 2 * (headOfSummary + tailOfSummary) // bytes from which a summary is worthwhile
)

// compact replaces results by their summaries, the oldest first and those provided by the server last, until the
// request is below a number of tokens; the newest kept results stay complete. It reports whether anything was
// shortened.
func (r *run) compact(tokens, kept int) (done bool) {
	for _, given := range []bool{false, true} {
		for i := range r.results[:max(0, len(r.results)-kept)] {
			res := &r.results[i]
			if tokensIn(r.size()) <= tokens {
				break
			}
			if (res.key == "") != given || len(res.text) < worthSummary {
				continue
			}
			text := markData(res.tool, summarize(res.text))
			r.messages[res.at].OfTool.Content.OfString = param.NewOpt(text)
			r.bytes += len(text) + 16 - res.size
			res.size, res.text = len(text)+16, ""
			delete(r.ran, res.key) // it may be read again
			done = true
		}
	}
	if done {
		r.budget.shortened(r.size())
	}
	return done
}

// summarize keeps head and tail of a result: tools put the rows with problems first, and a log ends with the newest
// line.
func summarize(text string) string {
	runes := []rune(text)
	if len(runes) <= headOfSummary+tailOfSummary {
		return text // many bytes, few letters
	}
	head, tail := string(runes[:headOfSummary]), string(runes[len(runes)-tailOfSummary:])
	if i := strings.LastIndexByte(head, '\n'); i > 0 {
		head = head[:i]
	}
	if i := strings.IndexByte(tail, '\n'); i >= 0 {
		tail = tail[i+1:]
	}
	left := strings.Count(text, "\n") - strings.Count(head, "\n") - strings.Count(tail, "\n") - 1
	return fmt.Sprintf("%s\n[shortened: %d lines are left out here; make the call again to read them]\n%s", head, max(0, left), tail)
}

// shrink makes a request as short as possible after the endpoint reported that it does not fit. If the tools take up
// most of it, only the reading ones are kept.
func (r *run) shrink() (done bool) {
	done = r.compact(0, 0)
	done = r.shortenHistory() || done
	if r.offered.size > r.bytes && len(r.offered.names) > len(r.e.reads.names) {
		r.offered = r.e.reads
		r.budget.shortened(r.size())
		done = true
	}
	return done
}

// shortenHistory truncates the messages before the question.
func (r *run) shortenHistory() (done bool) {
	for i := range r.messages[:r.question] {
		m := &r.messages[i]
		var content *param.Opt[string]
		switch {
		case m.OfUser != nil:
			content = &m.OfUser.Content.OfString
		case m.OfAssistant != nil:
			content = &m.OfAssistant.Content.OfString
		default:
			continue
		}
		if cut := clipText(content.Value, tailOfSummary); cut != content.Value {
			r.bytes -= len(content.Value) - len(cut)
			*content = param.NewOpt(cut)
			done = true
		}
	}
	if done {
		r.budget.shortened(r.size())
	}
	return done
}

// overflowExpr matches an endpoint's error for a request that does not fit into the model's window.
var overflowExpr = regexp.MustCompile(`(?i)` + wordlist.AnyOf(
	"context_length_exceeded", "exceed_context_size", "context (?:length|window|size)", "maximum context", "prompt is too long", "too many tokens", "input is too long",
	"(?:maximum|exceed)[^.]{0,40}tokens",
))

// overflows reports whether an endpoint rejected a request as too long.
func overflows(err error) bool {
	var api *openai.Error
	var event *ssestream.StreamError
	switch {
	case errors.As(err, &api):
		switch api.StatusCode {
		case http.StatusRequestEntityTooLarge:
			return true
		case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError:
			return overflowExpr.MatchString(api.Code + " " + api.Type + " " + api.Message + " " + api.RawJSON())
		}
	case errors.As(err, &event):
		return overflowExpr.MatchString(event.Error())
	}
	return false
}
