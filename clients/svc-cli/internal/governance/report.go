package governance

import (
	"slices"
	"strings"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// Outcomes of a guard and of a report.
const (
	Pass    = "PASS"
	Warn    = "WARN"
	Unknown = "UNKNOWN"
	Fail    = "FAIL"
)

// Report is the answer about an observation and an operation.
type Report struct {
	Kind                           string   `json:"kind"`
	SchemaVersion                  string   `json:"schema_version"`
	PolicyProfile                  string   `json:"policy_profile"`
	Operation                      string   `json:"operation"`
	Repository                     string   `json:"repository"`
	ObservedAt                     string   `json:"observed_at"`
	Status                         string   `json:"status"`
	Guards                         []Guard  `json:"guards"`         // in the policy's order
	NotApplicable                  []string `json:"not_applicable"` // codes, in that order too
	AutomaticAdminMutation         bool     `json:"automatic_admin_mutation"`
	RulesetProvesIndependentReview bool     `json:"ruleset_proves_independent_review"`
}

// Guard is the answer of one guard that applies.
type Guard struct {
	Code    string   `json:"code"`
	Level   string   `json:"level"`
	Outcome string   `json:"outcome"`
	Sources []string `json:"sources"`
	Reason  string   `json:"reason"`
}

// ParseOperation checks the name of an operation.
func ParseOperation(s string) (string, error) {
	if !slices.Contains(Operations(), s) {
		return "", command.Failf("invalid_operation", "--operation is one of %s", strings.Join(Operations(), ", "))
	}
	return s, nil
}

// Judge holds an observation against the policy for an operation.
func Judge(o Observation, operation string) Report {
	r := Report{
		Kind: "svc-github-governance-report", SchemaVersion: spine.SchemaVersion, PolicyProfile: "github-first-governance-v0.1",
		Operation: operation, Repository: o.Repository, ObservedAt: o.ObservedAt, Guards: []Guard{}, NotApplicable: []string{},
	}
	for _, g := range guards {
		if !g.about(operation) || g.unless != nil && g.unless(o) {
			r.NotApplicable = append(r.NotApplicable, g.code)
			continue
		}
		r.Guards = append(r.Guards, g.judge(o))
	}
	r.Status = overallStatus(r.Guards)
	return r
}

func (g guard) judge(o Observation) Guard {
	out := Guard{Code: g.code, Level: g.level, Sources: g.sources}
	found, reason := unobserved, ""
	if absent := g.missing(o); len(absent) > 0 {
		reason = "not observable: " + strings.Join(absent, ", ")
	} else {
		found, reason = g.look(o)
	}
	out.Reason = reason
	switch {
	case found == satisfied:
		out.Outcome = Pass
	case found == unobserved:
		out.Outcome = Unknown
	case g.level == Required:
		out.Outcome = Fail
	default:
		out.Outcome = Warn
	}
	return out
}

func overallStatus(guards []Guard) string {
	out := Pass
	for _, g := range guards {
		switch {
		case g.Outcome == Fail:
			return Fail
		case g.Outcome == Unknown && g.Level == Required:
			out = Unknown
		case g.Outcome != Pass && out == Pass:
			out = Warn
		}
	}
	return out
}
