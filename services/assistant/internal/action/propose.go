package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

// ErrTooMany means that the session already has MaxPending pending actions.
var ErrTooMany = errors.New("too many actions of this session wait for a decision")

// Refused is a write that the rules forbid to a role.
type Refused struct {
	Code   string // slug, for metrics
	Reason string // sentence for the caller
}

func (r *Refused) Error() string { return r.Reason }

// Proposal is a requested write.
type Proposal struct {
	Session string
	Cluster string
	Turn    int32
	Who     event.Who
	Plan    Plan
	// AutoApprove comes from the request; it never covers actions that always need a decision.
	AutoApprove bool
	// Unspoken means that a program asks, and no person: nothing that a person said in advance covers it.
	Unspoken bool
}

// Propose creates a pending action or, if it was approved in advance, an approved one. If an
// equal action is already pending, it returns that one. The error is a *Refused, ErrTooMany or
// an error of the store.
func (s *Service) Propose(ctx context.Context, p Proposal) (Action, error) {
	switch p.Plan.Verdict.Answer {
	case guard.Refuse:
		return Action{}, s.refuseProposal(ctx, p)
	case guard.Allow:
		return Action{}, fmt.Errorf("%s changes nothing, so there is nothing to approve", p.Plan.Command)
	}
	var a Action
	var moved []Action
	err := s.Store.InTx(ctx, func(tx store.Tx) (err error) {
		now := s.Now()
		if _, err := tx.LockSession(ctx, p.Session); store.None(err) {
			return fault.SessionNotFound.New("There is no such session.")
		} else if err != nil {
			return err
		}
		rows, err := tx.ExpireSessionActions(ctx, store.ExpireSessionActionsParams{SessionID: p.Session, Now: &now})
		if err != nil {
			return err
		}
		if moved, err = recordExpired(ctx, tx, rows, now); err != nil {
			return err
		}
		var fresh bool
		a, fresh, err = s.proposeIn(ctx, tx, p, now)
		if fresh {
			moved = append(moved, a)
		}
		return err
	})
	if err != nil {
		return Action{}, err
	}
	s.moved(moved...)
	return a, nil
}

func (s *Service) refuseProposal(ctx context.Context, p Proposal) error {
	v := p.Plan.Verdict
	refused := Action{
		ID: uuid.Must(uuid.NewV7()), Session: p.Session, Cluster: p.Cluster, State: Denied, Digest: p.Plan.Digest, Command: p.Plan.Command, Risk: v.Risk,
		AlwaysConfirm: alwaysConfirms(v), Requester: p.Who.Principal, Reason: v.Reason,
	}
	if err := s.Store.InTx(ctx, func(tx store.Tx) error {
		return tx.Emit(ctx, actionEvents(p.Who, s.Now(), refusedEvent, refusedAct, event.Denied, refused)...)
	}); err != nil {
		return err
	}
	return &Refused{v.Code, v.Reason}
}

func alwaysConfirms(v guard.Verdict) bool { return v.Answer == guard.AlwaysAsk || len(v.Confirms) > 0 }

// proposeIn is Propose with the session locked; fresh is false for an action that was already
// pending.
func (s *Service) proposeIn(ctx context.Context, tx store.Tx, p Proposal, now time.Time) (a Action, fresh bool, err error) {
	basis, err := s.beforehand(ctx, tx, p)
	if err != nil {
		return Action{}, false, err
	}
	row, err := tx.PendingWithDigest(ctx, store.PendingWithDigestParams{SessionID: p.Session, Digest: p.Plan.Digest, Now: now})
	switch {
	case err == nil:
		a, err := fromRow(row)
		// The need for a decision may come from the origin of a value, which this plan need not
		// show again.
		if err != nil || basis == "" || a.AlwaysConfirm {
			return a, false, err
		}
		a, err = decideIn(ctx, tx, p.Who, a, Approved, basis, "", &p.Turn, now)
		return a, err == nil, err
	case !store.None(err):
		return Action{}, false, err
	}
	waiting, err := tx.ActionsIn(ctx, store.ActionsInParams{SessionID: p.Session, State: string(Pending)})
	if err != nil {
		return Action{}, false, err
	}
	if basis == "" && len(waiting) >= MaxPending {
		return Action{}, false, ErrTooMany
	}
	a, err = insertProposal(ctx, tx, p, basis, now, now.Add(s.TTL))
	return a, err == nil, err
}

// beforehand returns the basis on which the proposal is approved without a person, or "" if
// there is none.
func (s *Service) beforehand(ctx context.Context, tx store.Tx, p Proposal) (Basis, error) {
	if p.Unspoken || s.FourEyes || alwaysConfirms(p.Plan.Verdict) || p.Who.Role == guard.Readonly {
		return "", nil
	}
	if p.AutoApprove {
		return AutoApprove, nil
	}
	standing, err := tx.HasStandingApproval(ctx, store.HasStandingApprovalParams{SessionID: p.Session, Principal: p.Who.Principal})
	if err != nil || !standing {
		return "", err
	}
	return Standing, nil
}

// insertProposal writes the row of a proposal; with a basis it is already decided.
func insertProposal(ctx context.Context, tx store.Tx, p Proposal, basis Basis, now, expires time.Time) (Action, error) {
	ops, err := json.Marshal(p.Plan.Operations)
	if err != nil {
		return Action{}, fmt.Errorf("operations: %w", err)
	}
	v := p.Plan.Verdict
	confirms := make([]string, len(v.Confirms))
	for i, c := range v.Confirms {
		confirms[i] = string(c)
	}
	notes := make([]string, len(v.Notes))
	for i, n := range v.Notes {
		notes[i] = store.Text(n)
	}
	params := store.InsertActionParams{
		ID: uuid.Must(uuid.NewV7()), SessionID: p.Session, Cluster: p.Cluster, Turn: p.Turn, State: string(Pending), Operations: ops,
		Digest: p.Plan.Digest, Command: store.Text(p.Plan.Command), Risk: string(v.Risk), AlwaysConfirm: alwaysConfirms(v),
		Confirms: confirms, Notes: notes, Diff: store.Text(p.Plan.Diff),
		Requester: p.Who.Principal, RequesterRole: string(p.Who.Role), RequesterUser: store.Text(p.Who.User), RequestID: p.Who.RequestID,
		Now: now, ExpiresAt: expires,
	}
	if basis != "" {
		role := string(p.Who.Role)
		b := string(basis)
		params.State, params.Basis = string(Approved), &b
		params.Decider, params.DeciderRole, params.DecidedAt, params.DecidedTurn = &p.Who.Principal, &role, &now, &p.Turn
	}
	row, err := tx.InsertAction(ctx, params)
	if err != nil {
		return Action{}, err
	}
	a, err := fromRow(row)
	if err != nil {
		return Action{}, err
	}
	events := actionEvents(p.Who, now, proposedEvent, proposedAct, event.OK, a)
	if basis != "" {
		events = append(events, actionEvents(p.Who, now, decidedEvent, decidedAct, event.OK, a)...)
	}
	return a, tx.Emit(ctx, events...)
}
