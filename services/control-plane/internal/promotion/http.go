package promotion

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/alias"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/governance"
	"github.com/mlp-platform/platform/services/control-plane/internal/guarded"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

const maxConditions = 32

var version = regexp.MustCompile(`^[1-9][0-9]{0,17}$`)

// ValidVersion reports whether s can be a version of the tracker.
func ValidVersion(s string) bool { return version.MatchString(s) }

// VersionRule describes what ValidVersion accepts.
const VersionRule = "must be a whole number from 1, as text"

// API serves promotions.
type API struct{ Service *Service }

// Open serves POST /promotions.
func (a API) Open(c echo.Context) error {
	ctx := c.Request().Context()
	var body promotionRequest
	if err := wire.Decode(c, &body); err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	r, err := parseRequest(body)
	if err != nil {
		return err
	}
	m, err := a.Service.Gate.Registry.RequireTracked(ctx, r.Model)
	if err != nil {
		return err
	}
	if err := a.Service.Gate.Registry.RequireOwned(ctx, a.Service.Store.Queries, p.Tenant, m.ID); err != nil {
		return err
	}
	r.Model, r.Tenant, r.By, r.Origin = m.ID, p.Tenant, p.Name, FromRequest
	if body.Approve != nil && *body.Approve {
		r.Decide = &p
	}
	out, err := a.Service.Open(ctx, r)
	if err != nil {
		return err
	}
	v := out.Verdict
	if !v.Allowed() && !r.DryRun {
		return v.Denial()
	}
	res := api.PromotionResult{
		Model: v.Model, Version: wire.OptionalText(v.Version), From: v.From, To: v.To, State: api.PromotionStatePending,
		Allowed: v.Allowed(), Reasons: v.Reasons(), Checks: v.Checks,
	}
	if !res.Allowed { // the refusal that a real request would get
		res.State = api.PromotionStateRejected
	}
	if out.Promotion != nil {
		res.Id, res.State = &out.Promotion.ID, api.PromotionState(out.Promotion.State)
	}
	return c.JSON(http.StatusOK, res)
}

// promotionRequest is api.PromotionRequest with pointers, which distinguish 0 from absent.
type promotionRequest struct {
	Model      string            `json:"model"`
	Version    *string           `json:"version"`
	From       *string           `json:"from"`
	To         *string           `json:"to"`
	Conditions *[]conditionInput `json:"conditions"`
	Approve    *bool             `json:"approve"`
	DryRun     *bool             `json:"dry_run"`
	Reason     *string           `json:"reason"`
}

type conditionInput struct {
	Metric string       `json:"metric"`
	Op     api.Operator `json:"op"`
	Value  *float64     `json:"value"`
}

func parseRequest(b promotionRequest) (Request, error) {
	var r Request
	var faults []problem.Field
	bad := func(msg string, loc ...string) {
		faults = append(faults, problem.Field{Loc: append([]string{"body"}, loc...), Msg: msg})
	}
	if r.Model = registry.ID(b.Model); !registry.ValidName(b.Model) {
		bad(registry.NameRule, "model")
	}
	if b.Version != nil {
		if r.Version = *b.Version; !ValidVersion(r.Version) {
			bad(VersionRule, "version")
		}
	}
	for _, f := range []struct {
		name  string
		given *string
		into  *string
	}{{"from", b.From, &r.From}, {"to", b.To, &r.To}} {
		if f.given == nil {
			continue
		}
		var ok bool
		if *f.into, ok = alias.Canonical(*f.given); !ok {
			bad(aliasRule, f.name)
		}
	}
	if r.From != "" && r.From == r.To {
		bad("must be another than from", "to")
	}
	if b.Conditions != nil {
		given := *b.Conditions
		if len(given) > maxConditions {
			bad(fmt.Sprintf("has %d entries; at most %d", len(given), maxConditions), "conditions")
			given = nil
		}
		for i, cond := range given {
			at := fmt.Sprint(i)
			if !validMetric(cond.Metric) {
				bad(metricRule, "conditions", at, "metric")
			}
			if !cond.Op.Valid() {
				bad("must be lt, gt, lte or gte", "conditions", at, "op")
			}
			if cond.Value == nil {
				bad(numberRule, "conditions", at, "value")
				continue
			}
			r.Conditions = append(r.Conditions, api.Condition{Metric: cond.Metric, Op: cond.Op, Value: *cond.Value})
		}
	}
	if b.DryRun != nil {
		r.DryRun = *b.DryRun
	}
	if b.Reason != nil {
		if r.Reason = *b.Reason; len(r.Reason) > wire.MaxReason {
			bad(fmt.Sprintf("is longer than %d bytes", wire.MaxReason), "reason")
		}
	}
	return r, fault.InvalidAll(faults)
}

// GetGate serves GET /promotions/{model}/gate.
func (a API) GetGate(c echo.Context) error {
	ctx := c.Request().Context()
	var q Question
	var faults []problem.Field
	bad := func(msg, name string) { faults = append(faults, problem.Field{Loc: []string{"query", name}, Msg: msg}) }
	if q.Version = c.QueryParam("version"); q.Version != "" && !ValidVersion(q.Version) {
		bad(VersionRule, "version")
	}
	for name, into := range map[string]*string{"from": &q.From, "to": &q.To} {
		if given := c.QueryParam(name); given != "" {
			var ok bool
			if *into, ok = alias.Canonical(given); !ok {
				bad(aliasRule, name)
			}
		}
	}
	if err := fault.InvalidAll(faults); err != nil {
		return err
	}
	s := a.Service
	m, err := s.Gate.Registry.TrackedFromPath(c)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	q.Tenant, q.Model = p.Tenant, m.ID
	holders, err := s.Mover.Read(ctx, q.Model)
	if err != nil {
		return err
	}
	v, err := s.Gate.Judge(ctx, q, holders)
	if err != nil {
		return err
	}
	state, err := s.ApprovalState(ctx, p.Tenant, v)
	if err != nil {
		return err
	}
	out, err := gateView(v, m.TrackerName, state)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// gateView splits the checks into metrics, evaluation and the rest. An evaluation that
// did not run counts as not passed; one that ran must have passed even if the policy
// does not require it.
func gateView(v Verdict, trackerName string, state api.GateApprovalState) (api.Gate, error) {
	out := api.Gate{
		Model: v.Model, TrackerName: trackerName, Version: wire.OptionalText(v.Version), Checks: v.Checks,
		Policy:   api.GatePolicy{Allow: true, Reasons: v.Reasons()},
		Eval:     api.GateEval{Metrics: map[string]float64{}},
		Approval: api.GateApproval{Required: true, State: state},
	}
	evaluated, failed := len(v.Evals) > 0, false
	for _, check := range v.Checks {
		switch check.Name {
		case "policy_metric", "condition", "evaluation":
			evaluated, failed = true, failed || !check.Pass
		default:
			out.Policy.Allow = out.Policy.Allow && check.Pass
		}
	}
	out.Eval.Pass = evaluated && !failed
	if state != api.GateApprovalStateApproved {
		out.Policy.Reasons = append(out.Policy.Reasons, "the promotion is not approved ("+string(state)+")")
	}
	for name, value := range v.Metrics {
		if Finite(value) {
			out.Eval.Metrics[name] = value
		}
	}
	for _, run := range byAge(v.Evals) { // if two suites have the same metric, the newest wins
		out.Eval.Pass = out.Eval.Pass && run.Status == string(api.EvalStatusPassed)
		metrics, err := governance.DecodeMetrics(run)
		if err != nil {
			return out, err
		}
		for _, m := range metrics {
			out.Eval.Metrics[m.Metric] = m.Value
		}
	}
	out.Allowed = v.Allowed() && state == api.GateApprovalStateApproved
	return out, nil
}

// List serves GET /promotions.
func (a API) List(c echo.Context) error {
	ctx := c.Request().Context()
	page, err := wire.PageOf[uuid.UUID](c)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	q := store.ListPromotionsParams{Tenant: p.Tenant, Before: page.After, MaxRows: page.Fetch()}
	if v := c.QueryParam("model"); v != "" {
		q.ModelID = wire.OptionalText(registry.ID(v))
	}
	if v := c.QueryParam("state"); v != "" {
		if !api.PromotionState(v).Valid() {
			return fault.Invalid("must be pending, approved, promoted, failed, rejected, expired or superseded", "query", "state")
		}
		q.State = &v
	}
	rows, err := a.Service.Store.ListPromotions(ctx, q)
	if err != nil {
		return err
	}
	rows, next := wire.CutPage(page, rows, func(r store.ListPromotionsRow) uuid.UUID { return r.Promotion.ID })
	out := api.PromotionList{Items: make([]api.Promotion, 0, len(rows)), NextCursor: next}
	for _, r := range rows {
		v, err := toPromotion(r.Promotion, r.ApprovalID)
		if err != nil {
			return err
		}
		out.Items = append(out.Items, v)
	}
	return c.JSON(http.StatusOK, out)
}

// Get serves GET /promotions/{id}.
func (a API) Get(c echo.Context) error {
	id, err := wire.PathID(c, fault.PromotionNotFound)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(c.Request().Context())
	row, err := a.Service.get(c.Request().Context(), p.Tenant, id)
	if err != nil {
		return err
	}
	return a.answer(c, row)
}

// Approve serves POST /promotions/{id}/approve.
func (a API) Approve(c echo.Context) error {
	return a.decide(c, a.Service.Approve)
}

// Reject serves POST /promotions/{id}/reject.
func (a API) Reject(c echo.Context) error {
	return a.decide(c, a.Service.Reject)
}

type decideFunc = func(ctx context.Context, who auth.Principal, id uuid.UUID, reason string) (store.Promotion, error)

func (a API) decide(c echo.Context, decide decideFunc) error {
	reason, err := wire.Reason(c)
	if err != nil {
		return err
	}
	id, err := wire.PathID(c, fault.PromotionNotFound)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(c.Request().Context())
	row, err := decide(c.Request().Context(), p, id, reason)
	if err != nil {
		return err
	}
	return a.answer(c, row)
}

func (a API) answer(c echo.Context, p store.Promotion) error {
	record, err := a.Service.Store.ApprovalOfPromotion(c.Request().Context(), &p.ID)
	if err != nil {
		return err
	}
	v, err := toPromotion(p, record)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, v)
}

func toPromotion(p store.Promotion, approvalID uuid.UUID) (api.Promotion, error) {
	out := api.Promotion{
		Id: p.ID, Model: p.ModelID, Version: p.Version, From: p.FromAlias, To: p.ToAlias, State: api.PromotionState(p.State),
		Tenant: p.Tenant, Origin: api.PromotionOrigin(p.Origin), RequestedBy: p.RequestedBy, RequestedAt: p.RequestedAt.UTC(),
		DecidedBy: p.DecidedBy, DecidedAt: wire.UTC(p.DecidedAt), Reason: p.Reason, PreviousVersion: p.PreviousVersion,
		ApprovalId: approvalID, FlowRunId: p.FlowRunID, ExpiresAt: wire.UTC(p.ExpiresAt), UpdatedAt: p.UpdatedAt.UTC(), UpdatedBy: p.UpdatedBy,
		Requesters: p.Requesters, PersonUnknown: p.PersonUnknown, FirstApprover: p.FirstApprover, Digest: p.Digest,
	}
	if err := json.Unmarshal(p.Conditions, &out.Conditions); err != nil {
		return out, fmt.Errorf("promotion %s: decode conditions: %w", p.ID, err)
	}
	return out, nil
}

// Rollback serves POST /aliases/{model}/{alias}/rollback.
func (a API) Rollback(c echo.Context) error {
	ctx := c.Request().Context()
	var body api.RollbackRequest
	if err := wire.Decode(c, &body); err != nil {
		return err
	}
	var faults []problem.Field
	bad := func(msg, name string) { faults = append(faults, problem.Field{Loc: []string{"body", name}, Msg: msg}) }
	version := ""
	if body.Version != nil {
		if version = *body.Version; !ValidVersion(version) {
			bad(VersionRule, "version")
		}
	}
	switch reason := body.Reason; {
	case strings.TrimSpace(reason) == "":
		bad("is required", "reason")
	case len(reason) > wire.MaxReason:
		bad(fmt.Sprintf("is longer than %d bytes", wire.MaxReason), "reason")
	}
	if err := fault.InvalidAll(faults); err != nil {
		return err
	}
	m, err := a.Service.Gate.Registry.TrackedFromPath(c)
	if err != nil {
		return err
	}
	name, ok := alias.Canonical(c.Param("alias"))
	if !ok {
		return fault.AliasNotFound.New("There is no such alias; there are Staging, Canary and Production.")
	}
	p, _ := auth.FromContext(ctx)
	move, err := a.Service.Rollback(ctx, p, m.ID, name, version, body.Reason)
	if err != nil {
		return err
	}
	out := api.Rollback{
		Id: move.ID, Model: move.ModelID, Alias: move.Alias, Version: move.Version, PreviousVersion: move.PreviousVersion,
		State: api.RollbackState(move.State), Actor: move.Actor, Reason: body.Reason,
	}
	if move.State == alias.Moving {
		return c.JSON(http.StatusAccepted, out)
	}
	return c.JSON(http.StatusOK, out)
}

// List serves GET /promotion-policies.
func (s *Policies) List(c echo.Context) error {
	page, err := wire.PageOf[string](c)
	if err != nil {
		return err
	}
	rows, err := s.Store.ListPolicies(c.Request().Context(), store.ListPoliciesParams{Tenant: wire.CallerTenant(c), After: page.Start(), MaxRows: page.Fetch()})
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
	policy, waits, err := s.propose(ctx, p, row)
	switch {
	case err != nil:
		return err
	case waits != nil:
		return guarded.Accepted(c, *waits)
	}
	return c.JSON(http.StatusOK, policyView(policy))
}

// policyInput is api.PolicyInput with pointers, which distinguish a threshold of 0 from none.
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
		FromAlias: alias.Staging, ToAlias: alias.Production, Enabled: true, ApprovalMode: s.Mode(),
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
		bad("must differ from from_alias", "to_alias")
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

// Delete serves DELETE /promotion-policies/{model}.
func (s *Policies) Delete(c echo.Context) error {
	ctx := c.Request().Context()
	p, _ := auth.FromContext(ctx)
	found, waits, err := s.proposeRemoval(ctx, p, registry.ID(c.Param("model")))
	switch {
	case err != nil:
		return err
	case waits != nil:
		return guarded.Accepted(c, *waits)
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
