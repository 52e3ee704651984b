package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/evidencetest"
	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/spine"
	"github.com/mlp-platform/platform/libs/evidence/store"
)

// oldStore makes a store of version 1 or 2 in its original form: the fixture run, a
// foreign row, and from version 2 on the run's event, if it had one.
func oldStore(t testing.TB, version int, withEvent bool) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "old.db")
	var steps []string
	for i, name := range []string{"1_base", "2_events"} {
		if i < version {
			steps = append(steps, string(mustGet(os.ReadFile("migrations/"+name+".sql"))))
		}
	}
	p := fixture.Run()
	digest := spine.CreateRequestDigest(p)
	metadata := mustGet(canon.C1(canon.NewObject(
		canon.Member{Key: "schema_version", Value: "0.1"}, canon.Member{Key: "kind", Value: spine.CreatedRow},
		canon.Member{Key: "create_request_digest", Value: digest}, canon.Member{Key: "product_spine_request_digest", Value: p.RequestDigest},
		canon.Member{Key: "projection", Value: p.Value()})))
	steps = append(steps,
		fmt.Sprintf(`INSERT INTO runs VALUES ('%s', 'product-spine-cli:create:k', '%s', 'proposed', '%s', '%[4]s', '%[4]s')`, p.RunID, digest, metadata, fixture.CreatedAt),
		fmt.Sprintf(`INSERT INTO idempotency VALUES ('product-spine-cli:create:k', '%s', '%s', '%s')`, digest, p.RunID, fixture.CreatedAt),
		`INSERT INTO runs VALUES ('foreign', 'f', 'd', 's', 'no json', '2027-01-01T00:00:00Z', 'u')`,
		fmt.Sprintf("PRAGMA user_version = %d", version))
	if withEvent {
		e := evidencetest.RunEvents()[0]
		steps = append(steps, fmt.Sprintf(`INSERT INTO events VALUES (1, '%s', '%s', '%s', '%s', '%s', '%s', '%s', '%s', NULL, '%s', NULL, '%s', '%s')`,
			e.EventID, e.OccurredAt, e.EventType, mustGet(canon.C1(e.Principal)), e.AuthorityClass, e.ProjectID, e.WorkUnitID, e.RunID,
			*e.SourceRevision, mustGet(canon.C1(e.Payload)), e.PayloadDigest))
	}
	editStore(t, path, steps...)
	return path
}

func TestMigrations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		version   int
		withEvent bool
		events    int64
		since     string
	}{
		{1, false, 0, "2026-01-02T03:04:05.000000001Z"},
		{2, false, 0, "2026-01-02T03:04:05.000000001Z"},
		{2, true, 1, "0001-01-01T00:00:00Z"},
	} {
		t.Run(fmt.Sprint(c.version, c.withEvent), func(t *testing.T) {
			t.Parallel()
			path := oldStore(t, c.version, c.withEvent)
			before := mustGet(os.ReadFile(path))
			r := openReader(t, path, store.ReadWait)
			_, err := r.Run(t.Context(), "run/demo:0001")
			if e := wantCode(t, err, store.StoreError); !strings.Contains(e.Message, "svc store migrate") {
				t.Fatal(e.Message, `want strings.Contains(e.Message, "svc store migrate")`)
			}
			if string(before) != string(mustGet(os.ReadFile(path))) {
				t.Fatal("a reader migrated")
			}
			if from := mustGet(store.Migrate(t.Context(), path, store.WriterOptions{})); from != c.version {
				t.Fatalf("migrated from %d; want %v", from, c.version)
			}
			after := mustGet(os.ReadFile(path))
			if from := mustGet(store.Migrate(t.Context(), path, store.WriterOptions{})); from != store.Version || string(after) != string(mustGet(os.ReadFile(path))) {
				t.Fatalf("a store of version %d was migrated again; want from == store.Version && string(after) == string(mustGet(os.ReadFile(path)))", from)
			}
			// The same reader reads it now.
			mustGet(r.Run(t.Context(), "run/demo:0001"))
			if page := mustGet(r.Runs(t.Context(), store.RunQuery{ProjectID: pointerTo("project/demo")})); len(page.Items) != 1 {
				t.Fatalf("%d runs of the project; want 1", len(page.Items))
			}
			v := wantClean(t, path)
			if v.Checked.Runs != 1 || v.Checked.ForeignRows != 1 || v.Checked.Events != c.events || v.Checked.Checkpoints != 1 {
				t.Fatalf("checked %+v; want v.Checked.Runs == 1 && v.Checked.ForeignRows == 1 && v.Checked.Events == c.events && v.Checked.Checkpoints == 1", v.Checked)
			}
			var since string
			if err := openRaw(t, path).QueryRowContext(t.Context(), "SELECT value FROM store_meta WHERE key = 'events_since'").Scan(&since); err != nil || since != c.since {
				t.Fatalf("events_since %s %v; want since == c.since", since, err)
			}
			w := openWriter(t, path, store.WriterOptions{})
			mustGet(w.CancelRun(t.Context(), "run/demo:0001", at))
			mustGet(w.CreateRun(t.Context(), store.CreateRun{Projection: numberedRun(1), IdempotencyKey: "k2"}))
			wantClean(t, path)
		})
	}
}

func TestNewerVersionIsRefused(t *testing.T) {
	t.Parallel()
	path := fixtureStore(t)
	editStore(t, path, "PRAGMA user_version = 4")
	_, err := openReader(t, path, store.ReadWait).Run(t.Context(), "run/demo:0001")
	wantCode(t, err, store.StoreError)
	_, err = store.OpenWriter(t.Context(), path, store.WriterOptions{})
	if e := wantCode(t, err, store.StoreError); !strings.Contains(e.Message, "newer") {
		t.Fatal(e.Message, `want strings.Contains(e.Message, "newer")`)
	}
	strange := filepath.Join(t.TempDir(), "other.db")
	editStore(t, strange, "CREATE TABLE theirs (x)")
	_, err = store.OpenWriter(t.Context(), strange, store.WriterOptions{})
	wantCode(t, err, store.StoreError)
}
