package app

import (
	"time"

	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/control-plane/internal/alias"
	"github.com/mlp-platform/platform/services/control-plane/internal/approval"
	"github.com/mlp-platform/platform/services/control-plane/internal/ladder"
	"github.com/mlp-platform/platform/services/control-plane/internal/promotion"
)

// maxDescription bounds what the gate downloads of an artifact, in bytes: the
// file that holds a version's signature.
const maxDescription = 1 << 20

func (c *Config) approvalRules() approval.Rules {
	return approval.Rules{Expiry: time.Duration(c.ApprovalExpiryHours) * time.Hour, Duties: c.SeparationOfDuties == "enforce"}
}

// connectGate makes the policies of promotion and the gate that applies them.
func (p *parts) connectGate() (err error) {
	if p.policies, err = promotion.NewPolicies(promotion.PoliciesParts{
		Store: p.store, Registry: p.registry, Mode: p.cfg.ApprovalMode, Now: time.Now,
	}); err != nil {
		return err
	}
	p.gate, err = promotion.NewGate(promotion.GateParts{
		Store: p.store, Tracker: p.tracker, Registry: p.registry, AllowGenerated: p.cfg.AllowGenerated,
		Files: tracker.New(p.cfg.TrackingURI, p.http, tracker.Token(p.cfg.TrackingToken.Reveal()), tracker.MaxDownload(maxDescription)),
	})
	return err
}

// connectPromotions makes what moves aliases, and the promotions that ask for it.
func (p *parts) connectPromotions() (err error) {
	settler := promotion.NewSettler(p.cfg.approvalRules(), time.Now, p.metrics.Promotion)
	var outside alias.Requester // none: moves past the gate are followed
	if p.cfg.SeparationOfDuties == "enforce" {
		outside = settler
	}
	if p.mover, err = alias.NewMover(alias.Parts{
		Store: p.store, Tracker: p.tracker, Registry: p.registry, Locks: p.locks, Log: p.log, Now: time.Now,
		Settler: settler, External: p.drift.reconciler.Nudge, Outside: outside,
	}); err != nil {
		return err
	}
	p.aliases = alias.API{Store: p.store}
	p.promotions.Service, err = promotion.New(promotion.Parts{
		Store: p.store, Gate: p.gate, Mover: p.mover, Rules: p.cfg.approvalRules(), Settler: settler, Now: time.Now, Count: p.metrics.Promotion,
	})
	return err
}

func (p *parts) connectApprovals() (err error) {
	p.approvals.Service, err = approval.New(approval.Parts{
		Store: p.store, Commands: p.commands, Registry: p.registry, Admission: p.admission, Promotions: p.promotions.Service,
		Rules: p.cfg.approvalRules(), Now: time.Now, Count: p.metrics.Approval,
	})
	return err
}

// connectLadder makes what promotes the versions that finished runs report.
func (p *parts) connectLadder() (err error) {
	p.ladder, err = ladder.New(ladder.Parts{
		Store: p.store, Tracker: p.tracker, Registry: p.registry, Mover: p.mover, Promotions: p.promotions.Service, Gate: p.gate,
		Log: p.log, Now: time.Now,
	})
	return err
}
