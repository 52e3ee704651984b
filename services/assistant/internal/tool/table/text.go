package table

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxCell limits one cell: an event's message may be a kilobyte.
const maxCell = 300

// View selects how much of a table is shown.
type View struct {
	Namespaces bool // with a column for the namespaces
	Wide       bool
	Bare       bool // without headings
	Rows       int  // at most; 0 is all
	Characters int  // at most, the marker included
	// More is the number of rows that were not even read.
	More int64
}

// Text writes the table, and reports whether rows were omitted; the last line then states how many, and how to see
// them.
func (t *Table) Text(v View) (text string, cut bool) {
	columns, rows := t.visible(v)
	widths := make([]int, len(columns))
	for _, cells := range append([][]string{columns}, rows...) {
		for i, cell := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	total := int64(len(t.Rows)) + v.More
	// The marker is measured at its longest, so that it always fits.
	reserve := utf8.RuneCountInString(omittedMarker(total, total))
	var b strings.Builder
	room := v.Characters
	write := func(cells []string, reserve int) bool {
		line := padCells(cells, widths)
		size := utf8.RuneCountInString(line)
		if size+reserve > room {
			return false
		}
		room -= size
		b.WriteString(line)
		return true
	}
	shown := 0
	if v.Bare || write(columns, reserve) {
		for i, cells := range rows {
			last := int64(i+1) == total
			if !write(cells, map[bool]int{true: 0, false: reserve}[last]) {
				break
			}
			shown++
		}
	}
	if int64(shown) == total {
		return b.String(), false
	}
	b.WriteString(omittedMarker(int64(shown), total))
	return b.String(), true
}

// omittedMarker is the line that replaces the omitted rows.
func omittedMarker(shown, total int64) string {
	return fmt.Sprintf("[%d of %d rows shown, troubled ones first; narrow it by namespace, name or selector]\n", shown, total)
}

// visible returns the headings and cells that the view shows.
func (t *Table) visible(v View) (columns []string, rows [][]string) {
	if v.Namespaces {
		columns = append(columns, "NAMESPACE")
	}
	for _, c := range t.Columns {
		if v.Wide || !c.Wide {
			columns = append(columns, Line(c.Name, maxCell))
		}
	}
	for i, r := range t.Rows {
		if v.Rows > 0 && i == v.Rows {
			break
		}
		var cells []string
		if v.Namespaces {
			cells = append(cells, Line(r.Namespace, maxCell))
		}
		for c, column := range t.Columns {
			if column.Wide && !v.Wide {
				continue
			}
			cell := ""
			if c < len(r.Cells) {
				cell = Line(r.Cells[c], maxCell)
			}
			cells = append(cells, cell)
		}
		rows = append(rows, cells)
	}
	return columns, rows
}

func padCells(cells []string, widths []int) string {
	var b strings.Builder
	for i, cell := range cells {
		b.WriteString(cell)
		if i < len(cells)-1 {
			b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+3))
		}
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}
