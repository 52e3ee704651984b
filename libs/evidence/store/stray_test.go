package store_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/spine"
	"github.com/mlp-platform/platform/libs/evidence/store"
)

// A row whose column was changed is not selected by it any more, and yet fails every
// read that should have selected it; reads that should not are answered.
func TestChangedColumnsFailFilteredReads(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	proposed, demo, unit := pointerTo("proposed"), pointerTo("project/demo"), "work/demo-0001"
	source := filepath.Join(t.TempDir(), "s.db")
	w := openWriter(t, source, store.WriterOptions{})
	for i := range 4 {
		p := numberedRun(i)
		if i == 3 {
			p.ProjectID, p.WorkUnit.ID = "project/other", "work/other"
		}
		mustGet(w.CreateRun(ctx, store.CreateRun{Projection: p, IdempotencyKey: p.RunID, At: at}))
	}
	_ = w.Close()
	first, third := numberedRun(0).RunID, numberedRun(2).RunID
	r := openReader(t, source, store.ReadWait)
	page := func(q store.RunQuery) error { _, err := r.Runs(ctx, q); return err }
	reads := map[string]func() error{
		"runs of the state":     func() error { return page(store.RunQuery{State: proposed}) },
		"runs of the project":   func() error { return page(store.RunQuery{ProjectID: demo}) },
		"project":               func() error { _, err := r.Project(ctx, *demo); return err },
		"work unit":             func() error { _, err := r.WorkUnit(ctx, unit); return err },
		"work units":            func() error { _, err := r.WorkUnits(ctx, store.WorkUnitQuery{}); return err },
		"units of the project":  func() error { _, err := r.WorkUnits(ctx, store.WorkUnitQuery{ProjectID: demo}); return err },
		"another project":       func() error { _, err := r.Project(ctx, "project/other"); return err },
		"another's runs":        func() error { return page(store.RunQuery{ProjectID: pointerTo("project/other")}) },
		"another unit":          func() error { _, err := r.WorkUnit(ctx, "work/other"); return err },
		"another state":         func() error { return page(store.RunQuery{State: pointerTo("cancelled")}) },
		"a page before the row": func() error { return page(store.RunQuery{ProjectID: demo, Window: store.Window{Limit: 1}}) },
		"another project's unit": func() error {
			_, err := r.WorkUnits(ctx, store.WorkUnitQuery{ProjectID: pointerTo("project/other")})
			return err
		},
	}
	try := func(name, change, id string, fail ...string) {
		t.Helper()
		editStore(t, source, change)
		want := map[string]bool{}
		for _, f := range fail {
			want[f] = true
		}
		for read, do := range reads {
			err := do()
			if !want[read] {
				if err != nil {
					t.Errorf("%s, %s: %v", name, read, err)
				}
				continue
			}
			if store.CodeOf(err) != store.PersistedStateCorrupt || err.(*store.Error).ID != id {
				t.Errorf("%s, %s: %v; want store.CodeOf(err) == store.PersistedStateCorrupt && err.(*store.Error).ID == id", name, read, err)
			}
		}
	}
	set := func(column, value, id string) string {
		return fmt.Sprintf("UPDATE runs SET %s = %s WHERE run_id = '%s'", column, value, id)
	}
	try("untouched", "SELECT 1", "")
	try("project", set("project_id", "'project/x'", third), third, "runs of the state", "runs of the project", "project", "work unit", "work units", "units of the project")
	try("back", set("project_id", "'project/demo'", third), "")
	try("state", set("state", "'previewed'", third), third, "runs of the state", "runs of the project", "project", "work unit", "work units", "units of the project")
	try("back", set("state", "'"+string(spine.Proposed)+"'", third), "")
	try("unit", set("work_unit_id", "'work/x'", third), third, "runs of the state", "runs of the project", "project", "work unit", "work units", "units of the project")
	try("back", set("work_unit_id", "'"+unit+"'", third), "")
	try("a blob", set("project_id", "CAST(project_id AS BLOB)", first), first, "runs of the state", "runs of the project", "project", "work unit", "work units",
		"units of the project", "a page before the row")
}
