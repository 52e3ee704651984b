package store_test

import (
	"os"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/store"
)

// awaitStamp waits until a stamp is settled and returns it.
func awaitStamp(t *testing.T, r *store.Reader) store.Stamp {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		stamp, ok, err := r.Stamp(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			return stamp
		}
		if time.Now().After(deadline) {
			t.Fatal("no stamp settles")
		}
	}
}

func TestStampChangesWithEveryByte(t *testing.T) {
	t.Parallel()
	path := fixtureStore(t)
	r := openReader(t, path, store.ReadWait)
	last := awaitStamp(t, r)
	if awaitStamp(t, r) != last {
		t.Fatal("two stamps of one state")
	}
	info := mustGet(os.Stat(path))
	text := mustGet(os.ReadFile(path))
	for name, change := range map[string]func(){
		"a commit": func() { editStore(t, path, "UPDATE connections SET updated_at = updated_at || '1'") },
		"a byte, and its time put back": func() {
			f := mustGet(os.OpenFile(path, os.O_WRONLY, 0))
			mustGet(f.WriteAt(text[5000:5001], 5000))
			_ = f.Close()
			if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		},
		"another file": func() {
			if err := os.WriteFile(path+".new", text, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		change()
		next := awaitStamp(t, r)
		if next == last {
			t.Errorf("%s left the stamp; want next != last", name)
		}
		last = next
	}
}

func TestStampFailsWhereAReadFails(t *testing.T) {
	t.Parallel()
	path := fixtureStore(t)
	r := openReader(t, path, 10*time.Millisecond)
	awaitStamp(t, r)
	db := openRaw(t, path)
	conn := mustGet(db.Conn(t.Context()))
	mustGet(conn.ExecContext(t.Context(), "BEGIN EXCLUSIVE"))
	_, _, err := r.Stamp(t.Context())
	wantCode(t, err, store.StoreError)
	mustGet(conn.ExecContext(t.Context(), "ROLLBACK"))
	_ = conn.Close()
	awaitStamp(t, r)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, _, err = r.Stamp(t.Context())
	wantCode(t, err, store.StoreError)
	_ = r.Close()
	_, _, err = r.Stamp(t.Context())
	wantCode(t, err, store.StoreError)
}

// TestNoPageOutlivesItsRead edits the file around SQLite, which moves no counter.
func TestNoPageOutlivesItsRead(t *testing.T) {
	t.Parallel()
	path := fixtureStore(t)
	r := openReader(t, path, store.ReadWait)
	id := fixture.Run().RunID
	mustGet(r.Run(t.Context(), id))
	text := mustGet(os.ReadFile(path))
	const was, is = `"agent_candidate"`, `"agent_candidatf"`
	for at := 0; at+len(was) < len(text); at++ {
		if string(text[at:at+len(was)]) == was {
			copy(text[at:], is)
		}
	}
	f := mustGet(os.OpenFile(path, os.O_WRONLY, 0))
	mustGet(f.WriteAt(text, 0))
	_ = f.Close()
	_, err := r.Run(t.Context(), id)
	wantCode(t, err, store.PersistedStateCorrupt)
}
