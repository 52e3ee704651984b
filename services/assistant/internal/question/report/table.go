package report

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
)

// mostRows limits the rows of a table; further ones are only counted.
const mostRows = 40

// mostText limits one cell, in code points.
const mostText = 160

// table is a Markdown table that is written once complete.
type table struct {
	head []string
	rows [][]string
	// left is the number of rows that were counted but not kept.
	left int
}

func newTable(head ...string) *table { return &table{head: head} }

func (t *table) add(cells ...string) {
	if len(t.rows) == mostRows {
		t.left++
		return
	}
	t.rows = append(t.rows, cells)
}

func (t *table) String() string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(t.head)
	b.WriteString(strings.Repeat("|---", len(t.head)) + "|\n")
	for _, r := range t.rows {
		line(r)
	}
	if t.left > 0 {
		fmt.Fprintf(&b, "\nAnd %d more; ask about one namespace or object.\n", t.left)
	}
	return b.String()
}

// under puts a sentence above the table, or replaces an empty table by another one.
func (t *table) under(head, nothing string) Answer {
	if len(t.rows) == 0 {
		return Answer{Head: nothing}
	}
	return Answer{Head: head, table: t}
}

// Answer is a sentence with a table below it, and notes below that.
type Answer struct {
	Head  string
	table *table // nil: none
	Notes []string
}

func (a *Answer) add(format string, values ...any) {
	a.Notes = append(a.Notes, fmt.Sprintf(format, values...))
}

// String formats an answer as Markdown.
func (a Answer) String() string {
	text := a.Head + "\n"
	if a.table != nil {
		text += "\n" + a.table.String()
	}
	for _, note := range a.Notes {
		text += "\n" + note + "\n"
	}
	return text
}

// Columns returns the heads of the columns.
func (a Answer) Columns() []string {
	if a.table == nil {
		return []string{}
	}
	return slices.Clone(a.table.head)
}

// Rows returns the rows as plain text, and how many more there are.
func (a Answer) Rows() (rows [][]string, more int) {
	if a.table == nil {
		return [][]string{}, 0
	}
	for _, cells := range a.table.rows {
		row := make([]string, len(cells))
		for i, cell := range cells {
			row[i] = strings.NewReplacer("`", "", `\|`, "|", "**", "").Replace(cell)
		}
		rows = append(rows, row)
	}
	return rows, a.table.left
}

// Code formats foreign text as code, in one line and shortened, so that markup in it has no effect.
func Code(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '`':
			return '\''
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case !unicode.IsPrint(r):
			return '\uFFFD'
		}
		return r
	}, strings.TrimSpace(s))
	if runes := []rune(s); len(runes) > mostText {
		s = string(runes[:mostText]) + "…"
	}
	if s == "" {
		return "-"
	}
	return "`" + s + "`"
}

// tableCell is Code for a table, where a bar would end the cell.
func tableCell(s string) string { return strings.ReplaceAll(Code(s), "|", `\|`) }

// Grid formats rows as a table; each cell is a list of foreign texts.
func Grid(head []string, rows [][][]string) string {
	t := newTable(head...)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, texts := range row {
			cells[i] = tableCells(texts)
		}
		t.add(cells...)
	}
	return t.String()
}

func tableCells(list []string) string {
	const most = 8
	var all []string
	for i, s := range list {
		if i == most {
			all = append(all, fmt.Sprintf("and %d more", len(list)-most))
			break
		}
		all = append(all, tableCell(s))
	}
	if len(all) == 0 {
		return "-"
	}
	return strings.Join(all, ", ")
}

// formatAge formats the time since then, rounded as by kubectl.
func formatAge(now, then time.Time) string {
	if then.IsZero() {
		return "-"
	}
	d := max(now.Sub(then), 0)
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 3*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// countNoun formats a number with its noun.
func countNoun(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
