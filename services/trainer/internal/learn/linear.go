package learn

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/mlp-platform/platform/libs/modelrepo"
)

// Linear is a linear model: one output, or one per class. Parameters are float32, as exported.
type Linear struct {
	Features  int
	Coef      []float32 // outputs × features, row-major
	Intercept []float32
	Classes   int // 0: regression. Class scores are logits; with two classes, output 0 is all zero.
}

func (m *Linear) raw(x []float32, out []float64) {
	for k, b := range m.Intercept {
		sum := float64(b)
		for j, c := range m.Coef[k*m.Features : (k+1)*m.Features] {
			sum += float64(c) * float64(x[j])
		}
		out[k] = sum
	}
}

// Predict implements Model.
func (m *Linear) Predict(x []float32) float64 {
	out := make([]float64, len(m.Intercept))
	m.raw(x, out)
	if m.Classes == 0 {
		return out[0]
	}
	return float64(argMax(out))
}

// Proba implements Model.
func (m *Linear) Proba(x []float32, out []float64) {
	m.raw(x, out)
	if m.Classes > 0 {
		softmaxInPlace(out)
	}
}

// ridge is least squares with an L2 penalty on the coefficients, not on the intercept (Hoerl and Kennard
// 1970). Features are taken as they are: standardize them in the model file if their scales differ.
type ridge struct{ alpha float64 }

func ridgeSettings(h modelrepo.HyperValues) ridge { return ridge{h.Float("alpha")} }

func (r ridge) fit(x Matrix, y []float64) (Model, error) {
	n, p := x.Rows, x.Cols
	mean, yMean := make([]float64, p), 0.0
	for i := range n {
		for j, v := range x.Row(i) {
			mean[j] += float64(v)
		}
		yMean += y[i]
	}
	for j := range mean {
		mean[j] /= float64(n)
	}
	yMean /= float64(n)
	// Normal equations of the centred data. The penalty is on the diagonal; without one, constant or
	// repeated features make the matrix singular.
	centred, right := mat.NewDense(n, p, nil), mat.NewVecDense(p, nil)
	resid := mat.NewVecDense(n, nil)
	for i := range n {
		row := centred.RawRowView(i)
		for j, v := range x.Row(i) {
			row[j] = float64(v) - mean[j]
		}
		resid.SetVec(i, y[i]-yMean)
	}
	var gram mat.SymDense
	gram.SymOuterK(1, centred.T())
	for j := range p {
		gram.SetSym(j, j, gram.At(j, j)+r.alpha)
	}
	right.MulVec(centred.T(), resid)
	var chol mat.Cholesky
	if !chol.Factorize(&gram) {
		return nil, errors.New("some features are constant or follow from others; set alpha above 0 or drop them")
	}
	var w mat.VecDense
	if err := chol.SolveVecTo(&w, right); err != nil && !errors.As(err, new(mat.Condition)) {
		return nil, fmt.Errorf("solving the normal equations: %w", err)
	}
	m := &Linear{Features: p, Coef: make([]float32, p), Intercept: make([]float32, 1)}
	b := yMean
	for j := range p {
		m.Coef[j] = float32(w.AtVec(j))
		b -= float64(m.Coef[j]) * mean[j] // the rounded coefficient, so that the mean row is exact
	}
	m.Intercept[0] = float32(b)
	return m, m.check()
}

// check refuses parameters that float32 cannot hold.
func (m *Linear) check() error {
	for _, list := range [][]float32{m.Coef, m.Intercept} {
		for _, v := range list {
			if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
				return errors.New("the coefficients overflow; standardize the features")
			}
		}
	}
	return nil
}
