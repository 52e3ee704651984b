package store

import (
	"database/sql"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// stray is a run whose row was changed so that filters miss it: a column differs from the
// document, from which these values are.
type stray struct{ id, state, project, unit string }

// strays are those of a state of the file.
type strays struct {
	known bool
	rows  []stray
}

const strayQuery = `SELECT id, state, project, unit FROM (
	SELECT r.run_id AS id, r.state AS s, r.project_id AS p, r.work_unit_id AS w, json_extract(r.metadata_json, '$.kind') AS kind,
		json_extract(r.metadata_json, '$.projection.state') AS state, json_extract(r.metadata_json, '$.projection.project_id') AS project,
		json_extract(r.metadata_json, '$.projection.work_unit.id') AS unit
	FROM runs r WHERE CASE WHEN typeof(r.metadata_json) = 'text' THEN json_valid(r.metadata_json) ELSE 0 END)
	WHERE (s IS NOT state OR p IS NOT project OR w IS NOT unit)
		AND kind IN ('` + spine.CreatedRow + `', '` + spine.ImportedRow + `')
		AND typeof(state) = 'text' AND typeof(project) = 'text' AND typeof(unit) = 'text'`

// strays checks all runs, once for each state of the file: the columns are indexed, and
// an index is only as good as its columns' agreement with the documents. The table is
// read in its own order and the few strays are sorted here: reading in the order of the
// run ids would visit the pages at random.
func (t tx) strays() ([]stray, error) {
	if t.seen != nil && t.seen.known {
		return t.seen.rows, nil
	}
	var rows []stray
	err := t.each(strayQuery, nil, func(from *sql.Rows) error {
		var s stray
		err := from.Scan(&s.id, &s.state, &s.project, &s.unit)
		rows = append(rows, s)
		return err
	})
	slices.SortFunc(rows, func(a, b stray) int { return strings.Compare(a.id, b.id) })
	if err == nil && t.seen != nil {
		*t.seen = strays{known: true, rows: rows}
	}
	return rows, err
}

// noStray fails with the fault of the first stray that should have been selected.
func (t tx) noStray(selects func(stray) bool) error {
	all, err := t.strays()
	if err != nil {
		return err
	}
	for _, s := range all {
		if !selects(s) {
			continue
		}
		row, err := t.runRow(s.id)
		if err != nil {
			return err
		}
		if _, err := row.run(); err != nil {
			return err
		}
		return corruptFault(s.id, "state, project_id or work_unit_id is no text, so no filter finds it")
	}
	return nil
}

// filterAllows reports whether a filter, if there is one, selects a value.
func filterAllows(filter *string, value string) bool { return filter == nil || *filter == value }

// pageHolds reports whether a page that begins after one key and, unless it is the last, ends
// with another holds a key.
func pageHolds[T any](page Page[T], after, last, key string) bool {
	return key > after && (page.Next == "" || key < last)
}
