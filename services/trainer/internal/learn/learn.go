// Package learn fits the estimators of model.yaml: ridge, logistic, random_forest, gbt and isolation_forest.
//
// A fit is deterministic: the same Spec, data and seed give the same model to the last bit, for any number of
// processors, because every sum is made by one goroutine in a fixed order. Models keep float32 parameters and compare
// float32 features, so that the exported ONNX graph computes the same.
package learn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mlp-platform/platform/libs/modelrepo"
)

// Spec specifies the model to fit.
type Spec struct {
	Kind    string // ridge, logistic, random_forest, gbt, isolation_forest
	Hyper   map[string]any
	Seed    int64
	Classes int // 0: regression; otherwise the number of classes, at least 2
}

// Matrix is a table of features in row-major order.
type Matrix struct {
	Rows, Cols int
	Data       []float32
}

// Row is the features of row i.
func (m Matrix) Row(i int) []float32 { return m.Data[i*m.Cols : (i+1)*m.Cols] }

// Model answers for one row of features. It is safe for concurrent use.
type Model interface {
	// Predict is the estimate, or the class index for a classifier (the lowest one of equal classes).
	Predict(x []float32) float64
	// Proba fills out with a probability per class; a regression model sets the first to Predict.
	Proba(x []float32, out []float64)
}

// modelType is the type of model that the spec makes.
func (s Spec) modelType() modelrepo.Type {
	switch {
	case s.Classes == 0:
		return modelrepo.Regression
	case s.Kind == "isolation_forest": // of two classes, of which the second are the anomalies
		return modelrepo.Anomaly
	}
	return modelrepo.Classification
}

// checkKind reports whether the estimator exists and suits the task.
func (s Spec) checkKind() error {
	types, ok := modelrepo.Estimators[s.Kind]
	switch {
	case !ok || s.Kind == modelrepo.EstimatorCommand:
		return fmt.Errorf("estimator %q is unknown; known are gbt, isolation_forest, logistic, random_forest, ridge", s.Kind)
	case !slices.Contains(types, s.modelType()):
		return fmt.Errorf("estimator %s does not suit type %s", s.Kind, s.modelType())
	case s.Kind == "isolation_forest" && s.Classes != 2:
		return fmt.Errorf("estimator isolation_forest distinguishes anomalies from other rows, so it needs 2 classes, not %d", s.Classes)
	case s.Classes == 1 || s.Classes < 0:
		return fmt.Errorf("a classifier needs at least 2 classes, not %d", s.Classes)
	}
	return nil
}

// settings returns the estimator with its hyperparameters.
func (s Spec) settings() (any, error) {
	if err := s.checkKind(); err != nil {
		return nil, err
	}
	h, err := modelrepo.ParseHyperparameters(s.Kind, s.modelType(), s.Hyper)
	if err != nil {
		return nil, err
	}
	switch s.Kind {
	case "ridge":
		return ridgeSettings(h), nil
	case "logistic":
		return logisticSettings(h), nil
	case "random_forest":
		return forestSettings(h, s.Classes), nil
	case "gbt":
		return boostSettings(h, s.Classes), nil
	}
	return isolationSettings(h), nil
}

// Fit fits the estimator to y: estimates, or class indices from 0 to Classes−1. progress, if given, hears
// the fraction done, never twice at once. A cancelled ctx ends the fit with its error.
func Fit(ctx context.Context, s Spec, x Matrix, y []float64, progress func(float64)) (Model, error) {
	set, err := s.settings()
	if err != nil {
		return nil, err
	}
	if err := checkData(s, x, y); err != nil {
		return nil, fmt.Errorf("fitting %s: %w", s.Kind, err)
	}
	if progress == nil {
		progress = func(float64) {}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var m Model
	switch set := set.(type) {
	case ridge:
		m, err = set.fit(x, y)
	case logistic:
		m, err = set.fit(ctx, s.Classes, x, y)
	case forest:
		m, err = set.fit(ctx, s, x, y, progress)
	case boost:
		m, err = set.fit(ctx, s, x, y, progress)
	case isolation:
		m, err = set.fit(ctx, s, x, progress)
	}
	if err != nil {
		if cause := ctx.Err(); cause != nil {
			return nil, cause
		}
		return nil, fmt.Errorf("fitting %s: %w", s.Kind, err)
	}
	progress(1)
	return m, nil
}

func checkData(s Spec, x Matrix, y []float64) error {
	switch {
	case x.Rows <= 0 || x.Cols <= 0:
		return fmt.Errorf("there is no data: %d rows, %d features", x.Rows, x.Cols)
	case len(x.Data) != x.Rows*x.Cols:
		return fmt.Errorf("%d values for %d rows of %d features", len(x.Data), x.Rows, x.Cols)
	case len(y) != x.Rows:
		return fmt.Errorf("%d targets for %d rows", len(y), x.Rows)
	}
	for i, v := range x.Data {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("row %d, feature %d is %v; drop or fill missing values first", i/x.Cols, i%x.Cols, v)
		}
	}
	for i, v := range y {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("row %d has target %v; drop rows without a target first", i, v)
		}
	}
	if s.Classes == 0 {
		return nil
	}
	seen := make([]bool, s.Classes)
	distinct := 0
	for i, v := range y {
		c := int(v)
		if float64(c) != v || c < 0 || c >= s.Classes {
			return fmt.Errorf("row %d has class %v; classes are 0 to %d", i, v, s.Classes-1)
		}
		if !seen[c] {
			seen[c] = true
			distinct++
		}
	}
	if distinct < 2 && s.Kind != "isolation_forest" { // which ignores the classes
		return errors.New("all rows have the same class; there is nothing to learn")
	}
	return nil
}
