package turn

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
)

// decide carries out the decision in the query, if there is one. ask reports that the query is
// a question for the engine.
func (r *running) decide(ctx context.Context) (ask bool, err error) {
	if r.withheld {
		return false, r.sayWithheld(ctx)
	}
	word := r.word
	d := action.Decision{Approve: word.Verdict == chat.Approve || word.Verdict == chat.ApproveOne || word.Verdict == chat.ApproveAll, Reason: word.Reason, Turn: &r.turn.Number}
	switch word.Verdict {
	case chat.NoVerdict:
		return true, nil
	case chat.ApproveOne, chat.DenyOne:
		return false, r.decideOne(ctx, word.ActionID, d)
	case chat.AutoApproveOff:
		_, err := r.s.Actions.Stand(ctx, r.turn.Who, r.turn.Session, false)
		if err == nil {
			r.say("Later changes need approval again.")
		}
		return false, err
	case chat.ApproveAll:
		held, err := r.s.Actions.Stand(ctx, r.turn.Who, r.turn.Session, true)
		if err != nil {
			return false, err
		}
		r.say(standText(held))
		return false, r.decideAll(ctx, d)
	}
	all, waiting, err := r.s.waiting(ctx, r.turn.Session, r.turn.Who, r.own)
	switch {
	case err != nil:
		return false, err
	case len(waiting) == 0 && len(all) > 0: // refused and recorded
		return false, r.decided(r.s.Actions.Decide(ctx, r.turn.Who, all[0].ID, d))
	case len(waiting) == 0:
		r.say(nothingWaits)
		return false, nil
	case word.Verdict == chat.Deny:
		return false, r.decideAll(ctx, d)
	case len(waiting) > 1:
		r.say(listText(waiting))
		return false, nil
	}
	return false, r.decided(r.s.Actions.Decide(ctx, r.turn.Who, waiting[0].ID, d))
}

// sayWithheld answers a word that decides nothing in this request; the reminder that follows names the place to decide.
func (r *running) sayWithheld(ctx context.Context) error {
	_, waiting, err := r.s.waiting(ctx, r.turn.Session, r.turn.Who, r.own)
	if err != nil {
		return err
	}
	r.say(withheldText(r.turn.NoDecisions))
	if len(waiting) == 0 {
		r.say(newParagraph(nothingWaits))
	}
	return nil
}

// waiting returns the pending actions of a session, and those of them that the caller may know
// of: all in the caller's own session, otherwise those that w may decide.
func (s *Service) waiting(ctx context.Context, session string, w event.Who, own bool) (all, known []action.Action, err error) {
	all, err = s.Actions.In(ctx, session, action.Pending)
	if own {
		return all, all, err
	}
	for _, a := range all {
		if s.Actions.Judge(w.Role, a.Operations).Answer != guard.Refuse {
			known = append(known, a)
		}
	}
	return all, known, err
}

func (r *running) decideOne(ctx context.Context, id string, d action.Decision) error {
	u, err := uuid.Parse(id)
	if err != nil {
		r.say("There is no such action.")
		return nil
	}
	a, err := r.s.Actions.Get(ctx, u)
	if err == nil {
		if a.Session != r.turn.Session {
			d.Turn = nil // this turn's number means nothing in the other session
		}
		a, err = r.s.Actions.Decide(ctx, r.turn.Who, u, d)
	}
	return r.decided(a, err)
}

func (r *running) decideAll(ctx context.Context, d action.Decision) error {
	settled, err := r.s.Actions.DecideAll(ctx, r.turn.Who, r.turn.Session, d)
	if err != nil {
		return err
	}
	for _, s := range settled {
		if err := r.decided(s.Action, s.Err); err != nil {
			return err
		}
	}
	return nil
}

// decided reports the result of one decision. A problem is a valid answer.
func (r *running) decided(a action.Action, err error) error {
	if text, ok := problemDetail(err); ok {
		r.say(newParagraph(text))
		// For an action that just became stale, a is its replacement.
		if isStale(err) && a.State == action.Pending {
			r.prompt(a)
		}
		return nil
	}
	if err != nil {
		r.say(newParagraph("Nothing was decided: " + r.sentence(r.ctx, err).Error()))
		return nil
	}
	if a.State == action.Denied {
		r.say(newParagraph("Denied: " + commandText(a) + ". It does not run."))
	}
	r.settledOf(a, nil)
	return nil
}

// execute runs the approved actions: those of this turn, and those approved in the session
// since its last turn.
func (r *running) execute(ctx context.Context, k *sink) error {
	due, err := r.s.Actions.In(ctx, r.turn.Session, action.Approved)
	if err != nil {
		return err
	}
	for _, s := range r.turn.Settled { // of another session
		if s.Action.State == action.Approved && s.Action.Session != r.turn.Session {
			due = append(due, s.Action)
		}
	}
	for _, a := range due {
		if ctx.Err() != nil {
			return nil
		}
		if err := r.carryOut(ctx, k, a); err != nil {
			return err
		}
	}
	return nil
}

// carryOut runs one approved action and reports what was observed.
func (r *running) carryOut(ctx context.Context, k *sink, a action.Action) error {
	k.Status(chat.Executing, "Running: "+a.Command+inCluster(a))
	a, err := r.s.Actions.Execute(ctx, a.ID, func() { k.Status(chat.Verifying, "Reading back what it did") })
	if text, ok := problemDetail(err); ok {
		r.say(newParagraph(text))
		return nil
	}
	if err != nil {
		return err
	}
	r.say(r.apart() + newParagraph(resultText(a)))
	at := slices.IndexFunc(r.turn.Settled, func(s action.Settled) bool { return s.Action.ID == a.ID })
	if at < 0 {
		r.settledOf(a, nil)
	} else {
		r.turn.Settled[at].Action = a
	}
	return nil
}

// propose submits a write for a decision, or runs it if it was approved in advance; ran reports
// the latter.
func (r *running) propose(ctx context.Context, k *sink, out Outcome) (ran bool, err error) {
	t, ops := r.turn, out.Write
	t.Choice = out.Choice
	r.mu.Lock()
	t.Untrusted = slices.Clone(r.untrusted)
	r.mu.Unlock()
	if t.Page != "" {
		t.Untrusted = append(t.Untrusted, t.Page)
	}
	rehearsed := k.rehearse(ops)
	plan, err := r.s.Planner.Plan(ctx, t, ops)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if err != nil {
		err = r.sentence(ctx, err)
		rehearsed(err)
		r.say(r.apart() + "The change is not proposed: " + err.Error())
		r.proposed(action.Action{}, err)
		return false, nil
	}
	if v := plan.Verdict; v.Answer == guard.Refuse {
		rehearsed(&action.Refused{Code: v.Code, Reason: v.Reason})
	} else {
		rehearsed(nil)
	}
	a, err := r.s.Actions.Propose(ctx, action.Proposal{
		Session: r.turn.Session, Cluster: r.turn.Cluster, Turn: r.turn.Number, Who: r.turn.Who, Plan: plan, AutoApprove: r.turn.AutoApprove && !r.turn.Unspoken,
		Unspoken: r.turn.Unspoken,
	})
	var refused *action.Refused
	switch {
	case errors.As(err, &refused):
		r.say(r.apart() + "Refused: " + refused.Reason)
		r.proposed(action.Action{}, refused)
		return false, nil
	case errors.Is(err, action.ErrTooMany):
		r.say(r.apart() + tooMany)
		r.proposed(action.Action{}, err)
		return false, nil
	case err != nil:
		return false, err
	case a.State == action.Approved:
		return true, r.carryOut(ctx, k, a)
	}
	k.Status(chat.AwaitingApproval, "Waiting for a decision")
	r.prompt(a)
	r.proposed(a, nil)
	return false, nil
}

// prompt requests a decision. The frame is stored before a reader gets it.
func (r *running) prompt(a action.Action) { r.ask(a, promptText(a, r.turn.NoDecisions)) }

func (r *running) ask(a action.Action, text string) {
	text = r.apart() + text
	r.mu.Lock()
	if r.notice != "" {
		text += "\n\n" + r.notice
	}
	r.answer.WriteString(text)
	r.shown = true
	r.mu.Unlock()
	r.add(r.frames.Approval(nil, text, approvalOf(a)), true)
}

// remind repeats the oldest prompt if an action is pending and this turn has not asked.
func (r *running) remind(ctx context.Context) error {
	r.mu.Lock()
	shown := r.shown
	r.mu.Unlock()
	if shown || ctx.Err() != nil {
		return nil
	}
	_, waiting, err := r.s.waiting(ctx, r.turn.Session, r.turn.Who, r.own)
	if err != nil || len(waiting) == 0 {
		return err
	}
	r.ask(waiting[0], reminderText(waiting[0], len(waiting), r.turn.NoDecisions))
	return nil
}

func approvalOf(a action.Action) chat.Approval {
	return chat.Approval{
		ActionID: a.ID.String(), RiskLevel: string(a.Risk), HumanSummary: a.Command, AlwaysConfirm: a.AlwaysConfirm,
		ExpiresAt: a.ExpiresAt, Digest: a.Digest, Cluster: a.Cluster,
	}
}
