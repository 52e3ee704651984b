package learn

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mlp-platform/platform/libs/modelrepo"
)

// boost is gradient boosting on histograms (Friedman 2001; Newton steps as in Chen and Guestrin 2016;
// leaf-wise growth as in Ke et al. 2017). Regression fits the squared or the absolute error (the latter
// estimates the median), classification the log loss.
type boost struct {
	trees     int
	rate      float64
	depth     int // 0: no limit
	leaves    int // 0: no limit
	minLeaf   int
	l2        float64
	subsample float64
	colsample float64
	loss      string
	patience  int     // rounds without a better validation loss before stopping; 0: never stop early
	held      float64 // fraction of the rows held out for that
}

func boostSettings(h modelrepo.HyperValues, classes int) boost {
	b := boost{
		loss: "log_loss", trees: h.Int("n_estimators"), rate: h.Float("learning_rate"), depth: h.Int("max_depth"), leaves: h.Int("max_leaves"),
		minLeaf: h.Int("min_samples_leaf"), l2: h.Float("l2"), subsample: h.Float("subsample"), colsample: h.Float("colsample"),
		patience: h.Int("early_stopping_rounds"), held: h.Float("validation_fraction"),
	}
	if classes == 0 {
		b.loss = h.Word("loss")
	}
	return b
}

// run is the state of one fit.
type run struct {
	boost
	data    *binned
	y       []float64
	train   []int32 // rows to learn from, rising
	check   []int32 // rows held out for early stopping
	outputs int     // trees per round
	raw     [][]float64
	grad    [][]float64
	hess    [][]float64 // nil: 1 for every row
	work    workspace
}

func (b boost) fit(ctx context.Context, s Spec, x Matrix, y []float64, progress func(float64)) (Model, error) {
	r := &run{boost: b, data: binColumns(x), y: y, outputs: 1}
	rng := rand.New(rand.NewPCG(uint64(s.Seed), 0))
	r.hold(rng, x.Rows)
	e := &Ensemble{Features: x.Cols, Base: make([]float32, max(s.Classes, 1)), Classes: s.Classes, Softmax: s.Classes > 0}
	if s.Classes > 2 {
		r.outputs = s.Classes
	}
	r.start(e)
	best, bestLoss, since := 0, math.Inf(1), 0
	for round := range b.trees {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r.gradients()
		rows := sampleItems(rng, r.train, b.subsample)
		all := make([]int32, x.Cols)
		for i := range all {
			all[i] = int32(i)
		}
		cols := sampleItems(rng, all, b.colsample)
		for k := range r.outputs {
			t := r.tree(k, rows, cols)
			t.Target = k
			if s.Classes == 2 {
				t.Target = 1 // class 0 keeps the score 0, so softmax is the logistic function
			}
			e.Trees = append(e.Trees, t)
		}
		progress(float64(round+1) / float64(b.trees))
		if b.patience == 0 {
			continue
		}
		since++
		if loss := r.validation(); loss < bestLoss {
			best, bestLoss, since = round+1, loss, 0
		}
		if since >= b.patience {
			break
		}
	}
	if b.patience > 0 {
		e.Trees = e.Trees[:best*r.outputs]
	}
	return e, nil
}

// hold sets rows aside for early stopping; with fewer than two rows on either side it learns from all
// and stops never.
func (r *run) hold(rng *rand.Rand, n int) {
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	held := int(r.held * float64(n))
	if r.patience == 0 || held < 2 || n-held < 2 {
		r.patience, r.train = 0, order
		return
	}
	rng.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
	r.check, r.train = order[:held], order[held:]
	slices.Sort(r.check)
	slices.Sort(r.train)
}

// sampleItems draws a fraction of the items without repeats, in their order.
func sampleItems(rng *rand.Rand, items []int32, fraction float64) []int32 {
	n := max(int(math.Round(fraction*float64(len(items)))), 1)
	if n >= len(items) {
		return items
	}
	out := make([]int32, 0, n)
	for i, it := range items { // selection sampling: each set of n is as likely
		if rng.Float64()*float64(len(items)-i) < float64(n-len(out)) {
			out = append(out, it)
		}
	}
	return out
}

// start sets the base scores, which are those of the best constant model.
func (r *run) start(e *Ensemble) {
	n := len(r.y)
	r.raw, r.grad = make([][]float64, r.outputs), make([][]float64, r.outputs)
	for k := range r.outputs {
		r.raw[k], r.grad[k] = make([]float64, n), make([]float64, n)
	}
	switch {
	case e.Classes > 0:
		count := make([]float64, e.Classes)
		for _, i := range r.train {
			count[int(r.y[i])]++
		}
		r.hess = make([][]float64, r.outputs)
		for k := range r.outputs {
			r.hess[k] = make([]float64, n)
		}
		// A class that no training row has gets a small share rather than minus infinity.
		share := func(k int) float64 { return math.Max(count[k], 0.5) / float64(len(r.train)) }
		if e.Classes == 2 {
			e.Base[1] = float32(math.Log(share(1) / share(0)))
		} else {
			for k := range e.Base {
				e.Base[k] = float32(math.Log(share(k)))
			}
		}
	case r.loss == "absolute_error":
		v := make([]float64, len(r.train))
		for i, row := range r.train {
			v[i] = r.y[row]
		}
		e.Base[0] = float32(medianOf(v))
	default:
		sum := 0.0
		for _, i := range r.train {
			sum += r.y[i]
		}
		e.Base[0] = float32(sum / float64(len(r.train)))
	}
	for k := range r.outputs {
		base := float64(e.Base[k])
		if e.Classes == 2 {
			base = float64(e.Base[1])
		}
		for i := range r.raw[k] {
			r.raw[k][i] = base
		}
	}
}

// medianOf of v, which it reorders; the mean of the middle two when there are two.
func medianOf(v []float64) float64 {
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// gradients fills grad and hess for every row; those of held-out rows are not used.
func (r *run) gradients() {
	switch {
	case r.loss == "squared_error":
		for i, v := range r.raw[0] {
			r.grad[0][i] = v - r.y[i]
		}
	case r.loss == "absolute_error":
		for i, v := range r.raw[0] {
			switch {
			case v > r.y[i]:
				r.grad[0][i] = 1
			case v < r.y[i]:
				r.grad[0][i] = -1
			default:
				r.grad[0][i] = 0
			}
		}
	case r.outputs == 1:
		for i, v := range r.raw[0] {
			p := 1 / (1 + math.Exp(-v))
			r.grad[0][i] = p - r.y[i]
			r.hess[0][i] = p * (1 - p)
		}
	default:
		p := make([]float64, r.outputs)
		for i := range r.y {
			for k := range p {
				p[k] = r.raw[k][i]
			}
			softmaxInPlace(p)
			for k, q := range p {
				r.grad[k][i], r.hess[k][i] = q, q*(1-q)
			}
			r.grad[int(r.y[i])][i]--
		}
	}
}

// validation is the mean loss over the held-out rows.
func (r *run) validation() float64 {
	sum := 0.0
	p := make([]float64, r.outputs)
	for _, i := range r.check {
		switch {
		case r.loss == "squared_error":
			d := r.raw[0][i] - r.y[i]
			sum += d * d
		case r.loss == "absolute_error":
			sum += math.Abs(r.raw[0][i] - r.y[i])
		case r.outputs == 1:
			v := r.raw[0][i]
			if r.y[i] == 1 {
				v = -v
			}
			sum += math.Max(v, 0) + math.Log1p(math.Exp(-math.Abs(v)))
		default:
			for k := range p {
				p[k] = r.raw[k][i]
			}
			softmaxInPlace(p)
			sum -= math.Log(math.Max(p[int(r.y[i])], 1e-300))
		}
	}
	return sum / float64(len(r.check))
}
