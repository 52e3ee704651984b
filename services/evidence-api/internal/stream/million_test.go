package stream_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/store"
	"github.com/mlp-platform/platform/services/evidence-api/internal/stream"
)

// manyEvents creates a store with n events of one run, bypassing the store's API: only reading is tested.
func manyEvents(t testing.TB, path string, n int) {
	t.Helper()
	ctx := context.Background()
	w, err := store.OpenWriter(ctx, path, store.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.CreateRun(ctx, store.CreateRun{Projection: fixture.Run(), IdempotencyKey: "k"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	for _, s := range []string{"PRAGMA synchronous = OFF", "PRAGMA cache_size = -20000", "BEGIN",
		"DROP INDEX events_by_run", "DROP INDEX events_by_project", "DROP INDEX events_by_work_unit", "DROP INDEX events_by_type", fmt.Sprintf(`
		INSERT INTO events
		SELECT n, printf('evt-%%012d', n), occurred_at, event_type, principal_json, authority_class, project_id, work_unit_id,
			run_id, attempt_id, source_revision, evidence_reference_json, payload_json, payload_digest
		FROM (WITH RECURSIVE c(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM c WHERE n < %d) SELECT n FROM c), (SELECT * FROM events WHERE sequence = 1)`, n),
		"COMMIT"} {
		if _, err := db.ExecContext(ctx, s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// heapInUse returns the heap that is in use after garbage collection.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestLaggingStreamsAreFlat runs apart from the rest, as it looks at the heap: eight
// streams over a million events that read now and then cost less than 16 MiB, half
// way and at their end, and see all of them.
func TestLaggingStreamsAreFlat(t *testing.T) {
	const streams, most, tail = 8, 16 << 20, events / 50
	path := filepath.Join(t.TempDir(), "store.db")
	began := time.Now()
	manyEvents(t, path, events)
	t.Logf("%d events made in %v", events, time.Since(began))
	s := serveStream(t, path, options{})
	before := heapInUse()

	clients := make([]*client, streams)
	for i := range clients {
		// All from the beginning, then all but two leap forward, to end in time.
		clients[i] = s.follow(t, "/0")
		clients[i].want(retry + "id: 1\n")
	}
	for i := range clients[2:] {
		_ = clients[2+i].Close()
		s.wantReason(t, stream.Gone)
		clients[2+i] = s.follow(t, fmt.Sprint("/", events-tail))
		clients[2+i].want(fmt.Sprintf("%sid: %d\n", retry, events-tail+1))
	}
	if used := heapInUse() - before; used > most {
		t.Errorf("%d streams that lag hold %d bytes; want used <= most", streams, used)
	}

	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			in := bufio.NewReaderSize(c, 16<<10)
			want := 2
			if i >= 2 {
				want = events - tail + 2
			}
			for want <= events {
				line, err := in.ReadSlice('\n')
				if err != nil {
					t.Errorf("%v before event %d", err, want)
					return
				}
				if bytes.HasPrefix(line, []byte("id: ")) {
					if got := string(line); got != fmt.Sprintf("id: %d\n", want) {
						t.Errorf("%q, want %d", got, want)
						return
					}
					want++
				}
			}
		})
	}
	peak := int64(0)
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-time.After(200 * time.Millisecond):
			peak = max(peak, heapInUse()-before)
		}
	}
	if peak > most {
		t.Errorf("%d streams that read on hold %d bytes; want peak <= most", streams, peak)
	}
	t.Logf("at most %d KiB held; %v in all", peak>>10, time.Since(began))
}

// TestTailerEndsWithTheLastStream runs apart from the rest: it looks at goroutines.
func TestTailerEndsWithTheLastStream(t *testing.T) {
	l := newLog(t)
	s := serveStream(t, l.path, options{})
	tailers := func() int {
		stacks := make([]byte, 1<<20)
		return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "stream.(*tailer).run(")
	}
	await := func(want int) {
		t.Helper()
		for until := time.Now().Add(limit); tailers() != want; runtime.Gosched() {
			if time.Now().After(until) {
				t.Fatalf("%d tailers, want %d", tailers(), want)
			}
		}
	}
	await(0)
	for range 2 {
		a, b := s.follow(t, "/"), s.follow(t, "/")
		a.want(retry)
		b.want(retry)
		await(1)
		_ = a.Close()
		s.wantReason(t, stream.Gone)
		await(1)
		_, _ = io.WriteString(b, "x") // bytes from the client are ignored
		_ = b.Close()
		s.wantReason(t, stream.Gone)
		await(0)
	}
}
