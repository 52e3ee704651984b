// Package score measures predictions, and the baselines they are held against.
package score

import (
	"cmp"
	"math"
	"slices"
)

// Regression returns rmse, mse, mae, mape, r2 and male of the predictions. A metric the values do not define is
// absent: mape without a value other than 0, r2 of equal values, male if a value is not above -1.
//
// mape is a ratio (0.1 is 10 %) over the values other than 0. male is the mean of |log1p(prediction) - log1p(value)|
// with predictions below 0 taken as 0: it weighs a factor of two the same for a second and for a day.
func Regression(want, got []float64) map[string]float64 {
	n := float64(len(want))
	var se, ae, ape, ale, mean, spread float64
	nonzero, logs := 0, true
	for _, w := range want {
		mean += w / n
	}
	for i, w := range want {
		d := got[i] - w
		se += d * d
		ae += math.Abs(d)
		if w != 0 {
			ape += math.Abs(d / w)
			nonzero++
		}
		if w <= -1 {
			logs = false
		} else {
			ale += math.Abs(math.Log1p(max(got[i], 0)) - math.Log1p(w))
		}
		spread += (w - mean) * (w - mean)
	}
	out := map[string]float64{"mse": se / n, "rmse": math.Sqrt(se / n), "mae": ae / n}
	if nonzero > 0 {
		out["mape"] = ape / float64(nonzero)
	}
	if spread > 0 {
		out["r2"] = 1 - se/spread
	}
	if logs {
		out["male"] = ale / n
	}
	return out
}

// Classification returns accuracy, f1_weighted, f1_macro and log_loss; of two classes also precision, recall, f1,
// roc_auc and pr_auc, the second label being the positive one. proba holds a probability per class and row. A class
// that is neither in want nor predicted counts in no mean.
func Classification(want, got []int, proba [][]float64, classes int) map[string]float64 {
	c := Confusion(want, got, classes)
	n := float64(len(want))
	var right, macro, weighted, loss float64
	present := 0
	for k := range classes {
		tp, actual, predicted := float64(c[k][k]), 0.0, 0.0
		for j := range classes {
			actual += float64(c[k][j])
			predicted += float64(c[j][k])
		}
		right += tp
		if actual+predicted == 0 {
			continue
		}
		f1 := 2 * tp / (actual + predicted)
		present++
		macro += f1
		weighted += f1 * actual / n
	}
	for i, w := range want {
		loss -= math.Log(min(max(proba[i][w], 1e-15), 1))
	}
	out := map[string]float64{"accuracy": right / n, "f1_macro": macro / float64(present), "f1_weighted": weighted, "log_loss": loss / n}
	if classes == 2 {
		scoreBinary(want, c, proba, out)
	}
	return out
}

// Anomaly returns roc_auc, pr_auc, precision, recall and f1; the second class are the anomalies. The areas are absent if
// all rows are of one class.
func Anomaly(want, got []int, proba [][]float64) map[string]float64 {
	out := map[string]float64{}
	scoreBinary(want, Confusion(want, got, 2), proba, out)
	return out
}

// Confusion counts rows by actual (first index) and predicted class.
func Confusion(want, got []int, classes int) [][]int {
	c := make([][]int, classes)
	for i := range c {
		c[i] = make([]int, classes)
	}
	for i, w := range want {
		c[w][got[i]]++
	}
	return c
}

func scoreBinary(want []int, c [][]int, proba [][]float64, out map[string]float64) {
	tp, fp, fn := float64(c[1][1]), float64(c[0][1]), float64(c[1][0])
	out["precision"] = safeRatio(tp, tp+fp)
	out["recall"] = safeRatio(tp, tp+fn)
	out["f1"] = safeRatio(2*tp, 2*tp+fp+fn)
	pos := tp + fn
	neg := float64(len(want)) - pos
	if pos == 0 || neg == 0 {
		return
	}
	order := make([]int, len(want))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(proba[b][1], proba[a][1]) })
	// One step per distinct score: no threshold separates rows of equal score.
	var area, average, hits, misses float64
	for i := 0; i < len(order); {
		h, m := 0.0, 0.0
		for score := proba[order[i]][1]; i < len(order) && proba[order[i]][1] == score; i++ {
			if want[order[i]] == 1 {
				h++
			} else {
				m++
			}
		}
		area += m * (hits + h/2)
		hits += h
		misses += m
		average += h / pos * hits / (hits + misses)
	}
	out["roc_auc"] = area / (pos * neg)
	out["pr_auc"] = average
}

func safeRatio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// Skill is the share of the way from the baseline to a perfect value that the model covers: 1 is perfect, 0 no better
// than the baseline. The perfect value is 1 if higher, else 0. ok is false if the baseline itself is perfect.
func Skill(model, baseline float64, higher bool) (skill float64, ok bool) {
	left := baseline
	gain := baseline - model
	if higher {
		left, gain = 1-baseline, -gain
	}
	if left == 0 {
		return 0, false
	}
	return gain / left, true
}
