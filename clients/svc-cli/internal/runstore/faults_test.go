package runstore_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/app/apptest"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/samples"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/store"
)

// world is a folder with a sample store and sample inputs.
type world struct{ dir string }

func newWorld(t *testing.T) world {
	t.Helper()
	w := world{t.TempDir()}
	for _, name := range samples.List() {
		if strings.HasPrefix(name, "spine/") {
			w.write(t, "in/"+name, string(samples.File(name)))
		}
	}
	data, err := sampleStore()
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, "s.db", string(data))
	return w
}

// sampleStore makes the sample store once: commits to a disk are slow.
var sampleStore = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "svc-samples-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s.db")
	if err := store.WriteFixtures(context.Background(), path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// run runs a command line; words that name files of the folder become paths, and a pair of single quotes is an empty word.
func (w world) run(t *testing.T, line string) apptest.Result {
	t.Helper()
	words := strings.Fields(line)
	for i, word := range words {
		switch {
		case word == "''":
			words[i] = ""
		case strings.HasSuffix(word, ".db") || strings.HasSuffix(word, ".json") || strings.HasSuffix(word, ".key") ||
			strings.HasPrefix(word, "in") && !strings.HasPrefix(word, "in=") && word != "init":
			words[i] = filepath.Join(w.dir, word)
		}
	}
	return apptest.Run(t, words...)
}

func (w world) write(t *testing.T, name, data string) {
	t.Helper()
	path := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (w world) sql(t *testing.T, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(w.dir, "s.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

func wantFault(t *testing.T, r apptest.Result, code string) {
	t.Helper()
	var doc struct {
		OK    *bool
		Error map[string]any
	}
	if err := json.Unmarshal([]byte(r.Out), &doc); err != nil {
		t.Fatalf("%v: %q %q", err, r.Out, r.Err)
	}
	if r.Code != 2 || doc.OK == nil || *doc.OK || len(doc.Error) != 2 || doc.Error["code"] != code || !strings.HasPrefix(r.Err, "error: ") || strings.Count(r.Err, "\n") != 1 {
		t.Fatalf("exit %d: %s%s; want %s", r.Code, r.Out, r.Err, code)
	}
}

const (
	createRun = "run create in/spine/run.json --store new.db --idempotency-key k "
	imported  = "run import-evidence in/spine/report.json --store new.db --idempotency-key k "
	revision  = "3333333333333333333333333333333333333333"
	built     = "--project-id project/demo --source-revision " + revision
)

func TestFaults(t *testing.T) {
	t.Parallel()
	for line, code := range map[string]string{
		// The line itself.
		"run create --store new.db --idempotency-key k":    "invalid_arguments",
		"run create in/spine/run.json --store new.db":      "invalid_arguments",
		"run create in/spine/run.json --idempotency-key k": "invalid_arguments",
		createRun + "more":                 "invalid_arguments",
		createRun + "--nonsense":           "invalid_arguments",
		createRun + "--output yaml":        "invalid_arguments",
		"run creat":                        "invalid_arguments",
		"run list":                         "invalid_arguments",
		"run list X --store s.db":          "invalid_arguments",
		"run status --store s.db":          "invalid_arguments",
		"run cancel --store s.db":          "invalid_arguments",
		"run evidence --store s.db":        "invalid_arguments",
		"work-unit list more --store s.db": "invalid_arguments",
		"work-unit status --store s.db":    "invalid_arguments",
		"project status --store s.db":      "invalid_arguments",
		"events list more --store s.db":    "invalid_arguments",
		"events follow":                    "invalid_arguments",
		"events follow --store s.db --url http://127.0.0.1:8770": "invalid_arguments",
		"events follow --store s.db --max-events 0":              "invalid_arguments",
		"events follow --url http://127.0.0.1:8770":              "invalid_arguments",
		"events follow --store s.db more":                        "invalid_arguments",
		"verify":                                                 "invalid_arguments",
		"store migrate":                                          "invalid_arguments",
		"store keygen":                                           "invalid_arguments",
		"digest a b":                                             "invalid_arguments",
		"fixtures":                                               "invalid_arguments",
		"fixtures new --store ''":                                "invalid_arguments",
		"schema list more":                                       "invalid_arguments",
		"schema show":                                            "invalid_arguments",
		imported:                                                 "invalid_arguments",
		imported + "--project-id project/demo":                   "invalid_arguments",
		imported + built + " --projection in/spine/report-run.json":                        "invalid_arguments",
		imported + "--projection in/spine/report-run.json --state awaiting_human_decision": "invalid_state",

		// Inputs.
		"run create none.json --store new.db --idempotency-key k":                                      "input_read_error",
		"run create in --store new.db --idempotency-key k":                                             "input_read_error",
		"run create broken.json --store new.db --idempotency-key k":                                    "invalid_json",
		"run create twice.json --store new.db --idempotency-key k":                                     "invalid_json",
		"run create latin1.json --store new.db --idempotency-key k":                                    "invalid_utf8",
		"run create array.json --store new.db --idempotency-key k":                                     "invalid_document",
		"run create large.json --store new.db --idempotency-key k":                                     "invalid_json",
		"run create empty.json --store new.db --idempotency-key k":                                     "missing_field",
		"run create extra.json --store new.db --idempotency-key k":                                     "unknown_field",
		"run create in/spine/report-run.json --store new.db --idempotency-key k":                       "create_requires_proposed",
		"run create in/spine/run.json --store new.db --idempotency-key ''":                             "invalid_idempotency_key",
		"run create in/spine/run.json --store new.db --idempotency-key " + longKey(257):                "invalid_idempotency_key",
		createRun + "--created-at yesterday":                                                           "invalid_timestamp",
		createRun + "--created-at 2026-01-02T03:04:05":                                                 "invalid_timestamp",
		createRun + "--created-at 0001-01-01T00:00:00Z":                                                "invalid_timestamp", // which would be taken for no time
		createRun + "--created-at 2026-01-02T03:04:05+24:00":                                           "invalid_timestamp",
		createRun + "--signing-key none.key":                                                           "signing_key_error",
		createRun + "--signing-key empty.json":                                                         "signing_key_error",
		"run cancel run/demo:0001 --store s.db --updated-at ''":                                        "invalid_timestamp",
		"run cancel run/demo:0001 --store s.db --signing-key none.key":                                 "signing_key_error",
		imported + built + " --state proposed":                                                         "invalid_state",
		imported + built + " --created-at x":                                                           "invalid_timestamp",
		imported + "--project-id '' --source-revision " + revision:                                     "invalid_identifier",
		imported + "--project-id p --source-revision abc":                                              "invalid_source_revision",
		imported + "--projection in/spine/run.json":                                                    "invalid_run_evidence",
		imported + "--projection none.json":                                                            "input_read_error",
		imported + "--projection extra.json":                                                           "unknown_field",
		"run import-evidence in --store new.db --idempotency-key k " + built:                           "input_read_error",
		"run import-evidence empty.json --store new.db --idempotency-key k " + built:                   "missing_field",
		"run import-evidence in/spine/report-altered.json --store new.db --idempotency-key k " + built: "summary_mismatch",
		"digest none.json":                    "input_read_error",
		"digest broken.json":                  "invalid_json",
		"verify s.db --public-key none.key":   "public_key_error",
		"verify s.db --checkpoint none.json":  "input_read_error",
		"verify s.db --checkpoint empty.json": "store_error",
		"fixtures in":                         "target_not_empty",
		"fixtures new --store s.db":           "target_not_empty",
		"store keygen empty.json":             "output_write_error",
		"schema show none":                    "schema_not_found",

		// The store.
		"run list --store none.db":                                                         "store_error",
		"run list --store garbage.db":                                                      "store_error",
		"run status run/demo:0001 --store none.db":                                         "store_error",
		"events list --store none.db":                                                      "store_error",
		"events follow --store none.db":                                                    "store_error",
		"work-unit list --store none.db":                                                   "store_error",
		"project status project/demo --store none.db":                                      "store_error",
		"run cancel run/demo:0001 --store garbage.db":                                      "store_error",
		"verify none.db":                                                                   "store_error",
		"store migrate none.db":                                                            "store_error",
		"run list --store s.db --limit 0":                                                  "invalid_limit",
		"run list --store s.db --limit 201":                                                "invalid_limit",
		"run list --store s.db --limit +5":                                                 "invalid_limit",
		"run list --store s.db --limit 0000000001":                                         "invalid_limit",
		"run list --store s.db --limit ''":                                                 "invalid_limit",
		"work-unit list --store s.db --limit x":                                            "invalid_limit",
		"events list --store s.db --limit 201":                                             "invalid_limit",
		"run list --store s.db --cursor x":                                                 "invalid_cursor",
		"run list --store s.db --cursor ''":                                                "invalid_cursor",
		"work-unit list --store s.db --cursor x":                                           "invalid_cursor",
		"events list --store s.db --cursor x":                                              "invalid_cursor",
		"run list --store s.db --state nope":                                               "invalid_state",
		"run list --store s.db --state ''":                                                 "invalid_state",
		"run list --store s.db --project-id ''":                                            "invalid_filter",
		"work-unit list --store s.db --project-id ''":                                      "invalid_filter",
		"events list --store s.db --run-id ''":                                             "invalid_filter",
		"events list --store s.db --event-type run.x":                                      "invalid_event_type",
		"events follow --store s.db --event-type run.x":                                    "invalid_event_type",
		"events follow --store s.db --after -1":                                            "invalid_last_event_id",
		"events follow --store s.db --after 1x":                                            "invalid_last_event_id",
		"events follow --store s.db --after 999":                                           "invalid_last_event_id",
		"run status none --store s.db":                                                     "run_not_found",
		"run cancel none --store s.db":                                                     "run_not_found",
		"run evidence none --store s.db":                                                   "run_not_found",
		"run evidence run/demo:0001 --store s.db":                                          "evidence_not_available",
		"run status foreign/batch-0001 --store s.db":                                       "not_product_spine_cli_run",
		"run evidence foreign/batch-0001 --store s.db":                                     "not_product_spine_cli_run",
		"run cancel foreign/batch-0001 --store s.db":                                       "not_product_spine_cli_run",
		"work-unit status none --store s.db":                                               "work_unit_not_found",
		"project status none --store s.db":                                                 "project_not_found",
		"run create in/spine/run-changed.json --store s.db --idempotency-key fixture-0001": "idempotency_conflict",
	} {
		t.Run(strings.ReplaceAll(line, "/", "|"), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.inputs(t)
			wantFault(t, w.run(t, line+" --json"), code)
		})
	}
}

func longKey(n int) string { return strings.Repeat("k", n) }

// inputs writes invalid inputs of every kind.
func (w world) inputs(t *testing.T) {
	t.Helper()
	w.write(t, "broken.json", `{"a":`)
	w.write(t, "twice.json", `{"a":1,"a":2}`)
	w.write(t, "latin1.json", "{\"a\":\"\xe9\"}")
	w.write(t, "array.json", `[]`)
	w.write(t, "empty.json", `{}`)
	w.write(t, "large.json", `{"a":"`+strings.Repeat("a", canon.MaxFile)+`"}`)
	w.write(t, "garbage.db", strings.Repeat("garbage ", 1000))
	extra := fixture.Run().Value()
	extra.Set("extra", true)
	data, err := canon.C1(extra)
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, "extra.json", string(data))
}

// Changes that bypassed the store are reported, by the run and by the page that holds it.
func TestDamage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, damage, line, code string }{
		{"state column", `UPDATE runs SET state = 'decided' WHERE run_id = 'run/demo:0001'`, "run status run/demo:0001 --store s.db", "persisted_state_corrupt"},
		{"state column in a page", `UPDATE runs SET state = 'decided' WHERE run_id = 'run/demo:0001'`, "run list --store s.db", "persisted_state_corrupt"},
		{"state column of a run to cancel", `UPDATE runs SET state = 'decided' WHERE run_id = 'run/demo:0001'`, "run cancel run/demo:0001 --store s.db", "persisted_state_corrupt"},
		{"report", `UPDATE runs SET metadata_json = replace(metadata_json, 'manifest-1', 'manifest-9') WHERE run_id = 'run/demo:0002'`,
			"run evidence run/demo:0002 --store s.db", "evidence_integrity_error"},
		{"version", `PRAGMA user_version = 9`, "run list --store s.db", "store_error"},
		{"older version", `PRAGMA user_version = 2`, "run list --store s.db", "store_error"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.sql(t, tc.damage)
			r := w.run(t, tc.line+" --json")
			wantFault(t, r, tc.code)
			if tc.name == "older version" && !strings.Contains(r.Err, "svc store migrate") {
				t.Error(r.Err, `want (tc.name != "older version" || strings.Contains(r.Err, "svc store migrate"))`)
			}
		})
	}
}

// A run whose evidence is damaged still shows its state.
func TestStatusNeedsNoReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sql(t, `UPDATE runs SET metadata_json = replace(metadata_json, 'manifest-1', 'manifest-9') WHERE run_id = 'run/demo:0002'`)
	if r := w.run(t, "run status run/demo:0002 --store s.db"); r.Code != 0 || !strings.Contains(r.Out, "state: awaiting_human_decision\n") {
		t.Errorf("exit %d %s%s; want r.Code == 0 && strings.Contains(r.Out, \"state: awaiting_human_decision\\n\")", r.Code, r.Out, r.Err)
	}
}

// A text from another user cannot control the terminal.
func TestFaultsAreCleaned(t *testing.T) {
	t.Parallel()
	r := apptest.Run(t, "run", "status", "\x1b[2Jrun", "--store", filepath.Join(t.TempDir(), "\x1b]0;x\x07.db"))
	if r.Code != 2 || strings.ContainsAny(r.Err, "\x1b\x07") {
		t.Errorf("exit %d %q; want r.Code == 2 && !strings.ContainsAny(r.Err, \"\\x1b\\x07\")", r.Code, r.Err)
	}
}

func TestSamplesAreWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// The same store each time, and a document that names all that was written.
	if r := w.run(t, "fixtures in2 --store t.db --json"); r.Code != 0 || !strings.Contains(r.Out, `"spine/run.json"`) {
		t.Fatal(r.Err, "want r.Code == 0 && strings.Contains(r.Out, `\"spine/run.json\"`)")
	}
	for _, name := range samples.List() {
		data, err := os.ReadFile(filepath.Join(w.dir, "in2", filepath.FromSlash(name)))
		if err != nil || string(data) != string(samples.File(name)) {
			t.Errorf("%s: %v; want string(data) == string(samples.File(name))", name, err)
		}
	}
	first, err1 := os.ReadFile(filepath.Join(w.dir, "s.db"))
	second, err2 := os.ReadFile(filepath.Join(w.dir, "t.db"))
	if err1 != nil || err2 != nil || string(first) != string(second) {
		t.Errorf("two sample stores differ (%v, %v)", err1, err2)
	}
}
