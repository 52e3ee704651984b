// Package fit learns a model from a sample: fitted on train, chosen on validation, refitted on both, judged once on
// test, beside its baselines.
package fit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/services/trainer/internal/dataset"
	"github.com/mlp-platform/platform/services/trainer/internal/export"
	"github.com/mlp-platform/platform/services/trainer/internal/external"
	"github.com/mlp-platform/platform/services/trainer/internal/frame"
	"github.com/mlp-platform/platform/services/trainer/internal/learn"
	"github.com/mlp-platform/platform/services/trainer/internal/score"
	"github.com/mlp-platform/platform/services/trainer/internal/split"
)

// graphRun limits the time in which the graph of a command answers one batch of rows.
const graphRun = time.Minute

// Candidate is one combination of hyperparameters and its metrics on validation.
type Candidate struct {
	Hyperparameters map[string]any     `json:"hyperparameters"`
	Validation      map[string]float64 `json:"validation"`
}

// Result of a fit.
type Result struct {
	Model    learn.Model
	Pipeline *export.Pipeline
	// Graph replaces Model for estimators of kind command; the caller closes it.
	Graph *export.Graph
	Parts split.Parts
	// Candidates tried, in order; Chosen is the index of the one that was refitted.
	Candidates []Candidate
	Chosen     int
	// Metrics on test, and with the prefix val_ on validation before the refit; skill over the better baseline.
	Metrics map[string]float64
	// Baselines on test, with their prefixes.
	Baselines map[string]float64
	// Values or Classes predicted on test.
	Values  []float64
	Classes []int
	// Unseen test rows: their group of the declared baseline is not among the rows before.
	Unseen int
	// Duplicates is the share of test rows identical to a fitted one.
	Duplicates float64
	// Importance of the features on test; nil if it was not measured.
	Importance *Importances
}

// Commands configures estimators of kind command.
type Commands struct {
	external.Config
	// Dir holds the files exchanged with the command; the caller removes it.
	Dir string
}

// Run fits the model on the sample. progress gets 0 to 1.
func Run(ctx context.Context, m *modelrepo.Model, s *dataset.Sample, ds *modelrepo.Dataset, md *modelrepo.ModelDataset, commands Commands, progress func(float64)) (r *Result, err error) {
	r = &Result{}
	var graph *export.Graph // separate from r: an error returns no result
	defer func() {
		if err != nil && graph != nil {
			err = errors.Join(err, graph.Close())
		}
	}()
	if r.Parts, err = split.Of(m.Split, ds.Time, s.Rows); err != nil {
		return nil, err
	}
	r.Duplicates = split.Duplicates(s, r.Parts)
	if r.Duplicates > split.MaxDuplicates && !m.Split.AllowDuplicates {
		return nil, fmt.Errorf("%.1f %% of the test rows are identical to rows the model learns from, so the test would measure memory; split by group, remove the repeats, or set split.allow_duplicates", 100*r.Duplicates)
	}
	if err = m.Estimator.CheckHyperparameters(m.Type); err != nil {
		return nil, err
	}
	grid := m.Estimator.Combinations()
	metric, direction := m.Primary()
	train, val := selectRows(s, r.Parts.Train), selectRows(s, r.Parts.Validation)
	for i, h := range grid {
		fitted, err := fitModel(ctx, m, md, commands, h, train, &val, func(f float64) { progress((float64(i) + f) / float64(len(grid)+1)) })
		if err != nil {
			return nil, err
		}
		got, _, _, err := fitted.judge(ctx, val)
		if fitted.graph != nil {
			err = errors.Join(err, fitted.graph.Close())
		}
		if err != nil {
			return nil, err
		}
		r.Candidates = append(r.Candidates, Candidate{h, got})
		v, best := got[metric], r.Candidates[r.Chosen].Validation[metric]
		if direction == modelrepo.Lower && v < best || direction == modelrepo.Higher && v > best {
			r.Chosen = i
		}
	}
	chosen := r.Candidates[r.Chosen]
	fitRows := r.Parts.Fit()
	fitted, err := fitModel(ctx, m, md, commands, chosen.Hyperparameters, selectRows(s, fitRows), nil, func(f float64) {
		progress((float64(len(grid)) + f) / float64(len(grid)+1))
	})
	if err != nil {
		return nil, err
	}
	graph = fitted.graph
	r.Model, r.Pipeline, r.Graph = fitted.model, fitted.pipeline, fitted.graph
	test := selectRows(s, r.Parts.Test)
	if r.Metrics, r.Values, r.Classes, err = fitted.judge(ctx, test); err != nil {
		return nil, err
	}
	// Only a cancellation ends the run here: the model is fitted and judged, even if it fails on shuffled rows.
	if r.Importance, err = fitted.importances(ctx, m, test); err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("importance of the features: %w", err)
	}
	if err := r.compare(s, ds, m, fitRows); err != nil {
		return nil, err
	}
	for name, v := range chosen.Validation {
		r.Metrics["val_"+name] = v
	}
	for _, set := range []map[string]float64{r.Metrics, r.Baselines} {
		for name, v := range set {
			if !isFinite(v) {
				return nil, fmt.Errorf("metric %s is %v; look at the target's values", name, v)
			}
		}
	}
	return r, nil
}

// compare measures the baselines and the skill over the better one.
func (r *Result) compare(s *dataset.Sample, ds *modelrepo.Dataset, m *modelrepo.Model, fitRows []int) error {
	b, err := score.NewBaseline(s, m.Baseline.By)
	if err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	r.Unseen = b.Unseen(fitRows, r.Parts.Test)
	test := s.Target.Select(r.Parts.Test)
	r.Baselines = map[string]float64{}
	add := func(prefix string, g score.Guess) {
		for name, v := range g.Metrics(test) {
			r.Baselines[prefix+name] = v
		}
	}
	add(modelrepo.BaselineFixed, b.Fixed(fitRows, r.Parts.Test))
	if ds.Time.Submit != "" && ds.Time.End != "" && m.Split.Kind == "time" {
		add(modelrepo.BaselineRunning, b.Running(s.Rows.Num[ds.Time.Submit], s.Rows.Num[ds.Time.End], r.Parts.Test))
	}
	metric, direction := m.Primary()
	best := math.NaN()
	for _, prefix := range []string{modelrepo.BaselineFixed, modelrepo.BaselineRunning} {
		v, ok := r.Baselines[prefix+metric]
		if ok && (math.IsNaN(best) || direction == modelrepo.Lower && v < best || direction == modelrepo.Higher && v > best) {
			best = v
		}
	}
	// r2 and the shares of right answers are perfect at 1, all that is better lower at 0.
	if skill, ok := score.Skill(r.Metrics[metric], best, direction == modelrepo.Higher); ok && !math.IsNaN(skill) {
		r.Metrics["skill"] = skill
	}
	return nil
}

// fitted is an estimator with the transforms in front of it.
type fitted struct {
	pipeline *export.Pipeline
	model    learn.Model
	graph    *export.Graph // instead of model, if a command fitted it
}

// rows are a part of a sample.
type rows struct {
	table  frame.Table
	target frame.Target
}

func selectRows(s *dataset.Sample, idx []int) rows {
	return rows{s.Table.Select(idx), s.Target.Select(idx)}
}

// fitModel fits on rows; a command also gets the validation rows, if there are any.
func fitModel(ctx context.Context, m *modelrepo.Model, md *modelrepo.ModelDataset, commands Commands, hyper map[string]any, on rows, validation *rows, progress func(float64)) (*fitted, error) {
	p, err := export.FitTransforms(md.Features, on.table)
	if err != nil {
		return nil, fmt.Errorf("fit the transforms: %w", err)
	}
	if m.Estimator.Kind == modelrepo.EstimatorCommand {
		return runCommand(ctx, m, md, commands, hyper, p, on, validation)
	}
	x, err := p.Apply(on.table)
	if err != nil {
		return nil, fmt.Errorf("apply the transforms: %w", err)
	}
	spec := learn.Spec{Kind: m.Estimator.Kind, Hyper: hyper, Seed: m.Estimator.Seed}
	y := make([]float64, x.Rows)
	if on.target.Class {
		spec.Classes = len(on.target.Labels)
		for i, c := range on.target.Y {
			y[i] = float64(c)
		}
	} else {
		for i, v := range on.target.Values {
			if y[i] = v; on.target.Transform == modelrepo.TransformLog1p {
				y[i] = math.Log1p(v)
			}
		}
	}
	model, err := learn.Fit(ctx, spec, x, y, progress)
	if err != nil {
		return nil, fmt.Errorf("fit %s: %w", m.Estimator.Kind, err)
	}
	return &fitted{pipeline: p, model: model}, nil
}

// runCommand has the operator's command fit the rows.
func runCommand(ctx context.Context, m *modelrepo.Model, md *modelrepo.ModelDataset, commands Commands, hyper map[string]any, p *export.Pipeline, on rows, validation *rows) (*fitted, error) {
	spec := external.Spec{
		Model: m.Name, Type: m.Type, Seed: m.Estimator.Seed, Hyperparameters: hyper, Features: external.DescribeFeatures(md.Features),
		Target: external.Target{Column: on.target.Name, Transform: on.target.Transform, Labels: on.target.Labels},
	}
	var val *external.Part
	if validation != nil {
		val = &external.Part{Table: validation.table, Target: validation.target}
	}
	file, err := commands.Fit(ctx, m.Estimator.Command, commands.Dir, spec, external.Part{Table: on.table, Target: on.target}, val)
	if err != nil {
		return nil, err
	}
	g, err := export.OpenGraph(file, export.GraphLimits{Bytes: external.MaxModel, Run: graphRun}, p, on.target)
	if err != nil {
		return nil, err
	}
	return &fitted{pipeline: p, graph: g}, nil
}

// measure compares predictions with the actual values.
func measure(t frame.Target, values []float64, classes []int, proba [][]float64) map[string]float64 {
	switch {
	case !t.Class:
		return score.Regression(t.Values, values)
	case t.Anomaly:
		return score.Anomaly(t.Y, classes, proba)
	}
	return score.Classification(t.Y, classes, proba, len(t.Labels))
}

// judge predicts the rows and measures the predictions.
func (f *fitted) judge(ctx context.Context, on rows) (metrics map[string]float64, values []float64, classes []int, err error) {
	if f.graph != nil {
		var proba [][]float64
		if values, classes, proba, err = f.graph.Answer(ctx, on.table); err != nil {
			return nil, nil, nil, err
		}
		return measure(on.target, values, classes, proba), values, classes, nil
	}
	x, err := f.pipeline.Apply(on.table)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("apply the transforms: %w", err)
	}
	if !on.target.Class {
		values = make([]float64, x.Rows)
		runParallel(x.Rows, func(i int) {
			if values[i] = f.model.Predict(x.Row(i)); on.target.Transform == modelrepo.TransformLog1p {
				values[i] = math.Expm1(values[i])
			}
		})
		return measure(on.target, values, nil, nil), values, nil, nil
	}
	classes = make([]int, x.Rows)
	proba := make([][]float64, x.Rows)
	runParallel(x.Rows, func(i int) {
		proba[i] = make([]float64, len(on.target.Labels))
		f.model.Proba(x.Row(i), proba[i])
		classes[i] = int(f.model.Predict(x.Row(i)))
	})
	return measure(on.target, nil, classes, proba), nil, classes, nil
}

// runParallel runs fn for 0..n-1 on all processors; fn writes only the data of its i.
func runParallel(n int, fn func(i int)) {
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() {
			for i := n * w / workers; i < n*(w+1)/workers; i++ {
				fn(i)
			}
		})
	}
	wg.Wait()
}
