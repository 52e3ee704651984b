package approval

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/command"
	"github.com/mlp-platform/platform/services/control-plane/internal/dispatch"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/separation"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// The kinds of record.
const (
	Retrain   = "retrain"
	Promotion = "promotion"
)

// The states of a record.
const (
	Pending   = "pending"
	Approving = "approving"
	Approved  = "approved"
	Rejected  = "rejected"
	Expired   = "expired"
)

// Promotions decides the promotion behind a record of kind promotion.
type Promotions interface {
	ApproveRecord(ctx context.Context, p auth.Principal, promotion uuid.UUID, reason string) error
	RejectRecord(ctx context.Context, p auth.Principal, promotion uuid.UUID, reason string) error
}

// Parts are the dependencies of a Service.
type Parts struct {
	Store      *store.Store
	Commands   *command.Service
	Registry   *registry.Registry
	Admission  *dispatch.Admission
	Promotions Promotions
	Rules      separation.Rules
	Now        func() time.Time
	// Count is called for each created, approved, rejected, expired and dispatch_failed record.
	Count func(action, model string, n int)
}

// Service stores approval records and decides them.
type Service struct{ Parts }

// New returns a Service, or an error for a missing part.
func New(p Parts) (*Service, error) {
	if err := service.RequireParts("approval", p); err != nil {
		return nil, err
	}
	return &Service{p}, nil
}

// askOf returns the request that a record represents.
func askOf(a store.Approval) separation.Ask {
	return separation.Ask{Requesters: a.Requesters, PersonUnknown: a.PersonUnknown, FirstApprover: a.FirstApprover}
}

// Facts returns the event and the audit fact of one state change of a record.
func Facts(a store.Approval, actor, name, outcome string, reason *string) []outbox.Event {
	return []outbox.Event{
		event.Of(a.Tenant, actor, "approval", name, a.ID.String(), event.Approval{
			ID: a.ID, Kind: a.Kind, Model: a.ModelID, CommitSHA: a.CommitSha, RequestedBy: a.RequestedBy,
			ResolvedBy: a.ResolvedBy, FlowRunID: a.PrefectRunID, Reason: reason,
		}),
		event.Audit(a.Tenant, actor, "approval."+name, event.Model(a.ModelID), outcome, auditDetails(a, reason)),
	}
}

func auditDetails(a store.Approval, reason *string) map[string]any {
	d := map[string]any{"approval_id": a.ID, "kind": a.Kind, "status": a.Status, "commit_sha": a.CommitSha, "requesters": a.Requesters, "person_unknown": a.PersonUnknown}
	for name, v := range map[string]*string{"reason": reason, "flow_run_id": a.PrefectRunID, "dataset": a.DatasetName, "first_approver": a.FirstApprover} {
		if v != nil {
			d[name] = *v
		}
	}
	if a.PromotionID != nil {
		d["promotion_id"] = *a.PromotionID
	}
	return d
}

// recordDenial writes the audit fact of a refused decision. The caller must commit it: its transaction must not fail
// because of the denial.
func recordDenial(ctx context.Context, tx store.Tx, a store.Approval, p auth.Principal, action string, why *problem.Error) error {
	d := auditDetails(a, nil)
	d["code"] = why.Kind.Code
	return tx.Emit(ctx, event.Audit(p.Tenant, p.Name, action, event.Model(a.ModelID), event.Denied, d))
}

// lockKey serialises notices and returns to pending for one model of a tenant.
func lockKey(tenant, model string) string { return "approval:" + tenant + ":" + model }

// expiredBy is the actor of automatic expiries.
const expiredBy = "system:expiry"

// ExpireDue expires retrain records that were not decided in time.
func (s *Service) ExpireDue(ctx context.Context) error {
	if s.Rules.Expiry <= 0 {
		return nil
	}
	reason := fmt.Sprintf("not decided within %s", s.Rules.Expiry)
	for {
		var gone []store.Approval
		if err := s.Store.InTx(ctx, func(tx store.Tx) (err error) {
			if gone, err = tx.ExpireApprovals(ctx, store.ExpireApprovalsParams{Reason: &reason, Now: s.Now()}); err != nil {
				return err
			}
			var facts []outbox.Event
			for _, a := range gone {
				facts = append(facts, Facts(a, expiredBy, Expired, event.OK, &reason)...)
			}
			return tx.Emit(ctx, facts...)
		}); err != nil {
			return err
		}
		if len(gone) == 0 {
			return nil
		}
		for _, a := range gone {
			s.Count(Expired, a.ModelID, 1)
		}
	}
}

// Notice is a change for which models should be retrained.
type Notice struct {
	Models       []string // upper-case, each once
	CommitSHA    string
	CommitMsg    string
	ChangedFiles []string
	Origin       string
	Dataset      string // default data set of the run; empty: the model's first
	// RequestedBy is the person behind the change; empty: the caller.
	RequestedBy string
}

// Noted is the effect of a notice.
type Noted struct {
	Created, Existing, Superseded []uuid.UUID

	models []string // models of the created records
	gone   []string // models of the superseded records
}

// Note records a change as one pending record per model. Repeating a commit returns the existing record; a different
// commit supersedes it, so that an approver decides on the change they saw.
func (s *Service) Note(ctx context.Context, p auth.Principal, n Notice) (Noted, error) {
	if err := s.ExpireDue(ctx); err != nil {
		return Noted{}, err
	}
	var out Noted
	if err := s.Store.InTx(ctx, func(tx store.Tx) (err error) {
		out, err = s.NoteIn(ctx, tx, p, n)
		return err
	}); err != nil {
		return Noted{}, err
	}
	s.Counted(out)
	return out, nil
}

// Counted counts the records of a notice; call it after NoteIn's transaction has committed.
func (s *Service) Counted(n Noted) {
	for _, m := range n.models {
		s.Count("created", m, 1)
	}
	for _, m := range n.gone {
		s.Count(Expired, m, 1)
	}
}

// NoteIn is Note in the caller's transaction, after ExpireDue.
func (s *Service) NoteIn(ctx context.Context, tx store.Tx, p auth.Principal, n Notice) (Noted, error) {
	var out Noted
	keys := make([]string, 0, len(n.Models))
	for _, m := range n.Models {
		keys = append(keys, lockKey(p.Tenant, m))
	}
	if err := tx.LockKeys(ctx, keys); err != nil {
		return out, err
	}
	rows, err := tx.UndecidedRetrains(ctx, store.UndecidedRetrainsParams{Tenant: p.Tenant, ModelIds: n.Models})
	if err != nil {
		return out, err
	}
	pending, same := map[string]store.Approval{}, map[string]store.Approval{}
	for _, a := range rows {
		if a.CommitSha == n.CommitSHA {
			same[a.ModelID] = a
		}
		if a.Status == Pending {
			pending[a.ModelID] = a
		}
	}
	now := s.Now()
	requestedBy := p.Name
	if n.RequestedBy != "" {
		requestedBy = n.RequestedBy
	}
	var notice *uuid.UUID
	var facts []outbox.Event
	for _, model := range n.Models {
		pushers, err := tx.PushersSince(ctx, model)
		if err != nil {
			return out, err
		}
		if a, ok := same[model]; ok {
			out.Existing = append(out.Existing, a.ID)
			again := joining{names: separation.MergeNames([]string{p.Name}, pushers.Requesters), unknown: pushers.PersonUnknown, fact: "requested_again", by: p.Name, at: now}
			if _, err := addRequesters(ctx, tx, a, again); err != nil {
				return out, err
			}
			continue
		}
		requesters, unknown := separation.MergeNames([]string{p.Name, n.RequestedBy}, pushers.Requesters), pushers.PersonUnknown
		if notice == nil {
			id := uuid.Must(uuid.NewV7())
			notice = &id
			if err := tx.InsertNotice(ctx, store.InsertNoticeParams{ID: id, CommitMsg: n.CommitMsg, ChangedFiles: n.ChangedFiles}); err != nil {
				return out, err
			}
		}
		id := uuid.Must(uuid.NewV7())
		if old, ok := pending[model]; ok {
			more, err := supersedeApproval(ctx, tx, old, id, p.Name, now)
			if err != nil {
				return out, err
			}
			facts = append(facts, more...)
			// The newer change includes the older one, so the requesters of the older one have requested that too.
			requesters, unknown = separation.MergeNames(requesters, old.Requesters), unknown || old.PersonUnknown
			out.Superseded = append(out.Superseded, old.ID)
			out.gone = append(out.gone, model)
		}
		a, err := tx.InsertApproval(ctx, store.InsertApprovalParams{
			ID: id, Kind: Retrain, Origin: n.Origin, Tenant: p.Tenant, ModelID: model, CommitSha: n.CommitSHA, NoticeID: notice,
			RequestedBy: requestedBy, Now: now, ExpiresAt: s.Rules.ExpiresAt(now), DatasetName: wire.OptionalText(n.Dataset),
			Requesters: requesters, PersonUnknown: unknown, Traceparent: wire.OptionalText(service.Traceparent(ctx)),
		})
		if err != nil {
			return out, err
		}
		facts = append(facts, Facts(a, p.Name, "created", event.OK, nil)...)
		out.Created = append(out.Created, id)
		out.models = append(out.models, model)
	}
	return out, tx.Emit(ctx, facts...)
}

// joining holds the people who join the requesters of a record that already waits.
type joining struct {
	names   []string
	unknown bool
	fact    string // for the ledger
	by      string // the principal whose request revealed them
	at      time.Time
}

// addRequesters adds joining requesters to a pending record, and returns the updated record.
func addRequesters(ctx context.Context, tx store.Tx, a store.Approval, j joining) (store.Approval, error) {
	names, unknown := separation.MergeNames(a.Requesters, j.names), a.PersonUnknown || j.unknown
	if a.Status != Pending || len(names) == len(a.Requesters) && unknown == a.PersonUnknown {
		return a, nil
	}
	after, err := tx.AddRequesters(ctx, store.AddRequestersParams{ID: a.ID, Requesters: names, PersonUnknown: unknown, Now: j.at, UpdatedBy: j.by})
	if err != nil {
		return a, err
	}
	return after, tx.Emit(ctx, event.Audit(a.Tenant, j.by, "approval."+j.fact, event.Model(a.ModelID), event.OK, auditDetails(after, nil)))
}

// addPushers adds people whose pushes were unknown when the record was made: a forge may report a push after CI does.
func (s *Service) addPushers(ctx context.Context, tx store.Tx, a store.Approval, by string) (store.Approval, error) {
	pushers, err := tx.PushersSince(ctx, a.ModelID)
	if err != nil {
		return a, err
	}
	return addRequesters(ctx, tx, a, joining{names: pushers.Requesters, unknown: pushers.PersonUnknown, fact: "pushers_joined", by: by, at: s.Now()})
}

// supersedeApproval expires a pending record in favour of another.
func supersedeApproval(ctx context.Context, tx store.Tx, old store.Approval, by uuid.UUID, actor string, now time.Time) ([]outbox.Event, error) {
	reason := "superseded by " + by.String()
	a, err := tx.SetApprovalStatus(ctx, store.SetApprovalStatusParams{
		ID: old.ID, FromStatus: old.Status, ToStatus: Expired, RejectReason: &reason, Now: now, UpdatedBy: actor,
	})
	if err != nil {
		return nil, err
	}
	return Facts(a, actor, Expired, event.OK, &reason), nil
}

// Settler changes the record's state when its command has ended.
type Settler struct{ now func() time.Time }

// NewSettler returns a Settler; now is the clock.
func NewSettler(now func() time.Time) Settler { return Settler{now} }

// Succeeded is part of command.Settler.
func (s Settler) Succeeded(ctx context.Context, tx store.Tx, c store.Command, flowRunID string) error {
	now := s.now()
	a, err := tx.SetApprovalStatus(ctx, store.SetApprovalStatusParams{
		ID: *c.ApprovalID, FromStatus: Approving, ToStatus: Approved, PrefectRunID: &flowRunID,
		ResolvedBy: &c.Principal, ResolvedAt: &now, Now: now, UpdatedBy: c.Principal,
	})
	if err != nil {
		return fmt.Errorf("approval %s: approving → approved: %w", c.ApprovalID, err)
	}
	return tx.Emit(ctx, Facts(a, c.Principal, Approved, event.OK, reasonOf(c))...)
}

// Failed is part of command.Settler.
func (s Settler) Failed(ctx context.Context, tx store.Tx, c store.Command, cause *problem.Error) error {
	now := s.now()
	if err := tx.LockKeys(ctx, []string{lockKey(c.Tenant, c.ModelID)}); err != nil {
		return err
	}
	rows, err := tx.UndecidedRetrain(ctx, store.UndecidedRetrainParams{Tenant: c.Tenant, ModelID: c.ModelID})
	if err != nil {
		return err
	}
	for _, newer := range rows {
		if newer.Status != Pending {
			continue
		}
		for _, a := range rows { // a notice of another commit arrived meanwhile
			if a.ID == *c.ApprovalID {
				facts, err := supersedeApproval(ctx, tx, a, newer.ID, c.Principal, now)
				if err != nil {
					return err
				}
				return tx.Emit(ctx, facts...)
			}
		}
	}
	a, err := tx.SetApprovalStatus(ctx, store.SetApprovalStatusParams{
		ID: *c.ApprovalID, FromStatus: Approving, ToStatus: Pending, Now: now, UpdatedBy: c.Principal,
	})
	if err != nil {
		return fmt.Errorf("approval %s: approving → pending: %w", c.ApprovalID, err)
	}
	return tx.Emit(ctx, Facts(a, c.Principal, "dispatch_failed", event.Failed, wire.OptionalText(cause.Kind.Code+": "+cause.Detail))...)
}
