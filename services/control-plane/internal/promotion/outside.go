package promotion

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/alias"
	"github.com/mlp-platform/platform/services/control-plane/internal/approval"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// MovedPast opens the promotion requested by a move of Production past the gate; it is part of alias.Requester. The
// gate is evaluated on approval: a mover without a policy yet, or whose run lacks a metric, still learns that the
// request waits. The same request again changes nothing; one for another version replaces the previous one. Removing
// the alias requests nothing.
func (s *Settler) MovedPast(ctx context.Context, tx store.Tx, m alias.OutsideMove) error {
	if m.Version == "" {
		return nil
	}
	tenant, err := tx.OwnerOf(ctx, m.Model)
	if err != nil {
		return err
	}
	id := uuid.Must(uuid.NewV7())
	pending, err := tx.PendingPromotions(ctx, store.PendingPromotionsParams{ModelID: m.Model, ToAlias: alias.Production})
	if err != nil {
		return err
	}
	for _, old := range pending {
		if old.Tenant != tenant {
			continue
		}
		sameFiles := m.Digest == "" || wire.Deref(old.Digest) == m.Digest
		if old.Version == m.Version && wire.Deref(old.PreviousVersion) == m.Holder && (sameFiles || old.Origin != FromOutside) {
			return nil // the same request as the first one's
		}
		if old.Origin != FromOutside {
			// A request that went past the gate does not supersede one that went through it.
			return tx.Emit(ctx, event.Audit(tenant, m.Mover, "promotion.refused", event.Model(m.Model), event.Denied, map[string]any{
				"version": m.Version, "to": alias.Production, "reason": "promotion " + old.ID.String() + " is pending",
			}))
		}
		if err := s.end(ctx, tx, old, Superseded, m.Mover, "superseded by "+id.String()); err != nil {
			return err
		}
	}
	return s.insertOutside(ctx, tx, id, tenant, m)
}

// shownDigest returns the digest in a tag; nil if the tag is not a digest.
func shownDigest(tag string) *string {
	if !alias.ValidDigest(tag) {
		return nil
	}
	return &tag
}

func (s *Settler) insertOutside(ctx context.Context, tx store.Tx, id uuid.UUID, tenant string, m alias.OutsideMove) error {
	conditions, err := json.Marshal([]api.Condition{})
	if err != nil {
		return err
	}
	from := alias.Staging
	policy, err := tx.GetPolicy(ctx, m.Model)
	switch {
	case err == nil && policy.ToAlias == alias.Production:
		from = policy.FromAlias
	case err != nil && !store.None(err):
		return err
	}
	holder := "nobody"
	if m.Holder != "" {
		holder = "version " + m.Holder
	}
	reason := fmt.Sprintf("Production was moved at the tracker from %s to version %s, past the gate", holder, m.Version)
	now := s.now()
	p, err := tx.InsertPromotion(ctx, store.InsertPromotionParams{
		ID: id, Tenant: tenant, ModelID: m.Model, Version: m.Version, FromAlias: from, ToAlias: alias.Production, Origin: FromOutside,
		Conditions: conditions, PreviousVersion: wire.OptionalText(m.Holder), RequestedBy: m.Mover, Now: now, Reason: &reason,
		ExpiresAt: s.rules.ExpiresAt(now), Requesters: []string{m.Mover}, PersonUnknown: true, // the tracker does not say who moved an alias
		Digest: shownDigest(m.Digest),
	})
	if err != nil {
		return err
	}
	record, err := tx.InsertApproval(ctx, store.InsertApprovalParams{
		ID: uuid.Must(uuid.NewV7()), Kind: approval.Promotion, Origin: "promotion", Tenant: tenant, ModelID: m.Model,
		PromotionID: &id, RequestedBy: m.Mover, Now: now, ExpiresAt: p.ExpiresAt, Requesters: p.Requesters, PersonUnknown: p.PersonUnknown,
		Traceparent: wire.OptionalText(service.Traceparent(ctx)),
	})
	if err != nil {
		return err
	}
	return tx.Emit(ctx, append(approval.Facts(record, m.Mover, "created", event.OK, &reason),
		event.Audit(tenant, m.Mover, "promotion.opened", event.Model(m.Model), event.OK, auditDetails(p)))...)
}
