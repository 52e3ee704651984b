package terminal

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// recordWidth is the terminal width below which rows are shown as records, one field a line.
const recordWidth = 60

// Column is a heading and the alignment of its cells.
type Column struct {
	Title string
	Right bool // numbers
}

// Table writes rows under headings. Cells are ready to show: cleaned, and coloured if at all. Width is that of the
// terminal, 0 is unlimited; what does not fit is cut from the widest columns, from the first one last, and on a narrow terminal each row
// becomes a record. With faint, headings are dimmed.
func Table(w io.Writer, width int, faint bool, columns []Column, cells [][]string) error {
	var b strings.Builder
	if width > 0 && width < recordWidth {
		writeRecords(&b, width, columns, cells)
		_, err := io.WriteString(w, b.String())
		return err
	}
	t := table.NewWriter()
	style := table.StyleLight
	style.Options = table.Options{SeparateHeader: false}
	style.Box = table.BoxStyle{PaddingRight: "  "}
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	head := make(table.Row, len(columns))
	for i, c := range columns {
		title := heading.Replace(strings.ToUpper(c.Title))
		if faint {
			title = text.Faint.Sprint(title)
		}
		head[i] = title
	}
	t.AppendHeader(head)
	for _, row := range cells {
		r := make(table.Row, len(row))
		for i, c := range row {
			r[i] = c
		}
		t.AppendRow(r)
	}
	t.SetColumnConfigs(fitColumns(width, columns, cells))
	for line := range strings.SplitSeq(t.Render(), "\n") {
		fmt.Fprintln(&b, strings.TrimRight(line, " "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// heading keeps symbols small: a capital μ reads as M, a capital σ as a sum.
var heading = strings.NewReplacer("Μ", "μ", "Σ", "σ")

// fitColumns takes width from the widest columns when the rows are wider than the terminal.
func fitColumns(limit int, columns []Column, cells [][]string) []table.ColumnConfig {
	width := make([]int, len(columns))
	conf := make([]table.ColumnConfig, len(columns))
	for j, c := range columns {
		width[j] = text.StringWidthWithoutEscSequences(c.Title)
		conf[j] = table.ColumnConfig{Number: j + 1}
		if c.Right {
			conf[j].Align, conf[j].AlignHeader = text.AlignRight, text.AlignRight
		}
		for _, row := range cells {
			if j < len(row) {
				width[j] = max(width[j], text.StringWidthWithoutEscSequences(row[j]))
			}
		}
	}
	if limit == 0 {
		return conf
	}
	total := func() int {
		sum := -2 // nothing follows the last
		for _, w := range width {
			sum += w + 2
		}
		return sum
	}
	const least = 6
	// The first column identifies the row: it is truncated last.
	for from := 1; from >= 0; from-- {
		for total() > limit {
			widest := from
			for j := from; j < len(width); j++ {
				if width[j] > width[widest] {
					widest = j
				}
			}
			if widest >= len(width) || width[widest] <= least {
				break
			}
			width[widest]--
			conf[widest].WidthMax = width[widest]
			conf[widest].WidthMaxEnforcer = func(s string, w int) string { return text.Snip(s, w, "…") }
		}
	}
	return conf
}

func writeRecords(b *strings.Builder, width int, columns []Column, cells [][]string) {
	label := 0
	for _, c := range columns {
		label = max(label, text.StringWidthWithoutEscSequences(c.Title))
	}
	for i, row := range cells {
		if i > 0 {
			b.WriteByte('\n')
		}
		for j, c := range row {
			room := max(width-label-2, 8)
			// Wrapped, not cut: where there is no room for a table, an id must still be there to copy.
			title := columns[j].Title
			for line := range strings.SplitSeq(text.WrapSoft(c, room), "\n") {
				fmt.Fprintf(b, "%s  %s\n", text.Pad(title, label, ' '), strings.TrimRight(line, " "))
				title = ""
			}
		}
	}
}
