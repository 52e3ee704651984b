package config

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/mlp-platform/platform/libs/cli/fault"
)

// Writers at the same time lose nothing of each other.
func TestUpdateKeepsEveryChange(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "platform", "config.toml")
	key, err := Find("serving")
	if err != nil {
		t.Fatal(err)
	}
	const writers = 8
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			err := Update(t.Context(), path, func(f *File) error { return f.Set(key, "c"+strconv.Itoa(i), "http://localhost:1") })
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	f, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.ContextNames(); len(got) != writers {
		t.Errorf("got the contexts %v, want %d", got, writers)
	}
}

func TestUpdateWritesNoFailedOrEmptyChange(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.toml")
	failed := errors.New("failed")
	err := Update(t.Context(), path, func(f *File) error {
		f.ActiveContext = "prod"
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("got %v, want the change's own error", err)
	}
	if err := Update(t.Context(), path, func(*File) error { return nil }); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("got %v, want no file", err)
	}
}

// A program that waits for the lock can be interrupted, and reports a deadline with a separate sentence.
func TestUpdateEndsWithItsContext(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.toml")
	unlock, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	change := func(*File) error {
		t.Error("got a change of a locked file, want none")
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Update(ctx, path, change); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 1)
	defer cancel()
	if err := Update(ctx, path, change); err == nil || fault.From(err).Code != "config_locked" {
		t.Errorf("got %v, want the code config_locked", err)
	}
}
