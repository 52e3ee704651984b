package store_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/store"
)

// The test binary itself is the writer that gets killed.
const (
	churnPath = "EVIDENCE_STORE_CHURN"
	churnName = "EVIDENCE_STORE_CHURN_NAME"
)

// createRuns creates 1,000 runs and names each on standard output once it is committed.
func createRuns(path, name string) {
	ctx := context.Background()
	w := mustGet(store.OpenWriter(ctx, path, store.WriterOptions{}))
	for i := range 1000 {
		p := numberedRun(i)
		p.RunID += "/" + name
		mustGet(w.CreateRun(ctx, store.CreateRun{Projection: p, IdempotencyKey: p.RunID}))
		fmt.Println(p.RunID)
	}
}

func startChurn(t *testing.T, path, name string) (*exec.Cmd, *strings.Builder, func(n int)) {
	t.Helper()
	cmd := exec.Command(mustGet(os.Executable()))
	cmd.Env = append(os.Environ(), churnPath+"="+path, churnName+"="+name)
	out := &strings.Builder{}
	pipe := mustGet(cmd.StdoutPipe())
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 4096)
	// wait reads until n runs were confirmed, or to the end if n is below 0.
	wait := func(n int) {
		for n < 0 || strings.Count(out.String(), "\n") < n {
			k, err := pipe.Read(buffer)
			out.Write(buffer[:k])
			if err != nil {
				return
			}
		}
	}
	return cmd, out, wait
}

func TestKilledWriterLeavesAWholeStore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.db")
	var confirmed []string
	hot := 0
	for round, kills := 0, []int{1, 40, 90, 160}; round < len(kills); round++ {
		cmd, out, wait := startChurn(t, path, fmt.Sprint("r", round))
		wait(kills[round])
		// The kill lands anywhere in the transactions that follow.
		if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		wait(-1)
		_ = cmd.Wait()
		if _, err := os.Stat(path + "-journal"); err == nil {
			hot++
		}
		confirmed = append(confirmed, strings.Fields(out.String())...)
		v := wantSound(t, path)
		if v.Checked.Runs != v.Checked.Events || v.Checked.Runs < int64(len(confirmed)) || v.Checked.Runs > int64(len(confirmed)+round+1) {
			t.Fatalf("%d runs, %d events, %d confirmed; want v.Checked.Runs == v.Checked.Events && v.Checked.Runs >= int64(len(confirmed)) && v.Checked.Runs <= int64(len(confirmed) + round + 1)", v.Checked.Runs, v.Checked.Events, len(confirmed))
		}
	}
	r := openReader(t, path, store.ReadWait)
	for _, id := range confirmed {
		mustGet(r.Run(t.Context(), id))
	}
	v := wantSound(t, path)
	t.Logf("%d runs after %d kills, %d of them with a journal left", v.Checked.Runs, 4, hot)
}

func TestTwoWritersAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.db")
	var group sync.WaitGroup
	for n := range 4 {
		group.Go(func() {
			// The readers below never rest, so on a busy machine a writer waits for long.
			w := mustGet(store.OpenWriter(context.Background(), path, store.WriterOptions{Wait: 5 * time.Minute}))
			defer func() { _ = w.Close() }()
			for i := range 25 {
				// Each writer creates half of the runs alone; the other half all writers
				// try to create.
				p := numberedRun(i)
				if i%2 == 0 {
					p.RunID += fmt.Sprint("/", n)
				}
				mustGet(w.CreateRun(context.Background(), store.CreateRun{Projection: p, IdempotencyKey: p.RunID}))
				mustGet(w.CancelRun(context.Background(), p.RunID, time.Time{}))
			}
		})
	}
	r := openReader(t, path, store.CommandWait)
	stop := make(chan struct{})
	group.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			// Before the first writer made the file there is none.
			if _, err := r.Runs(context.Background(), store.RunQuery{}); err != nil && store.CodeOf(err) != store.StoreError {
				panic(err)
			}
		}
	})
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	want := int64(4*13 + 12)
	for mustGet(countEvents(path)) < 2*want {
		runtime.Gosched()
	}
	close(stop)
	<-done
	if v := wantClean(t, path); v.Checked.Runs != want || v.Checked.Events != 2*want {
		t.Fatalf("checked %+v, want %d runs", v.Checked, want)
	}
}

// countEvents returns the number of events of a store; a store that is not there yet has
// none.
func countEvents(path string) (int64, error) {
	r := store.NewReader(path, store.CommandWait)
	defer func() { _ = r.Close() }()
	n, err := r.LatestSequence(context.Background())
	if store.CodeOf(err) == store.StoreError {
		return 0, nil
	}
	return n, err
}

func TestLockedTruncatedGarbageRemovedReplaced(t *testing.T) {
	t.Parallel()
	path := fixtureStore(t)
	ctx := t.Context()
	r := openReader(t, path, 200*time.Millisecond)
	ok := func() {
		t.Helper()
		if page := mustGet(r.Runs(ctx, store.RunQuery{})); len(page.Items) != 3 {
			t.Fatalf("%d runs; want 3", len(page.Items))
		}
		mustGet(r.Mark(ctx))
	}
	bad := func() *store.Error {
		t.Helper()
		start := time.Now()
		_, err := r.Runs(ctx, store.RunQuery{})
		e := wantCode(t, err, store.StoreError)
		_, err = r.Mark(ctx)
		wantCode(t, err, store.StoreError)
		if took := time.Since(start); took > 15*time.Second {
			t.Fatalf("it took %s; want twice the wait for a lock of 0.2 s", took)
		}
		return e
	}
	ok()

	db := openRaw(t, path)
	conn := mustGet(db.Conn(ctx))
	if _, err := conn.ExecContext(ctx, "BEGIN EXCLUSIVE"); err != nil {
		t.Fatal(err)
	}
	if e := bad(); !strings.Contains(e.Message, "locked") {
		t.Fatal(e, `want strings.Contains(e.Message, "locked")`)
	}
	if _, err := conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	_ = db.Close()
	ok()

	whole := mustGet(os.ReadFile(path))
	overwrite := func(content []byte) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, content := range [][]byte{nil, whole[:100], whole[:5000], []byte(strings.Repeat("garbage ", 4096)), whole[:len(whole)-8192]} {
		overwrite(content)
		if len(content) == len(whole)-8192 {
			// The rows in front may all be there; verification sees the end missing.
			if v, err := store.Verify(ctx, path, store.VerifyOptions{}); err == nil && v.OK {
				t.Fatal("a truncated store verified")
			}
		} else {
			bad()
		}
		overwrite(whole)
		ok()
	}

	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	bad()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	bad()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	ok()

	// Another store at the same path is seen with the next read.
	mark := mustGet(r.Mark(ctx))
	other := filepath.Join(t.TempDir(), "other.db")
	w := openWriter(t, other, store.WriterOptions{})
	mustGet(w.CreateRun(ctx, store.CreateRun{Projection: numberedRun(7), IdempotencyKey: "k"}))
	_ = w.Close()
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	if page := mustGet(r.Runs(ctx, store.RunQuery{})); len(page.Items) != 1 || page.Items[0].Projection.RunID != numberedRun(7).RunID {
		t.Fatalf("replaced: %+v; want len(page.Items) == 1 && page.Items[0].Projection.RunID == numberedRun(7).RunID", page)
	}
	if mustGet(r.Mark(ctx)) == mark {
		t.Fatal("the mark of a replaced store is the same")
	}
}

func TestMarkChangesWithEachCommit(t *testing.T) {
	t.Parallel()
	path := fixtureStore(t)
	r := openReader(t, path, store.ReadWait)
	w := openWriter(t, path, store.WriterOptions{})
	before := mustGet(r.Mark(t.Context()))
	mustGet(r.Events(t.Context(), store.EventQuery{}))
	if mustGet(r.Mark(t.Context())) != before {
		t.Fatal("the mark moved without a commit")
	}
	mustGet(w.CreateRun(t.Context(), store.CreateRun{Projection: numberedRun(1), IdempotencyKey: "k"}))
	if mustGet(r.Mark(t.Context())) == before {
		t.Fatal("the mark did not move with a commit")
	}
}

func TestReaderNeverWrites(t *testing.T) {
	t.Parallel()
	path := fixtureStore(t)
	before := mustGet(os.ReadFile(path))
	r := openReader(t, path, store.ReadWait)
	mustGet(r.Runs(t.Context(), store.RunQuery{}))
	mustGet(r.Project(t.Context(), "project/demo"))
	mustGet(r.Inclusion(t.Context(), "evt-000000000001"))
	wantClean(t, path)
	if string(before) != string(mustGet(os.ReadFile(path))) {
		t.Fatal("reading changed the file")
	}
	missing := filepath.Join(t.TempDir(), "none.db")
	_, err := openReader(t, missing, store.ReadWait).Run(t.Context(), "x")
	wantCode(t, err, store.StoreError)
	if _, err := os.Stat(missing); err == nil {
		t.Fatal("reading made a file")
	}
	_, err = store.Migrate(t.Context(), missing, store.WriterOptions{})
	wantCode(t, err, store.StoreError)
	_ = r.Close()
	_, err = r.Run(t.Context(), "x")
	wantCode(t, err, store.StoreError)
}

func TestRowFaults(t *testing.T) {
	t.Parallel()
	const drop = "DROP TRIGGER events_no_update"
	for _, c := range []struct {
		name  string
		edit  []string
		id    string
		run   store.Code // "" if the run is still read
		proof store.Code // of its evidence
		list  store.Code
	}{
		{"foreign", nil, store.FixtureForeignRow, store.NotProductSpineRun, store.NotProductSpineRun, ""},
		{"no report", nil, "run/demo:0001", "", store.EvidenceNotAvailable, ""},
		{"one byte of the report", []string{"UPDATE runs SET metadata_json = replace(metadata_json, 'worker-1', 'worker-3')"},
			"run/demo:0002", "", store.EvidenceIntegrityError, ""},
		{"report null", []string{"UPDATE runs SET metadata_json = json_set(metadata_json, '$.evidence_report', NULL) WHERE run_id = 'run/demo:0002'"},
			"run/demo:0002", "", store.EvidenceIntegrityError, ""},
		{"report gone", []string{"UPDATE runs SET metadata_json = json_remove(metadata_json, '$.evidence_report') WHERE run_id = 'run/demo:0002'"},
			"run/demo:0002", "", store.EvidenceIntegrityError, ""},
		{"state column", []string{"UPDATE runs SET state = 'decided' WHERE run_id = 'run/demo:0001'"},
			"run/demo:0001", store.PersistedStateCorrupt, store.EvidenceNotAvailable, store.PersistedStateCorrupt},
		{"row kind", []string{"UPDATE runs SET row_kind = 'other' WHERE run_id = 'run/demo:0001'"},
			"run/demo:0001", store.PersistedStateCorrupt, store.EvidenceNotAvailable, store.PersistedStateCorrupt},
		{"garbage document", []string{"UPDATE runs SET metadata_json = '{' WHERE run_id = 'run/demo:0001'"},
			"run/demo:0001", store.PersistedStateCorrupt, store.PersistedStateCorrupt, store.PersistedStateCorrupt},
		{"white space", []string{"UPDATE runs SET metadata_json = metadata_json || ' ' WHERE run_id = 'run/demo:0001'"},
			"run/demo:0001", store.PersistedStateCorrupt, store.PersistedStateCorrupt, store.PersistedStateCorrupt},
		{"a foreign row that quotes our kind", []string{
			`UPDATE runs SET metadata_json = '{"kind":"x","of":{"kind":"product-spine-cli-run"}}' WHERE run_id = 'foreign/batch-0001'`},
			store.FixtureForeignRow, store.NotProductSpineRun, store.NotProductSpineRun, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := fixtureStore(t)
			editStore(t, path, c.edit...)
			r := openReader(t, path, store.ReadWait)
			_, err := r.Run(t.Context(), c.id)
			if e := wantCode(t, err, c.run); e != nil && e.ID != c.id {
				t.Fatalf("the error names %q; want (e == nil || e.ID == c.id)", e.ID)
			}
			_, err = r.Evidence(t.Context(), c.id)
			wantCode(t, err, c.proof)
			page, err := r.Runs(t.Context(), store.RunQuery{})
			if e := wantCode(t, err, c.list); e != nil && e.ID != c.id {
				t.Fatalf("the page's error names %q; want (e == nil || e.ID == c.id)", e.ID)
			}
			if err == nil && len(page.Items) != 3 {
				t.Fatalf("%d runs; want (an error || len(page.Items) == 3)", len(page.Items))
			}
		})
	}
	path := fixtureStore(t)
	editStore(t, path, "UPDATE connections SET metadata_json = json_set(metadata_json, '$.extra', 1) WHERE connection_id = 'demo-scm'",
		drop, "UPDATE events SET payload_json = '{}' WHERE sequence = 2")
	r := openReader(t, path, store.ReadWait)
	_, err := r.Connection(t.Context(), "demo-scm")
	wantCode(t, err, store.ConnectionRecordInvalid)
	_, err = r.Connections(t.Context(), store.Window{})
	if e := wantCode(t, err, store.ConnectionRecordInvalid); e.ID != "demo-scm" {
		t.Fatalf(`the error names %q; want "demo-scm"`, e.ID)
	}
	_, err = r.Events(t.Context(), store.EventQuery{})
	wantCode(t, err, store.StoreError)
	w := openWriter(t, path, store.WriterOptions{})
	bad := fixture.Connections()
	bad[0].MaxRisk = "none"
	wantCode(t, w.ImportConnections(t.Context(), bad, time.Time{}), store.ConnectionRecordInvalid)
	if err := w.ImportConnections(t.Context(), fixture.Connections(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	mustGet(r.Connections(t.Context(), store.Window{}))
}

// A row that fails its checks fails the page that it is on, and not the one before.
func TestFaultsFailTheirOwnPage(t *testing.T) {
	t.Parallel()
	path := fixtureStore(t)
	w := openWriter(t, path, store.WriterOptions{})
	other := fixture.Run()
	other.RunID, other.WorkUnit.ID = "run/other:0001", "work/other-0001"
	if _, err := w.CreateRun(t.Context(), store.CreateRun{Projection: other, IdempotencyKey: "other"}); err != nil {
		t.Fatal(err)
	}
	editStore(t, path, "UPDATE runs SET state = 'decided' WHERE run_id = 'run/other:0001'",
		"UPDATE connections SET metadata_json = '{}' WHERE connection_id = 'demo-scm'",
		"DROP TRIGGER events_no_update", "UPDATE events SET payload_json = '{}' WHERE sequence = 5")
	r := openReader(t, path, store.ReadWait)
	ctx := t.Context()
	runs := func(w store.Window) (string, error) {
		page, err := r.Runs(ctx, store.RunQuery{Window: w})
		return page.Next, err
	}
	units := func(w store.Window) (string, error) {
		page, err := r.WorkUnits(ctx, store.WorkUnitQuery{Window: w})
		return page.Next, err
	}
	connections := func(w store.Window) (string, error) {
		page, err := r.Connections(ctx, w)
		return page.Next, err
	}
	events := func(w store.Window) (string, error) {
		page, err := r.Events(ctx, store.EventQuery{Window: w})
		return page.Next, err
	}
	for name, c := range map[string]struct {
		page  func(store.Window) (string, error)
		sound int
		code  store.Code
	}{
		"runs": {runs, 3, store.PersistedStateCorrupt}, "work units": {units, 1, store.PersistedStateCorrupt},
		"connections": {connections, 3, store.ConnectionRecordInvalid}, "events": {events, 4, store.StoreError},
	} {
		next, err := c.page(store.Window{Limit: c.sound})
		if err != nil || next == "" {
			t.Errorf(`%s: the page before: %q, %v; want next != ""`, name, next, err)
			continue
		}
		_, err = c.page(store.Window{Cursor: &next})
		wantCode(t, err, c.code)
		_, err = c.page(store.Window{Limit: c.sound + 1})
		wantCode(t, err, c.code)
	}
}

func TestNothingIsAppendedToAChangedLog(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][]string{
		"tail cut":   {"DROP TRIGGER events_no_delete", "DELETE FROM events WHERE sequence = 4"},
		"checkpoint": {"DROP TRIGGER checkpoints_no_delete", "DELETE FROM checkpoints WHERE tree_size = 4"},
		"rewritten": {"DROP TRIGGER events_no_update", "UPDATE events SET occurred_at = '2026-01-02T03:04:06Z' WHERE sequence = 1",
			"DELETE FROM store_meta WHERE key = 'tree_frontier'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := fixtureStore(t)
			editStore(t, path, change...)
			w := openWriter(t, path, store.WriterOptions{})
			_, err := w.CreateRun(t.Context(), store.CreateRun{Projection: numberedRun(1), IdempotencyKey: "k"})
			wantCode(t, err, store.StoreError)
		})
	}
	// A lost frontier alone is rebuilt.
	path := fixtureStore(t)
	editStore(t, path, "DELETE FROM store_meta WHERE key = 'tree_frontier'")
	w := openWriter(t, path, store.WriterOptions{})
	mustGet(w.CreateRun(t.Context(), store.CreateRun{Projection: numberedRun(1), IdempotencyKey: "k"}))
	wantClean(t, path)
}

func newTestKey(t testing.TB) (note.Signer, note.Verifier) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	public := mustGet(store.GenerateKey(path))
	return mustGet(store.LoadSigner(path)), mustGet(note.NewVerifier(public))
}
