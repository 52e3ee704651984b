// Package datadir owns the directory that holds a one-process platform's state:
// one platform at a time, of a layout that this program knows, on a disk with
// room.
package datadir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"
)

const (
	// Layout is the version of the directory's layout. It rises when an older program would misread the content.
	Layout = 1
	// minFree is the space that a start needs: Postgres' files and log are 60 MB, NATS and the sample models less; with
	// less, Postgres would stop midway.
	minFree = 200 << 20

	lockFile    = "platform.lock"
	layoutFile  = "layout"
	runtimeFile = "runtime.json"
)

// Dir is a data directory in the hands of this process.
type Dir struct {
	path string
	lock *flock.Flock
}

// Open takes the directory, making it if it is absent. Each error is one
// sentence for the person who starts the platform.
func Open(path string) (*Dir, error) { return openWith(path, freeBytes) }

func openWith(path string, free func(string) (uint64, error)) (_ *Dir, err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w", path, err)
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return nil, fmt.Errorf("the data directory cannot be made; name another in PLATFORM_DATA_DIR: %w", err)
	}
	if err := closeToOthers(abs); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(abs, lockFile), flock.SetPermissions(0o600))
	// Longer than ReadRuntime of another process may hold it.
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	held, err := lock.TryLockContext(ctx, 10*time.Millisecond)
	if errors.Is(err, context.DeadlineExceeded) {
		held, err = false, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the data directory %s cannot be used; name another in PLATFORM_DATA_DIR: %w", abs, err)
	}
	if !held {
		return nil, fmt.Errorf("another platform%s uses the data directory %s: stop it, or name another directory in PLATFORM_DATA_DIR", lockHolder(abs), abs)
	}
	d := &Dir{abs, lock}
	defer func() {
		if err != nil {
			err = errors.Join(err, lock.Close())
		}
	}()
	// For the error message of the next process; the lock itself needs no content.
	if err := os.WriteFile(filepath.Join(abs, lockFile), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("the data directory %s cannot be written: %w", abs, err)
	}
	if err := checkLayout(abs); err != nil {
		return nil, err
	}
	bytes, err := free(abs)
	if err != nil {
		return nil, fmt.Errorf("how much is free on the disk of %s: %w", abs, err)
	}
	if bytes < minFree {
		return nil, fmt.Errorf("only %d MB free on the disk of %s: the platform needs %d MB to start; make room, or name a directory on another disk in PLATFORM_DATA_DIR", bytes>>20, abs, minFree>>20)
	}
	// Left by an earlier process that was killed.
	if err := removeFile(filepath.Join(abs, runtimeFile)); err != nil {
		return nil, err
	}
	return d, nil
}

// lockHolder names the process that has the lock, if it wrote its pid.
func lockHolder(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, lockFile))
	pid, convErr := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || convErr != nil {
		return ""
	}
	return fmt.Sprintf(" (pid %d)", pid)
}

func checkLayout(dir string) error {
	name := filepath.Join(dir, layoutFile)
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err := renameio.WriteFile(name, []byte(strconv.Itoa(Layout)+"\n"), 0o600); err != nil {
			return fmt.Errorf("the data directory %s cannot be written: %w", dir, err)
		}
		return nil
	}
	return parseLayout(dir, b, err)
}

// parseLayout checks the content of the layout file, or the error of reading it.
func parseLayout(dir string, b []byte, err error) error {
	if err != nil {
		return fmt.Errorf("the layout of the data directory: %w", err)
	}
	name := filepath.Join(dir, layoutFile)
	version, err := strconv.Atoi(strings.TrimSpace(string(b)))
	switch {
	case err != nil || version < 1:
		return fmt.Errorf("%s holds %.20q, not the number of a layout: is %s a platform's data directory?", name, b, dir)
	case version > Layout:
		return fmt.Errorf("the data in %s was written by a newer version of the platform (layout %d, this one knows %d): start that version, or name another directory in PLATFORM_DATA_DIR", dir, version, Layout)
	}
	return nil
}

func freeBytes(dir string) (uint64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return st.Bavail * uint64(st.Bsize), nil
}

// Path is the absolute path of the directory.
func (d *Dir) Path() string { return d.path }

// Close removes the file of WriteRuntime and unlocks the directory.
func (d *Dir) Close() error {
	return errors.Join(removeFile(filepath.Join(d.path, runtimeFile)), d.lock.Close())
}

func removeFile(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("clean the data directory: %w", err)
	}
	return nil
}

// Runtime describes a running platform to other commands.
type Runtime struct {
	PID       int               `json:"pid"`
	Started   time.Time         `json:"started"`
	Addresses map[string]string `json:"addresses"` // part → URL
}

// WriteRuntime announces the running platform to other commands.
func (d *Dir) WriteRuntime(r Runtime) error {
	return writeRecord(d.path, runtimeFile, r)
}

// ErrNotRunning means that no platform has the directory.
var ErrNotRunning = errors.New("no platform runs")

// ReadRuntime reads the announcement of the platform that has the directory. The one of a killed platform is ignored:
// the lock shows whether one runs.
func ReadRuntime(path string) (Runtime, error) {
	dir, err := filepath.Abs(path)
	if err != nil {
		return Runtime{}, fmt.Errorf("data directory %s: %w", path, err)
	}
	none := fmt.Errorf("%w in %s (PLATFORM_DATA_DIR names another directory)", ErrNotRunning, dir)
	if _, err := os.Stat(filepath.Join(dir, lockFile)); errors.Is(err, fs.ErrNotExist) {
		return Runtime{}, none
	}
	// A shared lock: concurrent readers do not block each other.
	lock := flock.New(filepath.Join(dir, lockFile), flock.SetFlag(os.O_RDONLY))
	free, err := lock.TryRLock()
	if err != nil {
		return Runtime{}, fmt.Errorf("the data directory %s cannot be read: %w", dir, err)
	}
	if free {
		return Runtime{}, errors.Join(none, lock.Close())
	}
	b, err := os.ReadFile(filepath.Join(dir, runtimeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Runtime{}, fmt.Errorf("the platform%s in %s is starting or stopping: ask again", lockHolder(dir), dir)
	}
	var r Runtime
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		return Runtime{}, fmt.Errorf("read %s: %w", filepath.Join(dir, runtimeFile), err)
	}
	return r, nil
}
