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
func (m *Model) warmUp(sweep time.Duration) error {
	row, err := m.acceptedRow()
	if err != nil {
		return err
	}
	if sweep > 0 && m.session.ReadsSize() {
		return m.tryEachSize(row, sweep)
	}
	for _, n := range []int{2, m.rows} {
		if n > m.rows {
			continue
		}
		if err := m.tryBatch(row, n); err != nil {
			return err
		}
	}
	return nil
}

// acceptedRow is the mean row, with texts that the model knows, after a run of it. Where the run fails on every text
// that the graph lists, nothing is known of what the model does, and it is refused.
func (m *Model) acceptedRow() (*schema.Row, error) {
	for attempt := 0; ; attempt++ {
		row, more := m.meanRow(attempt)
		err := m.tryRows(row, 1)
		switch {
		case err == nil:
			return row, nil
		case errors.Is(err, runtime.ErrOverran):
			return nil, fmt.Errorf("the model takes too long on one row: %w", err)
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

// tryEachSize runs every number of rows, as far as the time goes. Batches get no larger than what was tried.
func (m *Model) tryEachSize(row *schema.Row, limit time.Duration) error {
	end := time.Now().Add(limit)
	for n := 2; n <= m.rows; n++ {
		if time.Now().After(end) {
			m.rows = n - 1
			return nil
		}
		if err := m.tryBatch(row, n); err != nil {
			return err
		}
	}
	return nil
}

// tryBatch runs n rows. A graph that takes no batches gets single rows; one that takes too much for them is refused.
func (m *Model) tryBatch(row *schema.Row, n int) error {
	err := m.tryRows(row, n)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, runtime.ErrOverran):
		return fmt.Errorf("the model takes too long on %d rows: %w", n, err)
	case runtime.IsOutOfMemory(err):
		return fmt.Errorf("the model takes too much memory on %d rows: %w", n, err)
	}
	m.rows = 1
	return nil
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
