package store_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/store"
)

// holdLock locks a store as a writer does, to the end of the test or until the lock is
// given back.
func holdLock(t *testing.T, path string) (release func()) {
	t.Helper()
	conn := mustGet(openRaw(t, path).Conn(t.Context()))
	t.Cleanup(func() { _ = conn.Close() })
	mustGet(conn.ExecContext(t.Context(), "BEGIN EXCLUSIVE"))
	return func() { mustGet(conn.ExecContext(context.Background(), "ROLLBACK")) }
}

// long is a wait that no test lives through.
const long = time.Hour

func TestLockDeadlineBoundsAllWaitsTogether(t *testing.T) {
	t.Parallel()
	path := fixtureStore(t)
	r := openReader(t, path, long)
	holdLock(t, path)
	began := time.Now()
	ctx := store.WithLockDeadline(t.Context(), began.Add(300*time.Millisecond))
	for name, read := range map[string]func() error{
		"stamp":  func() error { _, _, err := r.Stamp(ctx); return err },
		"run":    func() error { _, err := r.Run(ctx, fixture.Run().RunID); return err },
		"events": func() error { _, err := r.Events(ctx, store.EventQuery{}); return err },
		"mark":   func() error { _, err := r.Mark(ctx); return err },
	} {
		if e := wantCode(t, read(), store.StoreError); !strings.Contains(e.Message, "locked") {
			t.Errorf(`%s: %v; want strings.Contains(e.Message, "locked")`, name, e)
		}
	}
	if took := time.Since(began); took < 300*time.Millisecond || took > 10*time.Second {
		t.Errorf("after %v; want took >= 300 * time.Millisecond && took <= 10 * time.Second", took)
	}
}

func TestReaderWaitBoundsALaterDeadline(t *testing.T) {
	t.Parallel()
	path := fixtureStore(t)
	r := openReader(t, path, 10*time.Millisecond)
	holdLock(t, path)
	_, err := r.Run(store.WithLockDeadline(t.Context(), time.Now().Add(long)), fixture.Run().RunID)
	wantCode(t, err, store.StoreError)
}

func TestContextEndsAWaitForALock(t *testing.T) {
	t.Parallel()
	path := fixtureStore(t)
	r := openReader(t, path, long)
	holdLock(t, path)
	cause := errors.New("cut")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(cause) })
	if _, err := r.Run(ctx, fixture.Run().RunID); !errors.Is(err, context.Canceled) {
		t.Error(err, "want errors.Is(err, context.Canceled)")
	}
	if _, _, err := r.Stamp(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err, "want errors.Is(err, context.Canceled)")
	}
}

func TestReadGoesOnWhenTheLockIsGone(t *testing.T) {
	t.Parallel()
	path := fixtureStore(t)
	r := openReader(t, path, long)
	release := holdLock(t, path)
	time.AfterFunc(50*time.Millisecond, release)
	mustGet(r.Run(t.Context(), fixture.Run().RunID))
}

// TestSettledPagesAreDroppedToo: a reader that trusts its pages, since the file has not
// changed for a while, sees the next byte that does.
func TestSettledPagesAreDroppedToo(t *testing.T) {
	t.Parallel()
	path := fixtureStore(t)
	r := openReader(t, path, store.ReadWait)
	id := fixture.Run().RunID
	whole := mustGet(os.ReadFile(path))
	for range 3 {
		awaitStamp(t, r)
		for range 3 {
			run := mustGet(r.Run(t.Context(), id))
			if string(run.Document) != string(mustGet(canon.C1(run.Projection))) {
				t.Fatalf("%s; want string(run.Document) == string(mustGet(canon.C1(run.Projection)))", run.Document)
			}
		}
		f := mustGet(os.OpenFile(path, os.O_WRONLY, 0))
		for _, text := range []string{strings.ReplaceAll(string(whole), `"agent_candidate"`, `"agent_candidatf"`), string(whole)} {
			mustGet(f.WriteAt([]byte(text), 0))
			_, err := r.Run(t.Context(), id)
			if text == string(whole) {
				if err != nil {
					t.Fatal(err)
				}
				continue
			}
			wantCode(t, err, store.PersistedStateCorrupt)
		}
		_ = f.Close()
	}
}

func TestGlanceIsTheStampWithoutTheLook(t *testing.T) {
	t.Parallel()
	path := fixtureStore(t)
	r := openReader(t, path, 10*time.Millisecond)
	want := awaitStamp(t, r)
	holdLock(t, path)
	if stamp, ok := r.Glance(); !ok || stamp != want {
		t.Errorf("%v %v, want %v", stamp, ok, want)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, ok := r.Glance(); ok {
		t.Error("a file that is not there is settled")
	}
}

// TestReadersShareFewConnections: more readers than connections all get their turn.
func TestReadersShareFewConnections(t *testing.T) {
	t.Parallel()
	r := openReader(t, fixtureStore(t), store.ReadWait)
	const readers = 64
	errs := make(chan error, readers)
	for range readers {
		go func() {
			_, err := r.Runs(t.Context(), store.RunQuery{})
			if err == nil {
				_, err = r.Run(t.Context(), "no/such/run")
				if store.CodeOf(err) == store.RunNotFound {
					err = nil
				}
			}
			errs <- err
		}()
	}
	for range readers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
