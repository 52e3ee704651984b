package dataset

import (
	"bufio"
	"bytes"
	"cmp"
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
	"github.com/mlp-platform/platform/libs/textfile"
	"github.com/mlp-platform/platform/services/trainer/internal/unpack"
)

// Limits of a CSV file.
const (
	maxCSVBytes    = 1 << 30
	maxCSVRows     = 5_000_000
	maxCSVRecord   = 1 << 20  // a line with all of its quoted cells, which the reader holds at once
	maxHeaderShown = 64 << 10 // of the header, which is searched for another delimiter
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

// csvColumn is a declared column at its place in the file.
type csvColumn struct {
	name  string
	spec  modelrepo.ColumnSpec
	index int
}

// readCSV reads text with a header line in the dialect of the data set, compressed by gzip or not. A vector is a JSON
// array; an empty cell is a missing value.
func readCSV(src io.Reader, ds *modelrepo.Dataset, into *Rows) error {
	packed, err := unpack.Reader(src, maxCSVBytes)
	if err != nil {
		return err
	}
	text, err := textfile.NewReader(packed, ds.Encoding)
	if err != nil {
		return err
	}
	// The header as it stands shows which delimiter the file has, if it is not the declared one.
	buffered := bufio.NewReaderSize(text, maxHeaderShown)
	first, _ := buffered.Peek(maxHeaderShown)
	records := &recordReader{r: buffered}
	err = readRecords(newRowReader(records, ds.Dialect), records, ds, into)
	var at *textfile.Error
	switch {
	case errors.As(err, &at) && ds.Encoding == "":
		return fmt.Errorf(`%w; if the file is in another encoding, declare it in %s, such as encoding: windows-1252`, at, ds.Path)
	case errors.Is(err, errHeader):
		return withDelimiterHint(err, first, ds)
	}
	return err
}

// errHeader marks faults of the header line.
var errHeader = errors.New("line 1")

func readRecords(r rowReader, limit *recordReader, ds *modelrepo.Dataset, into *Rows) error {
	header, err := r.Read()
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("the file is empty; it needs a header line")
	case errors.As(err, new(*csv.ParseError)):
		return fmt.Errorf("%w: %w", errHeader, err)
	case err != nil:
		return err
	}
	columns, err := findColumns(header, ds)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		limit.n = 0
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
			if err := into.csvCell(c, ds.Dialect, rec[c.index]); err != nil {
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

func findColumns(header []string, ds *modelrepo.Dataset) ([]csvColumn, error) {
	var columns []csvColumn
	for _, name := range slices.Sorted(maps.Keys(ds.Columns)) {
		spec := ds.Columns[name]
		from := cmp.Or(spec.From, name)
		i := slices.Index(header, from)
		if i < 0 {
			return nil, fmt.Errorf("%w: no column %q; the file has %s", errHeader, from, listNames(header))
		}
		columns = append(columns, csvColumn{name, spec, i})
	}
	return columns, nil
}

// withDelimiterHint adds the delimiter to declare if the header holds every column once it is split there, as for
// spreadsheet exports in most of Europe.
func withDelimiterHint(err error, first []byte, ds *modelrepo.Dataset) error {
	for _, delimiter := range []string{";", "\t", ",", "|"} {
		other := ds.Dialect
		other.Delimiter = delimiter
		header, readErr := newRowReader(bytes.NewReader(first), other).Read()
		if readErr != nil {
			continue
		}
		if _, missing := findColumns(header, ds); missing == nil {
			return fmt.Errorf(`%w; its cells are separated by %q: declare delimiter: %q in %s, and decimal: "," if its numbers have a decimal comma`, err, delimiter, delimiter, ds.Path)
		}
	}
	return err
}

// csvCell appends a cell to its column.
func (r *Rows) csvCell(c csvColumn, d modelrepo.Dialect, text string) error {
	trimmed := text
	if c.spec.Type != modelrepo.Category {
		trimmed = strings.TrimSpace(text)
	}
	switch {
	case d.Missing(trimmed):
		return r.cell(c.name, c.spec, "")
	case c.spec.Type != modelrepo.Number:
		return r.cell(c.name, c.spec, text)
	}
	number := trimmed
	if d.DecimalComma() {
		if strings.Contains(number, ".") {
			return fmt.Errorf("%.80q is no number with a decimal comma, which the data set declares, and without other separators", text)
		}
		number = replaceComma(number)
	}
	err := r.cell(c.name, c.spec, number)
	if err == nil || d.DecimalComma() {
		return err
	}
	if _, commaErr := strconv.ParseFloat(replaceComma(trimmed), 64); commaErr == nil {
		return fmt.Errorf(`%w; if the comma is its decimal sign, the data set must declare decimal: ","`, err)
	}
	return fmt.Errorf("%w; if it means a missing value, the data set must list it under na_values", err)
}

func replaceComma(number string) string { return strings.Replace(number, ",", ".", 1) }

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
