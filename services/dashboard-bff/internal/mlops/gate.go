package mlops

import (
	"context"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/clients/go/wire"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/compose"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// baselinePrefix is how the trainer names the baseline of a metric.
const baselinePrefix = "baseline_"

// Promotion serves GET /api/v1/mlops/promotion/{name}.
func (v *Views) Promotion(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	name, err := nameFromPath(c)
	if err != nil {
		return err
	}
	view := v.pool.Begin(c)
	facts, ok := compose.Ask(view, v.sources.gate, name).Get()
	if !ok {
		facts = gateFacts{unknown: "the promotion gate cannot be read: the control plane gave no answer"}
	}
	return view.Answer(api.PromotionView{Promotion: facts.view(name)})
}

// gateFacts are the control plane's records of a model's gate.
type gateFacts struct {
	unknown string // why there is no gate; empty if there is one
	gate    controlplane.Gate
	policy  *controlplane.Policy
	evals   []controlplane.Eval // of the gate's version, newest first
}

// gate reads the gate with the policy and the evaluations that it judges by.
func (c clients) gate(ctx context.Context, who caller.Caller, name string) (gateFacts, error) {
	client, err := c.ControlPlane(who)
	if err != nil {
		return gateFacts{}, err
	}
	var out gateFacts
	out.gate, err = wire.Decode[controlplane.Gate](client.GetGate(ctx, name, &controlplane.GetGateParams{}))
	if isNotFound(err) {
		return gateFacts{unknown: "there is no such model"}, nil
	}
	if err != nil {
		return gateFacts{}, err
	}
	policy, err := wire.Decode[controlplane.Policy](client.GetPolicy(ctx, name))
	switch {
	case err == nil:
		out.policy = &policy
	case !isNotFound(err):
		return gateFacts{}, err
	}
	limit := pageLimit
	evals, err := wire.Decode[controlplane.EvalList](client.ListEvals(ctx, &controlplane.ListEvalsParams{Model: &name, Limit: &limit}))
	for _, e := range evals.Items {
		if out.gate.Version != nil && e.Version == *out.gate.Version && upstream.VisibleTo(who, e.Tenant) {
			out.evals = append(out.evals, e)
		}
	}
	return out, err
}

// view decides whether the promotion is allowed: an enabled policy, a passed evaluation and an approval. Each of the
// three that fails has a separate reason.
func (f gateFacts) view(name string) api.Promotion {
	notRun := api.NotRun
	out := api.Promotion{
		Model: name, TrackerName: strings.ToLower(name),
		Policy:   api.Promotion_Policy{Reasons: []string{}},
		Eval:     api.Promotion_Eval{Metrics: map[string]api.GateMetric{}, State: &notRun},
		Approval: api.Promotion_Approval{Required: true, State: string(controlplane.GateApprovalStatePending)},
	}
	if f.unknown != "" {
		out.Policy.Reasons = append(out.Policy.Reasons, f.unknown, "no enabled promotion policy")
		return out
	}
	g := f.gate
	out.TrackerName, out.Version = g.TrackerName, nullableVersion(g.Version)
	out.Approval.State = string(g.Approval.State)
	out.Eval.Pass, out.Eval.Metrics = g.Eval.Pass, f.metrics()
	state := f.evalState()
	out.Eval.State = &state
	checks := make([]api.GateCheck, len(g.Checks))
	for i, check := range g.Checks {
		checks[i] = api.GateCheck{Name: check.Name, Pass: check.Pass, Detail: &check.Detail}
	}
	out.Checks = &checks

	out.Policy.Allow = g.Policy.Allow && f.policy != nil && f.policy.Enabled
	out.Policy.Reasons = append(out.Policy.Reasons, g.Policy.Reasons...)
	out.Allowed = g.Allowed && out.Policy.Allow && out.Eval.Pass && g.Approval.State == controlplane.GateApprovalStateApproved
	if !out.Allowed {
		out.Policy.Reasons = f.complete(out)
	}
	return out
}

// complete adds a reason for each failing part that the control plane's own reasons leave out.
func (f gateFacts) complete(p api.Promotion) []string {
	reasons := p.Policy.Reasons
	mention := func(word, reason string) {
		if !slices.ContainsFunc(reasons, func(r string) bool { return strings.Contains(r, word) }) {
			reasons = append(reasons, reason)
		}
	}
	if f.policy == nil || !f.policy.Enabled {
		mention("promotion policy", "no enabled promotion policy")
	}
	if !p.Eval.Pass && !slices.ContainsFunc(f.gate.Checks, func(c controlplane.Check) bool { return !c.Pass && isEvaluation(c.Name) }) {
		reason := "the evaluation has not run"
		if *p.Eval.State == api.Failed {
			reason = "the latest evaluation failed"
		}
		reasons = append(reasons, reason)
	}
	if f.gate.Approval.State != controlplane.GateApprovalStateApproved {
		mention("not approved", "the promotion is not approved ("+string(f.gate.Approval.State)+")")
	}
	return reasons
}

// isEvaluation reports whether a check of the control plane is part of the evaluation.
func isEvaluation(check string) bool {
	return check == "policy_metric" || check == "condition" || check == "evaluation"
}

func (f gateFacts) evalState() api.PromotionEvalState {
	ran := len(f.evals) > 0 || slices.ContainsFunc(f.gate.Checks, func(c controlplane.Check) bool { return isEvaluation(c.Name) })
	switch {
	case f.gate.Eval.Pass:
		return api.Passed
	case ran:
		return api.Failed
	}
	return api.NotRun
}

// metrics returns those that were judged: by the policy, or by the newest evaluation of a suite. A metric that was not
// judged neither passed nor failed; it is among the version's own in the model's view.
func (f gateFacts) metrics() map[string]api.GateMetric {
	out := map[string]api.GateMetric{}
	suites := map[string]bool{}
	for _, e := range f.evals {
		if suites[e.Suite] {
			continue
		}
		suites[e.Suite] = true
		for _, m := range e.Metrics {
			if old, ok := out[m.Metric]; ok && !old.Passed {
				continue // a failure in one suite is not offset by another
			}
			out[m.Metric] = api.GateMetric{Value: m.Value, Baseline: m.Baseline, Passed: m.Passed}
		}
	}
	if f.policy == nil {
		return out
	}
	value, measured := f.gate.Eval.Metrics[f.policy.Metric]
	if !measured {
		return out
	}
	m := api.GateMetric{Value: value, Threshold: &f.policy.Threshold, Passed: true}
	for _, check := range f.gate.Checks {
		if check.Name == "policy_metric" {
			m.Passed = check.Pass
		}
	}
	if baseline, ok := f.gate.Eval.Metrics[baselinePrefix+f.policy.Metric]; ok {
		m.Baseline = &baseline
	}
	if old, ok := out[f.policy.Metric]; ok {
		m.Passed = m.Passed && old.Passed
		if old.Baseline != nil {
			m.Baseline = old.Baseline
		}
	}
	out[f.policy.Metric] = m
	return out
}
