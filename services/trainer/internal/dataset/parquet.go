package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/services/trainer/internal/parquet"
)

// readParquet reads the columns that the data set declares one after the other, as the format stores them. A null or
// NaN is a missing value.
func readParquet(ctx context.Context, src io.ReaderAt, size int64, ds *modelrepo.Dataset, into *Rows) error {
	file, err := parquet.Open(src, size)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(ds.Columns)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		spec := ds.Columns[name]
		from := spec.From
		if from == "" {
			from = name
		}
		kind := map[modelrepo.Kind]parquet.Kind{modelrepo.Number: parquet.Number, modelrepo.Category: parquet.Text, modelrepo.Vector: parquet.Vector}[spec.Type]
		err := file.Read(from, kind, &columnSink{ctx: ctx, rows: into, name: name, spec: spec})
		if errors.Is(err, parquet.ErrNoColumn) {
			return fmt.Errorf("no column %q; the file has %s", from, listNames(file.Names()))
		}
		if err != nil {
			return fmt.Errorf("column %s: %w", listNames([]string{from}), err)
		}
	}
	into.N += file.Rows()
	return into.checkHeld()
}

// columnSink appends the values of one column.
type columnSink struct {
	ctx  context.Context //nolint:containedctx // of the reading that the sink belongs to
	rows *Rows
	name string
	spec modelrepo.ColumnSpec
	last string // the text before: of equal ones in a row only one is counted
}

// Reserve counts the size of a page's values before they are allocated.
func (s *columnSink) Reserve(values int) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	switch s.spec.Type {
	case modelrepo.Category:
		s.rows.held += 16 * int64(values) // the string headers; texts are counted when they arrive
	case modelrepo.Vector:
		s.rows.held += 4 * int64(values)
	default:
		s.rows.held += numberBytes * int64(values)
	}
	return s.rows.checkHeld()
}

// Number implements parquet.Values.
func (s *columnSink) Number(v float64) error {
	if math.IsInf(v, 0) {
		return errors.New("it is infinite")
	}
	s.rows.Num[s.name] = append(s.rows.Num[s.name], v)
	return nil
}

// Text implements parquet.Values.
func (s *columnSink) Text(v string) error {
	if v != s.last {
		s.rows.held += int64(len(v)) + 8
		s.last = v
		if err := s.rows.checkHeld(); err != nil {
			return err
		}
	}
	// Not v, which is a separate copy that held does not count.
	s.rows.Cat[s.name] = append(s.rows.Cat[s.name], s.last)
	return nil
}

// Vector implements parquet.Values.
func (s *columnSink) Vector(v []float32) error {
	if len(v) != s.spec.Length {
		return fmt.Errorf("%d numbers, want %d", len(v), s.spec.Length)
	}
	for _, x := range v {
		if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
			return errors.New("a number of the vector is missing or infinite")
		}
	}
	s.rows.held += vectorBytes
	s.rows.Vec[s.name] = append(s.rows.Vec[s.name], slices.Clone(v))
	return nil
}

// Missing implements parquet.Values.
func (s *columnSink) Missing() error {
	switch s.spec.Type {
	case modelrepo.Category:
		s.rows.Cat[s.name] = append(s.rows.Cat[s.name], "")
	case modelrepo.Vector:
		s.rows.Vec[s.name] = append(s.rows.Vec[s.name], nil)
	default:
		s.rows.Num[s.name] = append(s.rows.Num[s.name], math.NaN())
	}
	return nil
}
