package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/spine"
	"github.com/mlp-platform/platform/libs/evidence/store"
)

// forgedStore is a store whose rows an attacker copies into another: a run, and a
// run with retained evidence, complete except for their events.
func forgedStore(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "forged.db")
	w := openWriter(t, path, store.WriterOptions{})
	mustGet(w.CreateRun(t.Context(), store.CreateRun{Projection: numberedRun(7), IdempotencyKey: "forged", At: at}))
	report := fixture.Report()
	report.RunID = "run/forged"
	mustGet(w.ImportEvidence(t.Context(), store.ImportEvidence{Report: report.Value(), ProjectID: fixture.ProjectID,
		SourceRevision: fixture.SourceRevision, IdempotencyKey: "forged", At: at}))
	_ = w.Close()
	return path
}

// forgeStatements are the statements that put the forged run id into a store.
func forgeStatements(forged, id string) string {
	return fmt.Sprintf(`ATTACH '%s' AS forged; INSERT INTO main.runs SELECT * FROM forged.runs WHERE run_id = '%[2]s';
		INSERT INTO main.idempotency SELECT * FROM forged.idempotency WHERE run_id = '%[2]s'; DETACH forged`, forged, id)
}

func sinceText(text string) string {
	return fmt.Sprintf("UPDATE store_meta SET value = '%s' WHERE key = 'events_since'", text)
}

const justPast = "2026-01-02T03:04:05.000000001Z" // at, and a nanosecond

// Attacks by a user who can write the file and has no key.
func TestAttacks(t *testing.T) {
	t.Parallel()
	source, options := signedStore(t)
	whole := mustGet(os.ReadFile(source))
	forged := forgedStore(t)
	const hide = "UPDATE runs SET row_kind = 'other-kind', metadata_json = '{\"kind\":\"other-kind\"}'"
	rebuilt := func(table, columns, extra string) string {
		return fmt.Sprintf("CREATE TABLE copied AS SELECT * FROM %[1]s; DROP TABLE %[1]s; CREATE TABLE %[1]s (%[2]s); INSERT INTO %[1]s SELECT * FROM copied; DROP TABLE copied; %[3]s",
			table, columns, extra)
	}
	for name, c := range map[string]struct {
		change string
		want   string // code(subject)
	}{
		"a run turned into another product's row": {hide + " WHERE run_id = 'run/demo:0002'", "persisted_state_corrupt(run/demo:0002)"},
		"the same, no document":                   {"UPDATE runs SET row_kind = 'x', metadata_json = '' WHERE run_id = 'run/demo:0002'", "persisted_state_corrupt(run/demo:0002)"},
		"the same, another key": {"PRAGMA foreign_keys = OFF; DELETE FROM idempotency WHERE run_id = 'run/demo:0002';" + hide +
			", idempotency_key = 'other:1' WHERE run_id = 'run/demo:0002'", "persisted_state_corrupt(run/demo:0002)"},
		"a row without events that has our key": {"UPDATE runs SET idempotency_key = 'product-spine-cli:create:x' WHERE run_id = 'foreign/batch-0001'",
			"persisted_state_corrupt(foreign/batch-0001)"},
		"a forged run, events_since far ahead":  {sinceText("2099-01-01T00:00:00Z") + ";" + forgeStatements(forged, numberedRun(7).RunID), "store_meta_invalid(events_since)"},
		"a forged run, events_since as it fits": {sinceText(justPast) + ";" + forgeStatements(forged, numberedRun(7).RunID), "older_runs(older_runs)"},
		"forged evidence":                       {sinceText(justPast) + ";" + forgeStatements(forged, "run/forged"), "older_runs(older_runs)"},
		"cancelled without an event, events_since far ahead": {sinceText("2099-01-01T00:00:00Z") + `; UPDATE runs SET state = 'cancelled', updated_at = '2030-01-01T00:00:00Z',
			metadata_json = json_set(metadata_json, '$.projection.state', 'cancelled') WHERE run_id = 'run/demo:0002'`, "event_missing(run/demo:0002)"},
		"rows without constraints": {rebuilt("runs", "run_id, idempotency_key, request_digest, state, metadata_json, created_at, updated_at, row_kind, project_id, work_unit_id",
			"INSERT INTO runs SELECT * FROM runs WHERE run_id = 'run/demo:0001'"), "store_schema(runs)"},
		"checkpoints without a key": {rebuilt("checkpoints", "tree_size, root_hash, note, created_at",
			"INSERT INTO checkpoints VALUES (6, '"+strings.Repeat("0", 64)+"', NULL, 'x')"), "store_schema(checkpoints)"},
		"a trigger with a name of SQLite's": {`PRAGMA writable_schema = ON; INSERT INTO sqlite_schema VALUES ('trigger', 'sqlite_x', 'runs', 0,
			'CREATE TRIGGER sqlite_x AFTER INSERT ON runs BEGIN DELETE FROM connections; END')`, "store_schema(sqlite_x)"},
		"a trigger that may not fire": {"DROP TRIGGER IF EXISTS events_no_update; CREATE TRIGGER other BEFORE UPDATE ON events WHEN 0 BEGIN SELECT RAISE(ABORT, 'x'); END",
			"store_schema(other)"},
		"a column":            {"ALTER TABLE runs ADD COLUMN more TEXT", "store_schema(runs)"},
		"an index":            {"CREATE INDEX more ON runs (run_id) WHERE state = 'x'", "store_schema(more)"},
		"an index gone":       {"DROP INDEX runs_by_state", "store_schema(runs_by_state)"},
		"a key of store_meta": {"INSERT INTO store_meta VALUES ('more', 'x')", "store_meta_invalid(more)"},
		"text that no filter finds": {"UPDATE runs SET project_id = CAST(project_id AS BLOB), state = CAST(state AS BLOB) WHERE run_id = 'run/demo:0001'",
			"value_type(runs row 1)"},
		"a note that is no text": {"UPDATE checkpoints SET note = CAST(note AS BLOB) WHERE tree_size = 6", "value_type(checkpoints row 6)"},
		"write-ahead mode":       {"PRAGMA journal_mode = WAL", "store_journal(journal_mode)"},
		"a note over older runs": {"INSERT INTO store_meta SELECT 'older_runs', note FROM checkpoints WHERE tree_size = 6", "older_runs(older_runs)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "s.db")
			if err := os.WriteFile(path, whole, 0o600); err != nil {
				t.Fatal(err)
			}
			editWithoutTriggers(t, path, c.change)
			v, err := store.Verify(t.Context(), path, options)
			if err != nil || v.OK || !strings.Contains(faultCodes(v), c.want) {
				t.Fatalf("%s: %s %v", c.want, faultCodes(v), err)
			}
		})
	}
}

// A run disguised as another product's row fails reads as it fails verification.
func TestHiddenRunFailsReads(t *testing.T) {
	t.Parallel()
	path := fixtureStore(t)
	editStore(t, path, `UPDATE runs SET row_kind = 'other-kind', metadata_json = '{"kind":"other-kind"}', idempotency_key = 'other:1' WHERE run_id = 'run/demo:0002'`)
	r := openReader(t, path, store.ReadWait)
	_, err := r.Run(t.Context(), "run/demo:0002")
	wantCode(t, err, store.PersistedStateCorrupt)
	_, err = r.Evidence(t.Context(), "run/demo:0002")
	wantCode(t, err, store.PersistedStateCorrupt)
	_, err = r.Runs(t.Context(), store.RunQuery{})
	if e := wantCode(t, err, store.PersistedStateCorrupt); e.ID != "run/demo:0002" {
		t.Fatal(e.ID, `want "run/demo:0002"`)
	}
	_, err = r.Run(t.Context(), store.FixtureForeignRow)
	wantCode(t, err, store.NotProductSpineRun)
}

// A log that was cut after a signed checkpoint and went on without the key.
func TestRegrownLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.db")
	signer, verifier := newTestKey(t)
	options := store.VerifyOptions{PublicKey: verifier}
	w := openWriter(t, path, store.WriterOptions{Signer: signer})
	mustGet(w.CreateRun(t.Context(), store.CreateRun{Projection: numberedRun(1), IdempotencyKey: "1", At: at}))
	_ = w.Close()
	v := mustGet(store.Verify(t.Context(), path, options))
	if !v.OK || v.Checked.SignedEvents != 1 || v.OldestSigned != 1 {
		t.Fatalf("%+v; want v.OK && v.Checked.SignedEvents == 1 && v.OldestSigned == 1", v)
	}
	w = openWriter(t, path, store.WriterOptions{})
	mustGet(w.CreateRun(t.Context(), store.CreateRun{Projection: numberedRun(2), IdempotencyKey: "2", At: at}))
	_ = w.Close()
	if v = mustGet(store.Verify(t.Context(), path, options)); v.OK || faultCodes(v) != "checkpoint_unsigned(event 2)" || v.Checked.SignedEvents != 1 {
		t.Fatalf(`%s %+v; want !v.OK && faultCodes(v) == "checkpoint_unsigned(event 2)" && v.Checked.SignedEvents == 1`, faultCodes(v), v.Checked)
	}
	// The holder of the key vouches for them with the next act.
	w = openWriter(t, path, store.WriterOptions{Signer: signer})
	mustGet(w.CancelRun(t.Context(), numberedRun(2).RunID, at.Add(time.Hour)))
	_ = w.Close()
	if v = mustGet(store.Verify(t.Context(), path, options)); !v.OK || v.Checked.SignedEvents != 3 {
		t.Fatalf("%s %+v; want v.OK && v.Checked.SignedEvents == 3", faultCodes(v), v.Checked)
	}
}

// Runs from before the events are signed once, with the store's first signature.
func TestOlderRuns(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	signer, verifier := newTestKey(t)
	forged := forgedStore(t)
	for _, late := range []bool{false, true} { // signed when it is migrated, or by a later act
		t.Run(fmt.Sprint(late), func(t *testing.T) {
			t.Parallel()
			path := oldStore(t, 1, false)
			o := store.WriterOptions{Signer: signer}
			if late {
				o.Signer = nil
			}
			mustGet(store.Migrate(ctx, path, o))
			if v := wantClean(t, path); v.Checked.RunsWithoutEvents != 1 {
				t.Fatalf("%+v; want v.Checked.RunsWithoutEvents == 1", v.Checked)
			}
			w := openWriter(t, path, store.WriterOptions{Signer: signer})
			mustGet(w.CreateRun(ctx, store.CreateRun{Projection: numberedRun(1), IdempotencyKey: "1", At: at.Add(-time.Hour)}))
			mustGet(w.CancelRun(ctx, fixture.Run().RunID, at.Add(time.Hour)))
			_ = w.Close()
			check := func(want string) {
				t.Helper()
				v := mustGet(store.Verify(ctx, path, store.VerifyOptions{PublicKey: verifier}))
				if faultCodes(v) != want {
					t.Fatalf("%q, want %q", faultCodes(v), want)
				}
			}
			check("")
			editStore(t, path, forgeStatements(forged, numberedRun(7).RunID))
			check("older_runs(older_runs)")
			// Neither a note that is gone nor the next signature covers it up.
			editStore(t, path, "DELETE FROM store_meta WHERE key = 'older_runs'")
			check("older_runs(older_runs)")
			w = openWriter(t, path, store.WriterOptions{Signer: signer})
			mustGet(w.CancelRun(ctx, numberedRun(1).RunID, at.Add(2*time.Hour)))
			_ = w.Close()
			check("older_runs(older_runs)")
		})
	}
	// A run with its event is not older, whatever its time is.
	path := oldStore(t, 1, false)
	mustGet(store.Migrate(ctx, path, store.WriterOptions{}))
	w := openWriter(t, path, store.WriterOptions{})
	mustGet(w.CreateRun(ctx, store.CreateRun{Projection: numberedRun(1), IdempotencyKey: "1", At: at.Add(-time.Hour)}))
	_ = w.Close()
	editStore(t, path, fmt.Sprintf(`UPDATE runs SET state = '%s', metadata_json = replace(metadata_json, '"proposed"', '"%[1]s"') WHERE run_id = '%s'`,
		spine.Previewed, numberedRun(1).RunID))
	if v := mustGet(store.Verify(ctx, path, store.VerifyOptions{})); faultCodes(v) != "event_missing("+numberedRun(1).RunID+")" {
		t.Fatal(faultCodes(v), `want faultCodes(v) == "event_missing(" + numberedRun(1).RunID + ")"`)
	}
}
