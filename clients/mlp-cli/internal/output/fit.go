package output

import (
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// recordWidth is the width below which rows are shown as records, which have room for every column.
const recordWidth = 60

// fit leaves out the columns that a table can spare until it fits the terminal: a whole column less is easier to
// read than every word cut. It returns the headings of those left out.
func (g *Grid) fit(width int, cells [][]string) (columns []string, rows [][]string, left []string) {
	columns, rows = slices.Clone(g.Columns), cells
	if width < recordWidth {
		return columns, rows, nil
	}
	for _, name := range g.Spare {
		if tableWidth(columns, rows) <= width {
			break
		}
		at := slices.Index(columns, name)
		if at < 0 {
			continue
		}
		columns = slices.Delete(columns, at, at+1)
		shorter := make([][]string, len(rows))
		for i, row := range rows {
			shorter[i] = slices.Delete(slices.Clone(row), at, at+1)
		}
		rows, left = shorter, append(left, Snake(name))
	}
	return columns, rows, left
}

// isRecord reports whether the rows of a grid are the fields of one object, a name and a value each.
func (g *Grid) isRecord() bool {
	return len(g.Columns) == 2 && g.Columns[1] == "Value" && g.Columns[0] != "Metric"
}

// turn converts one row to a record, so that a narrow terminal shows its names as the labels.
func (g *Grid) turn(cells [][]string) (turned Grid, row [][]string) {
	turned, row = *g, [][]string{make([]string, len(cells))}
	turned.Columns, turned.Rows, turned.Spare = make([]string, len(cells)), nil, nil
	for i, c := range cells {
		turned.Columns[i], row[0][i] = c[0], c[1]
	}
	return turned, row
}

func tableWidth(columns []string, rows [][]string) int {
	total := 2 * (len(columns) - 1)
	for j, c := range columns {
		widest := text.StringWidthWithoutEscSequences(c)
		for _, row := range rows {
			widest = max(widest, text.StringWidthWithoutEscSequences(row[j]))
		}
		total += widest
	}
	return total
}

func leftOutNote(left []string) string {
	return "not shown: " + strings.Join(left, ", ") + "; select them with --columns"
}
