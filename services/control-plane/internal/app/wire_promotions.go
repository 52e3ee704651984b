package app

import (
	"slices"
	"time"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/control-plane/internal/alias"
	"github.com/mlp-platform/platform/services/control-plane/internal/approval"
	"github.com/mlp-platform/platform/services/control-plane/internal/guarded"
	"github.com/mlp-platform/platform/services/control-plane/internal/identity"
	"github.com/mlp-platform/platform/services/control-plane/internal/ladder"
	"github.com/mlp-platform/platform/services/control-plane/internal/promotion"
	"github.com/mlp-platform/platform/services/control-plane/internal/separation"
)

// maxDescription limits the gate's download of an artifact file that holds a version's signature, in bytes. It allows
// 256 bytes for each of 65,536 columns, the most that are served.
const maxDescription = 16 << 20

// environment lists the guarded settings and their values from the environment.
func (p *parts) environment() []guarded.Environment {
	people, _ := identity.Parse(p.cfg.Identities) // checked by Validate
	out := []guarded.Environment{
		{Name: guarded.Separation, Value: p.cfg.SeparationOfDuties}, {Name: guarded.ApprovalMode, Value: p.cfg.ApprovalMode},
		{Name: guarded.Generated, Value: p.cfg.AllowGenerated}, {Name: guarded.DriftGate, Value: p.cfg.AutoRetrainGate},
		{Name: guarded.Identities, Value: people.Entries()},
	}
	grants, issuers := p.auth.Grants()
	for name, scopes := range grants {
		out = append(out, guarded.Environment{Name: guarded.Credential + auth.FoldName(name), Value: scopes})
	}
	for name, scopes := range issuers {
		out = append(out, guarded.Environment{Name: guarded.Issuer + name, Value: scopes})
	}
	return out
}

// connectGuarded builds the store of guarded changes, which wait for a second person.
func (p *parts) connectGuarded() (err error) {
	p.guarded, err = guarded.New(guarded.Parts{
		Store: p.store, Settings: p.environment(), Expiry: time.Duration(p.cfg.ApprovalExpiryHours) * time.Hour, Now: time.Now, Log: p.log,
	})
	if err == nil {
		p.auth = p.auth.WithLimit(p.guarded.Limit)
	}
	return err
}

// connectGate builds the promotion policies and the gate that applies them.
func (p *parts) connectGate() (err error) {
	if p.policies, err = promotion.NewPolicies(promotion.PoliciesParts{
		Store: p.store, Registry: p.registry, Guard: p.guarded, Now: time.Now,
		Mode: func() string { return p.guarded.Text(guarded.ApprovalMode, promotion.ApproveEach) },
	}); err != nil {
		return err
	}
	p.gate, err = promotion.NewGate(promotion.GateParts{
		Store: p.store, Tracker: p.tracker, Registry: p.registry,
		AllowGenerated: func() bool { return p.guarded.On(guarded.Generated) },
		Files:          tracker.New(p.cfg.TrackingURI, p.http, tracker.Token(p.cfg.TrackingToken.Reveal()), tracker.MaxDownload(maxDescription)),
	})
	return err
}

// connectPromotions wires the alias mover and the promotions that use it.
func (p *parts) connectPromotions() (err error) {
	rules := p.guarded.Rules()
	settler := promotion.NewSettler(rules, time.Now, p.metrics.Promotion)
	if p.mover, err = alias.NewMover(alias.Parts{
		Store: p.store, Tracker: p.tracker, Registry: p.registry, Locks: p.locks, Log: p.log, Now: time.Now,
		Settler: settler, External: p.drift.reconciler.Nudge, Outside: settler, Enforced: rules.Duties,
	}); err != nil {
		return err
	}
	p.aliases = alias.API{Store: p.store}
	p.promotions.Service, err = promotion.New(promotion.Parts{
		Store: p.store, Gate: p.gate, Mover: p.mover, Rules: rules, Settler: settler, Now: time.Now, Count: p.metrics.Promotion,
	})
	return err
}

func (p *parts) connectApprovals() (err error) {
	p.approvals.Service, err = approval.New(approval.Parts{
		Store: p.store, Commands: p.commands, Registry: p.registry, Admission: p.admission, Promotions: p.promotions.Service,
		Rules: p.guarded.Rules(), Now: time.Now, Count: p.metrics.Approval,
	})
	return err
}

// connectLadder builds the ladder, which promotes versions reported by finished runs.
func (p *parts) connectLadder() (err error) {
	p.ladder, err = ladder.New(ladder.Parts{
		Store: p.store, Tracker: p.tracker, Registry: p.registry, Mover: p.mover, Promotions: p.promotions.Service, Gate: p.gate,
		Log: p.log, Now: time.Now, MayBind: mayBindRuns(p.guarded.Rules()),
	})
	return err
}

// mayBindRuns distinguishes the trainer's reports of versions from those of people. Under separation of duties, a
// caller who may request training or decide may not report which version an approved run produced: they could pass
// their own off as its.
func mayBindRuns(rules separation.Rules) func(auth.Principal) bool {
	return func(p auth.Principal) bool {
		return !rules.Duties() || separation.IsExempt(p.Name) ||
			!slices.ContainsFunc([]string{Changes, Retrain, Approve, Govern}, p.Has)
	}
}
