package learn

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/optimize"

	"github.com/mlp-platform/platform/libs/modelrepo"
)

// logistic is logistic regression: binary, or multinomial for more classes, fitted by L-BFGS to
// sum of log loss + |w|²/(2C), the intercepts free of penalty (scikit-learn's objective).
type logistic struct {
	c        float64
	maxIter  int
	tol      float64 // of the gradient's largest component, relative to the number of rows
	balanced bool
}

func logisticSettings(h modelrepo.HyperValues) logistic {
	return logistic{c: h.Float("C"), maxIter: h.Int("max_iter"), tol: h.Float("tol"), balanced: h.Word("class_weight") == "balanced"}
}

func (l logistic) fit(ctx context.Context, classes int, x Matrix, y []float64) (Model, error) {
	p := &logisticProblem{classes: classes, outputs: classes, x: x, y: make([]int32, x.Rows), weight: make([]float64, x.Rows), lambda: 1 / l.c}
	if classes == 2 {
		p.outputs = 1
	}
	for i, v := range y {
		p.y[i], p.weight[i] = int32(v), 1
	}
	if l.balanced {
		balanceWeights(p.y, p.weight, classes)
	}
	p.prepare()
	width := x.Cols + 1
	result, err := optimize.Minimize(optimize.Problem{
		Func: func(w []float64) float64 { return p.loss(w, nil) },
		Grad: func(grad, w []float64) { p.loss(w, grad) },
		Status: func() (optimize.Status, error) {
			if ctx.Err() != nil {
				return optimize.Failure, ctx.Err()
			}
			return optimize.NotTerminated, nil
		},
	}, make([]float64, p.outputs*width), &optimize.Settings{
		GradientThreshold: l.tol * float64(x.Rows),
		MajorIterations:   l.maxIter,
		Concurrent:        1,
		Converger:         &optimize.FunctionConverge{Relative: 1e-13, Iterations: 20},
	}, &optimize.LBFGS{Store: 10})
	// A line search that finds nothing lower has reached the precision of float64; at the limit of iterations, the best
	// so far is the result, as the caller requested.
	if result == nil || err != nil && ctx.Err() != nil || math.IsNaN(result.F) || math.IsInf(result.F, 0) {
		if err == nil {
			err = errors.New("the loss is not finite; standardize the features")
		}
		return nil, fmt.Errorf("minimising the log loss: %w", err)
	}
	return p.model(result.X)
}

// logisticProblem is the loss over standardized features: L-BFGS needs ten times the steps when scales
// differ. The penalty is on the coefficients of the features as given.
type logisticProblem struct {
	classes, outputs int
	x                Matrix
	y                []int32
	weight           []float64
	lambda           float64
	mean, scale      []float64
	z                []float64 // standardized x
	logits           []float64
}

func (p *logisticProblem) prepare() {
	n, cols := p.x.Rows, p.x.Cols
	p.mean, p.scale = make([]float64, cols), make([]float64, cols)
	for i := range n {
		for j, v := range p.x.Row(i) {
			p.mean[j] += float64(v) / float64(n)
		}
	}
	p.z = make([]float64, n*cols)
	for i := range n {
		for j, v := range p.x.Row(i) {
			d := float64(v) - p.mean[j]
			p.z[i*cols+j] = d
			p.scale[j] += d * d / float64(n)
		}
	}
	for j, s := range p.scale {
		if p.scale[j] = math.Sqrt(s); p.scale[j] < 1e-12 {
			p.scale[j] = 1
		}
	}
	for i := range p.z {
		p.z[i] /= p.scale[i%cols]
	}
	p.logits = make([]float64, n*p.outputs)
}

// loss at w (outputs × (features, intercept)); with grad given, it fills that too.
func (p *logisticProblem) loss(w, grad []float64) float64 {
	n, cols := p.x.Rows, p.x.Cols
	width := cols + 1
	p.score(w)
	sum := 0.0
	for i := range n {
		row := p.logits[i*p.outputs : (i+1)*p.outputs]
		if p.outputs == 1 {
			v, target := row[0], float64(p.y[i])
			sum += p.weight[i] * (math.Max(v, 0) - v*target + math.Log1p(math.Exp(-math.Abs(v))))
			row[0] = p.weight[i] * (1/(1+math.Exp(-v)) - target)
			continue
		}
		own := row[p.y[i]]
		top := row[argMax(row)]
		total := 0.0
		for k, v := range row {
			row[k] = math.Exp(v - top)
			total += row[k]
		}
		sum += p.weight[i] * (top + math.Log(total) - own)
		for k := range row {
			row[k] *= p.weight[i] / total
		}
		row[p.y[i]] -= p.weight[i]
	}
	for k := range p.outputs {
		for j := range cols {
			c := w[k*width+j] / p.scale[j]
			sum += p.lambda / 2 * c * c
		}
	}
	if grad == nil {
		return sum
	}
	for k := range p.outputs {
		for j := range cols {
			grad[k*width+j] = p.lambda * w[k*width+j] / (p.scale[j] * p.scale[j])
		}
		grad[k*width+cols] = 0
		for i := range n {
			grad[k*width+cols] += p.logits[i*p.outputs+k]
		}
	}
	for i := range n { // row by row: a fixed order of sums
		for k := range p.outputs {
			r := p.logits[i*p.outputs+k]
			g := grad[k*width : k*width+cols]
			for j, v := range p.z[i*cols : (i+1)*cols] {
				g[j] += r * v
			}
		}
	}
	return sum
}

// score fills logits with those of w.
func (p *logisticProblem) score(w []float64) {
	const block = 1024
	n, cols := p.x.Rows, p.x.Cols
	runParallel((n+block-1)/block, func(at int) {
		for i := at * block; i < min((at+1)*block, n); i++ {
			row := p.z[i*cols : (i+1)*cols]
			for k := range p.outputs {
				weights := w[k*(cols+1) : (k+1)*(cols+1)]
				sum := weights[cols]
				for j, v := range row {
					sum += v * weights[j]
				}
				p.logits[i*p.outputs+k] = sum
			}
		}
	})
}

// model takes w back to the features as given.
func (p *logisticProblem) model(w []float64) (Model, error) {
	cols := p.x.Cols
	m := &Linear{Features: cols, Classes: p.classes, Coef: make([]float32, p.classes*cols), Intercept: make([]float32, p.classes)}
	first := 0
	if p.outputs == 1 {
		first = 1 // class 0 keeps the score 0, so softmax is the logistic function
	}
	for k := range p.outputs {
		b := w[k*(cols+1)+cols]
		for j := range cols {
			c := float32(w[k*(cols+1)+j] / p.scale[j])
			m.Coef[(first+k)*cols+j] = c
			b -= float64(c) * p.mean[j]
		}
		m.Intercept[first+k] = float32(b)
	}
	return m, m.check()
}
