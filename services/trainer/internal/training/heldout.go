package training

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/services/trainer/internal/dataset"
	"github.com/mlp-platform/platform/services/trainer/internal/source"
	"github.com/mlp-platform/platform/services/trainer/internal/split"
)

// Row is one row of a data set as a prediction request, with the actual value.
type Row struct {
	// ID is the value of the column job, or the row's number from 1 if the data set has no such column.
	ID string `json:"id"`
	// Features is the body's member of that name for POST /predict.
	Features map[string]any `json:"features"`
	// Actual is the true value or label.
	Actual any `json:"actual"`
	// HeldOut is set if the row is in the test part, so no model was trained on it.
	HeldOut bool `json:"held_out"`
}

// Data names the rows of one model.
type Data struct {
	// RepoDir and Env name the model repository and its registry.
	RepoDir, Env string
	// Model, and Dataset with the first as default.
	Model, Dataset string
	// Log is read instead of the data set's files, if not empty.
	Log string
	// Remote fetches rows from outside the repository, CacheDir holds them while they are read.
	Remote   *source.Sources
	CacheDir string
}

// Heldout returns n rows of a model's test part, as [Data.Heldout] does.
func (t *Trainer) Heldout(ctx context.Context, model, dataset string, n int) ([]Row, error) {
	return Data{RepoDir: t.cfg.ModelRepoDir, Env: t.cfg.Env, Model: model, Dataset: dataset, Remote: t.cfg.Remote, CacheDir: t.cfg.CacheDir}.Heldout(ctx, n)
}

// Heldout returns n rows of the test part, evenly spread over it; all if n is 0 or more than there are.
func (d Data) Heldout(ctx context.Context, n int) ([]Row, error) {
	p, s, parts, err := d.load(ctx)
	if err != nil {
		return nil, err
	}
	if n <= 0 {
		n = len(parts.Test)
	}
	var out []Row
	for _, i := range spreadIndices(len(parts.Test), n) {
		out = append(out, p.row(s, parts.Test[i], true))
	}
	return out, nil
}

// Job returns the row of one job, computed as of its submit.
func (d Data) Job(ctx context.Context, id string) (Row, error) {
	p, s, parts, err := d.load(ctx)
	if err != nil {
		return Row{}, err
	}
	for i := range s.Rows.N {
		if rowID(s, i) == id {
			_, held := slices.BinarySearch(parts.Test, i)
			return p.row(s, i, held), nil
		}
	}
	return Row{}, fmt.Errorf("%w: no job %q that a model can learn from; ids go from %s to %s", ErrRequest, id, rowID(s, 0), rowID(s, s.Rows.N-1))
}

func (d Data) load(ctx context.Context) (*plan, *dataset.Sample, split.Parts, error) {
	p, err := lookUp(d.RepoDir, d.Env, Request{Model: d.Model, Dataset: d.Dataset})
	if err != nil {
		return nil, nil, split.Parts{}, err
	}
	dir, set := d.RepoDir, *p.set
	if d.Log != "" {
		dir, set.Files = filepath.Dir(d.Log), []string{filepath.Base(d.Log)}
	}
	backend := p.backend
	if d.Log != "" {
		backend = modelrepo.BackendLocal
		set.Backends = modelrepo.Backends{Local: &struct{}{}}
	}
	rows, err := dataset.Load(ctx, dataset.Source{Repo: dir, Set: &set, Backend: backend, Remote: d.Remote, CacheDir: d.CacheDir})
	if err != nil {
		return nil, nil, split.Parts{}, err
	}
	s, err := rows.Sample(p.model.Type, p.use)
	if err != nil {
		return nil, nil, split.Parts{}, err
	}
	parts, err := split.Of(p.model.Split, set.Time, s.Rows)
	return p, s, parts, err
}

func rowID(s *dataset.Sample, i int) string {
	if id, ok := s.Rows.Num["job"]; ok {
		return strconv.FormatFloat(id[i], 'f', -1, 64)
	}
	return strconv.Itoa(i + 1)
}

func (p *plan) row(s *dataset.Sample, i int, held bool) Row {
	r := Row{ID: rowID(s, i), Features: map[string]any{}, HeldOut: held}
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

// spreadIndices picks at most want of n indices, evenly.
func spreadIndices(n, want int) []int {
	out := make([]int, min(n, want))
	for i := range out {
		out[i] = i * n / len(out)
	}
	return out
}
