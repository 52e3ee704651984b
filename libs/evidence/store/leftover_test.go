package store_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/store"
)

// deadStore is a sample store that a writer left in mid-transaction, its journal beside it.
func deadStore(t testing.TB) string {
	t.Helper()
	path := fixtureStore(t)
	ctx := t.Context()
	conn := mustGet(openRaw(t, path).Conn(ctx))
	// A tiny cache spills the unfinished transaction into the file.
	for _, s := range []string{"PRAGMA cache_size = 1", "PRAGMA cache_spill = 1", "BEGIN IMMEDIATE",
		"UPDATE runs SET metadata_json = metadata_json || hex(zeroblob(200000))"} {
		if _, err := conn.ExecContext(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	dead := filepath.Join(t.TempDir(), "dead.db")
	for _, suffix := range []string{"", "-journal"} {
		if err := os.WriteFile(dead+suffix, mustGet(os.ReadFile(path+suffix)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	return dead
}

// folderState is every file of a folder: bytes and times.
func folderState(t testing.TB, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, entry := range mustGet(os.ReadDir(folder)) {
		info := mustGet(entry.Info())
		all[entry.Name()] = fmt.Sprint(info.Mode(), info.Size(), info.ModTime(), " ", string(mustGet(os.ReadFile(filepath.Join(folder, entry.Name())))))
	}
	return all
}

// wantUnchanged runs fn and fails if the folder then holds anything else than before.
func wantUnchanged(t testing.TB, folder string, fn func()) {
	t.Helper()
	before := folderState(t, folder)
	fn()
	after := folderState(t, folder)
	if got, want := slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)); !slices.Equal(got, want) {
		t.Fatalf("files %v, want %v", got, want)
	}
	for name, want := range before {
		if got := after[name]; got != want {
			t.Errorf("%s was changed: %.100q, want %.100q", name, got, want)
		}
	}
}

func wantEmptyFolder(t testing.TB, folder string) {
	t.Helper()
	if entries := mustGet(os.ReadDir(folder)); len(entries) > 0 {
		t.Fatalf("%s holds %v, want nothing", folder, entries)
	}
}

// wantSound fails unless nothing is wrong with a store but, at most, a journal left.
func wantSound(t testing.TB, path string) store.Verification {
	t.Helper()
	v, err := store.Verify(context.Background(), path, store.VerifyOptions{})
	if err != nil || !v.OK {
		t.Fatalf("verify: %+v, %v; want v.OK", v, err)
	}
	return v
}

// Readers and verification leave a store with a dead writer's journal as it is, and report
// it.
func TestReadersLeaveTheJournalOfADeadWriter(t *testing.T) {
	t.Parallel()
	path := deadStore(t)
	ctx := t.Context()
	wantUnchanged(t, filepath.Dir(path), func() {
		for name, r := range map[string]*store.Reader{
			"command": openReader(t, path, store.CommandWait), "server": store.NewServerReader(path),
		} {
			if page := mustGet(r.Runs(ctx, store.RunQuery{})); len(page.Items) != 3 {
				t.Errorf("%s: %d runs, want 3", name, len(page.Items))
			}
			mustGet(r.Mark(ctx))
			if _, _, err := r.Stamp(ctx); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if !strings.Contains(r.Notice(), "left its journal") {
				t.Errorf("%s: notice %q, want one of the journal", name, r.Notice())
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		v := mustGet(store.Verify(ctx, path, store.VerifyOptions{}))
		if got, want := faultCodes(v), "journal_left(journal)"; got != want || !v.OK {
			t.Errorf("findings %s, ok %v, want %s and true", got, v.OK, want)
		}
	})
	// A reader that is open reads the store itself again once a writer recovered it.
	r := openReader(t, path, store.ReadWait)
	mustGet(r.Run(ctx, "run/demo:0001"))
	before := mustGet(r.Mark(ctx))
	w := openWriter(t, path, store.WriterOptions{})
	mustGet(w.CreateRun(ctx, store.CreateRun{Projection: numberedRun(1), IdempotencyKey: "k"}))
	mustGet(r.Run(ctx, numberedRun(1).RunID))
	if r.Notice() != "" || mustGet(r.Mark(ctx)) == before {
		t.Errorf("after recovery: notice %q, want none, and another mark than before", r.Notice())
	}
	wantClean(t, path)
}

// A recovered store that is not sound has both findings, and is not OK.
func TestJournalOfADamagedStore(t *testing.T) {
	t.Parallel()
	path := deadStore(t)
	w := openWriter(t, path, store.WriterOptions{}) // recovers it
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	editStore(t, path, "UPDATE runs SET state = 'decided' WHERE run_id = 'run/demo:0001'")
	whole := mustGet(os.ReadFile(path))
	journal := journalOf(t, path)
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+"-journal", journal, 0o600); err != nil {
		t.Fatal(err)
	}
	v := mustGet(store.Verify(t.Context(), path, store.VerifyOptions{}))
	if got, want := faultCodes(v), "persisted_state_corrupt(run/demo:0001) journal_left(journal)"; got != want || v.OK {
		t.Errorf("findings %s, ok %v, want %s and false", got, v.OK, want)
	}
}

// journalOf is the journal of a transaction on a store that was not finished.
func journalOf(t testing.TB, path string) []byte {
	t.Helper()
	conn := mustGet(openRaw(t, path).Conn(t.Context()))
	for _, s := range []string{"PRAGMA cache_size = 1", "PRAGMA cache_spill = 1", "BEGIN IMMEDIATE",
		"UPDATE runs SET metadata_json = metadata_json || hex(zeroblob(200000))"} {
		if _, err := conn.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	journal := mustGet(os.ReadFile(path + "-journal"))
	if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	return journal
}

func TestWhatIsNoJournalIsFoundAndKept(t *testing.T) {
	t.Parallel()
	path := fixtureStore(t)
	if err := os.WriteFile(path+"-journal", []byte("somebody's notes"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantUnchanged(t, filepath.Dir(path), func() {
		r := openReader(t, path, store.ReadWait)
		mustGet(r.Run(t.Context(), "run/demo:0001"))
		if !strings.Contains(r.Notice(), "no journal") {
			t.Errorf("notice %q, want one of what is no journal", r.Notice())
		}
		v := mustGet(store.Verify(t.Context(), path, store.VerifyOptions{}))
		if got, want := faultCodes(v), "journal_foreign(journal)"; got != want || v.OK {
			t.Errorf("findings %s, ok %v, want %s and false", got, v.OK, want)
		}
	})
}

// In write-ahead mode even readers write beside the file; they read a copy instead.
func TestReadersLeaveWriteAheadModeAlone(t *testing.T) {
	t.Parallel()
	path := fixtureStore(t)
	editStore(t, path, "PRAGMA journal_mode = WAL")
	wantUnchanged(t, filepath.Dir(path), func() {
		mustGet(openReader(t, path, store.ReadWait).Run(t.Context(), "run/demo:0001"))
		v := mustGet(store.Verify(t.Context(), path, store.VerifyOptions{}))
		if got, want := faultCodes(v), "store_journal(journal_mode)"; got != want || v.OK {
			t.Errorf("findings %s, ok %v, want %s and false", got, v.OK, want)
		}
	})
}

func TestServersCopyNoHugeStore(t *testing.T) {
	t.Parallel()
	path := deadStore(t)
	if err := os.Truncate(path, store.MaxServedImage+1); err != nil { // takes no room on disk
		t.Fatal(err)
	}
	r := store.NewServerReader(path)
	t.Cleanup(func() { _ = r.Close() })
	_, err := r.Run(t.Context(), "run/demo:0001")
	if e := wantCode(t, err, store.StoreError); !strings.Contains(e.Message, "svc store migrate") {
		t.Errorf("message %q, want one that names the command that recovers the store", e.Message)
	}
}

// Copies are gone when their reader is closed.
func TestCopiesAreRemoved(t *testing.T) {
	path := deadStore(t)
	t.Setenv("TMPDIR", t.TempDir())
	r := store.NewReader(path, store.ReadWait)
	mustGet(r.Run(t.Context(), "run/demo:0001"))
	if entries := mustGet(os.ReadDir(os.TempDir())); len(entries) != 1 {
		t.Fatalf("%d copies, want 1", len(entries))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	wantEmptyFolder(t, os.TempDir())
}

func TestRefusedFirstWriteLeavesNothing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "new", "folder", "s.db")
	w := openWriter(t, path, store.WriterOptions{})
	_, err := w.CancelRun(t.Context(), "run/none", at)
	wantCode(t, err, store.RunNotFound)
	_, err = w.CreateRun(t.Context(), store.CreateRun{Projection: numberedRun(1), IdempotencyKey: "a\nb"})
	wantCode(t, err, store.InvalidIdempotencyKey)
	wantEmptyFolder(t, folder)
	mustGet(w.CreateRun(t.Context(), store.CreateRun{Projection: numberedRun(1), IdempotencyKey: "k"}))
	mustGet(w.CancelRun(t.Context(), numberedRun(1).RunID, at))
	wantClean(t, path)
	if entries := mustGet(os.ReadDir(filepath.Dir(path))); len(entries) != 1 {
		t.Errorf("files %v, want the store alone", entries)
	}
	if info := mustGet(os.Stat(path)); info.Mode() != fs.FileMode(0o600) {
		t.Errorf("mode %v, want 0600", info.Mode())
	}
}

// Writers that meet no file at the same time make one store that has the acts of all.
func TestFirstWritesAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "folder", "s.db")
	const writers = 8
	var group sync.WaitGroup
	for n := range writers {
		w := openWriter(t, path, store.WriterOptions{})
		group.Go(func() {
			if _, err := w.CreateRun(t.Context(), store.CreateRun{Projection: numberedRun(n), IdempotencyKey: fmt.Sprint(n)}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if v := wantClean(t, path); v.Checked.Runs != writers {
		t.Errorf("%d runs, want %d", v.Checked.Runs, writers)
	}
}
