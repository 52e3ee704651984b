package gate

import (
	"github.com/mlp-platform/platform/clients/svc-cli/internal/gatestat"
)

// Panel is some verifiers of a matrix who decide together.
type Panel struct {
	Members []int
	Accepts []bool   // by candidate: the panel's verdict
	Wrong   Column   // by row: whether that is wrong
	Errors  []Column // by member and row
}

// Column holds one boolean for every row of a matrix: mostly, whether a verdict is wrong.
type Column []bool

// Count is the number of rows of which it is so.
func (c Column) Count() int {
	n := 0
	for _, w := range c {
		if w {
			n++
		}
	}
	return n
}

// CountDrawn counts the drawn rows that are true; a row counts as often as it was drawn.
func (c Column) CountDrawn(rows []int) int {
	n := 0
	for _, row := range rows {
		if c[row] {
			n++
		}
	}
	return n
}

// Joint is the number of rows of which it is so in both.
func (c Column) Joint(d Column) int {
	n := 0
	for i, w := range c {
		if w && d[i] {
			n++
		}
	}
	return n
}

// Errors is the error vector of one verifier.
func (m *Matrix) Errors(verifier int) Column { return m.wrong(m.Verifiers[verifier].Accepts) }

func (m *Matrix) wrong(accepts []bool) Column {
	out := make(Column, len(m.rows))
	for i, c := range m.rows {
		out[i] = accepts[c] != m.Candidates[c].Good
	}
	return out
}

// Panel returns the panel of these verifiers: it accepts a candidate if more than the quorum's share of them does.
func (m *Matrix) Panel(members []int) *Panel {
	p := &Panel{Members: members, Accepts: make([]bool, len(m.Candidates)), Errors: make([]Column, len(members))}
	for i, v := range members {
		p.Errors[i] = m.Errors(v)
	}
	threshold := m.quorum.Threshold(len(members))
	for c := range m.Candidates {
		votes := 0
		for _, v := range members {
			if m.Verifiers[v].Accepts[c] {
				votes++
			}
		}
		p.Accepts[c] = votes > threshold
	}
	p.Wrong = m.wrong(p.Accepts)
	return p
}

// Breached counts the probes that a panel accepts.
func (m *Matrix) Breached(p *Panel) int {
	n := 0
	for _, c := range m.probes {
		if p.Accepts[c] {
			n++
		}
	}
	return n
}

// Measures are the figures of a panel.
type Measures struct {
	Error       float64
	Accuracy    float64  // mean over the members
	Correlation *float64 // mean over the pairs of members whose errors vary; nil if none does
	Skipped     int      // pairs whose errors do not
	Votes       *float64 // effective votes; nil if the members are no better than chance, or no panel of independent ones errs as often
}

// Censored reports whether the panel is worth the largest number of votes that can be measured, or more.
func (m Measures) Censored() bool { return Censored(m.Votes) }

// UndefinedAtQuorum reports whether the members are better than chance, yet no panel of independent ones errs as often.
func (m Measures) UndefinedAtQuorum() bool { return m.Votes == nil && m.Accuracy > 0.5 }

// Censored is for any number of effective votes.
func Censored(votes *float64) bool { return votes != nil && *votes >= gatestat.Saturated }

// Measure computes the figures of a panel on the rows.
func (m *Matrix) Measure(p *Panel) Measures {
	n := len(m.rows)
	counts := make([]int, len(p.Members))
	accuracies := make([]float64, len(p.Members))
	for i, e := range p.Errors {
		counts[i] = e.Count()
		accuracies[i] = Accuracy(counts[i], n)
	}
	out := Measures{Error: float64(p.Wrong.Count()) / float64(n), Accuracy: gatestat.Mean(accuracies)}
	var phis []float64
	pairs := gatestat.NewPairs(n)
	for i := range p.Errors {
		for j := range i {
			if phi, ok := pairs.Phi(counts[i], counts[j], p.Errors[i].Joint(p.Errors[j])); ok {
				phis = append(phis, phi)
			} else {
				out.Skipped++
			}
		}
	}
	out.Correlation = meanOf(phis)
	good := float64(m.GoodRows().Count()) / float64(n)
	if v, ok := gatestat.EffectiveVotes(gatestat.Setting{Accuracy: out.Accuracy, Good: good, Quorum: m.quorum}, out.Error); ok {
		out.Votes = &v
	}
	return out
}

// Accuracy is the share of n rows on which a verifier with this many errors is right.
func Accuracy(errors, n int) float64 { return 1 - float64(errors)/float64(n) }

// meanOf is the mean of the defined values, or nil.
func meanOf(xs []float64) *float64 {
	if len(xs) == 0 {
		return nil
	}
	mean := gatestat.Mean(xs)
	return &mean
}
