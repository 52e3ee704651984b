package dataset

import (
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
	"unicode"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/services/trainer/internal/unpack"
)

// Bounds of a CSV file.
const (
	maxCSVBytes  = 1 << 30
	maxCSVRows   = 5_000_000
	maxCSVRecord = 1 << 20 // a line with all of its quoted cells, which the reader holds at once
)

// recordReader refuses records that are longer than maxCSVRecord.
type recordReader struct {
	r io.Reader
	n int // read since the last record
}

func (b *recordReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.n += n; b.n > maxCSVRecord {
		return 0, fmt.Errorf("a record is longer than %d bytes", maxCSVRecord)
	}
	return n, err
}

// readCSV reads RFC 4180 text with a header line, compressed by gzip or not. A vector is a JSON array; an empty
// cell is a missing value.
func readCSV(src io.Reader, ds *modelrepo.Dataset, into *Rows) error {
	text, err := unpack.Reader(src, maxCSVBytes)
	if err != nil {
		return err
	}
	records := &recordReader{r: text}
	r := csv.NewReader(records)
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
			return fmt.Errorf("line 1: no column %q; the file has %s", from, listNames(header))
		}
		columns = append(columns, column{name, spec, i})
	}
	for n := 0; ; n++ {
		records.n = 0
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
		if err := into.checkHeld(); err != nil {
			line, _ := r.FieldPos(0)
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// listNames are the names of a header as an error shows them: not endless, and without control characters.
func listNames(header []string) string {
	const most = 200
	text := strings.Join(header, ", ")
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

func (r *Rows) cell(name string, spec modelrepo.ColumnSpec, text string) error {
	switch spec.Type {
	case modelrepo.Category:
		r.Cat[name] = append(r.Cat[name], strings.Clone(text))
		r.held += textBytes + int64(len(text))
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
		r.held += vectorBytes + 4*int64(cap(v))
	default:
		v := math.NaN()
		if text = strings.TrimSpace(text); text != "" {
			f, err := strconv.ParseFloat(text, 64)
			if err != nil || math.IsInf(f, 0) {
				return fmt.Errorf("%.80q is no number", text)
			}
			v = f
		}
		r.Num[name] = append(r.Num[name], v)
		r.held += numberBytes
	}
	return nil
}
