package marginal

import (
	"context"

	"github.com/mlp-platform/platform/libs/evidence/closed"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/gate"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/gatestat"
)

// deltas are one candidate's, over the replicates in which they are defined.
type deltas struct{ errors, votes []float64 }

// maxDeltas limits the deltas that a bootstrap keeps: 16 bytes each.
const maxDeltas = 10_000_000

// resamplePanels draws rows. Restarting the generator for each candidate would give all of them the same rows: so they
// are drawn once, and the current panel is measured once.
func resamplePanels(ctx context.Context, m *gate.Matrix, current *gate.Panel, augmented []*gate.Panel, b gatestat.Bootstrap, progress gatestat.Progress) ([]deltas, error) {
	n := len(m.Rows())
	if b.Replicates > maxDeltas/len(augmented) {
		return nil, &closed.Fault{Code: gatestat.TooMuchWork, Detail: "that many replicates of that many candidates are more than this command keeps; use fewer of either"}
	}
	const votes = 500 // the search on the curve, for each candidate
	if err := b.Affordable(n*(len(current.Members)+2*len(augmented)) + len(augmented)*(len(current.Members)+votes)); err != nil {
		return nil, err
	}
	out := make([]deltas, len(augmented))
	curves, goodRows := gatestat.NewCurves(m.VoteQuorum()), m.GoodRows()
	// One place more than the current panel has, for the candidate.
	accuracies := make([]float64, len(current.Members)+1)
	last := len(current.Members)
	err := b.Run(ctx, n, progress, func(rows []int) {
		for i, e := range current.Errors {
			accuracies[i] = gate.Accuracy(e.CountDrawn(rows), n)
		}
		wrong := current.Wrong.CountDrawn(rows)
		good := float64(goodRows.CountDrawn(rows)) / float64(n)
		before, ok := curves.Votes(gatestat.Mean(accuracies[:last]), good, float64(wrong)/float64(n))
		measurable := ok && isTold(&before)
		for i, p := range augmented {
			now := p.Wrong.CountDrawn(rows)
			out[i].errors = append(out[i].errors, errorDelta(wrong, now, n))
			if !measurable {
				continue
			}
			accuracies[last] = gate.Accuracy(p.Errors[last].CountDrawn(rows), n)
			after, ok := curves.Votes(gatestat.Mean(accuracies), good, float64(now)/float64(n))
			if ok && isTold(&after) {
				out[i].votes = append(out[i].votes, after-before)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
