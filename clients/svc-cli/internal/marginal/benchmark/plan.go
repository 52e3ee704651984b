package benchmark

import (
	"cmp"
	"crypto/sha256"
	"math/big"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/canon"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/marginal"
)

// RuleVersion names the rules by which the strategies choose.
const RuleVersion = "marginal-selection-interval-dominance-v0.1"

const designOnly = "design_only"

// The strategies, in the order of reports.
const (
	MarginalVotes     = "marginal_effective_votes"
	RandomEligible    = "random_eligible"
	HighestAccuracy   = "highest_standalone_accuracy"
	DifferentFamily   = "different_family_first"
	LowestCorrelation = "minimum_mean_pairwise_error_correlation"
)

// Strategies lists them.
func Strategies() []string {
	return []string{MarginalVotes, RandomEligible, HighestAccuracy, DifferentFamily, LowestCorrelation}
}

// Whether a strategy chose.
const (
	Selected   = "selected"
	Unresolved = "unresolved"
)

// Why it did or did not.
const (
	unresolvedMetrics = "unresolved_design_candidate_metrics"
	pointTie          = "marginal_point_estimate_tie"
	notSeparated      = "marginal_ordering_not_interval_separated"
	separated         = "largest_interval_separated_design_delta_effective_votes"
	seededChoice      = "sha256_seeded_choice_over_canonical_candidate_order"
	byAccuracy        = "design_accuracy_then_source_order"
	newFamily         = "unrepresented_family_then_design_accuracy_then_source_order"
	noNewFamily       = "no_unrepresented_family_design_accuracy_then_source_order"
	unmeasurable      = "candidate_error_correlation_unmeasurable"
	byCorrelation     = "minimum_design_correlation_then_accuracy_then_source_order"
)

// reasons lists the codes that may go with a strategy and whether it chose.
var reasons = map[[2]string][]string{
	{MarginalVotes, Selected}:       {separated},
	{MarginalVotes, Unresolved}:     {unresolvedMetrics, pointTie, notSeparated},
	{RandomEligible, Selected}:      {seededChoice},
	{HighestAccuracy, Selected}:     {byAccuracy},
	{DifferentFamily, Selected}:     {newFamily, noNewFamily},
	{LowestCorrelation, Selected}:   {byCorrelation},
	{LowestCorrelation, Unresolved}: {unmeasurable},
}

// Plan holds the choices of the strategies, all made on the design.
type Plan struct {
	RuleVersion string     `json:"rule_version"`
	Source      string     `json:"source"`
	Current     []string   `json:"current_verifier_ids"`
	Candidates  []string   `json:"candidate_verifier_ids"`
	Selectors   []Selector `json:"selectors"`
	Digest      string     `json:"digest_sha256"` // C2 of the rest
}

// Selector is one strategy's choice.
type Selector struct {
	Strategy string   `json:"strategy"`
	Status   string   `json:"status"`
	Verifier *string  `json:"selected_verifier_id"`
	Reason   string   `json:"reason_code"`
	Score    *float64 `json:"design_score"` // the value compared; nil for the random strategy and without a choice
}

// digest is recomputed from the plan's parts.
func (p *Plan) digest() string {
	rest := canon.MustFrom(p).(*canon.Object)
	rest.Delete("digest_sha256")
	return canon.DigestHexC2(rest)
}

// newPlan lets every strategy choose among the candidates, which are in the order of the design matrix.
func newPlan(c *Config, current []string, candidates []marginal.Candidate) *Plan {
	p := &Plan{RuleVersion: RuleVersion, Source: designOnly, Current: current}
	for _, x := range candidates {
		p.Candidates = append(p.Candidates, x.ID)
	}
	p.Selectors = []Selector{
		byMarginalVotes(candidates),
		{Strategy: RandomEligible, Status: Selected, Verifier: &p.Candidates[randomIndex(c.RandomSeed, p.Candidates)], Reason: seededChoice},
		scoredSelector(HighestAccuracy, byAccuracy, mostAccurate(candidates)),
		byFamily(c, current, candidates),
		byLowestCorrelation(candidates),
	}
	p.Digest = p.digest()
	return p
}

func unresolvedSelector(strategy, reason string) Selector {
	return Selector{Strategy: strategy, Status: Unresolved, Reason: reason}
}

// scoredSelector is a choice by accuracy.
func scoredSelector(strategy, reason string, c *marginal.Candidate) Selector {
	return Selector{Strategy: strategy, Status: Selected, Verifier: &c.ID, Reason: reason, Score: &c.Accuracy}
}

// byMarginalVotes chooses the candidate that adds most votes, if it does so beyond doubt: its interval lies above all
// others.
func byMarginalVotes(candidates []marginal.Candidate) Selector {
	best, tie := 0, false
	for i, c := range candidates {
		if c.Status != marginal.Measured || c.VotesDelta == nil || c.Uncertainty == nil || c.Uncertainty.VotesDelta.CILow == nil {
			return unresolvedSelector(MarginalVotes, unresolvedMetrics)
		}
		switch d := cmp.Compare(*c.VotesDelta, *candidates[best].VotesDelta); {
		case i == 0:
		case d > 0:
			best, tie = i, false
		case d == 0:
			tie = true
		}
	}
	if tie {
		return unresolvedSelector(MarginalVotes, pointTie)
	}
	for i, c := range candidates {
		if i != best && *candidates[best].Uncertainty.VotesDelta.CILow <= *c.Uncertainty.VotesDelta.CIHigh {
			return unresolvedSelector(MarginalVotes, notSeparated)
		}
	}
	c := &candidates[best]
	return Selector{Strategy: MarginalVotes, Status: Selected, Verifier: &c.ID, Reason: separated, Score: c.VotesDelta}
}

// randomIndex makes a choice that cannot be steered and can be reproduced. The separator is a backslash and a zero, two
// characters.
func randomIndex(seed *big.Int, ids []string) int {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{seed.String()}, ids...), `\0`)))
	return int(new(big.Int).Mod(new(big.Int).SetBytes(sum[:]), big.NewInt(int64(len(ids)))).Int64())
}

// mostAccurate is the first of the most accurate candidates, of which there is one.
func mostAccurate(candidates []marginal.Candidate) *marginal.Candidate {
	best := &candidates[0]
	for i := range candidates {
		if candidates[i].Accuracy > best.Accuracy {
			best = &candidates[i]
		}
	}
	return best
}

func byFamily(c *Config, current []string, candidates []marginal.Candidate) Selector {
	represented := map[string]bool{}
	for _, id := range current {
		represented[c.Families[id]] = true
	}
	fresh := slices.DeleteFunc(slices.Clone(candidates), func(x marginal.Candidate) bool { return represented[c.Families[x.ID]] })
	if len(fresh) == 0 {
		return scoredSelector(DifferentFamily, noNewFamily, mostAccurate(candidates))
	}
	return scoredSelector(DifferentFamily, newFamily, mostAccurate(fresh))
}

func byLowestCorrelation(candidates []marginal.Candidate) Selector {
	best := &candidates[0]
	for i := range candidates {
		c := &candidates[i]
		if c.Correlation == nil {
			return unresolvedSelector(LowestCorrelation, unmeasurable)
		}
		if d := cmp.Compare(*c.Correlation, *best.Correlation); d < 0 || d == 0 && c.Accuracy > best.Accuracy {
			best = c
		}
	}
	return Selector{Strategy: LowestCorrelation, Status: Selected, Verifier: &best.ID, Reason: byCorrelation, Score: best.Correlation}
}
