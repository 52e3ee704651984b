package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/mlp-platform/platform/libs/cli/fault"
)

// lockRetry is how often a waiting program tries to lock the file again.
const lockRetry = 50 * time.Millisecond

// Update changes the file at path: change gets its current content, and no other program that uses Update writes it at
// the same time. A change that fails, or changes nothing, writes nothing. The context limits the wait for the lock.
func Update(ctx context.Context, path string, change func(*File) error) error {
	if path != "" { // without a file, Save says so
		unlock, err := lock(ctx, path)
		if err != nil {
			return err
		}
		defer unlock()
	}
	f, err := Load(path)
	if err != nil {
		return err
	}
	before, err := toml.Marshal(f)
	if err != nil {
		return fmt.Errorf("encode configuration: %w", err)
	}
	if err := change(f); err != nil {
		return err
	}
	after, err := toml.Marshal(f)
	if err != nil {
		return fmt.Errorf("encode configuration: %w", err)
	}
	if bytes.Equal(before, after) {
		return nil
	}
	return f.Save()
}

// lock keeps other programs from writing the file at path until unlock, or until the process ends. The lock is on a file
// beside it, because Save replaces the file itself.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fault.New("config_unwritable", "cannot make the configuration folder: %v", err)
	}
	file, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fault.New("config_unwritable", "cannot lock the configuration file: %v", err)
	}
	for {
		locked, err := tryLock(file)
		if locked {
			return func() { file.Close() }, nil
		}
		if err != nil {
			file.Close()
			return nil, fault.New("config_unwritable", "cannot lock the configuration file: %v", err)
		}
		select {
		case <-time.After(lockRetry):
		case <-ctx.Done():
			file.Close()
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil, fault.New("config_locked", "another program keeps the configuration file locked: %s.lock", path)
			}
			return nil, ctx.Err()
		}
	}
}
