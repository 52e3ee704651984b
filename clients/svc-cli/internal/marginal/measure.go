package marginal

import (
	"context"
	"fmt"
	"slices"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/gate"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/gatestat"
)

// Measure computes the marginal evidence of every candidate. b may be nil.
func Measure(ctx context.Context, m *gate.Matrix, s Selection, b *gatestat.Bootstrap, progress gatestat.Progress) ([]Candidate, error) {
	pair := &comparison{m: m, current: m.Panel(s.Current), pairs: gatestat.NewPairs(len(m.Rows()))}
	pair.before = m.Measure(pair.current)
	out := make([]Candidate, len(s.Candidates))
	augmented := make([]*gate.Panel, len(s.Candidates))
	for i, v := range s.Candidates {
		// The candidate votes last; the order of votes has no effect.
		augmented[i] = m.Panel(append(slices.Clone(s.Current), v))
		out[i] = pair.candidate(v, augmented[i])
	}
	if b != nil && len(m.Rows()) >= gatestat.MinRows {
		deltas, err := resamplePanels(ctx, m, pair.current, augmented, *b, progress)
		if err != nil {
			return nil, err
		}
		for i := range out {
			out[i].Uncertainty = &Uncertainty{
				ErrorDelta: b.Metric(&out[i].ErrorDelta, deltas[i].errors),
				VotesDelta: b.Metric(out[i].VotesDelta, deltas[i].votes),
			}
		}
	}
	return out, nil
}

// comparison is of one current panel with several that have a member more.
type comparison struct {
	m       *gate.Matrix
	current *gate.Panel
	before  gate.Measures
	pairs   *gatestat.Pairs
}

func (x *comparison) candidate(v int, augmented *gate.Panel) Candidate {
	n := len(x.m.Rows())
	after := x.m.Measure(augmented)
	errors := x.m.Errors(v)
	c := Candidate{
		ID: x.m.Verifiers[v].ID, Status: Measured, Reasons: []string{}, Warnings: []string{},
		Accuracy:     gate.Accuracy(errors.Count(), n),
		CurrentError: x.before.Error, AugmentedError: after.Error,
		ErrorDelta:   errorDelta(x.current.Wrong.Count(), augmented.Wrong.Count(), n),
		CurrentVotes: x.before.Votes, AugmentedVotes: after.Votes,
		CurrentCensored: x.before.Censored(), AugmentedCensored: after.Censored(),
		Transitions: countTransitions(x.current.Wrong, augmented.Wrong, errors),
		Probes:      x.probes(augmented),
	}
	if isTold(c.CurrentVotes) && isTold(c.AugmentedVotes) {
		d := *c.AugmentedVotes - *c.CurrentVotes
		c.VotesDelta = &d
	}
	c.Correlation, c.Pairs = x.correlations(errors)
	c.Reasons = append(c.Reasons, c.reasons(n)...)
	if len(c.Reasons) > 0 {
		c.Status = Unresolved
	}
	c.Warnings = append(c.Warnings, c.warnings()...)
	if after.UndefinedAtQuorum() {
		c.Warnings = append(c.Warnings, gate.UndefinedAtQuorum+": "+gate.UndefinedAtQuorumText)
	}
	return c
}

// errorDelta is the reduction of the share of wrong rows: one division of an exact difference.
func errorDelta(before, after, n int) float64 { return float64(before-after) / float64(n) }

// isTold reports whether a number of votes is defined and within the measurable range.
func isTold(votes *float64) bool { return votes != nil && !gate.Censored(votes) }

func (x *comparison) correlations(errors gate.Column) (*float64, []PairCorrelation) {
	var defined []float64
	out := make([]PairCorrelation, len(x.current.Members))
	for i, v := range x.current.Members {
		out[i].Current = x.m.Verifiers[v].ID
		other := x.current.Errors[i]
		if phi, ok := x.pairs.Phi(errors.Count(), other.Count(), errors.Joint(other)); ok {
			out[i].Correlation = &phi
			defined = append(defined, phi)
		}
	}
	if len(defined) == 0 {
		return nil, out
	}
	mean := gatestat.Mean(defined)
	return &mean, out
}

func countTransitions(before, after, candidate gate.Column) Transitions {
	var t Transitions
	for i := range before {
		if before[i] && !candidate[i] {
			t.CorrectOnErrors++
		}
		if !before[i] && candidate[i] {
			t.WrongOnCorrect++
		}
		switch {
		case before[i] == after[i]:
		case before[i]:
			t.ChangedToCorrect++
		default:
			t.ChangedToWrong++
		}
	}
	t.Changed = t.ChangedToCorrect + t.ChangedToWrong
	return t
}

func (x *comparison) probes(augmented *gate.Panel) *ProbeEffect {
	probes := x.m.Probes()
	if len(probes) == 0 {
		return nil
	}
	e := &ProbeEffect{Total: len(probes), CurrentBreached: x.m.Breached(x.current), AugmentedBreached: x.m.Breached(augmented)}
	for _, c := range probes {
		if x.current.Accepts[c] && !augmented.Accepts[c] {
			e.Prevented++
		}
	}
	e.CurrentRate = float64(e.CurrentBreached) / float64(e.Total)
	e.AugmentedRate = float64(e.AugmentedBreached) / float64(e.Total)
	return e
}

// reasons why nothing can be concluded about the candidate, sorted.
func (c *Candidate) reasons(rows int) []string {
	var out []string
	for _, r := range []struct {
		reason string
		holds  bool
	}{
		{AugmentedCensored, c.AugmentedCensored},
		{AugmentedUndefined, c.AugmentedVotes == nil},
		{Unmeasurable, c.Correlation == nil},
		{CurrentCensored, c.CurrentCensored},
		{CurrentUndefined, c.CurrentVotes == nil},
		{TooFewRows, rows < gatestat.MinRows},
	} {
		if r.holds {
			out = append(out, r.reason)
		}
	}
	return out
}

func (c *Candidate) warnings() []string {
	var out []string
	warn := func(code, format string, args ...any) { out = append(out, code+": "+fmt.Sprintf(format, args...)) }
	if c.Accuracy <= 0.5 {
		warn("candidate_not_better_than_chance", "the candidate is right on half of the rows or fewer.")
	}
	unmeasured := 0
	for _, p := range c.Pairs {
		if p.Correlation == nil {
			unmeasured++
		}
	}
	if unmeasured > 0 {
		warn("correlation_partly_unmeasurable", "the errors of one side do not vary in %d of %d pairs with the current panel.", unmeasured, len(c.Pairs))
	}
	if e := c.Probes; e != nil {
		if e.AugmentedBreached > e.CurrentBreached-e.Prevented {
			warn("new_probe_breaches", "with the candidate the panel accepts %d of the probes that it rejects without.", e.AugmentedBreached-e.CurrentBreached+e.Prevented)
		}
	}
	return out
}
