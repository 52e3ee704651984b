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

// MaxPending is how many actions of a session may wait at once.
const MaxPending = 10

// ErrNoAnswer in an error of Execute says that nobody knows whether the call had its
// effect: it was sent and no answer came.
var ErrNoAnswer = errors.New("the cluster did not answer the write")

// Plan is a write as it stands now: expanded, rehearsed and judged.
type Plan struct {
	Operations []operation.Expanded
	Digest     string // of the operations and the present state of their targets
	Command    string // one line for people, values redacted
	Diff       string // live to result, values redacted
	Verdict    guard.Verdict
}

// Cluster is where writes happen.
type Cluster interface {
	// Plan expands and rehearses the operations against the cluster as it is, and
	// judges them for the role. A refusal by the rules is a verdict; an error means that
	// the cluster did not answer or rejected the rehearsal.
	Plan(ctx context.Context, role guard.Role, ops []operation.Operation) (Plan, error)
	// Execute runs a.Observed and says what the cluster answered. Every call carries the
	// uid and resource version of its target as preconditions. An error that wraps
	// ErrNoAnswer leaves open what happened, and the text beside it tells what was
	// written before; after any other nothing was written that its own text does not
	// tell of. It returns soon after ctx ends.
	Execute(ctx context.Context, a Action) (string, error)
	// Verify reads until the wanted state is there or its time is up, and says what it
	// saw last.
	Verify(ctx context.Context, a Action) (string, error)
}

// Effect is what a Probe sees of a call that may have been made.
type Effect int

// The effects. The zero value repeats nothing and claims nothing.
const (
	Unclear Effect = iota
	Unmoved        // every target still has the version that the call was bound to
	Present        // the targets are as the call would leave them, by our hand
)

// Probe looks at the targets of an action whose executor died.
type Probe interface {
	Probe(ctx context.Context, a Action) (Effect, error)
}

// Config is what may be set.
type Config struct {
	TTL      time.Duration // how long an action waits for its decision, and an approval for its execution; 0 means 1 h
	FourEyes bool          // nobody approves their own request, and nothing is approved beforehand
	Lease    time.Duration // without a sign of life for so long an executor counts as dead; 0 means 30 s
}

// Deps is what the service works with.
type Deps struct {
	Store   *store.Store
	Cluster Cluster
	Probe   Probe
	// Judge tells without the cluster what a role may do at most.
	Judge func(role guard.Role, ops []operation.Expanded) guard.Verdict
	Now   func() time.Time `part:"optional"` // nil means time.Now
	Log   *slog.Logger
	// Moved is notified of every move after its commit, for counters; nil means nobody.
	Moved func(Action) `part:"optional"`
}

// Service keeps the actions of all sessions.
type Service struct {
	Config
	Deps
	me uuid.UUID // this process, as an executor
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

// After is a place in the actions of a session, which are oldest first.
type After struct {
	ProposedAt time.Time
	ID         uuid.UUID
}

// Page reads the actions of a session from a place on; nil is the beginning.
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

// In reads the actions of a session that are in a state, oldest first. Pending ones
// whose time is over are left out.
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

// ExpireDue ends the wait of actions that nobody decided in time.
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

// recordExpired tells of rows that have just expired.
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

// Quoted is the session of the one action among ids that waits and that the principal
// asked for. Without exactly one it is empty.
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
