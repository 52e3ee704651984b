package promotion

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/alias"
	"github.com/mlp-platform/platform/services/control-plane/internal/approval"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/separation"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// The states of a promotion.
const (
	Pending    = "pending"
	Approved   = "approved"
	Promoted   = "promoted"
	Failed     = "failed"
	Rejected   = "rejected"
	Expired    = "expired"
	Superseded = "superseded"
)

// Origins of a promotion.
const (
	FromRequest = "request"
	FromLadder  = "ladder"
	FromOutside = "outside" // Production was moved past the gate
)

// denied is the outcome under which a refused promotion is counted.
const denied = "denied"

// Parts are the dependencies of a Service.
type Parts struct {
	Store   *store.Store
	Gate    *Gate
	Mover   *alias.Mover
	Rules   separation.Rules
	Settler *Settler
	Now     func() time.Time
	// Count is called with the outcome of each promotion, and for each denial.
	Count func(outcome string)
}

// Service opens and decides promotions.
type Service struct{ Parts }

// New returns a Service, or an error for a missing part.
func New(p Parts) (*Service, error) {
	if err := service.RequireParts("promotion", p); err != nil {
		return nil, err
	}
	return &Service{p}, nil
}

// Request is a requested promotion.
type Request struct {
	Question
	By     string
	For    string // who caused it, if not By
	Origin string
	Reason string
	// Decide approves it immediately on behalf of this caller, if they may.
	Decide *auth.Principal
	DryRun bool
}

// Outcome is the result of a request. Promotion is nil for a dry run and if the gate
// denied it.
type Outcome struct {
	Verdict   Verdict
	Promotion *store.Promotion
}

// Denial returns the 409 for a verdict that denies the promotion.
func (v Verdict) Denial() *problem.Error {
	n := len(v.Reasons())
	detail := fmt.Sprintf("%d checks failed", n)
	if n == 1 {
		detail = "1 check failed"
	}
	return fault.PromotionDenied.New(detail).With(map[string]any{
		"id": nil, "model": v.Model, "version": wire.OptionalText(v.Version), "from": v.From, "to": v.To,
		"state": api.PromotionStateRejected, "allowed": false, "reasons": v.Reasons(), "checks": v.Checks,
	})
}

// Open checks a promotion and, if the gate allows it, opens it; if it is already
// decided, it is carried out as well.
func (s *Service) Open(ctx context.Context, r Request) (Outcome, error) {
	if err := s.ExpireDue(ctx); err != nil {
		return Outcome{}, err
	}
	if r.DryRun {
		holders, err := s.Mover.Read(ctx, r.Model)
		if err != nil {
			return Outcome{}, err
		}
		v, err := s.Gate.Judge(ctx, r.Question, holders)
		return Outcome{Verdict: v}, err
	}
	var out Outcome
	err := s.Mover.Hold(ctx, r.Model, func(ctx context.Context, holders alias.Holders) (err error) {
		if out.Verdict, err = s.Gate.Judge(ctx, r.Question, holders); err != nil {
			return err
		}
		if !out.Verdict.Allowed() {
			return s.deny(ctx, r.Tenant, r.By, out.Verdict, nil)
		}
		p, move, err := s.open(ctx, r, out.Verdict, holders)
		if err != nil {
			return err
		}
		out.Promotion = &p
		if move == nil {
			return nil
		}
		return s.carry(ctx, *move, out.Promotion)
	})
	return out, err
}

// deny records the gate's denial.
func (s *Service) deny(ctx context.Context, tenant, actor string, v Verdict, id *uuid.UUID) error {
	subject := v.Model
	if id != nil {
		subject = id.String()
	}
	err := s.Store.InTx(ctx, func(tx store.Tx) error {
		return tx.Emit(ctx,
			event.Of(event.PlatformTenant, actor, "deploy", "promotion_denied", subject, event.Promotion{
				Model: v.Model, Version: v.Version, From: v.From, To: v.To, PromotionID: id, Reasons: v.Reasons(),
			}),
			event.Audit(tenant, actor, "promotion.denied", event.Model(v.Model), event.Denied, map[string]any{
				"version": v.Version, "from": v.From, "to": v.To, "reasons": v.Reasons(), "promotion_id": id,
			}))
	})
	if err == nil {
		s.Count(denied)
	}
	return err
}

// open writes the promotion and its record. A promotion that is already decided is
// approved in the same transaction, with the intent to move the alias.
func (s *Service) open(ctx context.Context, r Request, v Verdict, holders alias.Holders) (p store.Promotion, move *store.AliasMove, err error) {
	conditions, err := json.Marshal(orNone(r.Conditions))
	if err != nil {
		return p, nil, fmt.Errorf("promotion: encode conditions: %w", err)
	}
	err = s.Store.InTx(ctx, func(tx store.Tx) (err error) {
		move = nil
		now := s.Now()
		id := uuid.Must(uuid.NewV7())
		var record store.Approval
		reused := false
		pending, err := tx.PendingPromotions(ctx, store.PendingPromotionsParams{ModelID: r.Model, ToAlias: v.To})
		if err != nil {
			return err
		}
		for _, old := range pending {
			if old.Tenant != r.Tenant {
				continue
			}
			if old.Version == v.Version && old.FromAlias == v.From && sameJSON(old.Conditions, conditions) && wire.Deref(old.PreviousVersion) == holders[v.To] &&
				wire.Deref(old.Digest) == v.Digest {
				p, reused = old, true
				if record, err = tx.GetApprovalOfPromotion(ctx, &p.ID); err != nil {
					return err
				}
				if p, err = s.addPushers(ctx, tx, p, record, v, r.By); err != nil {
					return err
				}
				continue
			}
			if err := s.Settler.end(ctx, tx, old, Superseded, r.By, "superseded by "+id.String()); err != nil {
				return err
			}
		}
		if !reused {
			if p, record, err = s.insert(ctx, tx, id, r, v, holders, conditions, now); err != nil {
				return err
			}
		}
		by, reason, err := s.decider(ctx, tx, r, v, &p, record)
		if err != nil || by == "" {
			return err
		}
		if p, err = s.approve(ctx, tx, p, record, by, reason); err != nil {
			return err
		}
		m, err := s.plan(ctx, tx, p, v, holders)
		move = &m
		return err
	})
	return p, move, err
}

func orNone(c []api.Condition) []api.Condition {
	if c == nil {
		return []api.Condition{}
	}
	return c
}

// sameJSON compares conditions as Postgres returns them with those encoded here.
func sameJSON(a, b []byte) bool {
	var x, y []api.Condition
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil || len(x) != len(y) {
		return false
	}
	for i := range x {
		if x[i] != y[i] {
			return false
		}
	}
	return true
}

func (s *Service) insert(ctx context.Context, tx store.Tx, id uuid.UUID, r Request, v Verdict, holders alias.Holders, conditions []byte, now time.Time) (store.Promotion, store.Approval, error) {
	expires := s.Rules.ExpiresAt(now)
	asker := r.By
	if r.For != "" {
		asker = r.For
	}
	requesters, unknown, err := s.requesters(ctx, tx.Queries, asker, v)
	if err != nil {
		return store.Promotion{}, store.Approval{}, err
	}
	p, err := tx.InsertPromotion(ctx, store.InsertPromotionParams{
		ID: id, Tenant: r.Tenant, ModelID: r.Model, Version: v.Version, FromAlias: v.From, ToAlias: v.To, Origin: r.Origin,
		Conditions: conditions, PreviousVersion: wire.OptionalText(holders[v.To]), FlowRunID: wire.OptionalText(v.FlowRunID),
		RequestedBy: asker, Now: now, Reason: wire.OptionalText(r.Reason), ExpiresAt: expires,
		Requesters: requesters, PersonUnknown: unknown, Digest: wire.OptionalText(v.Digest),
	})
	if err != nil {
		return p, store.Approval{}, err
	}
	record, err := tx.InsertApproval(ctx, store.InsertApprovalParams{
		ID: uuid.Must(uuid.NewV7()), Kind: approval.Promotion, Origin: "promotion", Tenant: r.Tenant, ModelID: r.Model,
		PromotionID: &id, RequestedBy: asker, Now: now, ExpiresAt: expires, Requesters: requesters, PersonUnknown: unknown,
		Traceparent: wire.OptionalText(service.Traceparent(ctx)),
	})
	if err != nil {
		return p, record, err
	}
	facts := append(approval.Facts(record, r.By, "created", event.OK, wire.OptionalText(r.Reason)),
		event.Audit(r.Tenant, r.By, "promotion.opened", event.Model(r.Model), event.OK, auditDetails(p)))
	return p, record, tx.Emit(ctx, facts...)
}

func auditDetails(p store.Promotion) map[string]any {
	return map[string]any{
		"promotion_id": p.ID, "version": p.Version, "from": p.FromAlias, "to": p.ToAlias, "state": p.State,
		"previous_version": p.PreviousVersion, "reason": p.Reason, "digest": p.Digest,
	}
}

// decider returns who has already decided the promotion: the caller, if they requested
// that and may; or, under approval_mode run, the person who approved the training run,
// unless they are behind its commit. Empty means that it stays pending.
func (s *Service) decider(ctx context.Context, tx store.Tx, r Request, v Verdict, p *store.Promotion, record store.Approval) (by, reason string, err error) {
	if r.Decide != nil && s.Rules.Refuse(*r.Decide, askOf(*p)) == nil {
		if s.Rules.NeedsAnother(*r.Decide, askOf(*p)) {
			*p, err = s.approveFirst(ctx, tx, *p, record, r.Decide.Name)
			return "", "", err
		}
		return r.Decide.Name, r.Reason, nil
	}
	a, err := s.runApproval(ctx, tx.Queries, v)
	if err != nil || a == nil || a.Tenant != r.Tenant {
		return "", "", err
	}
	return *a.ResolvedBy, "approval " + a.ID.String() + " of the training run", nil
}

// runApproval returns the human approval of the run that created the version, if the
// policy accepts it.
func (s *Service) runApproval(ctx context.Context, q *store.Queries, v Verdict) (*store.Approval, error) {
	if v.Policy == nil || v.Policy.ApprovalMode != ApproveRun || v.FlowRunID == "" {
		return nil, nil
	}
	run, err := q.GetRun(ctx, v.FlowRunID)
	if store.None(err) || err == nil && (run.ApprovalID == nil || run.ModelID != v.Model) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	// A writer to the tracker can tag any version with any run, and replace the files of a version.
	if produced, err := s.producedBy(ctx, q, run, v); err != nil || !produced {
		return nil, err
	}
	a, err := q.GetApprovalOfAnyTenant(ctx, *run.ApprovalID)
	if store.None(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	human := a.ResolvedBy != nil && !auth.System(*a.ResolvedBy)
	if a.Status != approval.Approved || a.Kind != approval.Retrain || !human {
		return nil, nil
	}
	// A person who pushed or requested the commit that the version was trained from has not let it into Production by
	// approving its training.
	requesters, unknown, err := s.requesters(ctx, q, "", v)
	if err != nil {
		return nil, err
	}
	ask := separation.Ask{Requesters: requesters, PersonUnknown: unknown, FirstApprover: a.FirstApprover}
	if !ask.DecidedBy(s.Rules.Duties(), *a.ResolvedBy) {
		return nil, nil
	}
	return &a, nil
}

// producedBy reports whether the trainer reported this version, with these files, as the run's.
func (s *Service) producedBy(ctx context.Context, q *store.Queries, run store.Run, v Verdict) (bool, error) {
	if wire.Deref(run.ModelVersion) != v.Version {
		return false, nil
	}
	reported, err := q.GetVersion(ctx, store.GetVersionParams{ModelID: v.Model, Version: v.Version})
	if store.None(err) {
		return false, nil
	}
	return err == nil && reported.Digest != nil && *reported.Digest == v.Digest, err
}

// approve decides a pending promotion and its record.
func (s *Service) approve(ctx context.Context, tx store.Tx, p store.Promotion, record store.Approval, by, reason string) (store.Promotion, error) {
	now := s.Now()
	p, err := tx.SetPromotionState(ctx, store.SetPromotionStateParams{
		ID: p.ID, FromState: Pending, ToState: Approved, DecidedBy: &by, DecidedAt: &now, Reason: wire.OptionalText(reason), Now: now, UpdatedBy: by,
	})
	if err != nil {
		return p, err
	}
	record, err = tx.SetApprovalStatus(ctx, store.SetApprovalStatusParams{
		ID: record.ID, FromStatus: approval.Pending, ToStatus: approval.Approved, ResolvedBy: &by, ResolvedAt: &now, Now: now, UpdatedBy: by,
	})
	if err != nil {
		return p, err
	}
	return p, tx.Emit(ctx, append(approval.Facts(record, by, approval.Approved, event.OK, wire.OptionalText(reason)),
		event.Audit(p.Tenant, by, "promotion.approved", event.Model(p.ModelID), event.OK, auditDetails(p)))...)
}

func (s *Service) plan(ctx context.Context, tx store.Tx, p store.Promotion, v Verdict, holders alias.Holders) (store.AliasMove, error) {
	return s.Mover.Plan(ctx, tx, alias.Intent{
		Model: p.ModelID, Alias: p.ToAlias, Version: p.Version, Previous: holders[p.ToAlias], Via: alias.ViaPromotion,
		PromotionID: &p.ID, Tenant: p.Tenant, Actor: *p.DecidedBy, Dummy: v.Dummy, Digest: v.Digest,
	})
}

// lookTimeout limits reading the result of a move.
const lookTimeout = 5 * time.Second

// carry moves the alias and reads the resulting state of the promotion.
func (s *Service) carry(ctx context.Context, move store.AliasMove, p *store.Promotion) error {
	if _, err := s.Mover.Carry(ctx, move); err != nil {
		return err
	}
	// The move may have used up the request's time.
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	now, err := s.Store.GetPromotionOfAnyTenant(look, p.ID)
	if err == nil {
		*p = now
	}
	return err
}

// ExpireDue expires promotions that were not decided in time.
func (s *Service) ExpireDue(ctx context.Context) error {
	if s.Rules.Expiry <= 0 {
		return nil
	}
	for {
		n := 0
		if err := s.Store.InTx(ctx, func(tx store.Tx) error {
			now := s.Now()
			due, err := tx.OverduePromotions(ctx, &now)
			n = len(due)
			for _, p := range due {
				if err := s.Settler.end(ctx, tx, p, Expired, "system:expiry", fmt.Sprintf("not decided within %s", s.Rules.Expiry)); err != nil {
					return err
				}
			}
			return err
		}); err != nil {
			return err
		}
		for range n {
			s.Count(Expired)
		}
		if n == 0 {
			return nil
		}
	}
}
