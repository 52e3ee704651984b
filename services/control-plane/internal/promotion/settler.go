package promotion

import (
	"context"
	"fmt"
	"time"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/services/control-plane/internal/alias"
	"github.com/mlp-platform/platform/services/control-plane/internal/approval"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/separation"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// Settler closes a promotion in the transaction that completes its alias move.
type Settler struct {
	rules separation.Rules
	now   func() time.Time
	count func(outcome string) // counts ended promotions
}

// NewSettler returns a Settler; now is the clock, count counts ended promotions.
func NewSettler(rules separation.Rules, now func() time.Time, count func(outcome string)) *Settler {
	return &Settler{rules: rules, now: now, count: count}
}

// end closes a pending promotion and its record without approval.
func (s *Settler) end(ctx context.Context, tx store.Tx, p store.Promotion, state, actor, reason string) error {
	now := s.now()
	set := store.SetPromotionStateParams{ID: p.ID, FromState: Pending, ToState: state, Reason: wire.OptionalText(reason), Now: now, UpdatedBy: actor}
	record, err := tx.GetApprovalOfPromotion(ctx, &p.ID)
	if err != nil {
		return err
	}
	mirror := store.SetApprovalStatusParams{
		ID: record.ID, FromStatus: approval.Pending, ToStatus: approval.Expired, RejectReason: wire.OptionalText(reason), Now: now, UpdatedBy: actor,
	}
	if state == Rejected {
		set.DecidedBy, set.DecidedAt = &actor, &now
		mirror.ToStatus, mirror.ResolvedBy, mirror.ResolvedAt = approval.Rejected, &actor, &now
	}
	if p, err = tx.SetPromotionState(ctx, set); err != nil {
		return err
	}
	if record, err = tx.SetApprovalStatus(ctx, mirror); err != nil {
		return err
	}
	return tx.Emit(ctx, append(approval.Facts(record, actor, mirror.ToStatus, event.OK, wire.OptionalText(reason)),
		event.Audit(p.Tenant, actor, "promotion."+state, event.Model(p.ModelID), event.OK, auditDetails(p)))...)
}

// Moved settles the promotion whose alias was moved; it is part of alias.Settler.
func (s *Settler) Moved(ctx context.Context, tx store.Tx, m store.AliasMove) error {
	if m.Via == alias.ViaRollback {
		return s.rolledBack(ctx, tx, m)
	}
	if m.PromotionID == nil {
		return nil
	}
	p, err := tx.SetPromotionState(ctx, store.SetPromotionStateParams{ID: *m.PromotionID, FromState: Approved, ToState: Promoted, Now: s.now(), UpdatedBy: m.Actor})
	if err != nil {
		return fmt.Errorf("promotion %s: approved → promoted: %w", *m.PromotionID, err)
	}
	var events []outbox.Event
	pending, err := tx.PendingPromotions(ctx, store.PendingPromotionsParams{ModelID: p.ModelID, ToAlias: p.ToAlias})
	if err != nil {
		return err
	}
	for _, other := range pending { // opened against a former holder
		if err := s.end(ctx, tx, other, Superseded, m.Actor, "superseded by "+p.ID.String()); err != nil {
			return err
		}
	}
	events = append(events,
		event.Of(event.PlatformTenant, m.Actor, "deploy", "promoted", p.ID.String(), event.Promotion{
			Model: p.ModelID, Version: p.Version, From: p.FromAlias, To: p.ToAlias, PromotionID: &p.ID,
		}),
		event.Audit(p.Tenant, m.Actor, "promotion.promoted", event.Model(p.ModelID), event.OK, auditDetails(p)))
	if err := tx.Emit(ctx, events...); err != nil {
		return err
	}
	s.count(Promoted)
	return nil
}

// MoveFailed settles the promotion whose alias cannot be moved; it is part of alias.Settler.
func (s *Settler) MoveFailed(ctx context.Context, tx store.Tx, m store.AliasMove, reason string) error {
	if m.PromotionID == nil {
		return nil
	}
	p, err := tx.SetPromotionState(ctx, store.SetPromotionStateParams{ID: *m.PromotionID, FromState: Approved, ToState: Failed, Reason: &reason, Now: s.now(), UpdatedBy: m.Actor})
	if err != nil {
		return fmt.Errorf("promotion %s: approved → failed: %w", *m.PromotionID, err)
	}
	s.count(Failed)
	return tx.Emit(ctx, event.Audit(p.Tenant, m.Actor, "promotion.failed", event.Model(p.ModelID), event.Failed, auditDetails(p)))
}
