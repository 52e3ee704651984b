package promotion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/alias"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

func (s *Service) get(ctx context.Context, tenant string, id uuid.UUID) (store.Promotion, error) {
	p, err := s.Store.GetPromotion(ctx, store.GetPromotionParams{ID: id, Tenant: tenant})
	if store.None(err) {
		return p, fault.PromotionNotFound.New("There is no such promotion in your tenant; GET /promotions lists them.")
	}
	return p, err
}

func alreadyDecided(p store.Promotion) *problem.Error {
	detail := "This promotion is " + p.State
	if p.DecidedBy != nil {
		detail += " by " + *p.DecidedBy
	}
	if p.Reason != nil {
		detail += ": " + *p.Reason
	}
	return fault.AlreadyDecided.New(detail + ".").With(map[string]any{"id": p.ID, "state": p.State})
}

// refuse records a refused decision and returns the reason.
func (s *Service) refuse(ctx context.Context, who auth.Principal, p store.Promotion, action string, why *problem.Error) error {
	details := auditDetails(p)
	details["code"] = why.Kind.Code
	return errors.Join(why, s.Store.InTx(ctx, func(tx store.Tx) error {
		return tx.Emit(ctx, event.Audit(who.Tenant, who.Name, action, event.Model(p.ModelID), event.Denied, details))
	}))
}

// Approve decides a pending promotion and moves its alias. The gate is evaluated
// again; if the alias has moved since the promotion was opened, it is superseded.
func (s *Service) Approve(ctx context.Context, who auth.Principal, id uuid.UUID, reason string) (store.Promotion, error) {
	if err := s.ExpireDue(ctx); err != nil {
		return store.Promotion{}, err
	}
	p, err := s.get(ctx, who.Tenant, id)
	if err != nil {
		return p, err
	}
	if p.State != Pending {
		return p, s.refuse(ctx, who, p, "promotion.approve", alreadyDecided(p))
	}
	if own := s.Rules.Refuse(who, askOf(p)); own != nil {
		return p, s.refuse(ctx, who, p, "promotion.approve", own)
	}
	q := Question{Tenant: p.Tenant, Model: p.ModelID, Version: p.Version, From: p.FromAlias, To: p.ToAlias, Outside: p.Origin == FromOutside}
	if q.Outside {
		q.From = "" // the current policy's: there may have been none when the alias was moved
	}
	if err := json.Unmarshal(p.Conditions, &q.Conditions); err != nil {
		return p, fmt.Errorf("promotion %s: decode conditions: %w", p.ID, err)
	}
	asked, err := s.Store.TraceOfPromotion(ctx, &p.ID)
	if err != nil {
		return p, err
	}
	ctx, span := service.ContinueTrace(ctx, asked, "approve promotion")
	defer func() { service.EndSpan(span, err) }()
	err = s.Mover.Hold(ctx, p.ModelID, func(ctx context.Context, holders alias.Holders) error {
		if now := holders[p.ToAlias]; now != wire.Deref(p.PreviousVersion) {
			return s.moved(ctx, who, p, now)
		}
		v, err := s.Gate.Judge(ctx, q, holders)
		if err != nil {
			return err
		}
		if !v.Allowed() {
			return errors.Join(v.Denial().With(map[string]any{"id": p.ID, "state": p.State}), s.deny(ctx, who.Tenant, who.Name, v, &p.ID))
		}
		var move store.AliasMove
		var refused *problem.Error
		first, superseded := false, false
		if err := s.Store.InTx(ctx, func(tx store.Tx) error {
			refused, first, superseded = nil, false, false
			now, err := tx.LockPromotion(ctx, p.ID)
			if err != nil {
				return err
			}
			if now.State != Pending { // decided during the evaluation
				refused = alreadyDecided(now)
				return nil
			}
			record, err := tx.GetApprovalOfPromotion(ctx, &p.ID)
			if err != nil {
				return err
			}
			if now, err = s.addPushers(ctx, tx, now, record, v, who.Name); err != nil {
				return err
			}
			if refused = s.Rules.Refuse(who, askOf(now)); refused != nil {
				return nil
			}
			if wire.Deref(now.Digest) != v.Digest {
				superseded = now.Digest != nil
				refused = artifactChanged(now, v.Digest)
				return s.filesChanged(ctx, tx, now, v.Digest, who.Name)
			}
			if first = s.Rules.NeedsAnother(who, askOf(now)); first {
				p, err = s.approveFirst(ctx, tx, now, record, who.Name)
				return err
			}
			if p, err = s.approve(ctx, tx, now, record, who.Name, reason); err != nil {
				return err
			}
			move, err = s.plan(ctx, tx, p, v, holders)
			return err
		}); err != nil {
			return err
		}
		if superseded {
			s.Count(Superseded)
		}
		if refused != nil {
			return s.refuse(ctx, who, p, "promotion.approve", refused)
		}
		if first {
			return nil
		}
		return s.carry(ctx, move, &p)
	})
	return p, err
}

// artifactChanged is the 409 for a decision on files other than those shown.
func artifactChanged(p store.Promotion, digest string) *problem.Error {
	detail := fmt.Sprintf("The digest of version %s of %s was not known when this promotion was opened; it is %s and the promotion now has it. Review it and decide again.",
		p.Version, p.ModelID, digest)
	if p.Digest != nil {
		detail = fmt.Sprintf("The files of version %s of %s changed since this promotion was opened: their digest was %s and is %s now. It is superseded; review the new files and open another.",
			p.Version, p.ModelID, *p.Digest, digest)
	}
	return fault.ArtifactChanged.New(detail).With(map[string]any{"id": p.ID, "version": p.Version, "shown_digest": p.Digest, "digest": digest})
}

// filesChanged ends a promotion whose files are no longer those shown; one that showed none shows them from now on.
func (s *Service) filesChanged(ctx context.Context, tx store.Tx, p store.Promotion, digest, actor string) error {
	if p.Digest == nil {
		return tx.RecordPromotionDigest(ctx, store.RecordPromotionDigestParams{ID: p.ID, Digest: &digest})
	}
	return s.Settler.end(ctx, tx, p, Superseded, actor, fmt.Sprintf("the digest of the files went from %s to %s since this promotion was opened", *p.Digest, digest))
}

// moved supersedes a promotion whose alias has changed since it was shown.
func (s *Service) moved(ctx context.Context, who auth.Principal, p store.Promotion, now string) error {
	was, is := "nobody", "nobody"
	if v := wire.Deref(p.PreviousVersion); v != "" {
		was = "version " + v
	}
	if now != "" {
		is = "version " + now
	}
	why := fmt.Sprintf("%s of %s went from %s to %s since this promotion was opened", p.ToAlias, p.ModelID, was, is)
	err := s.Store.InTx(ctx, func(tx store.Tx) error { return s.Settler.end(ctx, tx, p, Superseded, who.Name, why) })
	if err == nil {
		s.Count(Superseded)
	}
	return errors.Join(fault.AliasMoved.New(why+"; open a new one.").With(map[string]any{"id": p.ID, "alias": p.ToAlias, "version": now}), err)
}

// Reject closes a pending promotion.
func (s *Service) Reject(ctx context.Context, who auth.Principal, id uuid.UUID, reason string) (store.Promotion, error) {
	if err := s.ExpireDue(ctx); err != nil {
		return store.Promotion{}, err
	}
	p, err := s.get(ctx, who.Tenant, id)
	if err != nil {
		return p, err
	}
	var refused *problem.Error
	if err := s.Store.InTx(ctx, func(tx store.Tx) error {
		refused = nil
		now, err := tx.LockPromotion(ctx, id)
		if err != nil {
			return err
		}
		if p = now; p.State != Pending {
			refused = alreadyDecided(p)
			return nil
		}
		return s.Settler.end(ctx, tx, p, Rejected, who.Name, reason)
	}); err != nil {
		return p, err
	}
	if refused != nil {
		return p, s.refuse(ctx, who, p, "promotion.reject", refused)
	}
	s.Count(Rejected)
	return s.get(ctx, who.Tenant, id)
}

// ApproveRecord is Approve, for the approval record of a promotion.
func (s *Service) ApproveRecord(ctx context.Context, p auth.Principal, id uuid.UUID, reason string) error {
	_, err := s.Approve(ctx, p, id, reason)
	return err
}

// RejectRecord is Reject, for the approval record of a promotion.
func (s *Service) RejectRecord(ctx context.Context, p auth.Principal, id uuid.UUID, reason string) error {
	_, err := s.Reject(ctx, p, id, reason)
	return err
}

// ApprovalState returns the state of a version's approval as the gate reports it.
func (s *Service) ApprovalState(ctx context.Context, tenant string, v Verdict) (api.GateApprovalState, error) {
	if v.Version == "" {
		return api.GateApprovalStatePending, nil
	}
	p, err := s.Store.LatestPromotion(ctx, store.LatestPromotionParams{Tenant: tenant, ModelID: v.Model, Version: v.Version, ToAlias: v.To})
	switch {
	case store.None(err):
		a, err := s.runApproval(ctx, s.Store.Queries, v)
		if err != nil || a == nil || a.Tenant != tenant {
			return api.GateApprovalStatePending, err
		}
		return api.GateApprovalStateApproved, nil
	case err != nil:
		return "", err
	}
	switch p.State {
	case Approved, Promoted:
		return api.GateApprovalStateApproved, nil
	case Rejected:
		return api.GateApprovalStateRejected, nil
	case Expired, Superseded:
		return api.GateApprovalStateExpired, nil
	}
	return api.GateApprovalStatePending, nil // pending; after a failed one a new decision is needed
}
