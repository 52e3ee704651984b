package model

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/services/inference/internal/schema"
)

// textsTried limits the rows that are tried until one has texts that the model knows.
const textsTried = 16

// warmUp runs a plausible row alone and in the largest batch, so that the first callers do not pay for the library's
// lazy set-up, and learns how many rows a run may have.
func (m *Model) warmUp(o Options) error {
	if m.opensSizes() {
		return m.tryLengths(o)
	}
	run, err := m.acceptedRun()
	if err != nil {
		return err
	}
	if o.Sweep > 0 && m.session.ReadsSize() {
		return m.tryEachSize(run, o)
	}
	for _, n := range []int{2, m.bounds.Rows} {
		if n > m.bounds.Rows {
			continue
		}
		if err := m.tryBatch(run, n); err != nil {
			return err
		}
	}
	return nil
}

// acceptedRun runs the mean row a number of times at once, with texts that the model knows. If a run fails on every
// text that the graph lists, the model's behaviour is unknown, and it is refused.
func (m *Model) acceptedRun() (run func(rows int) error, err error) {
	for attempt := 0; ; attempt++ {
		var more bool
		if m.tensorsOnly != "" {
			run, more = m.zeroTensors(attempt)
		} else {
			var row *schema.Row
			row, more = m.meanRow(attempt)
			run = func(rows int) error { return m.tryRows(row, rows) }
		}
		err := run(1)
		switch {
		case err == nil:
			return run, nil
		case errors.Is(err, runtime.ErrOverran):
			return nil, fmt.Errorf("the model takes too long on one row: %w", err)
		case concernsAll(err):
			return nil, err
		case !more || attempt == textsTried:
			return nil, fmt.Errorf("the model fails on the mean of its columns: %w", err)
		}
	}
}

// meanRow has the mean of each numeric column, and of each text column the text of that attempt: no text at first, then
// those that the graph lists. more reports whether another attempt differs.
func (m *Model) meanRow(attempt int) (row *schema.Row, more bool) {
	row = &schema.Row{}
	m.schema.Fit(row)
	for _, in := range m.inputs {
		for _, i := range in.columns {
			c := &m.schema.Columns[i]
			switch c.Kind {
			case schema.Category:
				texts := m.session.KnownTexts(in.info.Name)
				if attempt > 0 && len(texts) > 0 {
					*m.schema.Text(row, i) = texts[(attempt-1)%len(texts)]
				}
				more = more || attempt < len(texts)
			case schema.Integer:
				*m.schema.Int(row, i) = int64(math.Round(c.Mean))
			default:
				for j := range m.schema.Numbers(row, i) {
					m.schema.Numbers(row, i)[j] = c.Mean
				}
			}
		}
	}
	return row, more
}

// tryEachSize runs every number of rows until the time is up. Batches get no larger than the sizes tried.
func (m *Model) tryEachSize(run func(rows int) error, o Options) error {
	clock := o.clock()
	end := clock() + o.Sweep
	for n := 2; n <= m.bounds.Rows; n++ {
		if clock() > end {
			m.bounds.Rows = n - 1
			return nil
		}
		if err := m.tryBatch(run, n); err != nil {
			return err
		}
	}
	return nil
}

// clock is o.Clock, or the time since now.
func (o *Options) clock() func() time.Duration {
	if o.Clock != nil {
		return o.Clock
	}
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

// tryBatch runs n rows. A graph that takes no batches gets single rows; one that takes too much for them is refused.
func (m *Model) tryBatch(run func(rows int) error, n int) error {
	err := run(n)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, runtime.ErrOverran):
		return fmt.Errorf("the model takes too long on %d rows: %w", n, err)
	case concernsAll(err):
		return err
	case runtime.IsOutOfMemory(err):
		return fmt.Errorf("the model takes too much memory on %d rows: %w", n, err)
	}
	m.bounds.Rows = 1
	return nil
}

// zeroTensors runs rows of zeros, and of each text input the text of that attempt, as meanRow does.
func (m *Model) zeroTensors(attempt int) (run func(rows int) error, more bool) {
	texts := make([]string, len(m.session.Inputs()))
	for i, in := range m.session.Inputs() {
		if known := m.session.KnownTexts(in.Name); in.Type == runtime.String && len(known) > 0 {
			if attempt > 0 {
				texts[i] = known[(attempt-1)%len(known)]
			}
			more = more || attempt < len(known)
		}
	}
	return func(rows int) error {
		in := make([]runtime.Tensor, len(texts))
		for i, info := range m.session.Inputs() {
			in[i] = NewTensor(info.Type, rowDims(info.Dims, int64(rows), 0))
			for j := range in[i].Strings {
				in[i].Strings[j] = texts[i]
			}
		}
		_, err := m.tryTensors(in, rows)
		return err
	}, more
}

func (m *Model) tryRows(row *schema.Row, n int) error {
	rows, results := make([]*schema.Row, n), make([]Result, n)
	for i := range rows {
		rows[i] = row
	}
	outs, err := m.NewBatch().run(rows)
	if err != nil {
		return err
	}
	return m.read(outs, results)
}
