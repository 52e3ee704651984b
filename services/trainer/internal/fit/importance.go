package fit

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/services/trainer/internal/frame"
)

// Limits of the permutation importance: shuffles of each feature, predictions in total, rows (within the predictions)
// and the time that the graph of a command may take for all of it.
const (
	importanceRepeats     = 3
	importancePredictions = 50_000
	importanceMinRows     = 50
	importanceMaxRows     = 2000
	importanceGraphTime   = time.Minute
)

// Importances measure how much the model relies on each feature (Breiman 2001): the metric on test rows with the
// feature shuffled, compared with the metric on the same rows unchanged.
type Importances struct {
	// Metric is the model's, by which versions are compared; Rows of test were used, each feature shuffled Repeats times.
	Metric  string `json:"metric"`
	Rows    int    `json:"rows"`
	Repeats int    `json:"repeats"`
	// Features by falling importance.
	Features []Importance `json:"features"`
}

// Importance of one feature: how much worse the metric gets without it, in the metric's unit. About 0, and below it by
// chance, means that the model does not need the feature.
type Importance struct {
	Feature string  `json:"feature"`
	Worse   float64 `json:"worse"`
	// Std is the population deviation over the repeats.
	Std float64 `json:"std"`
}

// importanceRows is how many test rows are used: as many as the limits allow.
func importanceRows(test, features int) int {
	rows := importancePredictions / (importanceRepeats * max(features, 1))
	return min(test, max(min(rows, importanceMaxRows), importanceMinRows))
}

// importances shuffles one feature after the other in test rows. It returns nil if the metric is not defined and finite
// on them, as they are and shuffled, or if the graph of a command would take too long. A model may refuse shuffled
// rows, which no job ever had, so an error is no fault of the model.
func (f *fitted) importances(ctx context.Context, m *modelrepo.Model, test rows) (*Importances, error) {
	metric, direction := m.Primary()
	n := importanceRows(test.table.Rows, len(test.table.Columns))
	idx := make([]int, n)
	for i := range idx { // spread evenly
		idx[i] = i * test.table.Rows / n
	}
	sub := rows{test.table.Select(idx), test.target.Select(idx)}
	started := time.Now()
	base, _, _, err := f.judge(ctx, sub)
	if err != nil {
		return nil, err
	}
	known, ok := base[metric]
	calls := importanceRepeats * len(sub.table.Columns)
	if !ok || !isFinite(known) || f.graph != nil && time.Since(started)*time.Duration(calls) > importanceGraphTime {
		return nil, nil //nolint:nilnil // the report omits unmeasured importances
	}
	out := &Importances{Metric: metric, Rows: n, Repeats: importanceRepeats}
	for c := range sub.table.Columns {
		var worse [importanceRepeats]float64
		for k := range worse {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			order := rand.New(rand.NewPCG(uint64(m.Estimator.Seed), uint64(c*importanceRepeats+k))).Perm(n)
			got, _, _, err := f.judge(ctx, rows{shuffleColumn(sub.table, c, order), sub.target})
			if err != nil {
				return nil, err
			}
			v, ok := got[metric]
			if !ok {
				return nil, nil //nolint:nilnil // as above
			}
			if worse[k] = v - known; direction == modelrepo.Higher {
				worse[k] = -worse[k]
			}
		}
		mean, std := meanAndStd(worse[:])
		if !isFinite(mean) || !isFinite(std) { // JSON has neither infinities nor NaN
			return nil, nil //nolint:nilnil // as above
		}
		out.Features = append(out.Features, Importance{sub.table.Columns[c].Name, mean, std})
	}
	slices.SortStableFunc(out.Features, func(a, b Importance) int {
		switch {
		case a.Worse > b.Worse:
			return -1
		case a.Worse < b.Worse:
			return 1
		}
		return 0
	})
	return out, nil
}

// shuffleColumn returns the table with the values of column c in another order.
func shuffleColumn(t frame.Table, c int, order []int) frame.Table {
	shuffled := frame.Table{Columns: []frame.Column{t.Columns[c]}, Rows: t.Rows}.Select(order)
	t.Columns = slices.Clone(t.Columns)
	t.Columns[c] = shuffled.Columns[0]
	return t
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// meanAndStd are the mean and the population deviation of v.
func meanAndStd(v []float64) (mean, std float64) {
	n := float64(len(v))
	for _, x := range v {
		mean += x / n
	}
	for _, x := range v {
		std += (x - mean) * (x - mean) / n
	}
	return mean, math.Sqrt(std)
}
