package route

import (
	"math"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/connectors"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// The codes of a decision's faults are those of profiles and spine.InvalidAuthorityMode;
// those of a cost are these.
const (
	InvalidCost   = "invalid_cost"
	DuplicateCost = "duplicate_cost"
)

// Decision lists the requirements of a piece of work for a connector.
type Decision struct {
	RequiredTier                string
	Authority                   spine.AuthorityMode
	Risk                        string
	TaskClasses                 []string
	RequiredTools               []string
	AllowedKinds                []string
	ExternalProcessingAllowed   bool
	ProjectSpendUSDMax          float64 // US dollars
	HumanGateSatisfied          bool
	PreferZeroCost              bool
	AvoidProviderFamilies       []string
	IndependentReviewerRequired bool
}

// ParseDecision reads a routing decision. An error is a *closed.Fault.
func ParseDecision(v canon.Value) (Decision, error) {
	rd := closed.NewReader(connectors.Codes)
	o := rd.ObjectWith(v, "", []string{"required_capability_tier", "authority_mode"}, []string{
		"risk_class", "task_classes", "required_tools", "allowed_connector_kinds", "external_processing_allowed", "project_spend_usd_max",
		"human_gate_satisfied", "prefer_zero_cost", "avoid_provider_families", "independent_reviewer_required"})
	d := Decision{Risk: spine.Risks()[0], AllowedKinds: []string{"agent"}}
	d.RequiredTier = o.OneOf("required_capability_tier", connectors.InvalidCapabilityTier, connectors.Tiers()...)
	d.Authority = spine.AuthorityMode(o.OneOf("authority_mode", spine.InvalidAuthorityMode, authorityModes()...))
	if o.Has("risk_class") {
		d.Risk = o.OneOf("risk_class", connectors.InvalidRisk, spine.Risks()...)
	}
	if o.Has("task_classes") {
		d.TaskClasses = connectors.Words(rd, o, "task_classes", connectors.InvalidValue, nil)
	}
	if o.Has("required_tools") {
		d.RequiredTools = connectors.Words(rd, o, "required_tools", connectors.InvalidValue, nil)
	}
	if o.Has("allowed_connector_kinds") {
		d.AllowedKinds = connectors.Words(rd, o, "allowed_connector_kinds", connectors.UnknownConnectorKind, spine.ConnectionKinds())
	}
	if o.Has("project_spend_usd_max") {
		d.ProjectSpendUSDMax = connectors.Dollars(o, "project_spend_usd_max")
	}
	if o.Has("avoid_provider_families") {
		d.AvoidProviderFamilies = connectors.Words(rd, o, "avoid_provider_families", connectors.InvalidValue, nil)
	}
	d.ExternalProcessingAllowed = readFlag(o, "external_processing_allowed", true)
	d.HumanGateSatisfied = readFlag(o, "human_gate_satisfied", false)
	d.PreferZeroCost = readFlag(o, "prefer_zero_cost", true)
	d.IndependentReviewerRequired = readFlag(o, "independent_reviewer_required", false)
	if rd.OK() && d.Authority == spine.Deterministic && d.RequiredTier != connectors.Tiers()[0] {
		o.Fail(connectors.ConflictingField, "required_capability_tier", "deterministic work requires T0 and no other tier")
	}
	if f := rd.Fault(); f != nil {
		return Decision{}, f
	}
	return d, nil
}

func readFlag(o closed.Object, key string, absent bool) bool {
	if !o.Has(key) {
		return absent
	}
	return o.Bool(key)
}

// LoadDecision reads a decision's file.
func LoadDecision(path string) (Decision, error) {
	v, err := command.ReadDocument(path)
	if err != nil {
		return Decision{}, err
	}
	return ParseDecision(v)
}

func authorityModes() []string {
	return []string{string(spine.Deterministic), string(spine.AgentCandidate), string(spine.HumanGateThenAgent), string(spine.HumanRequired)}
}

// ParseCosts reads `ID=USD` pairs about the connectors of a profile.
func ParseCosts(pairs []string, all []connectors.Connector) (map[string]float64, error) {
	out := map[string]float64{}
	for _, pair := range pairs {
		id, amount, _ := strings.Cut(pair, "=")
		if !slices.ContainsFunc(all, func(c connectors.Connector) bool { return c.ID == id }) {
			return nil, command.Failf(InvalidCost, "--cost %q names no connector of the profile; it reads ID=USD", pair)
		}
		usd, err := canon.Parse([]byte(amount))
		f := -1.0
		switch v := usd.(type) {
		case canon.Int:
			f, _ = v.Big().Float64()
		case canon.Float:
			f = float64(v)
		}
		if err != nil || !(f >= 0) || math.IsInf(f, 0) {
			return nil, command.Failf(InvalidCost, "--cost of %s must be an amount of US dollars of 0 or more, such as 0.25", id)
		}
		if _, twice := out[id]; twice {
			return nil, command.Failf(DuplicateCost, "--cost names %s twice", id)
		}
		out[id] = f
	}
	return out, nil
}
