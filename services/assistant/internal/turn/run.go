package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/session"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

// storeTime limits one write of frames, and the close of a turn.
const storeTime = 10 * time.Second

// running is a turn that this process answers.
type running struct {
	s    *Service
	turn Turn
	word chat.Word // the query as a decision
	// withheld means that the query is a word that decides nothing in this request.
	withheld bool
	own      bool // the session belongs to the caller
	reads    bool // it proposes and carries out nothing
	row      store.Turn
	usage    bool
	// foreign names the parts of the client's context that have no meaning here; empty if there
	// are none.
	foreign string
	notice  string // last line of the answer; empty: none
	live    *live
	engine  Investigator
	// proposed reports the pending action of a write to a program, or why there is none.
	proposed func(action.Action, error)
	frames   *chat.Encoder
	ctx      context.Context // canceled, with a cause, when the turn has to stop
	cancel   context.CancelCauseFunc

	mu     sync.Mutex
	answer strings.Builder // guarded by mu
	shown  bool            // guarded by mu: an approval chunk was sent
	// untrusted is guarded by mu: cluster text that this turn has read.
	untrusted []string

	spent chat.Usage // of run's goroutine
}

// start runs a new turn and returns a reader from its first frame on.
func (s *Service) start(ctx context.Context, q Request, e entered) (*Reader, error) {
	history, earlier, err := s.history(ctx, e)
	if err != nil {
		return nil, errors.Join(err, s.abandon(ctx, e.turn))
	}
	t, cluster := e.turn, s.Clusters.Stored(e.session.Cluster)
	word := q.word()
	base := context.WithoutCancel(ctx) // the turn outlives the request
	runCtx, cancel := context.WithCancelCause(base)
	r := &running{
		s: s, word: word, withheld: q.Program == nil && q.Chat.Withheld(), own: e.own(q), reads: q.alert(), row: t, usage: t.IncludeUsage, foreign: s.foreign(q.Chat.Context, cluster), notice: s.notice(cluster), live: newLive(s.Store, t), ctx: runCtx, cancel: cancel,
		turn: Turn{
			Session: t.SessionID, Number: t.Number, Who: q.Who, Query: e.words(q, word), History: history, Earlier: earlier,
			Page: e.page(q), Cluster: cluster, Scope: e.session.Namespace, AutoApprove: q.Chat.AutoApprove, NoDecisions: q.Chat.NoDecisions, Unspoken: q.Program != nil,
		},
		engine: s.Engine, proposed: func(action.Action, error) {},
		frames: chat.NewEncoder(chat.Head{SessionID: t.SessionID, ID: t.CompletionID, Created: t.StartedAt, Model: s.Model}),
	}
	r.live.frames = r.frames
	if p := q.Program; p != nil {
		r.engine = p.Engine
		if p.Proposed != nil {
			r.proposed = p.Proposed
		}
	}
	s.mu.Lock()
	if s.draining {
		s.mu.Unlock()
		cancel(errDraining)
		return nil, errors.Join(s.refuseDraining(), s.abandon(ctx, t))
	}
	s.running[t.SessionID] = r
	s.work.Add(1)
	s.mu.Unlock()
	reader := s.reader(r.live, Place{Turn: t.Number})
	r.add(r.frames.Handshake(nil), false)
	go func() {
		defer s.work.Done()
		r.run()
	}()
	return reader, nil
}

// abandon drops a turn that never began, so that the session is free immediately.
func (s *Service) abandon(ctx context.Context, t store.Turn) error {
	return s.Store.DropTurn(context.WithoutCancel(ctx), store.DropTurnParams{SessionID: t.SessionID, Number: t.Number, Fence: t.Fence})
}

// history returns the conversation so far: the newest messages in full, older ones shortened.
func (s *Service) history(ctx context.Context, e entered) (newest, earlier []chat.Message, err error) {
	var turns []store.LastTurnsRow
	if e.turn.Number > 1 { // otherwise there is no history, and the handshake waits for this read
		turns, err = s.Store.LastTurns(ctx, store.LastTurnsParams{SessionID: e.session.ID, MaxRows: maxHistory / 2})
		if err != nil {
			return nil, nil, err
		}
		slices.Reverse(turns)
	}
	if newest, err = session.Seeded(e.session); err != nil {
		return nil, nil, err
	}
	for _, t := range turns {
		newest = appendTurn(newest, said{t.Principal == e.session.Owner, t.QueryKind, t.Query, t.Answer})
	}
	over := max(0, len(newest)-maxHistory)
	for _, m := range newest[max(0, over-maxEarlier):over] {
		text, _ := shortenText(m.Text, maxGist)
		earlier = append(earlier, chat.Message{Role: m.Role, Text: text, Unspoken: m.Unspoken})
	}
	if len(turns) == maxHistory/2 {
		old, err := s.Store.EarlierTurns(ctx, store.EarlierTurnsParams{
			SessionID: e.session.ID, Most: maxGist, MaxRows: maxEarlier / 2, SkipRows: maxHistory / 2,
		})
		if err != nil {
			return nil, nil, err
		}
		for _, t := range slices.Backward(old) {
			earlier = appendTurn(earlier, said{t.Principal == e.session.Owner, t.QueryKind, t.Query, t.Answer})
		}
	}
	return newest[over:], earlier[max(0, len(earlier)-maxEarlier):], nil
}

// said is one turn of the conversation.
type said struct {
	own           bool // of the session's owner
	kind          string
	query, answer string
}

// appendTurn adds a turn to the history. The words of another person's decision are left out:
// the user's own words clear values and guide the engine. Their outcome is added to the
// previous answer, since models expect alternating turns.
func appendTurn(history []chat.Message, t said) []chat.Message {
	n := len(history)
	switch {
	case t.kind == string(KindAlert):
		history = append(history, chat.Message{Role: chat.RoleUser, Text: t.query, Unspoken: true})
	case t.own && t.kind != string(KindProposal):
		history = append(history, chat.Message{Role: chat.RoleUser, Text: t.query})
	case n > 0 && history[n-1].Role == chat.RoleAssistant:
		history[n-1].Text += "\n\n" + t.answer
		return history
	}
	return append(history, chat.Message{Role: chat.RoleAssistant, Text: t.answer})
}

// run answers and closes the turn.
func (r *running) run() {
	begin := time.Now()
	keep, stop := context.WithCancel(context.WithoutCancel(r.ctx))
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		r.keep(keep)
	}()
	ctx, over := context.WithTimeoutCause(r.ctx, r.s.Limit, errLimit)
	outcome, why := r.work(ctx)
	over()
	err := r.close(outcome, why)
	stop()
	<-kept
	r.live.end(err)
	r.cancel(errEnded)
	r.s.mu.Lock()
	if r.s.running[r.row.SessionID] == r { // else the next turn has begun
		delete(r.s.running, r.row.SessionID)
	}
	r.s.mu.Unlock()
	if err != nil {
		r.s.Log.WarnContext(r.ctx, "a turn could not be closed", slog.Any("err", err), slog.String("turn", r.row.ID.String()))
		return
	}
	r.s.Finished(outcome, time.Since(begin))
}

// work runs the stages of the turn and returns how it ended.
func (r *running) work(ctx context.Context) (outcome, why string) {
	k := &sink{r: r, ctx: ctx}
	k.Status(chat.Loading, "Reading the session")
	err := r.guarded(func() (err error) {
		outcome, why, err = r.stages(ctx, k)
		return err
	})
	if stopped := context.Cause(ctx); stopped != nil {
		return r.stopped(stopped, err)
	}
	if err != nil {
		return r.fail(err)
	}
	return outcome, why
}

// guarded turns a panic of an engine or tool into an error, so that it does not end the turns
// of other callers.
func (r *running) guarded(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.s.Log.ErrorContext(r.ctx, "panic in a turn", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			err = &Fail{Failure: fault.InternalFailure, Cause: fmt.Errorf("panic: %v", p)}
		}
	}()
	return fn()
}

// stages runs the stages: decide, run what is approved, investigate, propose; the last two
// repeat while writes are approved in advance.
func (r *running) stages(ctx context.Context, k *sink) (outcome, why string, err error) {
	said := func(m chat.Message) bool { return m.Role == chat.RoleAssistant && strings.Contains(m.Text, r.foreign) }
	if r.foreign != "" && !slices.ContainsFunc(r.turn.History, said) { // once is enough
		r.say(newParagraph(r.foreign))
	}
	ask, err := r.decide(ctx)
	if err != nil {
		return "", "", err
	}
	if !r.reads {
		if err := r.execute(ctx, k); err != nil {
			return "", "", err
		}
	}
	if !ask && len(r.settledHere()) == 0 {
		if r.withheld {
			return done, "", r.remind(ctx)
		}
		return done, "", nil
	}
	if ask && strings.TrimSpace(r.turn.Query) == "" {
		r.say(emptyHint)
		return done, "", r.remind(ctx)
	}
	var ran []string // the writes of this turn
	for range maxWrites {
		in := r.turn
		in.Settled = r.settledHere()
		out, err := r.engine.Investigate(ctx, in, k, k)
		r.spent.PromptTokens += out.Usage.PromptTokens
		r.spent.CompletionTokens += out.Usage.CompletionTokens
		if err != nil || ctx.Err() != nil {
			return "", "", err
		}
		if out.Partial != "" {
			return partial, out.Partial, r.remind(ctx)
		}
		if len(out.Write) == 0 || r.reads {
			return done, "", r.remind(ctx)
		}
		// A repeated write is not a next step: the engine has not noticed that it is done.
		write, err := wishKey(out.Write)
		if err != nil || slices.Contains(ran, write) {
			return done, "", errors.Join(err, r.remind(ctx))
		}
		did, err := r.propose(ctx, k, out)
		switch {
		case err != nil:
			return "", "", err
		case !did:
			return proposed, "", r.remind(ctx)
		}
		ran = append(ran, write)
	}
	r.say(manyWrites)
	return done, "", r.remind(ctx)
}

// wishKey identifies a requested write before the cluster has resolved it.
func wishKey(ops []operation.Operation) (string, error) {
	normal := make([]operation.Operation, len(ops))
	for i, op := range ops {
		normal[i] = operation.Normalize(op)
	}
	text, err := json.Marshal(normal)
	return string(text), err
}

// orphaned is the reason of a partial answer that lost its last reader.
const orphaned = "orphaned"

// stopped returns why the turn ended before its work was done.
func (r *running) stopped(cause, err error) (outcome, why string) {
	f := fault.Failure{}
	switch {
	case errors.Is(cause, errOrphaned):
		r.say("\n\nStopped: the answer had no readers left.")
		return partial, orphaned
	case errors.Is(cause, errLimit), errors.Is(cause, context.DeadlineExceeded):
		f = fault.TurnTimeout
	case errors.Is(cause, errSuperseded):
		f = fault.Superseded
	case errors.Is(cause, errDraining):
		f = fault.ShuttingDown
	case errors.Is(cause, errTooLong):
		f = fault.BudgetSpent
	default:
		if err == nil {
			err = cause
		}
		return r.fail(err)
	}
	r.tell(f)
	return partial, f.Code
}

// fail returns the failure to show; the cause goes to the log.
func (r *running) fail(err error) (outcome, why string) {
	f := fault.EngineFailed
	var told *Fail
	switch {
	case errors.As(err, &told):
		f = told.Failure
	case postgres.Unavailable(err):
		f = fault.StreamStore
	}
	r.s.Log.WarnContext(r.ctx, "a turn failed", slog.Any("err", err), slog.String("turn", r.row.ID.String()))
	r.tell(f)
	return failed, f.Code
}

// tell ends the answer with a failure; the text before it stays.
func (r *running) tell(f fault.Failure) {
	r.add(r.frames.Error(nil, f, true), false)
	text := f.Message
	if r.said() != "" {
		text = "\n\n" + text + " The text above is all that is known so far."
	}
	r.say(text)
}

// add appends a frame, even after the turn was told to stop. A frame that cannot be added stops
// the turn.
func (r *running) add(frame []byte, durable bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), storeTime)
	defer cancel()
	if err := r.live.add(ctx, frame, durable); err != nil {
		r.cancel(err)
	}
}

// say adds a piece of the answer.
func (r *running) say(text string) {
	if text == "" {
		return
	}
	r.mu.Lock()
	r.answer.WriteString(text)
	r.mu.Unlock()
	r.add(r.frames.Token(nil, text), false)
}

// apart returns the separator between the text so far and a new paragraph.
func (r *running) apart() string {
	said := r.said()
	switch {
	case said == "", strings.HasSuffix(said, "\n\n"):
		return ""
	case strings.HasSuffix(said, "\n"):
		return "\n"
	}
	return "\n\n"
}

func (r *running) said() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answer.String()
}

// problemDetail returns the detail of a problem, and whether err is one.
func problemDetail(err error) (string, bool) {
	var p *problem.Error
	if !errors.As(err, &p) {
		return "", false
	}
	return p.Detail, true
}

// isStale reports whether err means a changed target of an action.
func isStale(err error) bool {
	var p *problem.Error
	return errors.As(err, &p) && p.Kind.Code == fault.ActionStale.Code
}

// settledOf records the outcome of an action in this turn.
func (r *running) settledOf(a action.Action, err error) {
	r.turn.Settled = append(r.turn.Settled, action.Settled{Action: a, Err: err})
}

// settledHere are the outcomes in the turn's own cluster: an engine looks at no other, where the same name is another object.
func (r *running) settledHere() []action.Settled {
	var here []action.Settled
	for _, s := range r.turn.Settled {
		if r.s.Clusters.Stored(s.Action.Cluster) == r.turn.Cluster {
			here = append(here, s)
		}
	}
	return here
}
