package store_test

import (
	"path/filepath"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/store"
)

// An error states its cause once: the code and the sentence do not repeat each other.
func TestErrorsSayAThingOnce(t *testing.T) {
	t.Parallel()
	path := fixtureStore(t)
	editStore(t, path, "UPDATE connections SET metadata_json = '{}' WHERE connection_id = 'demo-scm'",
		`UPDATE runs SET metadata_json = '{"kind":"product-spine-cli-run"}' WHERE run_id = 'run/demo:0001'`)
	r := openReader(t, path, store.ReadWait)
	_, err := r.Connection(t.Context(), "demo-scm")
	e := wantCode(t, err, store.ConnectionRecordInvalid)
	if got, want := e.Reason, "/id: the key is missing"; got != want {
		t.Errorf("reason %q, want %q", got, want)
	}
	if got, want := e.Error(), "connection_record_invalid: The stored connector demo-scm is invalid: /id: the key is missing."; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
	_, err = r.Run(t.Context(), fixture.Run().RunID)
	if got, want := wantCode(t, err, store.PersistedStateCorrupt).Reason, "/schema_version: the key is missing"; got != want {
		t.Errorf("reason %q, want %q", got, want)
	}
	missing := filepath.Join(t.TempDir(), "none.db")
	_, err = openReader(t, missing, store.ReadWait).Run(t.Context(), "x")
	want := "store_error: The store file does not exist: stat " + missing + ": no such file or directory"
	if got := wantCode(t, err, store.StoreError).Error(); got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}
