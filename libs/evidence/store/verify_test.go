package store_test

import (
	"context"
	"database/sql"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/store"
	"github.com/mlp-platform/platform/libs/evidence/tree"
)

// signedStore is a fixture store with signed checkpoints over five and six events.
func signedStore(t testing.TB) (path string, o store.VerifyOptions) {
	t.Helper()
	path = fixtureStore(t)
	signer, verifier := newTestKey(t)
	w := openWriter(t, path, store.WriterOptions{Signer: signer})
	mustGet(w.CreateRun(t.Context(), store.CreateRun{Projection: numberedRun(1), IdempotencyKey: "k", At: at.Add(time.Hour)}))
	mustGet(w.CancelRun(t.Context(), numberedRun(1).RunID, at.Add(2*time.Hour)))
	_ = w.Close()
	return path, store.VerifyOptions{PublicKey: verifier}
}

// editWithoutTriggers takes the triggers away and puts them back after the edits.
func editWithoutTriggers(t testing.TB, path string, edits ...string) {
	t.Helper()
	db := openRaw(t, path)
	triggers := map[string]string{}
	rows := mustGet(db.QueryContext(context.Background(), "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"))
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			t.Fatal(err)
		}
		triggers[name] = text
	}
	if err := rows.Close(); err != nil {
		t.Fatal(err)
	}
	var all []string
	for name := range triggers {
		all = append(all, "DROP TRIGGER "+name)
	}
	all = append(all, edits...)
	for _, text := range triggers {
		all = append(all, text)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	editStore(t, path, all...)
}

func faultCodes(v store.Verification) string {
	var all []string
	for _, f := range v.Findings {
		all = append(all, f.Code+"("+f.Subject+")")
	}
	return strings.Join(all, " ")
}

// Every column of every table, changed in one row behind the store's back.
func TestEveryChangedColumnIsFound(t *testing.T) {
	t.Parallel()
	source, options := signedStore(t)
	if v, err := store.Verify(t.Context(), source, options); err != nil || !v.OK || v.Checked.SignedCheckpoints != 2 || v.OldestSigned != 5 {
		t.Fatalf("the untouched store: %+v %v; want v.OK && v.Checked.SignedCheckpoints == 2 && v.OldestSigned == 5", v, err)
	}
	whole := mustGet(os.ReadFile(source))

	where := map[string]string{
		"runs": "run_id = 'run/demo:0002'", "idempotency": "run_id = 'run/demo:0002'", "events": "sequence = 2",
		"connections": "connection_id = 'demo-scm'", "checkpoints": "tree_size = 5", "store_meta": "",
	}
	// The values to write instead; by default the present one with an x appended.
	values := map[string]string{
		"events.sequence": "99", "checkpoints.tree_size": "99", "events.event_id": "'evt-000000000099'",
		"events.occurred_at": "'2026-01-02T03:04:06Z'", "events.event_type": "'run.cancelled'",
		"events.principal_json": `'{"id":"other","type":"unauthenticated_local"}'`, "events.authority_class": "'human_decision'",
		"events.project_id": "'project/other'", "events.work_unit_id": "'work/other'", "events.run_id": "'run/demo:0001'",
		"events.attempt_id": "'attempt-1'", "events.source_revision": "NULL",
		"events.evidence_reference_json": `'{"digest":"` + fixture.Digest("1") + `","kind":"svc-run-evidence-report"}'`,
		"events.payload_json":            `'{}'`, "events.payload_digest": "'" + fixture.Digest("1") + "'",
		"runs.state": "'evidence_ready'", "runs.created_at": "'2026-01-02T03:04:06Z'", "runs.updated_at": "'2026-01-02T03:04:06Z'",
		"runs.project_id": "'project/other'", "runs.work_unit_id": "'work/other'", "runs.row_kind": "'product-spine-cli-run'",
		"runs.request_digest": "'" + fixture.Digest("1") + "'", "runs.metadata_json": "replace(metadata_json, 'routing', 'Routing')",
		"idempotency.created_at": "'2026-01-02T03:04:06Z'", "idempotency.run_id": "'foreign/batch-0001'",
		"idempotency.request_digest": "'" + fixture.Digest("1") + "'",
		"connections.metadata_json":  `replace(metadata_json, '"T0"', '"T0","T0"')`, "connections.updated_at": "'yesterday'",
		"checkpoints.root_hash": "'" + strings.Repeat("0", 64) + "'", "checkpoints.created_at": "'2026-01-02T03:04:06Z'",
		"checkpoints.note": "replace(note, char(10) || char(10), char(10) || 'x' || char(10) || char(10))",
	}
	db := openRaw(t, source)
	tables := map[string][]string{}
	for table := range where {
		rows := mustGet(db.QueryContext(t.Context(), "SELECT name FROM pragma_table_info(?)", table))
		for rows.Next() {
			var name sql.NullString
			if err := rows.Scan(&name); err != nil {
				t.Fatal(err)
			}
			tables[table] = append(tables[table], name.String)
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	try := func(name, change string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "s.db")
			if err := os.WriteFile(path, whole, 0o600); err != nil {
				t.Fatal(err)
			}
			editWithoutTriggers(t, path, change)
			v, err := store.Verify(t.Context(), path, options)
			if err != nil || v.OK || len(v.Findings) == 0 {
				t.Fatalf("%s was not found: %+v %v; want !v.OK && len(v.Findings) != 0", change, v, err)
			}
			t.Log(faultCodes(v))
		})
	}
	for table, names := range tables {
		if len(names) == 0 {
			t.Fatalf("no columns of %s; want len(names) != 0", table)
		}
		if table == "store_meta" {
			for _, k := range []string{"store_id", "cursor_key", "events_since", "tree_frontier"} {
				try("store_meta."+k, fmt.Sprintf("UPDATE store_meta SET value = value || 'x' WHERE key = '%s'", k))
				try("store_meta key "+k, fmt.Sprintf("UPDATE store_meta SET key = key || 'x' WHERE key = '%s'", k))
			}
			// Another id of the right form speaks of another log than the notes do.
			try("store_meta.store_id valid", "UPDATE store_meta SET value = '019b7d0e-8088-7000-8000-000000000002' WHERE key = 'store_id'")
			continue
		}
		for _, column := range names {
			value := values[table+"."+column]
			if value == "" {
				value = column + " || 'x'"
			}
			try(table+"."+column, fmt.Sprintf("UPDATE %s SET %s = %s WHERE %s", table, column, value, where[table]))
		}
	}
	for name, change := range map[string]string{
		"both states":    "UPDATE runs SET state = 'previewed', metadata_json = replace(metadata_json, '\"proposed\"', '\"previewed\"') WHERE run_id = 'run/demo:0001'",
		"cancelled back": "UPDATE runs SET state = 'proposed', metadata_json = replace(metadata_json, '\"cancelled\"', '\"proposed\"') WHERE run_id = 'run/demo:0003'",
		"both times": "UPDATE runs SET created_at = '2026-01-02T03:00:00Z', updated_at = '2026-01-02T03:00:00Z' WHERE run_id = 'run/demo:0001';" +
			"UPDATE idempotency SET created_at = '2026-01-02T03:00:00Z' WHERE run_id = 'run/demo:0001'",
		"run gone":          "PRAGMA foreign_keys = OFF; DELETE FROM idempotency WHERE run_id = 'run/demo:0001'; DELETE FROM runs WHERE run_id = 'run/demo:0001'",
		"event gone":        "DELETE FROM events WHERE sequence = 2",
		"last event gone":   "DELETE FROM events WHERE sequence = 6; UPDATE sqlite_sequence SET seq = 5 WHERE name = 'events'",
		"checkpoint gone":   "DELETE FROM checkpoints WHERE tree_size = 6",
		"events swapped":    "UPDATE events SET sequence = -1 WHERE sequence = 1; UPDATE events SET sequence = 1 WHERE sequence = 2; UPDATE events SET sequence = 2 WHERE sequence = -1",
		"foreign key":       "PRAGMA foreign_keys = OFF; UPDATE events SET run_id = 'run/none' WHERE sequence = 1",
		"version":           "PRAGMA user_version = 2",
		"newer version":     "PRAGMA user_version = 4",
		"a view":            "CREATE VIEW more AS SELECT 1",
		"a trigger":         "CREATE TRIGGER more AFTER INSERT ON runs BEGIN DELETE FROM connections; END",
		"a table gone":      "DROP TABLE connections",
		"report replaced":   "UPDATE runs SET metadata_json = json_set(metadata_json, '$.evidence_report', NULL) WHERE run_id = 'run/demo:0002'",
		"manifests altered": "UPDATE runs SET metadata_json = json_set(metadata_json, '$.result_manifest_digests', json('{}')) WHERE run_id = 'run/demo:0002'",
	} {
		try(name, change)
	}
}

// Row 76 of the acceptance list: an edited event, the triggers gone.
func TestEditedEventIsNamed(t *testing.T) {
	t.Parallel()
	path := fixtureStore(t)
	editStore(t, path, "DROP TRIGGER events_no_update", "UPDATE events SET payload_json = replace(payload_json, 'proposed', 'previewed') WHERE sequence = 1")
	v := mustGet(store.Verify(t.Context(), path, store.VerifyOptions{}))
	const want = "event_payload_digest(event 1) tree_root_mismatch(checkpoint 1) trigger_missing(events)"
	if got := faultCodes(v); v.OK || got != want {
		t.Fatalf("findings %s, want %s", got, want)
	}
	if got, want := v.Findings[1].Detail, "The events do not make up its root. So it is with 3 more, the last of them checkpoint 4."; got != want {
		t.Errorf("detail %q, want %q", got, want)
	}
}

func TestTriggersRefuseChanges(t *testing.T) {
	t.Parallel()
	path := fixtureStore(t)
	db := openRaw(t, path)
	for _, change := range []string{"UPDATE events SET occurred_at = ''", "DELETE FROM events", "UPDATE checkpoints SET note = ''", "DELETE FROM checkpoints"} {
		if _, err := db.ExecContext(t.Context(), change); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Fatalf(`%s: %v; want an error && strings.Contains(err.Error(), "append-only")`, change, err)
		}
	}
}

func TestSignaturesAndOlderCheckpoints(t *testing.T) {
	t.Parallel()
	path, options := signedStore(t)
	ctx := t.Context()
	r := openReader(t, path, store.ReadWait)
	c, _, err := r.Checkpoint(ctx, 0)
	if err != nil || c.SignedNote == "" || c.TreeSize != 6 || !strings.HasPrefix(c.SignedNote, c.Origin+"\n6\n") {
		t.Fatalf("checkpoint %+v %v; want c.SignedNote != \"\" && c.TreeSize == 6 && strings.HasPrefix(c.SignedNote, c.Origin+\"\\n6\\n\")", c, err)
	}
	_, stranger := newTestKey(t)
	if v := mustGet(store.Verify(ctx, path, store.VerifyOptions{PublicKey: stranger})); v.OK || !strings.Contains(faultCodes(v), "checkpoint_signature") {
		t.Fatalf(`another key: %s; want !v.OK && strings.Contains(faultCodes(v), "checkpoint_signature")`, faultCodes(v))
	}
	unsigned := fixtureStore(t)
	if v := mustGet(store.Verify(ctx, unsigned, options)); v.OK || !strings.Contains(faultCodes(v), "checkpoint_unsigned") {
		t.Fatalf(`unsigned: %s; want !v.OK && strings.Contains(faultCodes(v), "checkpoint_unsigned")`, faultCodes(v))
	}
	document := fmt.Sprintf(`{"kind":"svc-event-log-checkpoint","checkpoint":{"origin":%q,"tree_size":6,"root_hash":%q,"created_at":"x","signed_note":null}}`, c.Origin, tree.Hex(c.Root))
	body, _, _ := strings.Cut(c.SignedNote, "\n\n")
	for name, older := range map[string]string{"note": c.SignedNote, "text": body + "\n", "document": document} {
		o := options
		o.Checkpoint = []byte(older)
		if v := mustGet(store.Verify(ctx, path, o)); !v.OK {
			t.Fatalf("%s: %s; want v.OK", name, faultCodes(v))
		}
		// The log that never had those two events does not continue it.
		if v := mustGet(store.Verify(ctx, unsigned, store.VerifyOptions{Checkpoint: []byte(older)})); v.OK || !strings.Contains(faultCodes(v), "checkpoint_inconsistent") {
			t.Fatalf(`%s on a shorter log: %s; want !v.OK && strings.Contains(faultCodes(v), "checkpoint_inconsistent")`, name, faultCodes(v))
		}
	}
	other := c.Origin + "\n6\n" + base64.StdEncoding.EncodeToString(make([]byte, 32)) + "\n"
	if v := mustGet(store.Verify(ctx, path, store.VerifyOptions{Checkpoint: []byte(other)})); v.OK {
		t.Fatal("another root was taken")
	}
	for _, bad := range []string{"", "x", "{}", "svc/x\n-1\nAAAA\n", `{"kind":"svc-event-log-checkpoint"}`} {
		if _, err := store.Verify(ctx, path, store.VerifyOptions{Checkpoint: []byte(bad)}); err == nil {
			t.Fatalf("%q was taken; want an error", bad)
		}
	}
}

// A fault of a row is reported also if its id cannot be a JSON string.
func TestFindingsAreText(t *testing.T) {
	t.Parallel()
	path := fixtureStore(t)
	editStore(t, path, "PRAGMA foreign_keys = OFF; UPDATE runs SET run_id = CAST(x'ff41' AS TEXT) WHERE run_id = 'run/demo:0001'",
		"UPDATE connections SET connection_id = CAST(x'ff' AS TEXT) WHERE connection_id = 'demo-scm'")
	v := mustGet(store.Verify(t.Context(), path, store.VerifyOptions{}))
	for _, f := range v.Findings {
		if !utf8.ValidString(f.Subject) || !utf8.ValidString(f.Detail) {
			t.Errorf("%q %q; want utf8.ValidString(f.Subject) && utf8.ValidString(f.Detail)", f.Subject, f.Detail)
		}
	}
	mustGet(canon.From(v))
	if all := faultCodes(v); !strings.Contains(all, "persisted_state_corrupt(\ufffdA)") || !strings.Contains(all, "connection_record_invalid(\ufffd)") {
		t.Error(all, "want strings.Contains(all, \"persisted_state_corrupt(\\ufffdA)\") && strings.Contains(all, \"connection_record_invalid(\\ufffd)\")")
	}
}

func TestKeyFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	public := mustGet(store.GenerateKey(path))
	if _, err := store.GenerateKey(path); err == nil {
		t.Fatal("a key was written over")
	}
	mustGet(store.LoadSigner(path))
	pub := path + ".pub"
	if err := os.WriteFile(pub, []byte(public+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	mustGet(store.LoadVerifier(pub))
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := store.LoadSigner(path); err == nil {
		t.Fatal("a key that others may read was taken")
	}
	if _, err := store.LoadSigner(pub); err == nil {
		t.Fatal("a public key signs nothing")
	}
	if _, err := store.LoadVerifier(filepath.Dir(path)); err == nil {
		t.Fatal("a folder is no key")
	}
	pipe := path + ".pipe"
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	// Opening it would block until a process writes to it.
	if _, err := store.LoadSigner(pipe); err == nil {
		t.Fatal("a pipe is no key")
	}
	if _, err := store.LoadVerifier(pipe); err == nil {
		t.Fatal("a pipe is no key")
	}
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage")
	if err := os.WriteFile(garbage, []byte(strings.Repeat("garbage ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{garbage, dir, filepath.Join(dir, "none")} {
		_, err := store.Verify(t.Context(), path, store.VerifyOptions{})
		wantCode(t, err, store.StoreError)
	}
	_, err := store.OpenWriter(t.Context(), garbage, store.WriterOptions{})
	wantCode(t, err, store.StoreError)
}
