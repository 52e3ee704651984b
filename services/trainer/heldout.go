package trainer

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/services/trainer/internal/dataset"
	"github.com/mlp-platform/platform/services/trainer/internal/split"
)

// Row is one row of a data set as a request for a prediction, with what really happened.
type Row struct {
	// Job is the value of the column job, or the row's number from 1 if the data set has no such column.
	Job int64 `json:"job"`
	// Features is the body's member of that name for POST /predict.
	Features map[string]any `json:"features"`
	// Actual is the true value or label.
	Actual any `json:"actual"`
	// HeldOut says that the row is in the test part, so no model has learned from it.
	HeldOut bool `json:"held_out"`
}

// Held selects rows of a model's data.
type Held struct {
	// RepoDir and Env name the model repository and its registry.
	RepoDir, Env string
	// Model, and Dataset with the first as default.
	Model, Dataset string
	// Log is read instead of the data set's files, if not empty.
	Log string
}

// HeldOut returns n rows of the test part, evenly spread over it; all if n is 0 or more than there are.
func HeldOut(ctx context.Context, h Held, n int) ([]Row, error) {
	p, s, parts, err := h.load(ctx)
	if err != nil {
		return nil, err
	}
	if n <= 0 {
		n = len(parts.Test)
	}
	var out []Row
	for _, i := range spread(len(parts.Test), n) {
		out = append(out, p.row(s, parts.Test[i], true))
	}
	return out, nil
}

// Job returns the row of one job, computed as of its submit.
func Job(ctx context.Context, h Held, job int64) (Row, error) {
	p, s, parts, err := h.load(ctx)
	if err != nil {
		return Row{}, err
	}
	for i := range s.Rows.N {
		if number(s, i) == job {
			_, held := slices.BinarySearch(parts.Test, i)
			return p.row(s, i, held), nil
		}
	}
	return Row{}, fmt.Errorf("%w: no job %d that a model can learn from; ids go from %d to %d", ErrRequest, job, number(s, 0), number(s, s.Rows.N-1))
}

func (h Held) load(ctx context.Context) (*plan, *dataset.Sample, split.Parts, error) {
	p, err := lookUp(h.RepoDir, h.Env, Request{Model: h.Model, Dataset: h.Dataset})
	if err != nil {
		return nil, nil, split.Parts{}, err
	}
	dir, set := h.RepoDir, *p.set
	if h.Log != "" {
		dir, set.Files = filepath.Dir(h.Log), []string{filepath.Base(h.Log)}
	}
	rows, err := dataset.Load(ctx, dataset.Source{Repo: dir, Set: &set, Backend: modelrepo.BackendLocal})
	if err != nil {
		return nil, nil, split.Parts{}, err
	}
	s, err := rows.Sample(p.model.Type, p.use)
	if err != nil {
		return nil, nil, split.Parts{}, err
	}
	parts, err := split.Of(p.model.Split, set.Time.Submit, s.Rows)
	return p, s, parts, err
}

func number(s *dataset.Sample, i int) int64 {
	if id, ok := s.Rows.Num["job"]; ok && id[i] == math.Trunc(id[i]) {
		return int64(id[i])
	}
	return int64(i) + 1
}

func (p *plan) row(s *dataset.Sample, i int, held bool) Row {
	r := Row{Job: number(s, i), Features: map[string]any{}, HeldOut: held}
	for _, c := range s.Table.Columns {
		switch c.Kind {
		case modelrepo.Number:
			r.Features[c.Name] = c.Num[i]
		case modelrepo.Category:
			r.Features[c.Name] = c.Cat[i]
		case modelrepo.Vector:
			r.Features[c.Name] = c.Vec[i]
		}
	}
	if s.Target.Class {
		r.Actual = s.Target.Labels[s.Target.Y[i]]
	} else {
		r.Actual = s.Target.Values[i]
	}
	return r
}
