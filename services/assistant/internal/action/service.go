package action

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

// MaxPending limits the pending actions of a session.
const MaxPending = 10

// ErrNoAnswer in an error of Execute means that it is unknown whether the call took effect: it
// was sent, and no answer came.
var ErrNoAnswer = errors.New("the cluster did not answer the write")

// Plan is a write as it stands now: expanded, rehearsed and judged.
type Plan struct {
	Operations []operation.Expanded
	Digest     string // of the operations and the present state of their targets
	Command    string // one line for people, values redacted
	Diff       string // live to result, values redacted
	Verdict    guard.Verdict
}

// Cluster makes the writes.
type Cluster interface {
	// Plan expands and dry-runs the operations against the current cluster, and judges them for
	// the role. A refusal by the rules is a verdict; an error means that the cluster did not
	// answer or rejected the dry run.
	Plan(ctx context.Context, role guard.Role, ops []operation.Operation) (Plan, error)
	// Execute runs a.Observed and returns the answer of the cluster. Every call carries the uid
	// and resource version of its target as preconditions. An error that wraps ErrNoAnswer
	// leaves the outcome open, and the text beside it lists what was written before; after any
	// other error nothing was written except what its text names. Execute returns soon after
	// ctx ends.
	Execute(ctx context.Context, a Action) (string, error)
	// Verify reads until the wanted state is reached or its time is up, and returns what it saw
	// last.
	Verify(ctx context.Context, a Action) (string, error)
}

// Effect is the effect of a call that may have been made, as a Probe sees it.
type Effect int

// The effects. The zero value neither repeats the call nor claims its success.
const (
	Unclear Effect = iota
	Unmoved        // no target has changed since the call was bound to it
	Present        // the targets are as the call would leave them, written by the assistant
)

// Probe examines the targets of an action whose executor died.
type Probe interface {
	Probe(ctx context.Context, a Action) (Effect, error)
}

// Target is the cluster of an action.
type Target interface {
	Cluster
	Probe
}

// Config holds the settings.
type Config struct {
	TTL      time.Duration // time to decide an action, and to execute it once approved; 0 means 1 h
	FourEyes bool          // no one may approve their own request, and there is no approval in advance
	Lease    time.Duration // an executor without a heartbeat for this long counts as dead; 0 means 30 s
}

// Deps holds what the service depends on.
type Deps struct {
	Store *store.Store
	// Target returns the cluster that an action names. Its error, a sentence for the reader, means that it is not served any
	// more: the action is then carried out nowhere.
	Target func(cluster string) (Target, error)
	// Judge returns, without calling the cluster, the most that a role may do.
	Judge func(role guard.Role, ops []operation.Expanded) guard.Verdict
	Now   func() time.Time `part:"optional"` // nil means time.Now
	Log   *slog.Logger
	// Moved is called after the commit of every state change, for counters; it may be nil.
	Moved func(Action) `part:"optional"`
}

// Service manages the actions of all sessions.
type Service struct {
	Config
	Deps
	me uuid.UUID // identifies this process as an executor
}

// New returns a service, or an error that names the missing parts.
func New(c Config, d Deps) (*Service, error) {
	if err := service.RequireParts("action", d); err != nil {
		return nil, err
	}
	if c.TTL <= 0 {
		c.TTL = time.Hour
	}
	if c.Lease <= 0 {
		c.Lease = 30 * time.Second
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Moved == nil {
		d.Moved = func(Action) {}
	}
	return &Service{c, d, uuid.New()}, nil
}

// Get reads an action.
func (s *Service) Get(ctx context.Context, id uuid.UUID) (Action, error) {
	r, err := s.Store.GetAction(ctx, id)
	if store.None(err) {
		return Action{}, fault.ActionNotFound.New("There is no such action.")
	}
	if err != nil {
		return Action{}, err
	}
	return fromRow(r)
}

// After is a position in the list of a session's actions, which is sorted oldest first.
type After struct {
	ProposedAt time.Time
	ID         uuid.UUID
}

// Page reads a page of the actions of a session after a position; nil starts at the beginning.
func (s *Service) Page(ctx context.Context, session string, after *After, limit int32) ([]Action, error) {
	p := store.ActionsPageParams{SessionID: session, MaxRows: limit}
	if after != nil {
		p.Later, p.AfterAt, p.AfterID = true, after.ProposedAt, after.ID
	}
	rows, err := s.Store.ActionsPage(ctx, p)
	if err != nil {
		return nil, err
	}
	return fromRows(rows)
}

// In reads the actions of a session in a state, oldest first. Expired pending ones are left
// out.
func (s *Service) In(ctx context.Context, session string, state State) ([]Action, error) {
	rows, err := s.Store.ActionsIn(ctx, store.ActionsInParams{SessionID: session, State: string(state)})
	if err != nil {
		return nil, err
	}
	now := s.Now()
	kept := rows[:0]
	for _, r := range rows {
		if r.State != string(Pending) || r.ExpiresAt.After(now) {
			kept = append(kept, r)
		}
	}
	return fromRows(kept)
}

// DecidedIn reads the actions of a session that one of its turns decided.
func (s *Service) DecidedIn(ctx context.Context, session string, turn int32) ([]Action, error) {
	rows, err := s.Store.ActionsDecidedIn(ctx, store.ActionsDecidedInParams{SessionID: session, Turn: turn})
	if err != nil {
		return nil, err
	}
	return fromRows(rows)
}

func fromRows(rows []store.Action) ([]Action, error) {
	out := make([]Action, len(rows))
	for i, r := range rows {
		a, err := fromRow(r)
		if err != nil {
			return nil, err
		}
		out[i] = a
	}
	return out, nil
}

// ExpireDue expires the actions that were not decided in time.
func (s *Service) ExpireDue(ctx context.Context) error {
	const batch = 100
	for {
		var gone []Action
		err := s.Store.InTx(ctx, func(tx store.Tx) error {
			now := s.Now()
			rows, err := tx.ExpireActions(ctx, store.ExpireActionsParams{Now: &now, MaxRows: batch})
			if err != nil {
				return err
			}
			gone, err = recordExpired(ctx, tx, rows, now)
			return err
		})
		if err != nil {
			return err
		}
		s.moved(gone...)
		if len(gone) < batch {
			return nil
		}
	}
}

// recordExpired records the rows that have just expired.
func recordExpired(ctx context.Context, tx store.Tx, rows []store.Action, now time.Time) ([]Action, error) {
	gone, err := fromRows(rows)
	if err != nil {
		return nil, err
	}
	for _, a := range gone {
		if err := forgetContent(ctx, tx, a); err != nil {
			return nil, err
		}
		if err := tx.Emit(ctx, actionEvents(systemActor("expiry"), now, decidedEvent, decidedAct, event.OK, a)...); err != nil {
			return nil, err
		}
	}
	return gone, nil
}

func (s *Service) moved(actions ...Action) {
	for _, a := range actions {
		s.Moved(a)
	}
}

// Quoted returns the session of the one pending action among ids that the principal requested,
// or "" unless there is exactly one.
func (s *Service) Quoted(ctx context.Context, principal string, ids []uuid.UUID) (string, error) {
	if len(ids) == 0 {
		return "", nil
	}
	rows, err := s.Store.PendingAmong(ctx, store.PendingAmongParams{Ids: ids, Requester: principal, Now: s.Now()})
	if err != nil || len(rows) != 1 {
		return "", err
	}
	return rows[0], nil
}
