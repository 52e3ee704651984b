package gate

import (
	"context"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/gatestat"
)

const (
	method       = "candidate-row-percentile-bootstrap-v0.1"
	samplingUnit = "non_probe_candidate_row"
)

func (m *Matrix) uncertainty(ctx context.Context, p *Panel, x Measures, b gatestat.Bootstrap, progress gatestat.Progress) (*Uncertainty, error) {
	u := &Uncertainty{
		Method: method, SamplingUnit: samplingUnit, ConfidenceLevel: b.ConfidenceLevel, Replicates: b.Replicates, Seed: b.Seed,
		Rows: len(m.rows), MinRows: gatestat.MinRows, Sufficient: len(m.rows) >= gatestat.MinRows,
	}
	if !u.Sufficient {
		return u, nil
	}
	if err := b.Affordable(replicateSteps(len(m.rows), len(p.Members))); err != nil {
		return nil, err
	}
	r := newResampler(m, p)
	var errors, accuracies, correlations, votes []float64
	err := b.Run(ctx, len(m.rows), progress, func(rows []int) {
		s := r.sample(rows)
		errors, accuracies = append(errors, s.Error), append(accuracies, s.Accuracy)
		if s.Correlation != nil {
			correlations = append(correlations, *s.Correlation)
		}
		if s.Votes != nil {
			votes = append(votes, *s.Votes)
		}
	})
	if err != nil {
		return nil, err
	}
	u.Metrics = &Metrics{
		Error: b.Metric(&x.Error, errors), Accuracy: b.Metric(&x.Accuracy, accuracies),
		Correlation: b.Metric(x.Correlation, correlations), Votes: VotesMetric{Metric: b.Metric(x.Votes, votes)},
	}
	u.Metrics.Votes.HighCensored = Censored(u.Metrics.Votes.CIHigh)
	return u, nil
}

// replicateSteps counts the steps of one replicate: every verdict once, and every pair.
func replicateSteps(rows, members int) int {
	const pair = 80 // in addition to its words of 64 rows
	return rows*members + members*(members-1)/2*(pair+rows/64)
}

// resampler measures a panel on drawn rows. It keeps error vectors as bits, so that the joint errors of a pair are
// counted 64 rows at a time: pairs dominate the cost.
type resampler struct {
	panel      *Panel
	good       Column
	curves     *gatestat.Curves
	drawn      []bits
	counts     []int
	accuracies []float64
	pairs      *gatestat.Pairs
	phis       gatestat.Sum
}

func newResampler(m *Matrix, p *Panel) *resampler {
	r := &resampler{
		panel: p, good: m.GoodRows(), curves: gatestat.NewCurves(m.quorum), pairs: gatestat.NewPairs(len(m.rows)),
		counts: make([]int, len(p.Members)), accuracies: make([]float64, len(p.Members)),
	}
	for range p.Members {
		r.drawn = append(r.drawn, newBits(len(m.rows)))
	}
	return r
}

func (r *resampler) sample(rows []int) Measures {
	n := len(rows)
	wrong := r.panel.Wrong.CountDrawn(rows)
	for i, column := range r.panel.Errors {
		r.counts[i] = r.drawn[i].fill(column, rows)
		r.accuracies[i] = Accuracy(r.counts[i], n)
	}
	s := Measures{Error: float64(wrong) / float64(n), Accuracy: gatestat.Mean(r.accuracies)}
	r.phis.Reset()
	defined := 0
	for i, a := range r.drawn {
		for j := range i {
			if phi, ok := r.pairs.Phi(r.counts[i], r.counts[j], a.joint(r.drawn[j])); ok {
				r.phis.Add(phi)
				defined++
			}
		}
	}
	if defined > 0 {
		mean := r.phis.Value() / float64(defined)
		s.Correlation = &mean
	}
	if v, ok := r.curves.Votes(s.Accuracy, float64(r.good.CountDrawn(rows))/float64(n), s.Error); ok {
		s.Votes = &v
	}
	return s
}
