// Package copilot answers a question about a page by one read-only call to the cluster assistant. Its proposals are
// text: no route runs them.
package copilot

import (
	"context"
	"log/slog"
	"time"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/announce"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/assistant"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
)

// Recorder keeps audit facts.
type Recorder interface {
	// Record keeps the fact durably, or fails within ctx.
	Record(ctx context.Context, who caller.Caller, fact announce.Fact) error
}

// Config of New.
type Config struct {
	Assistant *assistant.Clients
	Recorder  Recorder
	// Enabled reports whether the kill switch copilotDrawer is on for the caller. It answers from memory.
	Enabled func(context.Context, caller.Caller) bool
	// Secret is the JWT secret; session ids are derived from a key of it.
	Secret service.Secret
	Log    *slog.Logger
	// FirstByte limits the wait for the assistant's first byte, Timeout the whole answer; zero means 5 s and 60 s.
	FirstByte, Timeout time.Duration
}

// Copilot answers questions.
type Copilot struct {
	Config
	sessions assistant.SessionNames
	drain    context.Context // ends with Close
	endDrain context.CancelFunc
}

// New refuses a missing part.
func New(cfg Config) (*Copilot, error) {
	if err := service.RequireParts("copilot", cfg); err != nil {
		return nil, err
	}
	if cfg.FirstByte <= 0 {
		cfg.FirstByte = 5 * time.Second
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = time.Minute
	}
	sessions, err := assistant.NewSessionNames(cfg.Secret, "dashboard copilot session")
	if err != nil {
		return nil, err
	}
	p := &Copilot{Config: cfg, sessions: sessions}
	p.drain, p.endDrain = context.WithCancel(context.Background())
	return p, nil
}

// Close ends the questions under way, each with the part of its answer that has come: a process that shuts down has less
// time than an answer may take.
func (p *Copilot) Close() { p.endDrain() }

// sessionID returns the assistant's session of one login of one person: it cannot be guessed, and the next login
// begins a new one.
func (p *Copilot) sessionID(who caller.Caller) string {
	return "dc-" + p.sessions.Name(who.Tenant, who.Subject, who.SessionID)
}

// answer is the assistant's output so far.
type answer struct {
	text     cappedText
	awaiting bool
	trace    []api.TraceEntry
	code     errorCode // empty: complete
}

// document returns the answer in the contract's form.
func (a *answer) document() api.CopilotAnswer {
	text := a.text.String()
	doc := api.CopilotAnswer{Answer: text, HitlRequired: a.awaiting, Proposals: parseProposals(text), Trace: a.trace}
	if doc.Trace == nil {
		doc.Trace = []api.TraceEntry{}
	}
	if a.code != "" {
		code := string(a.code)
		doc.Partial, doc.ErrorCode = []string{"agent"}, &code
	}
	return doc
}

// recordTimeout limits how long an answer waits for its audit fact.
const recordTimeout = 2 * time.Second

// record writes the audit fact of a query. The answer does not depend on it. The question itself stays in the
// assistant's session, where its owner and admins can read it: a ledger cannot forget what was typed by mistake.
func (p *Copilot) record(ctx context.Context, who caller.Caller, m assistant.Message, page string, a *answer) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer stop()
	fact := announce.Fact{Action: "copilot.query", Target: "copilot", Outcome: announce.OK, Details: map[string]any{
		"session": p.sessionID(who), "characters": len([]rune(m.Question())), "role": string(who.Role),
	}}
	if page != "" {
		fact.Details["page"] = page
	}
	if a.code != "" {
		fact.Outcome, fact.Details["error_code"] = announce.Failed, string(a.code)
	}
	if err := p.Recorder.Record(ctx, who, fact); err != nil {
		p.Log.WarnContext(ctx, "audit fact of a copilot query lost", slog.Any("err", err))
	}
}
