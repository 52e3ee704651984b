// Package output renders one result as a table that fits the terminal, or as exactly one JSON, YAML or
// CSV document.
package output

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/mlp-platform/platform/libs/cli/printable"
	"github.com/mlp-platform/platform/libs/cli/terminal"
)

// Format is a value of --output.
type Format string

// The formats of --output.
const (
	Table Format = "table"
	JSON  Format = "json"
	YAML  Format = "yaml"
	CSV   Format = "csv"
)

// Formats lists the values of --output.
var Formats = []Format{Table, JSON, YAML, CSV}

// Structured reports whether stdout carries a document for programs.
func (f Format) Structured() bool { return f != Table }

// Null is shown for a value that is not known.
const Null = "—"

// Grid is a list of rows under fixed columns, and the document that structured formats print instead.
type Grid struct {
	Title   string
	Columns []string
	Rows    [][]any
	Empty   string // the sentence for no rows
	Doc     any    // for JSON and YAML; also the source of CSV when Rows is nil
	Notes   []string
	Spare   []string // columns that a table leaves out where it would not fit, the first of them first
}

// Printer writes results in one format to one stream.
type Printer struct {
	Out     io.Writer
	Format  Format
	Width   int              // columns of the terminal; 0 means unlimited (a pipe)
	Color   bool             // terminal that shows colour
	Compact bool             // one line for each document of JSON
	Select  *Selection       // the part of a document of JSON that is printed; nil: all
	Now     func() time.Time // the clock that ages are counted by; nil means time.Now
}

// Document writes v in a structured format.
func (p *Printer) Document(v any) error {
	data, err := p.encode(v)
	if err != nil {
		return err
	}
	_, err = p.Out.Write(data)
	return err
}

func (p *Printer) encode(v any) ([]byte, error) {
	if p.Format == YAML {
		return marshalYAML(v)
	}
	data, err := Marshal(v)
	if err == nil && p.Select != nil {
		data, err = p.Select.apply(context.Background(), data)
	}
	if err != nil || p.Select != nil && p.Select.query != nil {
		return endLine(data), err
	}
	if p.Compact {
		return endLine(data), nil
	}
	var b bytes.Buffer
	err = json.Indent(&b, data, "", "  ")
	return endLine(b.Bytes()), err
}

// endLine ends a document with a line feed; an empty one gets none.
func endLine(data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	return append(data, '\n')
}

// Print writes grids: as tables one after the other, as the first one's document, or as its CSV.
func (p *Printer) Print(grids ...Grid) error {
	if len(grids) == 0 {
		return nil
	}
	switch p.Format {
	case JSON, YAML:
		return p.Document(grids[0].Doc)
	case CSV:
		return p.csv(grids[0])
	}
	for i, g := range grids {
		if i > 0 {
			fmt.Fprintln(p.Out)
		}
		if err := p.table(g); err != nil {
			return err
		}
	}
	return nil
}

func (p *Printer) csv(g Grid) error {
	w := csv.NewWriter(p.Out)
	head := make([]string, len(g.Columns))
	for i, c := range g.Columns {
		head[i] = Snake(c)
	}
	if err := w.Write(head); err != nil {
		return err
	}
	for _, row := range g.Rows {
		cells := make([]string, len(row))
		for i, v := range row {
			cells[i] = csvCell(v)
		}
		if err := w.Write(cells); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// Snake converts a column heading to a key: "Pushed By" is pushed_by.
func Snake(s string) string {
	s = strings.NewReplacer("μ", "mean", "σ", "std", "Δ", "delta", "#", "number", "(", "", ")", "").Replace(s)
	return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return r == ' ' || r == '-' }), "_")
}

func csvCell(v any) string {
	switch x := derefValue(v).(type) {
	case nil:
		return ""
	case string:
		return x
	case time.Time:
		return x.UTC().Format(time.RFC3339)
	case Styled:
		return csvCell(x.Value)
	case Age:
		return time.Time(x).UTC().Format(time.RFC3339)
	case Ago:
		return csvCell(Age(x))
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	case int, int64, bool:
		return fmt.Sprint(x)
	default:
		data, err := Marshal(x)
		if err != nil {
			return fmt.Sprint(x)
		}
		return string(data)
	}
}

func derefValue(v any) any {
	switch x := v.(type) {
	case *string:
		if x == nil {
			return nil
		}
		return *x
	case *float64:
		if x == nil {
			return nil
		}
		return *x
	case *int:
		if x == nil {
			return nil
		}
		return *x
	case *int64:
		if x == nil {
			return nil
		}
		return *x
	case *time.Time:
		if x == nil {
			return nil
		}
		return *x
	case *bool:
		if x == nil {
			return nil
		}
		return *x
	}
	return v
}

// Style colours a cell by what it means, never by colour alone: the word stays.
type Style int

// The styles of a cell.
const (
	Plain Style = iota
	Good
	Warn
	Bad
	Dim
)

// Styled is a cell with a style.
type Styled struct {
	Value any
	Style Style
}

// Age is a time shown as how long ago it was.
type Age time.Time

// Ago is an age where no heading marks it as one.
type Ago time.Time

func (p *Printer) cell(v any) string {
	switch x := derefValue(v).(type) {
	case nil:
		return Null
	case Styled:
		s := p.cell(x.Value)
		if !p.Color {
			return s
		}
		switch x.Style {
		case Good:
			return text.FgGreen.Sprint(s)
		case Warn:
			return text.FgMagenta.Sprint(s) // yellow cannot be read on a light background
		case Bad:
			return text.FgRed.Sprint(s)
		case Dim:
			return text.Faint.Sprint(s)
		}
		return s
	case string:
		if x == "" {
			return Null
		}
		return Clean(x)
	case float64:
		return Number(x)
	case time.Time:
		return x.UTC().Format("2006-01-02 15:04:05Z")
	case Age:
		if time.Time(x).IsZero() {
			return Null
		}
		now := time.Now
		if p.Now != nil {
			now = p.Now
		}
		return Since(now().Sub(time.Time(x)))
	case Ago:
		if time.Time(x).IsZero() {
			return Null
		}
		return p.cell(Age(x)) + " ago"
	case []string:
		if len(x) == 0 {
			return Null
		}
		return Clean(strings.Join(x, ", "))
	default:
		return Clean(fmt.Sprint(x))
	}
}

// Clean makes untrusted text safe to print, as one line.
func Clean(s string) string { return printable.Line(s) }

// Number shows a figure with as many digits as it deserves.
func Number(x float64) string {
	switch {
	case !isFinite(x):
		return "NaN"
	case math.Abs(x) >= 1e15: // a metric that MLflow clamps, such as infinity, has 309 digits
		return strconv.FormatFloat(x, 'g', 4, 64)
	case x == math.Trunc(x):
		return strconv.FormatFloat(x, 'f', -1, 64)
	case math.Abs(x) >= 1000:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case math.Abs(x) >= 1:
		return strconv.FormatFloat(x, 'f', 3, 64)
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}

// Since shows a duration in its two largest units.
func Since(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm %ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh %dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd %dh", int(d.Hours())/24, int(d.Hours())%24)
}

func (p *Printer) table(g Grid) error {
	var b strings.Builder
	if g.Title != "" {
		title := g.Title
		if p.Color {
			title = text.Bold.Sprint(title)
		}
		fmt.Fprintln(&b, title)
	}
	if len(g.Rows) == 0 {
		fmt.Fprintln(&b, g.Empty)
		return p.flush(&b, g.Notes)
	}
	cells := make([][]string, len(g.Rows))
	for i, row := range g.Rows {
		cells[i] = make([]string, len(row))
		for j, v := range row {
			cells[i][j] = p.cell(v)
		}
	}
	if g.isRecord() && p.Width > 0 && p.Width < recordWidth {
		g, cells = g.turn(cells)
	}
	titles, cells, left := g.fit(p.Width, cells)
	if len(left) > 0 {
		g.Notes = append(slices.Clone(g.Notes), leftOutNote(left))
	}
	columns := make([]terminal.Column, len(titles))
	for j, c := range titles {
		columns[j] = terminal.Column{Title: c, Right: isNumeric(g.Rows, slices.Index(g.Columns, c))}
	}
	if err := terminal.Table(&b, p.Width, p.Color, columns, cells); err != nil {
		return err
	}
	return p.flush(&b, g.Notes)
}

// isNumeric reports whether a column holds only numbers and unknown values.
func isNumeric(rows [][]any, column int) bool {
	found := false
	for _, row := range rows {
		if column >= len(row) {
			continue
		}
		switch derefValue(row[column]).(type) {
		case float64, int, int64:
			found = true
		case nil: // not known: it says nothing of the column
		default:
			return false
		}
	}
	return found
}

func (p *Printer) flush(b *strings.Builder, notes []string) error {
	for _, n := range notes {
		fmt.Fprintln(b, Wrap(n, p.Width))
	}
	_, err := io.WriteString(p.Out, b.String())
	return err
}

// Sparkline draws values as one row of eighth blocks; fewer than two values give nothing.
func Sparkline(values []float64) string {
	const blocks = "▁▂▃▄▅▆▇█"
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	if len(values) < 2 || math.IsInf(lo, 1) {
		return ""
	}
	runes := []rune(blocks)
	var b strings.Builder
	for _, v := range values {
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
			b.WriteByte(' ')
		case hi == lo:
			b.WriteRune(runes[len(runes)/2])
		default:
			b.WriteRune(runes[int((v-lo)/(hi-lo)*float64(len(runes)-1)+0.5)])
		}
	}
	return b.String()
}
