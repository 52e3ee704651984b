package promotion

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/alias"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/guarded"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// Approval modes of a policy.
const (
	ApproveEach = "each" // a person decides each promotion
	ApproveRun  = "run"  // the person who approved the training run has decided it
)

// PoliciesParts are the dependencies of Policies.
type PoliciesParts struct {
	Store    *store.Store
	Registry *registry.Registry
	// Mode returns the approval mode of policies that do not set one.
	Mode func() string
	// Guard stores changes until a second person approves them.
	Guard *guarded.Service
	Now   func() time.Time
}

// Policies stores one policy per model.
type Policies struct{ PoliciesParts }

// NewPolicies returns Policies, or an error for a missing part.
func NewPolicies(p PoliciesParts) (*Policies, error) {
	if err := service.RequireParts("promotion policies", p); err != nil {
		return nil, err
	}
	s := &Policies{p}
	p.Guard.Handle(guarded.Policy, s.applyChange)
	return s, nil
}

// Load creates a policy from the Production rung for each model without one. A deleted
// policy stays deleted.
func (s *Policies) Load(ctx context.Context) error {
	mode := s.Mode()
	for _, m := range s.Registry.Models() {
		for _, rung := range m.Lifecycle {
			if rung.Name != alias.Production {
				continue
			}
			if err := s.Store.InTx(ctx, func(tx store.Tx) error {
				op := string(api.Gte)
				if rung.Direction == modelrepo.Lower {
					op = string(api.Lte)
				}
				n, err := tx.SeedPolicy(ctx, store.SeedPolicyParams{
					ModelID: m.ID(), Metric: rung.Metric, Operator: op, Threshold: rung.Threshold, ApprovalMode: mode, Now: s.Now(),
				})
				if err != nil || n == 0 {
					return err
				}
				return tx.Emit(ctx, event.Audit(event.PlatformTenant, "system:registry", "promotion_policy.created", event.Model(m.ID()), event.OK,
					map[string]any{"metric": rung.Metric, "operator": op, "threshold": rung.Threshold, "approval_mode": mode}))
			}); err != nil {
				return fmt.Errorf("policy of %s: %w", m.ID(), err)
			}
		}
	}
	return nil
}

const (
	aliasRule  = "must be Staging, Canary or Production"
	numberRule = "must be a number"
	metricRule = "must be 1 to 250 bytes without control characters"
)

func validMetric(name string) bool {
	return name != "" && len(name) <= 250 && strings.IndexFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0
}

// propose sets the model's policy, or stores the change until a second person approves it; then waits is not nil.
func (s *Policies) propose(ctx context.Context, who auth.Principal, row store.PutPolicyParams) (after store.Policy, waits *store.GuardedChange, err error) {
	err = s.Store.InTx(ctx, func(tx store.Tx) error {
		row.Now, row.UpdatedBy = s.Now(), who.Name
		change := guarded.Change{Kind: guarded.Policy, Target: row.ModelID, New: proposed(row)}
		before, err := tx.LockPolicy(ctx, row.ModelID)
		switch {
		case err == nil:
			change.Old = termsOf(before)
		case !store.None(err):
			return err
		}
		if waits, err = s.Guard.Propose(ctx, tx, who, change); err != nil || waits != nil {
			return err
		}
		after, err = s.set(ctx, tx, who, row)
		return err
	})
	return after, waits, err
}

// applyChange carries out an approved change of a policy.
func (s *Policies) applyChange(ctx context.Context, tx store.Tx, c store.GuardedChange, by auth.Principal) error {
	if len(c.New) == 0 {
		_, err := s.remove(ctx, tx, by, c.Target)
		return err
	}
	row, err := decodeChange(c)
	if err != nil {
		return err
	}
	_, err = s.set(ctx, tx, by, row)
	return err
}

// decodeChange parses the policy of a change, including one that an older version left pending: those have Go's field
// names.
func decodeChange(c store.GuardedChange) (row store.PutPolicyParams, err error) {
	if json.Unmarshal(c.New, &row) == nil && row.ModelID != "" {
		return row, nil
	}
	var t terms
	if err := json.Unmarshal(c.New, &t); err != nil {
		return row, fmt.Errorf("guarded change %s: decode policy: %w", c.ID, err)
	}
	return store.PutPolicyParams{
		ModelID: c.Target, Metric: t.Metric, Operator: t.Operator, Threshold: t.Threshold, FromAlias: t.FromAlias, ToAlias: t.ToAlias,
		Enabled: t.Enabled, RequireEval: t.RequireEval, ApprovalMode: t.ApprovalMode,
	}, nil
}

// terms are a policy as shown to the people who decide about a change of it.
type terms struct {
	Metric       string  `json:"metric"`
	Operator     string  `json:"operator"`
	Threshold    float64 `json:"threshold"`
	FromAlias    string  `json:"from_alias"`
	ToAlias      string  `json:"to_alias"`
	Enabled      bool    `json:"enabled"`
	RequireEval  bool    `json:"require_eval"`
	ApprovalMode string  `json:"approval_mode"`
}

func termsOf(r store.Policy) terms {
	return terms{
		Metric: r.Metric, Operator: r.Operator, Threshold: r.Threshold, FromAlias: r.FromAlias, ToAlias: r.ToAlias,
		Enabled: r.Enabled, RequireEval: r.RequireEval, ApprovalMode: r.ApprovalMode,
	}
}

func proposed(r store.PutPolicyParams) terms {
	return terms{
		Metric: r.Metric, Operator: r.Operator, Threshold: r.Threshold, FromAlias: r.FromAlias, ToAlias: r.ToAlias,
		Enabled: r.Enabled, RequireEval: r.RequireEval, ApprovalMode: r.ApprovalMode,
	}
}

// set replaces the model's policy and writes the old and the new one to the ledger.
func (s *Policies) set(ctx context.Context, tx store.Tx, who auth.Principal, row store.PutPolicyParams) (store.Policy, error) {
	details := map[string]any{}
	before, err := tx.LockPolicy(ctx, row.ModelID)
	switch {
	case err == nil:
		details["old"] = policyView(before)
	case !store.None(err):
		return before, err
	}
	row.Now, row.UpdatedBy = s.Now(), who.Name
	after, err := tx.PutPolicy(ctx, row)
	if err != nil {
		return after, err
	}
	details["new"] = policyView(after)
	return after, tx.Emit(ctx, event.Audit(who.Tenant, who.Name, "promotion_policy.set", event.Model(row.ModelID), event.OK, details))
}

// proposeRemoval is propose for deleting the model's policy; found is false if it has none.
func (s *Policies) proposeRemoval(ctx context.Context, who auth.Principal, model string) (found bool, waits *store.GuardedChange, err error) {
	err = s.Store.InTx(ctx, func(tx store.Tx) error {
		before, err := tx.LockPolicy(ctx, model)
		if found = err == nil; !found {
			if store.None(err) {
				return nil
			}
			return err
		}
		if waits, err = s.Guard.Propose(ctx, tx, who, guarded.Change{Kind: guarded.Policy, Target: model, Old: termsOf(before)}); err != nil || waits != nil {
			return err
		}
		_, err = s.remove(ctx, tx, who, model)
		return err
	})
	return found, waits, err
}

// remove deletes the model's policy; found is false if it has none.
func (s *Policies) remove(ctx context.Context, tx store.Tx, who auth.Principal, model string) (found bool, err error) {
	before, err := tx.LockPolicy(ctx, model)
	switch {
	case store.None(err):
		return false, nil
	case err != nil:
		return false, err
	}
	now := s.Now()
	if _, err := tx.RemovePolicy(ctx, store.RemovePolicyParams{ModelID: model, Now: &now, UpdatedBy: who.Name}); err != nil {
		return true, err
	}
	return true, tx.Emit(ctx, event.Audit(who.Tenant, who.Name, "promotion_policy.removed", event.Model(model), event.OK, map[string]any{"old": policyView(before)}))
}
