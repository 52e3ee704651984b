package action

import (
	"context"

	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

// Settled is one action with what came of deciding it.
type Settled struct {
	Action Action
	Err    error // as of Decide; nil when it was decided as wished
}

// DecideAll decides every action of a session that waits, oldest first; approvals
// leave out those that always ask. One that cannot be decided holds up no other.
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

// Stand approves beforehand, or no more, what this principal asks for in the session.
// held is false where the rules let it have no effect: for readonly callers and with
// four eyes.
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

// Stands reports whether the principal's writes in the session are approved beforehand.
func (s *Service) Stands(ctx context.Context, session, principal string) (bool, error) {
	if s.FourEyes {
		return false, nil
	}
	return s.Store.HasStandingApproval(ctx, store.HasStandingApprovalParams{SessionID: session, Principal: principal})
}

// CloseIn denies what waits in a session that is being deleted, in its transaction.
// The caller has the session locked, and tells Moved of them after the commit.
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
		if store.None(err) { // somebody is deciding it right now, and was first
			continue
		}
		if err != nil {
			return nil, err
		}
		closed = append(closed, a)
	}
	return closed, nil
}
