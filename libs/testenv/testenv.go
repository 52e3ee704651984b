// Package testenv provides tests with the real Postgres, NATS and Redis.
//
// Postgres and Redis run once for all test binaries that libs/testenv/testservers
// starts, else once per test binary, as child processes that die with it; where
// their binaries are missing, as containers. Each test gets its own database, so
// that all may run in parallel. NATS runs inside the test binary, once per test,
// since it starts in milliseconds.
//
// TESTENV=containers runs all three in containers, whatever is installed. Their
// images are POSTGRES_IMAGE, REDIS_IMAGE and NATS_IMAGE, or else the official ones.
//
// A package that uses it needs
//
//	func TestMain(m *testing.M) { testenv.Main(m) }
package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"go.uber.org/goleak"
)

// startTimeout limits the start of a server, the pull of its image included.
const startTimeout = 3 * time.Minute

var shared struct {
	sync.Mutex // guards what follows
	dir        string
	lock       *flock.Flock
	stop       []func() // in order of start
}

// Main runs the tests, stops the servers, fails when goroutines are left, and
// exits. The options are goleak's, for goroutines that a library never ends.
func Main(m *testing.M, leaks ...goleak.Option) {
	if err := checkMode(); err != nil {
		fmt.Fprintln(os.Stderr, "testenv:", err)
		os.Exit(1)
	}
	code := m.Run()
	stopAll()
	if code == 0 {
		err := goleak.Find(leaks...)
		for end := time.Now().Add(20 * time.Second); err != nil && time.Now().Before(end); {
			err = goleak.Find(leaks...) // a server that was just stopped may still be ending its own
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "testenv: goroutines outlive the tests:", err)
			code = 1
		}
	}
	os.Exit(code)
}

func stopAll() {
	shared.Lock()
	defer shared.Unlock()
	for i := len(shared.stop) - 1; i >= 0; i-- {
		shared.stop[i]()
	}
	shared.stop = nil
	if shared.lock != nil {
		_ = os.RemoveAll(shared.dir) // the sweep of a later run removes the rest
		_ = shared.lock.Unlock()
	}
}

func atEnd(stop func()) {
	shared.Lock()
	defer shared.Unlock()
	shared.stop = append(shared.stop, stop)
}

// workDir is the directory of this test binary's servers. Those of binaries that
// were killed are removed on the way: their lock is free.
func workDir() (string, error) {
	shared.Lock()
	defer shared.Unlock()
	if shared.dir != "" {
		return shared.dir, nil
	}
	sweepStale(os.TempDir())
	dir, lock, err := claimDir(os.TempDir())
	if err != nil {
		return "", err
	}
	shared.dir, shared.lock = dir, lock
	return dir, nil
}

// dirPrefix begins the names of the directories that a sweep checks.
const dirPrefix = "platform-testenv-"

// sweepStale removes the directories below root that no process has locked.
func sweepStale(root string) {
	old, _ := filepath.Glob(filepath.Join(root, dirPrefix+"*", "lock")) // fails for a bad pattern only
	for _, f := range old {
		lock := flock.New(f)
		if ok, err := lock.TryLock(); err == nil && ok {
			_ = os.RemoveAll(filepath.Dir(f))
			_ = lock.Unlock()
		}
	}
}

// claimDir makes a directory below root and holds its lock. It gets the name that
// sweeps look for only once the lock is held, or the sweep of another binary
// could remove it in between.
func claimDir(root string) (string, *flock.Flock, error) {
	made, err := os.MkdirTemp(root, "new-"+dirPrefix)
	if err != nil {
		return "", nil, err
	}
	lock := flock.New(filepath.Join(made, "lock"))
	ok, err := lock.TryLock()
	if err == nil && !ok {
		err = errors.New("held by another process")
	}
	if err != nil {
		return "", nil, fmt.Errorf("lock %s: %w", made, errors.Join(err, os.RemoveAll(made)))
	}
	dir := filepath.Join(root, strings.TrimPrefix(filepath.Base(made), "new-"))
	if err := os.Rename(made, dir); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(made), lock.Unlock())
	}
	return dir, lock, nil
}

// once starts a server for the whole test binary.
type once[T any] struct {
	sync.Once
	value T
	err   error
}

func (o *once[T]) get(start func(context.Context) (T, error)) (T, error) {
	o.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		o.value, o.err = start(ctx)
	})
	return o.value, o.err
}

// busy is the factor by which a test's timeout exceeds that on an otherwise idle
// machine: whole suites run side by side, and a slow machine is no fault of the
// tested code.
const busy = 3

// Eventually calls check, ever less often, until it returns nil; it fails the test
// with check's last error once three times the timeout has passed.
func Eventually(t testing.TB, timeout time.Duration, check func() error) {
	t.Helper()
	timeout *= busy
	deadline := time.Now().Add(timeout)
	for delay := 2 * time.Millisecond; ; delay = min(2*delay, 100*time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %v; want nil", timeout, err)
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("the test ended while waiting: %v", err)
		case <-time.After(delay):
		}
	}
}
