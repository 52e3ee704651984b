package training

import (
	"cmp"
	"math"
	"slices"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/services/trainer/internal/fit"
	"github.com/mlp-platform/platform/services/trainer/internal/score"
)

// Report holds the data for the plots of a training; the run keeps it as report.json.
type Report struct {
	Model     string `json:"model"`
	Dataset   string `json:"dataset"`
	Type      string `json:"type"`
	Estimator string `json:"estimator"`
	// Metric by which versions are compared, and which direction is better.
	Metric    string `json:"metric"`
	Direction string `json:"direction"`
	Rows      Rows   `json:"rows"`
	// Candidates tried on validation; Chosen is the index of the one refitted.
	Candidates []fit.Candidate    `json:"candidates"`
	Chosen     int                `json:"chosen"`
	Metrics    map[string]float64 `json:"metrics"`
	Baselines  map[string]float64 `json:"baselines"`
	// Residuals of a regression on test, Confusion of a classification.
	Residuals *Histogram `json:"residuals,omitempty"`
	Confusion *Confusion `json:"confusion,omitempty"`
	// Agreement of predicted with actual values of a regression on test.
	Agreement *Agreement `json:"agreement,omitempty"`
	// Hours are the error on test by the hour of the submit, if the data has it.
	Hours *HourlyError `json:"error_by_hour,omitempty"`
	// Importance of the features by permutation, on rows of test.
	Importance *fit.Importances `json:"importance,omitempty"`
	// Predictions on test: the distribution of live predictions without drift.
	Predictions Predictions `json:"predictions"`
}

// Rows counts the rows of each part.
type Rows struct {
	Train      int `json:"train"`
	Validation int `json:"validation"`
	Test       int `json:"test"`
	// Unseen test rows: their group of the declared baseline never occurs among the rows before.
	Unseen int `json:"unseen"`
	// Left out: not a record to learn from, no label, a missing feature.
	Unusable  int `json:"unusable"`
	NoLabel   int `json:"no_label"`
	NoFeature int `json:"no_feature"`
	// Purged rows had no label yet when the part after theirs begins.
	Purged int `json:"purged"`
	// Duplicates is the share of test rows identical to a fitted row.
	Duplicates float64 `json:"duplicates"`
}

// Histogram counts values between edges; the outer bins also count values beyond them.
type Histogram struct {
	// Of is residual (prediction - value) or log_residual (log1p(prediction) - log1p(value)).
	Of     string    `json:"of"`
	Edges  []float64 `json:"edges"`
	Counts []int     `json:"counts"`
}

// Confusion counts test rows by actual (row) and predicted (column) label.
type Confusion struct {
	Labels []string `json:"labels"`
	Counts [][]int  `json:"counts"`
}

// Predictions describes the distribution of predictions on test; the deviation is the population's.
type Predictions struct {
	N       int                `json:"n"`
	Mean    float64            `json:"mean,omitempty"`
	Std     float64            `json:"std,omitempty"`
	Deciles []float64          `json:"deciles,omitempty"`
	Shares  map[string]float64 `json:"shares,omitempty"`
}

func (f *flow) report() Report {
	parts := f.fitted.Parts
	metric, direction := f.model.Primary()
	r := Report{
		Model: f.result.Model, Dataset: f.use.Name, Type: string(f.model.Type), Estimator: f.model.Estimator.Kind,
		Metric: metric, Direction: direction,
		Rows: Rows{
			Train: len(parts.Train), Validation: len(parts.Validation), Test: len(parts.Test), Unseen: f.fitted.Unseen,
			Unusable: f.rows.Dropped, NoLabel: f.sample.NoLabel, NoFeature: f.sample.NoFeature, Purged: f.fitted.Parts.Purged, Duplicates: f.fitted.Duplicates,
		},
		Candidates: f.fitted.Candidates, Chosen: f.fitted.Chosen, Metrics: f.fitted.Metrics, Baselines: f.fitted.Baselines,
		Importance: f.fitted.Importance,
	}
	test := f.sample.Target.Select(parts.Test)
	r.Hours = newHourlyError(f.sample.Rows, f.set.Time, parts.Test, test, f.fitted)
	if f.model.Type != modelrepo.Regression {
		r.Confusion = &Confusion{test.Labels, score.Confusion(test.Y, f.fitted.Classes, len(test.Labels))}
		r.Predictions = Predictions{N: len(f.fitted.Classes), Shares: map[string]float64{}}
		for _, l := range test.Labels {
			r.Predictions.Shares[l] = 0
		}
		for _, c := range f.fitted.Classes {
			r.Predictions.Shares[test.Labels[c]] += 1 / float64(len(f.fitted.Classes))
		}
		return r
	}
	log := test.Transform == modelrepo.TransformLog1p
	r.Agreement = newAgreement(test, f.fitted.Values)
	residuals := make([]float64, len(test.Values))
	for i, want := range test.Values {
		residuals[i] = f.fitted.Values[i] - want
		if log {
			residuals[i] = math.Log1p(max(f.fitted.Values[i], 0)) - math.Log1p(want)
		}
	}
	r.Residuals = newHistogram(residuals, 40)
	if r.Residuals.Of = "residual"; log {
		r.Residuals.Of = "log_residual"
	}
	r.Predictions = describePredictions(f.fitted.Values)
	return r
}

// newHistogram has bins of equal width over all but the outermost percent of the values on either side, so that one
// wild value does not squeeze the rest into a single bin.
func newHistogram(values []float64, bins int) *Histogram {
	sorted := slices.Sorted(slices.Values(values))
	lo, hi := interpolateQuantile(sorted, 0.01), interpolateQuantile(sorted, 0.99)
	if lo == hi {
		lo, hi = lo-0.5, hi+0.5
	}
	h := &Histogram{Edges: make([]float64, bins+1), Counts: make([]int, bins)}
	for i := range h.Edges {
		h.Edges[i] = lo + (hi-lo)*float64(i)/float64(bins)
	}
	for _, v := range values {
		i, _ := slices.BinarySearchFunc(h.Edges[1:bins], v, func(edge, v float64) int {
			if v >= edge {
				return -1
			}
			return cmp.Compare(edge, v)
		})
		h.Counts[i]++
	}
	return h
}

func describePredictions(values []float64) Predictions {
	n := float64(len(values))
	p := Predictions{N: len(values)}
	for _, v := range values {
		p.Mean += v / n
	}
	for _, v := range values {
		p.Std += (v - p.Mean) * (v - p.Mean) / n
	}
	p.Std = math.Sqrt(p.Std)
	sorted := slices.Sorted(slices.Values(values))
	for d := 1; d < 10; d++ {
		p.Deciles = append(p.Deciles, interpolateQuantile(sorted, float64(d)/10))
	}
	return p
}

// interpolateQuantile interpolates between the two nearest of the sorted values.
func interpolateQuantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}
