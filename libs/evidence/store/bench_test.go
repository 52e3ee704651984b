package store_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/store"
)

// largeStore makes a store with n events of a few runs, written directly into the
// file: the benchmark measures reading.
func largeStore(b *testing.B, n int) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "s.db")
	w := openWriter(b, path, store.WriterOptions{})
	for i := range 10 {
		mustGet(w.CreateRun(b.Context(), store.CreateRun{Projection: numberedRun(i), IdempotencyKey: fmt.Sprint(i)}))
	}
	_ = w.Close()
	editStore(b, path, "PRAGMA synchronous = OFF", "PRAGMA cache_size = -200000", "BEGIN",
		"DROP INDEX events_by_run", "DROP INDEX events_by_project", "DROP INDEX events_by_work_unit", "DROP INDEX events_by_type", fmt.Sprintf(`
		INSERT INTO events
		SELECT n, printf('evt-%%012d', n), occurred_at, event_type, principal_json, authority_class, project_id, work_unit_id,
			run_id, attempt_id, source_revision, evidence_reference_json, payload_json, payload_digest
		FROM (WITH RECURSIVE c(n) AS (SELECT 11 UNION ALL SELECT n + 1 FROM c WHERE n < %d) SELECT n FROM c) JOIN (SELECT * FROM events LIMIT 10) ON sequence = CASE n WHEN %d THEN 10 ELSE 2 END`,
			n, n), "CREATE INDEX events_by_run ON events (run_id)", "CREATE INDEX events_by_project ON events (project_id)",
		"CREATE INDEX events_by_work_unit ON events (work_unit_id)", "CREATE INDEX events_by_type ON events (event_type)", "COMMIT")
	return path
}

// BenchmarkEventPages reads pages of 200 out of a million events; heap-MiB is the
// memory still allocated after them.
func BenchmarkEventPages(b *testing.B) {
	const n = 1_000_000
	path := largeStore(b, n)
	r := openReader(b, path, store.ReadWait)
	for name, query := range map[string]func(i int64) (int64, store.EventFilter){
		"anywhere": func(i int64) (int64, store.EventFilter) { return i * 7919 * 200 % (n - 200), store.EventFilter{} },
		"tail":     func(int64) (int64, store.EventFilter) { return n - 200, store.EventFilter{} },
		"rare run": func(int64) (int64, store.EventFilter) {
			return 0, store.EventFilter{RunID: pointerTo("run/test:000009")}
		},
		"rare run of the project": func(int64) (int64, store.EventFilter) {
			return 0, store.EventFilter{RunID: pointerTo("run/test:000009"), ProjectID: pointerTo(fixture.ProjectID), EventType: pointerTo("run.created")}
		},
		"no match": func(int64) (int64, store.EventFilter) {
			return 0, store.EventFilter{EventType: pointerTo("run.cancelled"), ProjectID: pointerTo(fixture.ProjectID)}
		},
	} {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			b.ReportAllocs()
			var i int64
			for b.Loop() {
				i++
				after, filter := query(i)
				if _, _, err := r.EventsAfter(b.Context(), after, filter, 200); err != nil {
					b.Fatal(err)
				}
			}
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "heap-MiB")
		})
	}
}

// BenchmarkRun reads one run after the other from a store of a hundred.
func BenchmarkRun(b *testing.B) {
	path := filepath.Join(b.TempDir(), "s.db")
	w := openWriter(b, path, store.WriterOptions{})
	for i := range 100 {
		mustGet(w.CreateRun(b.Context(), store.CreateRun{Projection: numberedRun(i), IdempotencyKey: fmt.Sprint(i)}))
	}
	_ = w.Close()
	r := openReader(b, path, store.ReadWait)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		mustGet(r.Run(b.Context(), numberedRun(i%100).RunID))
	}
}

// BenchmarkCreate is one durable create: three rows, an event, a checkpoint.
func BenchmarkCreate(b *testing.B) {
	w := openWriter(b, filepath.Join(b.TempDir(), "s.db"), store.WriterOptions{})
	i := 0
	for b.Loop() {
		i++
		mustGet(w.CreateRun(b.Context(), store.CreateRun{Projection: numberedRun(i), IdempotencyKey: fmt.Sprint(i)}))
	}
}

// BenchmarkFilteredRuns reads a page of one state out of ten thousand runs, of a file
// that stays as it is and of one that is being written to: its columns are checked
// against its documents again each time.
func BenchmarkFilteredRuns(b *testing.B) {
	path := filepath.Join(b.TempDir(), "s.db")
	w := openWriter(b, path, store.WriterOptions{})
	mustGet(w.CreateRun(b.Context(), store.CreateRun{Projection: numberedRun(0), IdempotencyKey: "0"}))
	editStore(b, path, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
		INSERT INTO runs SELECT run_id || '-' || i, idempotency_key || '-' || i, request_digest, state, metadata_json, created_at, updated_at,
			row_kind, project_id, work_unit_id FROM runs, n`)
	r := openReader(b, path, store.ReadWait)
	for _, written := range []bool{false, true} {
		b.Run(fmt.Sprint("written=", written), func(b *testing.B) {
			for b.Loop() {
				if written {
					b.StopTimer()
					editStore(b, path, "UPDATE connections SET updated_at = updated_at", "INSERT OR REPLACE INTO store_meta VALUES ('bench', datetime())")
					b.StartTimer()
				}
				if _, err := r.Runs(b.Context(), store.RunQuery{State: pointerTo("cancelled")}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
