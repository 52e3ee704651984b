package export

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/services/trainer/internal/frame"
	"github.com/mlp-platform/platform/services/trainer/internal/learn"
)

const (
	verifyRows   = 1000 // compared in one batch
	verifySingle = 20   // of these, also compared one by one: the runtime has another path for that
	tolerance    = 1e-4 // absolute up to 1, then relative
)

// Verify runs rows of the table through the exported graph and through the Go evaluator and reports the
// first that differ.
func Verify(dir string, t frame.Table, p *Pipeline, m learn.Model, target frame.Target) (err error) {
	if t.Rows == 0 {
		return errors.New("there are no rows to check the exported model on")
	}
	t = t.Select(spreadRows(t.Rows, verifyRows))
	x, err := p.Apply(t)
	if err != nil {
		return err
	}
	s, err := runtime.Open(filepath.Join(dir, ModelFile), runtime.Options{Threads: 2})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	c := comparison{target: target, model: m}
	if err := c.compare(s, p, t, x, 0); err != nil {
		return err
	}
	for _, row := range spreadRows(t.Rows, verifySingle) {
		one := learn.Matrix{Rows: 1, Cols: x.Cols, Data: x.Row(row)}
		if err := c.compare(s, p, t.Select([]int{row}), one, row); err != nil {
			return err
		}
	}
	return nil
}

// spreadRows is at most n row numbers at even distances.
func spreadRows(rows, n int) []int {
	n = min(rows, n)
	out := make([]int, n)
	for i := range out {
		out[i] = i * rows / n
	}
	return out
}

type comparison struct {
	target frame.Target
	model  learn.Model
}

// compare checks a batch; first is the number of its first row, for the message.
func (c *comparison) compare(s *runtime.Session, p *Pipeline, t frame.Table, x learn.Matrix, first int) error {
	out, err := s.Run(p.tensors(t))
	if err != nil {
		return fmt.Errorf("running the exported model: %w", err)
	}
	got := map[string]runtime.Tensor{}
	for _, o := range out {
		got[o.Name] = o
	}
	classes := len(c.target.Labels)
	want := make([]float64, classes)
	for i := range x.Rows {
		if !c.target.Class {
			if err := checkClose(float64(got[Prediction].Floats[i]), toRawUnits(c.target, c.model.Predict(x.Row(i)))); err != nil {
				return fmt.Errorf("row %d: %w", first+i, err)
			}
			continue
		}
		c.model.Proba(x.Row(i), want)
		probabilities := got[Probabilities].Floats[i*classes : (i+1)*classes]
		for k, v := range probabilities {
			if err := checkClose(float64(v), want[k]); err != nil {
				return fmt.Errorf("row %d, class %q: %w", first+i, c.target.Labels[k], err)
			}
		}
		label := formatAnswer(got[Label], i)
		class := int(c.model.Predict(x.Row(i)))
		if c.target.Labels[class] == label {
			continue
		}
		// At the threshold, the last bit of the sum decides.
		if iso, ok := c.model.(*learn.Isolation); ok && math.Abs(want[1]-float64(iso.Threshold)) <= tolerance {
			continue
		}
		// Two classes as likely as each other may be taken either way.
		for k, l := range c.target.Labels {
			_, scored := c.model.(*learn.Isolation)
			if l == label && (scored || want[class]-want[k] > 2*tolerance) {
				return fmt.Errorf("row %d: the exported model answers %q, the fitted one %q", first+i, label, c.target.Labels[class])
			}
		}
	}
	return nil
}

func formatAnswer(t runtime.Tensor, row int) string {
	if t.Strings != nil {
		return t.Strings[row]
	}
	return strconv.FormatInt(t.Int64s[row], 10)
}

func checkClose(got, want float64) error {
	if math.Abs(got-want) <= tolerance*math.Max(1, math.Abs(want)) {
		return nil
	}
	return fmt.Errorf("the exported model answers %v, the fitted one %v; standardize features of very different scales", got, want)
}

// tensors are the graph's inputs for the rows of a table.
func (p *Pipeline) tensors(t frame.Table) []runtime.Tensor {
	in := make([]runtime.Tensor, len(p.features))
	for i, f := range p.features {
		c, _ := t.Column(f.Column)
		in[i] = runtime.Tensor{Name: f.Column, Dims: []int64{int64(t.Rows), 1}}
		switch f.Kind {
		case modelrepo.Number:
			in[i].Floats = c.Num
		case modelrepo.Category:
			in[i].Strings = c.Cat
		case modelrepo.Vector:
			in[i].Dims[1] = int64(f.Length)
			for _, v := range c.Vec {
				in[i].Floats = append(in[i].Floats, v...)
			}
		}
	}
	return in
}
