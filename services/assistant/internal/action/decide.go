package action

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

// Decision is a person's decision on a pending action.
type Decision struct {
	Approve bool
	Reason  string
	Turn    *int32 // of the action's session; nil when decided outside of a turn
}

// Decide approves or denies an action. The error is a *problem.Error if the action or the rules
// forbid it: not found, not permitted, already decided, expired or stale. For a stale action,
// the returned action is the new proposal that replaced it.
func (s *Service) Decide(ctx context.Context, w event.Who, id uuid.UUID, d Decision) (Action, error) {
	d.Reason = redact.Typed(d.Reason)
	a, err := s.Get(ctx, id)
	if err != nil {
		return Action{}, err
	}
	if a, err = s.open(ctx, a); err != nil {
		return a, err
	}
	rule := decisionRule{FourEyes: s.FourEyes, Approve: d.Approve, Own: w.Principal == a.Requester, Verdict: s.Judge(w.Role, a.Operations)}
	if why := rule.refusal(); why != "" {
		return a, s.refuseDecision(ctx, w, a, why)
	}
	if !d.Approve {
		return s.settle(ctx, w, a, Denied, d)
	}
	target, err := s.Target(a.Cluster)
	if err != nil {
		return a, err
	}
	plan, err := target.Plan(ctx, w.Role, a.Ops())
	plan.Verdict = plan.Verdict.Recall(w.Role, a.Confirms)
	switch {
	case err != nil:
		return a, fmt.Errorf("look at the target before approving: %w", err)
	case plan.Verdict.Answer == guard.Refuse:
		return a, s.refuseDecision(ctx, w, a, plan.Verdict.Reason)
	case plan.Digest != a.Digest:
		return s.replace(ctx, a, plan)
	}
	return s.settle(ctx, w, a, Approved, d)
}

// decisionRule holds what determines, without calling the cluster, whether a person may decide
// an action.
type decisionRule struct {
	FourEyes bool // no one may approve their own request
	Approve  bool // the decision is an approval; otherwise a denial
	Own      bool // the decider requested the action
	// Verdict is the verdict on the action for the decider's role: a caller who may not perform an operation may not
	// decide it either, not even to withdraw it.
	Verdict guard.Verdict
}

// refusal returns why the decision is not allowed, or "" when it is.
func (r decisionRule) refusal() string {
	switch {
	case r.Verdict.Answer == guard.Refuse:
		return r.Verdict.Reason
	case r.Approve && r.Own && r.FourEyes:
		return "This is your own request; another person has to approve it."
	}
	return ""
}

// open returns an action that is still pending, or the reason why it is not.
func (s *Service) open(ctx context.Context, a Action) (Action, error) {
	if a.State != Pending {
		return a, settledError(a)
	}
	now := s.Now()
	if a.ExpiresAt.After(now) {
		return a, nil
	}
	var late Action
	err := s.Store.InTx(ctx, func(tx store.Tx) error {
		row, err := tx.ExpireAction(ctx, store.ExpireActionParams{ID: a.ID, Now: &now})
		if err != nil {
			return err
		}
		gone, err := recordExpired(ctx, tx, []store.Action{row}, now)
		if err == nil {
			late = gone[0]
		}
		return err
	})
	if store.None(err) { // another decision was first
		if late, err = s.Get(ctx, a.ID); err == nil {
			return late, settledError(late)
		}
	}
	if err != nil {
		return a, err
	}
	s.moved(late)
	return late, settledError(late)
}

// settledError returns why an action can no longer be decided, and who decided it.
func settledError(a Action) *problem.Error {
	with := map[string]any{"action_id": a.ID, "state": a.State}
	switch a.State {
	case Expired:
		return fault.ActionExpired.New("This action was not decided in time; request it again.").With(with)
	case Stale:
		if a.ReplacedBy != nil {
			with["replaced_by"] = *a.ReplacedBy
		}
		return fault.ActionStale.New("The target is not as it was shown; a fresh action has been proposed.").With(with)
	}
	with["decided_by"], with["decided_at"] = a.Decider, a.DecidedAt
	verdict := Approved
	if a.State == Denied {
		verdict = Denied
	}
	return fault.AlreadyDecided.New(fmt.Sprintf("This action was %s by %s; it is %s.", verdict, a.Decider, a.State)).With(with)
}

// refuseDecision records a decision that was not permitted.
func (s *Service) refuseDecision(ctx context.Context, w event.Who, a Action, why string) error {
	told := a
	told.Reason = why
	if err := s.Store.InTx(ctx, func(tx store.Tx) error {
		return tx.Emit(ctx, actionEvents(w, s.Now(), refusedEvent, refusedAct, event.Denied, told)...)
	}); err != nil {
		return err
	}
	return fault.NotPermitted(why)
}

// settle moves the action out of pending, which happens once.
func (s *Service) settle(ctx context.Context, w event.Who, a Action, to State, d Decision) (Action, error) {
	var done Action
	err := s.Store.InTx(ctx, func(tx store.Tx) (err error) {
		done, err = decideIn(ctx, tx, w, a, to, Person, d.Reason, d.Turn, s.Now())
		return err
	})
	if store.None(err) {
		first, err := s.Get(ctx, a.ID)
		if err != nil {
			return a, err
		}
		if first, err = s.open(ctx, first); err != nil {
			return first, err
		}
		return first, fmt.Errorf("action %s waits and cannot be decided", a.ID)
	}
	if err != nil {
		return a, err
	}
	s.moved(done)
	return done, nil
}

// decideIn moves a out of pending; the error satisfies store.None if another decision was first.
func decideIn(ctx context.Context, tx store.Tx, w event.Who, a Action, to State, basis Basis, reason string, turn *int32, now time.Time) (Action, error) {
	role, b := string(w.Role), string(basis)
	row, err := tx.DecideAction(ctx, store.DecideActionParams{
		ID: a.ID, ToState: string(to), Basis: &b, Decider: &w.Principal, DeciderRole: &role, Now: &now, DecidedTurn: turn, Reason: store.Opt(reason),
	})
	if err != nil {
		return Action{}, err
	}
	done, err := fromRow(row)
	if err == nil && to == Denied {
		err = forgetContent(ctx, tx, done)
	}
	if err != nil {
		return Action{}, err
	}
	return done, tx.Emit(ctx, actionEvents(w, now, decidedEvent, decidedAct, event.OK, done)...)
}

// replace marks an action as stale and proposes it again for the current state, in the name of
// its requester.
func (s *Service) replace(ctx context.Context, a Action, plan Plan) (Action, error) {
	var old, fresh Action
	err := s.Store.InTx(ctx, func(tx store.Tx) (err error) {
		now := s.Now()
		if _, err := tx.LockSession(ctx, a.Session); err != nil {
			return err
		}
		// The old action leaves pending before the new one enters: ten may be pending, not
		// eleven.
		if _, err := tx.StaleAction(ctx, store.StaleActionParams{ID: a.ID, Now: &now}); err != nil {
			return err
		}
		// An action that always needed a decision still does, even if this plan does not show
		// why.
		plan.Verdict.Confirms = mergeConfirms(plan.Verdict.Confirms, a.Confirms)
		if a.AlwaysConfirm {
			plan.Verdict.Answer = guard.AlwaysAsk
		}
		p := Proposal{Session: a.Session, Cluster: a.Cluster, Turn: a.Turn, Who: a.requester(), Plan: plan}
		same, err := tx.PendingWithDigest(ctx, store.PendingWithDigestParams{SessionID: a.Session, Digest: plan.Digest, Now: now})
		switch {
		case err == nil:
			fresh, err = fromRow(same)
		case store.None(err):
			fresh, err = insertProposal(ctx, tx, p, "", now, now.Add(s.TTL))
		}
		if err != nil {
			return err
		}
		row, err := tx.LinkAction(ctx, store.LinkActionParams{ID: a.ID, ReplacedBy: &fresh.ID})
		if err != nil {
			return err
		}
		if old, err = fromRow(row); err != nil {
			return err
		}
		if err := forgetContent(ctx, tx, old); err != nil {
			return err
		}
		return tx.Emit(ctx, actionEvents(systemActor("approval"), now, decidedEvent, decidedAct, event.OK, old)...)
	})
	if store.None(err) {
		first, err := s.Get(ctx, a.ID)
		if err != nil {
			return a, err
		}
		return s.open(ctx, first)
	}
	if err != nil {
		return a, err
	}
	s.moved(old, fresh)
	return fresh, settledError(old)
}

func mergeConfirms(confirms []guard.Confirm, more []string) []guard.Confirm {
	seen := map[guard.Confirm]bool{}
	for _, c := range confirms {
		seen[c] = true
	}
	for _, c := range more {
		if !seen[guard.Confirm(c)] {
			confirms = append(confirms, guard.Confirm(c))
		}
	}
	return confirms
}
