package action

import (
	"context"

	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

// Settled is one action with the result of its decision.
type Settled struct {
	Action Action
	Err    error // the error of Decide; nil when it was decided as requested
}

// DecideAll decides every pending action of a session, oldest first; approvals skip those that
// always need their own decision. An action that cannot be decided does not hold up the others.
func (s *Service) DecideAll(ctx context.Context, w event.Who, session string, d Decision) ([]Settled, error) {
	waiting, err := s.In(ctx, session, Pending)
	if err != nil {
		return nil, err
	}
	var out []Settled
	for _, a := range waiting {
		if d.Approve && a.AlwaysConfirm {
			continue
		}
		done, err := s.Decide(ctx, w, a.ID, d)
		out = append(out, Settled{done, err})
	}
	return out, nil
}

// Stand grants or withdraws advance approval for this principal's writes in the session. held
// is false if the rules give it no effect: for readonly callers and under four eyes.
func (s *Service) Stand(ctx context.Context, w event.Who, session string, on bool) (held bool, err error) {
	if !on {
		_, err := s.Store.DropStandingApproval(ctx, store.DropStandingApprovalParams{SessionID: session, Principal: w.Principal})
		return false, err
	}
	if s.FourEyes || w.Role == guard.Readonly {
		return false, nil
	}
	err = s.Store.PutStandingApproval(ctx, store.PutStandingApprovalParams{SessionID: session, Principal: w.Principal, Now: s.Now()})
	return err == nil, err
}

// Stands reports whether the principal's writes in the session are approved in advance.
func (s *Service) Stands(ctx context.Context, session, principal string) (bool, error) {
	if s.FourEyes {
		return false, nil
	}
	return s.Store.HasStandingApproval(ctx, store.HasStandingApprovalParams{SessionID: session, Principal: principal})
}

// CloseIn denies the pending actions of a session that is being deleted, in its transaction.
// The caller holds the lock on the session and calls Moved for each after the commit.
func (s *Service) CloseIn(ctx context.Context, tx store.Tx, w event.Who, session string) ([]Action, error) {
	now := s.Now()
	rows, err := tx.ExpireSessionActions(ctx, store.ExpireSessionActionsParams{SessionID: session, Now: &now})
	if err != nil {
		return nil, err
	}
	closed, err := recordExpired(ctx, tx, rows, now)
	if err != nil {
		return nil, err
	}
	rows, err = tx.ActionsIn(ctx, store.ActionsInParams{SessionID: session, State: string(Pending)})
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		a, err := fromRow(r)
		if err != nil {
			return nil, err
		}
		a, err = decideIn(ctx, tx, w, a, Denied, SessionDeleted, "the session was deleted", nil, now)
		if store.None(err) { // a concurrent decision was first
			continue
		}
		if err != nil {
			return nil, err
		}
		closed = append(closed, a)
	}
	return closed, nil
}
