package table

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Grade states how much a row needs attention.
type Grade int

// Troubled is broken or about to break. Noted is in order but worth seeing.
const (
	Fine Grade = iota
	Noted
	Troubled
)

// good are the words of status columns that need no attention.
var good = []string{
	"", "running", "completed", "succeeded", "complete", "ready", "active", "bound", "available", "true",
	"healthy", "established", "deployed", "synced", "normal", "<none>", "issued", "enabled", "approved,issued",
}

// passing are the words for transitional states.
var passing = []string{"pending", "containercreating", "podinitializing", "terminating", "released", "progressing", "ready,schedulingdisabled"}

// TroubleFirst orders rows by grade, troubled ones first, and keeps the server's order
// among equals.
func (t *Table) TroubleFirst() {
	grades := make(map[int]Grade, len(t.Rows))
	order := make([]int, len(t.Rows))
	for i := range t.Rows {
		order[i], grades[i] = i, t.Grade(i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(grades[b], grades[a]) })
	rows := make([]Row, 0, len(t.Rows))
	for _, i := range order {
		rows = append(rows, t.Rows[i])
	}
	t.Rows = rows
}

// Grade judges row i by the cells whose columns it knows.
func (t *Table) Grade(i int) Grade {
	cells := map[string]string{}
	for c, column := range t.Columns {
		if c < len(t.Rows[i].Cells) {
			cells[column.Name] = t.Rows[i].Cells[c]
		}
	}
	status, hasStatus := cells["STATUS"]
	status = strings.ToLower(status)
	ended := status == "completed" || status == "succeeded" || status == "complete"
	grade := Fine
	raise := func(to Grade, when bool) {
		if when {
			grade = max(grade, to)
		}
	}
	raise(Troubled, hasStatus && !slices.Contains(good, status) && !slices.Contains(passing, status))
	raise(Noted, slices.Contains(passing, status))
	// A pod that has waited long is in trouble, one that began a moment ago is not; its age is the only sign in a row.
	raise(Troubled, status == "pending" && !isSeconds(cells["AGE"]))
	raise(Troubled, !ended && isPartial(cells["READY"]))
	raise(Noted, isPartial(cells["COMPLETIONS"]))
	raise(Troubled, isFewer(cells, "READY", "DESIRED") || isFewer(cells, "AVAILABLE", "DESIRED"))
	raise(Troubled, isFewer(cells, "UP-TO-DATE", "DESIRED") || isFewer(cells, "UP-TO-DATE", "AVAILABLE"))
	raise(Noted, leadingNumber(cells["RESTARTS"]) > 0)
	raise(Noted, strings.EqualFold(cells["SUSPEND"], "true"))
	raise(Troubled, strings.EqualFold(cells["TYPE"], "warning"))
	raise(Troubled, cells["EXTERNAL-IP"] == "<pending>")
	raise(Troubled, strings.Contains(cells["TARGETS"], "<unknown>"))
	for _, column := range []string{"READY", "AVAILABLE", "SYNCED", "HEALTHY"} {
		raise(Troubled, strings.EqualFold(cells[column], "false") || strings.EqualFold(cells[column], "unknown"))
	}
	return grade
}

// isPartial reports whether a cell such as 1/3 is not full.
func isPartial(cell string) bool {
	have, want, ok := strings.Cut(cell, "/")
	if !ok {
		return false
	}
	h, err := strconv.Atoi(have)
	w, werr := strconv.Atoi(want)
	return err == nil && werr == nil && h < w
}

// isFewer reports whether a number is below another one in its row.
func isFewer(cells map[string]string, column, than string) bool {
	have, err := strconv.Atoi(cells[column])
	want, werr := strconv.Atoi(cells[than])
	return err == nil && werr == nil && have < want
}

// leadingNumber is the number that a cell begins with, such as 12 (3m ago).
func leadingNumber(cell string) int {
	head, _, _ := strings.Cut(cell, " ")
	n, err := strconv.Atoi(head)
	if err != nil {
		return 0
	}
	return n
}

// isSeconds reports whether an age is below two minutes, as the server writes it.
func isSeconds(age string) bool {
	return strings.HasSuffix(age, "s") && !strings.ContainsAny(age, "mhdy") || strings.HasPrefix(age, "1m")
}
