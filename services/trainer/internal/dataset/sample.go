package dataset

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/services/trainer/internal/frame"
)

// Sample is the rows that one model can learn from, as it sees them.
type Sample struct {
	// Rows are those of Table and Target, in the same order, with all their columns.
	Rows   *Rows
	Table  frame.Table
	Target frame.Target
	// NoLabel and NoFeature count rows left out because the label (missing or -1) or a feature is not known.
	NoLabel, NoFeature int
}

// Sample picks the features and the target of a model.
func (r *Rows) Sample(t modelrepo.Type, md *modelrepo.ModelDataset) (*Sample, error) {
	s := &Sample{}
	var keep []int
	for i := range r.N {
		switch {
		case !r.hasLabel(md.Target.Column, i):
			s.NoLabel++
		case !r.complete(md.Features, i):
			s.NoFeature++
		default:
			keep = append(keep, i)
		}
	}
	if len(keep) == 0 {
		return nil, fmt.Errorf("data set %s: no row has both the label %s and all features (%d without label, %d without a feature)",
			md.Name, md.Target.Column, s.NoLabel, s.NoFeature)
	}
	s.Rows = r.Select(keep)
	var err error
	if s.Table, err = s.Rows.table(md.Features); err != nil {
		return nil, fmt.Errorf("data set %s: %w", md.Name, err)
	}
	if s.Target, err = s.Rows.target(t, md.Target); err != nil {
		return nil, fmt.Errorf("data set %s: %w", md.Name, err)
	}
	return s, nil
}

// Select copies the given rows, in that order.
func (r *Rows) Select(rows []int) *Rows {
	out := *r
	out.N = len(rows)
	out.Num, out.Cat, out.Vec = map[string][]float64{}, map[string][]string{}, map[string][][]float32{}
	for n, c := range r.Num {
		out.Num[n] = pickRows(c, rows)
	}
	for n, c := range r.Cat {
		out.Cat[n] = pickRows(c, rows)
	}
	for n, c := range r.Vec {
		out.Vec[n] = pickRows(c, rows)
	}
	if r.File != nil {
		out.File = pickRows(r.File, rows)
	}
	return &out
}

func (r *Rows) hasLabel(column string, i int) bool {
	if c, ok := r.Cat[column]; ok {
		return c[i] != "" && c[i] != "-1"
	}
	v := r.Num[column][i]
	return !math.IsNaN(v) && v != -1
}

func (r *Rows) complete(features []modelrepo.Feature, i int) bool {
	return !slices.ContainsFunc(features, func(f modelrepo.Feature) bool {
		switch f.Kind {
		case modelrepo.Number:
			return math.IsNaN(r.Num[f.Column][i])
		case modelrepo.Category:
			return r.Cat[f.Column][i] == ""
		}
		return r.Vec[f.Column][i] == nil
	})
}

func (r *Rows) table(features []modelrepo.Feature) (frame.Table, error) {
	t := frame.Table{Rows: r.N}
	for _, f := range features {
		c := frame.Column{Name: f.Column, Kind: f.Kind, Length: f.Length}
		switch f.Kind {
		case modelrepo.Number:
			c.Num = make([]float32, r.N)
			for i, v := range r.Num[f.Column] {
				if math.Abs(v) > math.MaxFloat32 {
					return t, fmt.Errorf("row %d: %s is %g, too large for a feature", i+1, f.Column, v)
				}
				c.Num[i] = float32(v)
			}
		case modelrepo.Category:
			c.Cat = r.Cat[f.Column]
		case modelrepo.Vector:
			c.Vec = r.Vec[f.Column]
		}
		t.Columns = append(t.Columns, c)
	}
	return t, nil
}

func (r *Rows) target(t modelrepo.Type, spec modelrepo.Target) (frame.Target, error) {
	out := frame.Target{Name: spec.Column, Transform: modelrepo.TransformNone, Unit: spec.Unit}
	if t == modelrepo.Regression {
		out.Transform = spec.Transform
		out.Values = r.Num[spec.Column]
		for i, v := range out.Values {
			if spec.Transform == modelrepo.TransformLog1p && v <= -1 {
				return out, fmt.Errorf("row %d: target %s is %g; log1p needs more than -1", i+1, spec.Column, v)
			}
		}
		return out, nil
	}
	out.Class, out.Anomaly = true, t == modelrepo.Anomaly
	out.Labels = spec.Labels
	out.Y = make([]int, r.N)
	if cat, ok := r.Cat[spec.Column]; ok {
		if len(out.Labels) == 0 {
			out.Labels = slices.Compact(slices.Sorted(slices.Values(cat)))
		}
		for i, v := range cat {
			if out.Y[i] = slices.Index(out.Labels, v); out.Y[i] < 0 {
				return out, fmt.Errorf("row %d: target %s is %q, which is none of the labels %s", i+1, spec.Column, v, strings.Join(out.Labels, ", "))
			}
		}
		return out, nil
	}
	for i, v := range r.Num[spec.Column] {
		if spec.Transform == modelrepo.TransformBins {
			// A value on an edge belongs to the class above it.
			for _, e := range spec.Edges {
				if v >= e {
					out.Y[i]++
				}
			}
			continue
		}
		if v != math.Trunc(v) || v < 0 || int(v) >= len(out.Labels) {
			return out, fmt.Errorf("row %d: target %s is %g; with %d labels it must be 0 to %d", i+1, spec.Column, v, len(out.Labels), len(out.Labels)-1)
		}
		out.Y[i] = int(v)
	}
	return out, nil
}
