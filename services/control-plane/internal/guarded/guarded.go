// Package guarded stores the settings that must not be changed by one person: promotion policies, gates that let
// training start without a decision, the scopes of credentials, and separation of duties itself.
//
// While separation of duties is enforced, such a change waits until someone else who holds the scope govern approves
// it. Where its author is unknown, because it came from the environment, two must approve.
package guarded

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/separation"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// Scope is the scope that a credential needs to make or decide such a change.
const Scope = "govern"

// The kinds of change.
const (
	Policy      = "promotion_policy"
	RepoConfig  = "modelrepo_config"
	AutoRetrain = "auto_retrain"
	Setting     = "setting"
	// AuditFailure is the acknowledgement of failed verifications of a chain of the audit ledger.
	AuditFailure = "audit_failure"
)

// The states of a change.
const (
	Pending    = "pending"
	Applied    = "applied"
	Rejected   = "rejected"
	Expired    = "expired"
	Superseded = "superseded"
)

// Apply carries out an approved change, in the transaction that decides it.
type Apply func(ctx context.Context, tx store.Tx, change store.GuardedChange, by auth.Principal) error

// Parts are the dependencies of a Service.
type Parts struct {
	Store *store.Store
	// Settings are those of the environment.
	Settings []Environment
	// Expiry is the age at which a pending change expires; 0: never.
	Expiry time.Duration
	Now    func() time.Time
	Log    *slog.Logger
}

// Service stores changes until they are decided. It is safe for concurrent use once it serves.
type Service struct {
	Parts
	apply   map[string]Apply
	current atomic.Pointer[map[string]json.RawMessage] // settings in force; nil until Load has read them
}

// New returns a Service, or an error for a missing part. Handle adds the Apply of each kind.
func New(p Parts) (*Service, error) {
	if err := service.RequireParts("guarded changes", p); err != nil {
		return nil, err
	}
	s := &Service{Parts: p, apply: map[string]Apply{}}
	s.apply[Setting] = s.applySetting
	return s, nil
}

// Handle sets the Apply of a kind. It is called before the service serves.
func (s *Service) Handle(kind string, apply Apply) { s.apply[kind] = apply }

// Rules are the rules of decisions: separation of duties as it is in force.
func (s *Service) Rules() separation.Rules {
	return separation.Rules{Expiry: s.Expiry, Duties: s.Duties}
}

// Change is a change that p wants to make.
type Change struct {
	ID           uuid.UUID // nil: a new one
	Kind, Target string
	Tenant       string // the tenant of the change; empty: the maker's
	// Old and New are shown to the decider; New nil removes the target.
	Old, New any
}

// Propose stores the change until someone else approves it, and returns it; nil means that p may make it at once. Under
// separation of duties p needs Scope, and otherwise only the scope that writing the setting needs anyway. The
// platform's own components act without a second person, so they always need Scope: the trainer does not hold it.
func (s *Service) Propose(ctx context.Context, tx store.Tx, p auth.Principal, c Change) (*store.GuardedChange, error) {
	if (s.Duties() || auth.System(p.Name)) && !p.Has(Scope) {
		return nil, auth.InsufficientScope.New(fmt.Sprintf("This change needs the scope %s; %s does not hold it.", Scope, p.Name)).
			With(map[string]any{"required_scope": Scope})
	}
	if !s.Duties() || separation.IsExempt(p.Name) {
		return nil, s.Supersede(ctx, tx, p, c.Kind, c.Target)
	}
	return s.propose(ctx, tx, p, c, false)
}

// ProposeToOther stores the change until someone else approves it, even where separation of duties is off. Only callers
// exempt from separation of duties make it at once: then it returns nil.
func (s *Service) ProposeToOther(ctx context.Context, tx store.Tx, p auth.Principal, c Change) (*store.GuardedChange, error) {
	if separation.IsExempt(p.Name) {
		return nil, s.Supersede(ctx, tx, p, c.Kind, c.Target)
	}
	return s.propose(ctx, tx, p, c, false)
}

// RunsPlatform reports whether p answers for objects that belong to no tenant.
func RunsPlatform(p auth.Principal) bool {
	return p.Tenant == auth.LegacyTenant || p.Tenant == event.PlatformTenant
}

// rulesFor returns the rules of a change: a failure of the audit ledger always needs two people.
func (s *Service) rulesFor(c store.GuardedChange) separation.Rules {
	r := s.Rules()
	if c.Kind == AuditFailure {
		r.Duties = func() bool { return true }
	}
	return r
}

// Supersede ends a pending change of the setting that p changes at once: approving it later would undo p's change.
func (s *Service) Supersede(ctx context.Context, tx store.Tx, p auth.Principal, kind, target string) error {
	return s.endPending(ctx, tx, p, kind, target, p.Name+" has changed the same since")
}

// endPending ends the pending change of a target as superseded, if there is one.
func (s *Service) endPending(ctx context.Context, tx store.Tx, p auth.Principal, kind, target, reason string) error {
	had, err := tx.PendingGuardedChange(ctx, store.PendingGuardedChangeParams{Kind: kind, Target: target})
	switch {
	case store.None(err):
		return nil
	case err != nil:
		return err
	}
	return s.end(ctx, tx, had, Superseded, p, reason)
}

func (s *Service) propose(ctx context.Context, tx store.Tx, p auth.Principal, c Change, unknown bool) (*store.GuardedChange, error) {
	if err := tx.LockKeys(ctx, []string{"guarded:" + c.Kind + ":" + c.Target}); err != nil {
		return nil, err
	}
	old, err := encode(c.Old)
	if err != nil {
		return nil, err
	}
	next, err := encode(c.New)
	if err != nil {
		return nil, err
	}
	id := c.ID
	if id == uuid.Nil {
		id = uuid.Must(uuid.NewV7())
	}
	switch had, err := tx.PendingGuardedChange(ctx, store.PendingGuardedChangeParams{Kind: c.Kind, Target: c.Target}); {
	case err == nil && unknown && sameJSON(had.New, next):
		return &had, nil // proposed at an earlier start
	case err == nil:
		if err := s.end(ctx, tx, had, Superseded, p, "superseded by "+id.String()); err != nil {
			return nil, err
		}
	case !store.None(err):
		return nil, err
	}
	now := s.Now()
	row, err := tx.InsertGuardedChange(ctx, store.InsertGuardedChangeParams{
		ID: id, Kind: c.Kind, Target: c.Target, Old: old, New: next, Tenant: cmp.Or(c.Tenant, p.Tenant), RequestedBy: p.Name, Now: now,
		PersonUnknown: unknown, ExpiresAt: s.Rules().ExpiresAt(now),
	})
	if err != nil {
		return nil, err
	}
	return &row, tx.Emit(ctx, s.fact(row, p, "proposed", event.OK, ""))
}

func encode(v any) (json.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("guarded change: encode: %w", err)
	}
	return raw, nil
}

func (s *Service) fact(c store.GuardedChange, p auth.Principal, action, outcome, reason string) outbox.Event {
	details := map[string]any{"change_id": c.ID, "kind": c.Kind, "old": c.Old, "new": c.New, "requested_by": c.RequestedBy, "state": c.State}
	if reason != "" {
		details["reason"] = reason
	}
	if c.Kind == Policy || c.Kind == AutoRetrain || c.Kind == AuditFailure { // of the tenant of the model or chain
		return event.Audit(c.Tenant, p.Name, "guarded_change."+action, c.Kind+":"+c.Target, outcome, details)
	}
	return event.Shared(p.Tenant, p.Name, "guarded_change."+action, c.Kind+":"+c.Target, outcome, details)
}

func (s *Service) end(ctx context.Context, tx store.Tx, c store.GuardedChange, state string, p auth.Principal, reason string) error {
	now := s.Now()
	after, err := tx.EndGuardedChange(ctx, store.EndGuardedChangeParams{ID: c.ID, ToState: state, DecidedBy: &p.Name, Now: &now, Reason: wire.OptionalText(reason)})
	if err != nil {
		return err
	}
	return tx.Emit(ctx, s.fact(after, p, state, event.OK, reason))
}

func (s *Service) expire(ctx context.Context, tx store.Tx, c store.GuardedChange) error {
	return s.end(ctx, tx, c, Expired, auth.Principal{Name: "system:expiry", Tenant: c.Tenant}, "not decided in time")
}

// ExpireDue expires changes that were not decided in time.
func (s *Service) ExpireDue(ctx context.Context) error {
	for n := -1; n != 0; {
		if err := s.Store.InTx(ctx, func(tx store.Tx) error {
			now := s.Now()
			due, err := tx.OverdueGuardedChanges(ctx, &now)
			n = len(due)
			for _, c := range due {
				if err := s.expire(ctx, tx, c); err != nil {
					return err
				}
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// ask describes a change's requesters for the decision.
func ask(c store.GuardedChange) separation.Ask {
	return separation.Ask{Requesters: []string{c.RequestedBy}, PersonUnknown: c.PersonUnknown, FirstApprover: c.FirstApprover}
}

// Decide approves or rejects a pending change; an approved one is in force when Decide returns.
func (s *Service) Decide(ctx context.Context, p auth.Principal, id uuid.UUID, approve bool, reason string) (store.GuardedChange, error) {
	var out store.GuardedChange
	var refused *problem.Error
	err := s.Store.InTx(ctx, func(tx store.Tx) (err error) {
		refused = nil
		if out, err = tx.LockGuardedChange(ctx, store.LockGuardedChangeParams{ID: id, Tenant: p.Tenant}); err != nil {
			if store.None(err) {
				refused = fault.ChangeNotFound.New("There is no such change; GET /governance/changes lists them.")
				return nil
			}
			return err
		}
		if out.Kind == AuditFailure && out.Tenant != p.Tenant && !RunsPlatform(p) {
			refused = fault.ChangeNotFound.New("The ledger of the tenant " + out.Tenant + " is acknowledged by the tenant " + auth.LegacyTenant + ".")
			return nil
		}
		if out.State == Pending && out.ExpiresAt != nil && !s.Now().Before(*out.ExpiresAt) {
			refused = fault.AlreadyDecided.New("This change was not decided in time.").With(map[string]any{"id": id, "state": Expired})
			return s.expire(ctx, tx, out)
		}
		switch {
		case out.State != Pending:
			refused = fault.AlreadyDecided.New("This change is " + out.State + " already.").With(map[string]any{"id": id, "state": out.State})
			return nil
		case !approve:
			return s.end(ctx, tx, out, Rejected, p, reason)
		}
		if refused = s.rulesFor(out).Refuse(p, ask(out)); refused != nil {
			return tx.Emit(ctx, s.fact(out, p, "approve", event.Denied, refused.Kind.Code))
		}
		if s.rulesFor(out).NeedsAnother(p, ask(out)) {
			if out, err = tx.FirstGuardedApproval(ctx, store.FirstGuardedApprovalParams{ID: id, FirstApprover: &p.Name}); err != nil {
				return err
			}
			return tx.Emit(ctx, s.fact(out, p, "first_approved", event.OK, reason))
		}
		if err := s.apply[out.Kind](ctx, tx, out, p); err != nil {
			return err
		}
		return s.end(ctx, tx, out, Applied, p, reason)
	})
	switch {
	case err != nil:
		return out, err
	case refused != nil:
		return out, refused
	}
	if err := s.refresh(ctx); err != nil {
		return out, err
	}
	return s.Store.GetGuardedChange(ctx, id)
}
