package promotion

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/alias"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// Approval modes of a policy.
const (
	ApproveEach = "each" // a person decides each promotion
	ApproveRun  = "run"  // the person who approved the training run has decided it
)

// Policies keeps one policy per model.
type Policies struct {
	Store    *store.Store
	Registry *registry.Registry
	// Mode is the approval mode of policies that do not say theirs.
	Mode string
	Now  func() time.Time
}

// Load gives each model without a policy one from its Production rung. A policy
// that somebody removed stays removed.
func (s *Policies) Load(ctx context.Context) error {
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
					ModelID: m.ID(), Metric: rung.Metric, Operator: op, Threshold: rung.Threshold, ApprovalMode: s.Mode, Now: s.Now(),
				})
				if err != nil || n == 0 {
					return err
				}
				return tx.Emit(ctx, event.Audit(event.PlatformTenant, "system:registry", "promotion_policy.created", event.Model(m.ID()), event.OK,
					map[string]any{"metric": rung.Metric, "operator": op, "threshold": rung.Threshold, "approval_mode": s.Mode}))
			}); err != nil {
				return fmt.Errorf("policy of %s: %w", m.ID(), err)
			}
		}
	}
	return nil
}

// List serves GET /promotion-policies.
func (s *Policies) List(c echo.Context) error {
	page, err := wire.PageOf[string](c)
	if err != nil {
		return err
	}
	rows, err := s.Store.ListPolicies(c.Request().Context(), store.ListPoliciesParams{After: page.Start(), MaxRows: page.Fetch()})
	if err != nil {
		return err
	}
	rows, next := wire.CutPage(page, rows, func(r store.Policy) string { return r.ModelID })
	out := api.PolicyList{Items: make([]api.Policy, 0, len(rows)), NextCursor: next}
	for _, r := range rows {
		out.Items = append(out.Items, policyView(r))
	}
	return c.JSON(http.StatusOK, out)
}

// Get serves GET /promotion-policies/{model}.
func (s *Policies) Get(c echo.Context) error {
	row, err := s.Store.GetPolicy(c.Request().Context(), registry.ID(c.Param("model")))
	switch {
	case store.None(err):
		return noPolicy()
	case err != nil:
		return err
	}
	return c.JSON(http.StatusOK, policyView(row))
}

func noPolicy() error {
	return fault.PolicyNotFound.New("The model has no promotion policy; GET /promotion-policies lists those there are.")
}

// Put serves PUT /promotion-policies/{model}.
func (s *Policies) Put(c echo.Context) error {
	ctx := c.Request().Context()
	var body policyInput
	if err := wire.Decode(c, &body); err != nil {
		return err
	}
	id := registry.ID(c.Param("model"))
	row, err := s.input(id, body)
	if err != nil {
		return err
	}
	if _, err := s.Registry.TrackedFromPath(c); err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	var after store.Policy
	if err := s.Store.InTx(ctx, func(tx store.Tx) error {
		details := map[string]any{}
		before, err := tx.LockPolicy(ctx, id)
		switch {
		case err == nil:
			details["old"] = policyView(before)
		case !store.None(err):
			return err
		}
		row.Now, row.UpdatedBy = s.Now(), p.Name
		if after, err = tx.PutPolicy(ctx, row); err != nil {
			return err
		}
		details["new"] = policyView(after)
		return tx.Emit(ctx, event.Shared(p.Tenant, p.Name, "promotion_policy.set", event.Model(id), event.OK, details))
	}); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, policyView(after))
}

// policyInput is api.PolicyInput that tells a threshold of 0 from none.
type policyInput struct {
	Model        *string           `json:"model"`
	Metric       string            `json:"metric"`
	Operator     api.Operator      `json:"operator"`
	Threshold    *float64          `json:"threshold"`
	FromAlias    *string           `json:"from_alias"`
	ToAlias      *string           `json:"to_alias"`
	Enabled      *bool             `json:"enabled"`
	RequireEval  *bool             `json:"require_eval"`
	ApprovalMode *api.ApprovalMode `json:"approval_mode"`
}

func (s *Policies) input(id string, b policyInput) (store.PutPolicyParams, error) {
	var faults []problem.Field
	bad := func(msg, name string) { faults = append(faults, problem.Field{Loc: []string{"body", name}, Msg: msg}) }
	out := store.PutPolicyParams{
		ModelID: id, Metric: b.Metric, Operator: string(b.Operator),
		FromAlias: alias.Staging, ToAlias: alias.Production, Enabled: true, ApprovalMode: s.Mode,
	}
	if b.Model != nil && registry.ID(*b.Model) != id {
		bad("is not the model of the path", "model")
	}
	if !validMetric(b.Metric) {
		bad(metricRule, "metric")
	}
	if !b.Operator.Valid() {
		bad("must be lt, gt, lte or gte", "operator")
	}
	if b.Threshold == nil {
		bad(numberRule, "threshold")
	} else {
		out.Threshold = *b.Threshold
	}
	for _, f := range []struct {
		name  string
		given *string
		into  *string
	}{{"from_alias", b.FromAlias, &out.FromAlias}, {"to_alias", b.ToAlias, &out.ToAlias}} {
		if f.given == nil {
			continue
		}
		var ok bool
		if *f.into, ok = alias.Canonical(*f.given); !ok {
			bad(aliasRule, f.name)
		}
	}
	if out.FromAlias == out.ToAlias {
		bad("must be another than from_alias", "to_alias")
	}
	if b.Enabled != nil {
		out.Enabled = *b.Enabled
	}
	if b.RequireEval != nil {
		out.RequireEval = *b.RequireEval
	}
	if b.ApprovalMode != nil {
		if out.ApprovalMode = string(*b.ApprovalMode); !b.ApprovalMode.Valid() {
			bad("must be each or run", "approval_mode")
		}
	}
	return out, fault.InvalidAll(faults)
}

const (
	aliasRule  = "must be Staging, Canary or Production"
	numberRule = "must be a number"
	metricRule = "must be 1 to 250 bytes without control characters"
)

func validMetric(name string) bool {
	return name != "" && len(name) <= 250 && strings.IndexFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0
}

// Delete serves DELETE /promotion-policies/{model}.
func (s *Policies) Delete(c echo.Context) error {
	ctx := c.Request().Context()
	id := registry.ID(c.Param("model"))
	p, _ := auth.FromContext(ctx)
	found := false
	err := s.Store.InTx(ctx, func(tx store.Tx) error {
		before, err := tx.LockPolicy(ctx, id)
		if found = err == nil; !found {
			if store.None(err) {
				return nil
			}
			return err
		}
		now := s.Now()
		if _, err := tx.RemovePolicy(ctx, store.RemovePolicyParams{ModelID: id, Now: &now, UpdatedBy: p.Name}); err != nil {
			return err
		}
		return tx.Emit(ctx, event.Shared(p.Tenant, p.Name, "promotion_policy.removed", event.Model(id), event.OK, map[string]any{"old": policyView(before)}))
	})
	switch {
	case err != nil:
		return err
	case !found:
		return noPolicy()
	}
	return c.NoContent(http.StatusNoContent)
}

func policyView(r store.Policy) api.Policy {
	return api.Policy{
		Model: r.ModelID, Metric: r.Metric, Operator: api.Operator(r.Operator), Threshold: r.Threshold, FromAlias: r.FromAlias,
		ToAlias: r.ToAlias, Enabled: r.Enabled, RequireEval: r.RequireEval, ApprovalMode: api.ApprovalMode(r.ApprovalMode),
		UpdatedAt: r.UpdatedAt.UTC(), UpdatedBy: r.UpdatedBy,
	}
}
