package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/store"
)

// addEvent is SQL that repeats the first event under another sequence, type and project.
func addEvent(sequence int, kind, project string) string {
	return fmt.Sprintf(`INSERT INTO events SELECT %d, 'evt-%[1]d', occurred_at, '%s', principal_json, authority_class, %s, work_unit_id,
		run_id, attempt_id, source_revision, evidence_reference_json, payload_json, payload_digest FROM events WHERE sequence = 1`, sequence, kind, project)
}

// A run whose row is valid in isolation and contradicts the log fails every read of it.
func TestRunsAreHeldAgainstTheLog(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"another state":            "UPDATE runs SET state = 'previewed', metadata_json = replace(metadata_json, '\"state\":\"proposed\"', '\"state\":\"previewed\"')",
		"no longer so":             "UPDATE runs SET updated_at = '2027-01-01T00:00:00Z'",
		"from other times":         "UPDATE runs SET created_at = '2026-01-01T00:00:00Z', updated_at = '2026-01-01T00:00:00Z'; UPDATE idempotency SET created_at = '2026-01-01T00:00:00Z'",
		"event of another project": "DROP TRIGGER events_no_update; UPDATE events SET project_id = 'project/other'",
		"event of another unit":    "DROP TRIGGER events_no_update; UPDATE events SET work_unit_id = 'work/other'",
		"event gone":               "DROP TRIGGER events_no_delete; DELETE FROM events",
		"created twice":            addEvent(2, "run.created", "project_id"),
		"cancelled by the log":     addEvent(2, "run.cancelled", "project_id"),
		"cancelled elsewhere": addEvent(2, "run.cancelled", "'project/other'") + "; UPDATE runs SET state = 'cancelled', " +
			"metadata_json = replace(metadata_json, '\"state\":\"proposed\"', '\"state\":\"cancelled\"')",
		"three events": addEvent(2, "run.cancelled", "project_id") + "; " + addEvent(3, "run.cancelled", "project_id") + "; UPDATE runs SET state = 'cancelled', " +
			"metadata_json = replace(metadata_json, '\"state\":\"proposed\"', '\"state\":\"cancelled\"')",
		"key at another time":   "UPDATE idempotency SET created_at = '2026-01-01T00:00:00Z'",
		"key of another digest": "UPDATE idempotency SET request_digest = replace(request_digest, 'sha256:', 'sha256:0')",
		"no key":                "DELETE FROM idempotency",
		"key in capitals, which its column compares as equal": "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'request_digest  TEXT NOT NULL', " +
			"'request_digest TEXT NOT NULL COLLATE NOCASE') WHERE name = 'idempotency'; UPDATE idempotency SET request_digest = upper(request_digest)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "s.db")
			w := openWriter(t, path, store.WriterOptions{})
			mustGet(w.CreateRun(t.Context(), store.CreateRun{Projection: fixture.Run(), IdempotencyKey: "k", At: at}))
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			editStore(t, path, change)
			r := openReader(t, path, store.ReadWait)
			_, err := r.Run(t.Context(), "run/demo:0001")
			if e := wantCode(t, err, store.PersistedStateCorrupt); e.ID != "run/demo:0001" {
				t.Errorf("the error names %q, want the run", e.ID)
			}
			_, err = r.Runs(t.Context(), store.RunQuery{})
			wantCode(t, err, store.PersistedStateCorrupt)
			_, err = r.Project(t.Context(), "project/demo")
			wantCode(t, err, store.PersistedStateCorrupt)
			_, err = r.WorkUnits(t.Context(), store.WorkUnitQuery{})
			wantCode(t, err, store.PersistedStateCorrupt)
		})
	}
	path := fixtureStore(t)
	editStore(t, path, "UPDATE runs SET updated_at = '2027-01-01T00:00:00Z' WHERE run_id = 'run/demo:0002'")
	_, err := openReader(t, path, store.ReadWait).Evidence(t.Context(), "run/demo:0002")
	wantCode(t, err, store.PersistedStateCorrupt)
}

// Every column of an event, changed so that the event still looks valid in isolation.
func TestEventsAreHeldAgainstTheirRuns(t *testing.T) {
	t.Parallel()
	source := fixtureStore(t)
	whole := mustGet(os.ReadFile(source))
	for column, value := range map[string]string{
		"occurred_at": "'2026-01-02T03:04:06Z'", "project_id": "'project/other'", "work_unit_id": "'work/other'",
		"run_id": "'run/demo:0003'", "attempt_id": "'attempt-1'", "source_revision": "'" + fixture.SourceRevision[1:] + "9'",
		"evidence_reference_json": `'{"digest":"` + fixture.Digest("1") + `","kind":"svc-run-evidence-report"}'`,
	} {
		t.Run(column, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "s.db")
			if err := os.WriteFile(path, whole, 0o600); err != nil {
				t.Fatal(err)
			}
			editWithoutTriggers(t, path, "UPDATE events SET "+column+" = "+value+" WHERE sequence = 1")
			r := openReader(t, path, store.ReadWait)
			_, err := r.Events(t.Context(), store.EventQuery{})
			wantCode(t, err, store.StoreError)
			_, _, err = r.EventsAfter(t.Context(), 0, store.EventFilter{}, 10)
			wantCode(t, err, store.StoreError)
			if items, _, err := r.EventsAfter(t.Context(), 1, store.EventFilter{}, 10); err != nil || len(items) != 3 {
				t.Errorf("the events after it: %d, %v, want 3", len(items), err)
			}
		})
	}
}

// Findings with one cause are reported as one, and the worst comes first.
func TestOneFindingPerCause(t *testing.T) {
	t.Parallel()
	source, options := signedStore(t)
	whole := mustGet(os.ReadFile(source))
	for name, c := range map[string]struct {
		edits []string
		bytes func([]byte) []byte
		want  string
	}{
		"an event gone":        {edits: []string{"DELETE FROM events WHERE sequence = 2"}, want: "event_sequence(event 2)"},
		"two events gone":      {edits: []string{"DELETE FROM events WHERE sequence IN (2, 3)"}, want: "event_sequence(event 2)"},
		"the end of the log":   {edits: []string{"DELETE FROM events WHERE sequence > 4"}, want: "event_sequence(event 5)"},
		"an event edited":      {edits: []string{"UPDATE events SET payload_json = '{}' WHERE sequence = 2"}, want: "event_payload_digest(event 2) tree_root_mismatch(checkpoint 2)"},
		"middle checkpoints":   {edits: []string{"DELETE FROM checkpoints WHERE tree_size IN (2, 3)"}, want: "checkpoint_missing(checkpoint 2)"},
		"the first checkpoint": {edits: []string{"DELETE FROM checkpoints WHERE tree_size = 0"}, want: ""},
		"both triggers":        {edits: []string{"DROP TRIGGER IF EXISTS events_no_update; DROP TRIGGER IF EXISTS events_no_delete"}, want: ""},
		"a run gone": {edits: []string{"PRAGMA foreign_keys = OFF; DELETE FROM runs WHERE run_id = 'run/demo:0003'"},
			want: "foreign_key(events row 2)"},
		"a key that leads elsewhere": {edits: []string{"PRAGMA foreign_keys = OFF; UPDATE idempotency SET run_id = 'foreign/batch-0001' WHERE run_id = 'run/demo:0001'"},
			want: "persisted_state_corrupt(run/demo:0001)"},
		"a store id":       {edits: []string{"UPDATE store_meta SET value = '019b7d0e-8088-7000-8000-000000000002' WHERE key = 'store_id'"}, want: "checkpoint_invalid(checkpoint 5)"},
		"a foreign file":   {edits: []string{"PRAGMA application_id = 1196444487"}, want: "store_header(application_id)"},
		"write version":    {bytes: func(b []byte) []byte { b[18] = 3; return b }, want: "store_header(write_version)"},
		"bytes at the end": {bytes: func(b []byte) []byte { return append(b, make([]byte, 8192)...) }, want: "store_header(file)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "s.db")
			content := append([]byte(nil), whole...)
			if c.bytes != nil {
				content = c.bytes(content)
			}
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			if c.edits != nil {
				editWithoutTriggers(t, path, c.edits...)
			}
			v := mustGet(store.Verify(t.Context(), path, options))
			if got := faultCodes(v); got != c.want {
				t.Errorf("findings %s, want %s", got, c.want)
			}
		})
	}
	// Without a key signatures are counted and not checked.
	v := mustGet(store.Verify(t.Context(), source, store.VerifyOptions{}))
	if !v.OK || v.Checked.SignedCheckpoints != 2 || v.Checked.SignedEvents != 0 || v.OldestSigned != 0 {
		t.Errorf("without a key: %+v, want 2 signed checkpoints and no signed events", v)
	}
}
