package route

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/connectors"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// Explanation is the answer about a profile and a decision.
type Explanation struct {
	CheckedAt            string       `json:"checked_at"`
	Eligible             []Eligible   `json:"eligible"`   // the best first
	Ineligible           []Ineligible `json:"ineligible"` // by id
	SelectedConnectionID *string      `json:"selected_connection_id"`
	SelectionReason      []string     `json:"selection_reason"`
}

// Eligible is a connector that may serve the work.
type Eligible struct {
	ConnectionID  string `json:"connection_id"`
	SupportedTier string `json:"supported_tier"` // the lowest it offers that is high enough
}

// Ineligible is a connector that may not, and every reason why.
type Ineligible struct {
	ConnectionID string   `json:"connection_id"`
	Reasons      []string `json:"reasons"`
}

// Question is the routing question to explain.
type Question struct {
	Connectors []connectors.Connector
	Probes     []connectors.Inspection // of Connectors, in their order
	Decision   Decision
	Costs      map[string]float64 // US dollars by connection id; absent is 0
	At         time.Time
	Select     bool // pick the best
}

// Explain answers a question. It depends on nothing else.
func Explain(q Question) Explanation {
	out := Explanation{CheckedAt: spine.FormatTime(q.At), Eligible: []Eligible{}, Ineligible: []Ineligible{}, SelectionReason: []string{}}
	var fit []candidate
	for i, c := range q.Connectors {
		can := makeCandidate(c, q.Probes[i], q.Decision, q.Costs[c.ID])
		if reasons := can.refusals(q.Decision); len(reasons) > 0 {
			out.Ineligible = append(out.Ineligible, Ineligible{c.ID, reasons})
		} else {
			fit = append(fit, can)
		}
	}
	slices.SortFunc(fit, func(a, b candidate) int { return a.compare(b, q.Decision) })
	slices.SortFunc(out.Ineligible, func(a, b Ineligible) int { return strings.Compare(a.ConnectionID, b.ConnectionID) })
	for _, c := range fit {
		out.Eligible = append(out.Eligible, Eligible{c.id, connectors.Tiers()[c.tier]})
	}
	if q.Select && len(fit) > 0 {
		out.SelectedConnectionID = &fit[0].id
		out.SelectionReason = []string{"lexicographic_v0_1", "required_tier:" + q.Decision.RequiredTier,
			"authority:" + string(q.Decision.Authority), "risk:" + q.Decision.Risk}
	}
	return out
}

// candidate is a connector as a decision sees it: the capabilities that its profile allows and its driver has.
type candidate struct {
	connectors.Connector
	id       string
	probe    *connectors.Probe // nil if inspecting failed
	code     string            // of that failure
	tier     int               // rank of the supported tier, -1 if none is high enough
	classes  []string
	tools    []string
	risk     int
	external bool
	cost     float64
}

func makeCandidate(c connectors.Connector, i connectors.Inspection, d Decision, cost float64) candidate {
	out := candidate{Connector: c, id: c.ID, probe: i.Probe, tier: -1, cost: cost}
	if i.Error != nil {
		out.code = i.Error.Code
		return out
	}
	can := i.Probe.Observed.Capabilities
	out.classes = intersectOrObserved(c.TaskClasses, can.TaskClasses)
	out.tools = intersectOrObserved(c.Tools, can.Tools)
	out.risk = min(connectors.RiskRank(c.MaxRisk), connectors.RiskRank(can.MaxRisk))
	out.external = c.ExternalProcessing || can.ExternalProcessing
	for _, t := range intersectOrObserved(c.CapabilityTiers, can.Tiers) {
		rank := connectors.TierRank(t)
		if rank >= connectors.TierRank(d.RequiredTier) && (out.tier < 0 || rank < out.tier) {
			out.tier = rank
		}
	}
	return out
}

// intersectOrObserved returns the values both configured and observed, or all observed ones if none are configured.
func intersectOrObserved(configured, observed []string) []string {
	if len(configured) == 0 {
		return observed
	}
	var out []string
	for _, s := range configured {
		if slices.Contains(observed, s) {
			out = append(out, s)
		}
	}
	return out
}

// refusals lists why the candidate may not serve, in the fixed order of the rules. A candidate that could not be
// inspected, or may never cost so much, is not checked further.
func (c candidate) refusals(d Decision) []string {
	switch {
	case c.probe == nil:
		return []string{"inspection_error:" + c.code}
	case c.cost > c.ProjectSpendUSDMax:
		return []string{"connector_spend_policy_exceeded"}
	}
	var out []string
	add := func(reason string, when bool) {
		if when {
			out = append(out, reason)
		}
	}
	switch d.Authority {
	case spine.HumanRequired:
		add("human_required", true)
	case spine.HumanGateThenAgent:
		add("human_gate_pending", !d.HumanGateSatisfied)
	case spine.Deterministic:
		add("deterministic_no_llm", c.Kind == "agent" || c.Kind == "model")
	}
	disabled := !c.Enabled || c.probe.Status == connectors.Disabled
	add("connector_disabled", disabled)
	add("connector_unavailable", !disabled && c.probe.Status == connectors.Unavailable)
	add("connector_kind_not_allowed", !slices.Contains(d.AllowedKinds, c.Kind))
	add("insufficient_capability_tier", c.tier < 0)
	for _, class := range d.TaskClasses { // sorted
		add("task_class_unsupported:"+class, !slices.Contains(c.classes, class))
	}
	for _, tool := range d.RequiredTools {
		add("required_tool_missing:"+tool, !slices.Contains(c.tools, tool))
	}
	add("risk_not_allowed", connectors.RiskRank(d.Risk) > c.risk)
	add("external_processing_forbidden", c.external && !d.ExternalProcessingAllowed)
	add("project_spend_exceeded", c.cost > d.ProjectSpendUSDMax)
	add("secret_unavailable", c.probe.Failure != nil && c.probe.Failure.Code == connectors.SecretUnavailable)
	add("capacity_unavailable", c.probe.Status != connectors.Healthy && c.probe.Status != connectors.Degraded)
	return out
}

// compare orders candidates, the better first.
func (c candidate) compare(b candidate, d Decision) int {
	avoided := func(c candidate) int {
		return rankWorse(c.Independence.ProviderFamily != "" && slices.Contains(d.AvoidProviderFamilies, c.Independence.ProviderFamily))
	}
	paid := func(c candidate) int { return rankWorse(d.PreferZeroCost && c.cost > 0) }
	first := 0
	if d.IndependentReviewerRequired {
		first = cmp.Compare(avoided(c), avoided(b))
	}
	return cmp.Or(
		first,
		cmp.Compare(c.tier, b.tier), // the requirement is the same for both, so the surplus orders as the tier does
		cmp.Compare(paid(c), paid(b)),
		cmp.Compare(avoided(c), avoided(b)),
		cmp.Compare(rankWorse(c.external), rankWorse(b.external)),
		cmp.Compare(rankWorse(c.probe.Status == connectors.Degraded), rankWorse(b.probe.Status == connectors.Degraded)),
		cmp.Compare(c.cost, b.cost),
		strings.Compare(c.id, b.id),
	)
}

func rankWorse(worse bool) int {
	if worse {
		return 1
	}
	return 0
}
