package model

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/kubectl"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// Config selects the model and limits how much of it one answer may use.
type Config struct {
	// BaseURL is the endpoint's root, such as https://host/v1. No request goes to another host.
	BaseURL string
	Key     service.Secret // empty: none is sent
	Model   string         // the endpoint's name for it
	// Window is the maximum number of tokens in a request; older results are summarized before it is full. 0 means 32768.
	Window int
	// PromptPrice and AnswerPrice are prices of a million tokens, in the currency of Cost, the maximum cost of one answer;
	// 0: no limit.
	PromptPrice, AnswerPrice, Cost float64
	// Tokens limits the tokens that one answer may add to the conversation, ToolCalls its tool calls, and Time its
	// duration; 0 means 60000, 40 and 120 s.
	Tokens    int
	ToolCalls int
	Time      time.Duration
	// Absent lists the tools whose source is not configured; they are not offered.
	Absent []operation.Verb
	// Servers provides the tools of other servers; nil: none.
	Servers ToolServers
	// Stall is the maximum silence of the model, before its first token or between two; 0 means half of Time, but no less
	// than a minute: small machines take minutes to read a prompt.
	Stall time.Duration
}

func (c Config) withDefaults() Config {
	if c.Window <= 0 {
		c.Window = 32768
	}
	if c.Tokens <= 0 {
		c.Tokens = 60000
	}
	if c.ToolCalls <= 0 {
		c.ToolCalls = 40
	}
	if c.Time <= 0 {
		c.Time = 120 * time.Second
	}
	if c.Stall <= 0 {
		c.Stall = max(time.Minute, c.Time/2)
	}
	return c
}

// Hooks are called for events to be counted; nil hooks are skipped.
type Hooks struct {
	// FellBack is called when the model failed; reason is one of a few fixed words.
	FellBack func(reason string)
	// Found is called with the playbooks' findings for the model.
	Found func([]engine.Finding)
}

// Engine is a turn.Investigator. It is safe for concurrent use by any number of turns.
type Engine struct {
	config   Config
	service  openai.ChatCompletionService
	fallback turn.Investigator
	log      *slog.Logger
	hooks    Hooks
	reads    toolset // what is offered after a denial
	all      toolset // with writes, which are proposals
}

// maxRetries limits how often a request is repeated that got no answer, 429 or 5xx.
const maxRetries = 2

// New returns an engine. fallback answers where the model does not.
func New(c Config, fallback turn.Investigator, log *slog.Logger, hooks Hooks) (*Engine, error) {
	c = c.withDefaults()
	if err := checkURL(c.BaseURL); err != nil {
		return nil, err
	}
	if c.Model == "" {
		return nil, errors.New("language model: no model is named")
	}
	if fallback == nil {
		return nil, errors.New("language model: there is no engine to fall back to")
	}
	if hooks.FellBack == nil {
		hooks.FellBack = func(string) {}
	}
	if hooks.Found == nil {
		hooks.Found = func([]engine.Finding) {}
	}
	reads, err := newToolset(false, c.Absent)
	if err != nil {
		return nil, err
	}
	all, err := newToolset(true, c.Absent)
	if err != nil {
		return nil, err
	}
	client := service.HTTPClient(0) // requests end with their contexts
	client.Transport = bounded{client.Transport}
	// Not openai.NewClient, which takes hosts and keys from the environment.
	options := []option.RequestOption{
		option.WithBaseURL(c.BaseURL), option.WithHTTPClient(client), option.WithMaxRetries(maxRetries),
		option.WithMaxRetryDelay(5 * time.Second),
	}
	if c.Key != "" {
		options = append(options, option.WithAPIKey(c.Key.Reveal()))
	}
	return &Engine{
		config: c, service: openai.NewChatCompletionService(options...), fallback: fallback, log: log, hooks: hooks, reads: reads, all: all,
	}, nil
}

func checkURL(base string) error {
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return errors.New("language model: the base URL is no URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("language model: the base URL must begin with http:// or https:// and a host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("language model: the base URL must have no user, query or fragment; set the key separately")
	}
	return nil
}

// Investigate implements turn.Investigator.
func (e *Engine) Investigate(ctx context.Context, t turn.Turn, tools turn.Toolbox, sink turn.Sink) (turn.Outcome, error) {
	if kubectl.IsCommand(t.Query) {
		// A command is complete; a model could only misread it.
		return e.fallback.Investigate(ctx, t, tools, sink)
	}
	limited, cancel := context.WithTimeoutCause(ctx, e.config.Time, errTime)
	defer cancel()
	r := newRun(e, t, tools, sink)
	end := r.work(limited)
	out := turn.Outcome{Write: end.write, Usage: r.budget.usage()}
	if len(end.write) > 0 {
		out.Choice = &guard.Choice{Requested: requestsChange(t), Fixes: r.fixes, Scope: t.Scope, Revision: end.write[0].Revision}
	}
	switch {
	case ctx.Err() != nil:
		r.flush()
		return out, context.Cause(ctx)
	case end.stop != "":
		out.Partial = string(end.stop)
		r.partly(end.stop)
	case end.err != nil && end.ofCluster:
		r.flush()
		return out, end.err
	case end.err != nil:
		return r.fallBack(ctx, end.err)
	}
	return out, nil
}

// fallBack lets the playbooks answer where the model does not.
func (r *run) fallBack(ctx context.Context, err error) (turn.Outcome, error) {
	reason := reasonOf(err)
	r.e.log.WarnContext(ctx, "the language model failed", slog.String("reason", reason), slog.String("err", redactError(err)))
	r.e.hooks.FellBack(reason)
	r.flush()
	r.skip()
	why := fault.ModelUnavailable
	if overflows(err) {
		why = fault.ContextOverflow
	}
	if w, ok := r.sink.(turn.Warner); ok {
		w.Warn(why)
	}
	text := why.Message + "\n\n"
	if r.said {
		text = "\n\n" + text
	}
	r.sink.Token(text)
	out, err := r.e.fallback.Investigate(ctx, r.t, r.tools, r.sink)
	spent := r.budget.usage()
	out.Usage.PromptTokens += spent.PromptTokens
	out.Usage.CompletionTokens += spent.CompletionTokens
	if err != nil {
		return out, fmt.Errorf("playbooks instead of the language model: %w", err)
	}
	return out, nil
}
