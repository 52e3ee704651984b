package dataset

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mlp-platform/platform/libs/modelrepo"
)

// Bounds of a CSV file: what a run holds in memory at once.
const (
	maxCSVBytes = 1 << 30
	maxCSVRows  = 5_000_000
)

var errTooLarge = fmt.Errorf("the file is larger than %d MiB unpacked", maxCSVBytes>>20)

// bounded answers an error rather than a silent end when the limit is passed.
type bounded struct {
	r io.Reader
	n int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.n -= int64(n)
	if b.n < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// readCSV reads RFC 4180 text with a header line, compressed by gzip or not. A vector is a JSON array; an empty
// cell is a missing value.
func readCSV(src io.Reader, ds *modelrepo.Dataset, into *Rows) error {
	buf := bufio.NewReader(src)
	src = buf
	if magic, _ := buf.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(buf)
		if err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
		defer z.Close()
		src = z
	}
	r := csv.NewReader(&bounded{r: src, n: maxCSVBytes})
	r.ReuseRecord = true
	header, err := r.Read()
	if errors.Is(err, io.EOF) {
		return errors.New("the file is empty; it needs a header line")
	}
	if err != nil {
		return err
	}
	header[0] = strings.TrimPrefix(header[0], "\ufeff")
	type column struct {
		name  string
		spec  modelrepo.ColumnSpec
		index int
	}
	var columns []column
	for _, name := range slices.Sorted(maps.Keys(ds.Columns)) {
		spec := ds.Columns[name]
		from := spec.From
		if from == "" {
			from = name
		}
		i := slices.Index(header, from)
		if i < 0 {
			return fmt.Errorf("line 1: no column %q; the file has %s", from, strings.Join(header, ", "))
		}
		columns = append(columns, column{name, spec, i})
	}
	for n := 0; ; n++ {
		rec, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if n == maxCSVRows {
			return fmt.Errorf("more than %d rows", maxCSVRows)
		}
		for _, c := range columns {
			if err := into.cell(c.name, c.spec, rec[c.index]); err != nil {
				line, col := r.FieldPos(c.index)
				return fmt.Errorf("line %d, column %d (%s): %w", line, col, c.name, err)
			}
		}
		into.N++
	}
}

func (r *Rows) cell(name string, spec modelrepo.ColumnSpec, text string) error {
	switch spec.Type {
	case modelrepo.Category:
		r.Cat[name] = append(r.Cat[name], strings.Clone(text))
	case modelrepo.Vector:
		var v []float32
		if text != "" {
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				return fmt.Errorf("want a JSON array of %d numbers: %w", spec.Length, err)
			}
			if len(v) != spec.Length {
				return fmt.Errorf("%d numbers, want %d", len(v), spec.Length)
			}
		}
		r.Vec[name] = append(r.Vec[name], v)
	default:
		v := math.NaN()
		if text = strings.TrimSpace(text); text != "" {
			f, err := strconv.ParseFloat(text, 64)
			if err != nil || math.IsInf(f, 0) {
				return fmt.Errorf("%q is no number", text)
			}
			v = f
		}
		r.Num[name] = append(r.Num[name], v)
	}
	return nil
}
