package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
)

// MinFree is the space on the disk that a start needs, in bytes.
const MinFree = minFree

// Inspection is what a start would find in a data directory.
type Inspection struct {
	Path   string // absolute
	Exists bool
	// OwnerErr, ModeErr and ParentErr are why others may read or replace the directory; ContentErr is what they may
	// have left in it.
	OwnerErr, ModeErr, ParentErr, ContentErr error
	LayoutErr                                error
	Free                                     uint64 // bytes on its disk
	FreeErr                                  error
	// Held reports whether a platform uses the directory; Holder names its process, if known.
	Held   bool
	Holder string
	// Runtime describes the platform that uses it; RuntimeErr is why there is no description.
	Runtime    Runtime
	RuntimeErr error
	// Killed reports that the last platform did not remove its runtime.json.
	Killed bool
}

// Inspect looks at a data directory. It changes nothing.
func Inspect(path string) (i Inspection, err error) {
	if i.Path, err = filepath.Abs(path); err != nil {
		return i, fmt.Errorf("data directory %s: %w", path, err)
	}
	info, err := os.Stat(i.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return i, nil
	}
	if err != nil {
		return i, fmt.Errorf("the data directory cannot be read: %w", err)
	}
	if !info.IsDir() {
		return i, fmt.Errorf("%s is not a directory", i.Path)
	}
	if _, err := os.ReadDir(i.Path); err != nil {
		return i, fmt.Errorf("%s belongs to user %d: %w", i.Path, ownerOf(info), err)
	}
	i.Exists = true
	if owner := ownerOf(info); owner != os.Geteuid() {
		i.OwnerErr = fmt.Errorf("%s belongs to user %d, who can read every secret in it; this process runs as user %d", i.Path, owner, os.Geteuid())
	}
	_, unchecked := os.Lstat(filepath.Join(i.Path, uncheckedFile))
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		i.ModeErr = fmt.Errorf("others may enter %s (mode %04o)", i.Path, mode)
	}
	if i.ModeErr != nil || unchecked == nil {
		i.ContentErr = checkOwners(i.Path)
	}
	i.ParentErr = checkAbove(i.Path)
	b, err := os.ReadFile(filepath.Join(i.Path, layoutFile))
	if !errors.Is(err, fs.ErrNotExist) { // a start writes it
		i.LayoutErr = parseLayout(i.Path, b, err)
	}
	i.Free, i.FreeErr = freeBytes(i.Path)
	i.Runtime, i.RuntimeErr = ReadRuntime(i.Path)
	i.Held = !errors.Is(i.RuntimeErr, ErrNotRunning)
	if i.Held {
		i.Holder = lockHolder(i.Path)
	} else {
		i.RuntimeErr = nil
		_, left := os.Lstat(filepath.Join(i.Path, runtimeFile))
		i.Killed = left == nil
	}
	return i, nil
}

// Names of the files that record what happened, for diagnosis alone: nothing depends on them.
const (
	readyFile  = "last-ready.json"
	backupFile = "last-backup.json"
)

// Ready records the last start that became ready.
type Ready struct {
	Version string    `json:"version"` // of the program
	At      time.Time `json:"at"`
	// Schemas has the version of each set of migrations, by schema and set.
	Schemas map[string]map[string]int `json:"schemas"`
}

// Backup records the last backup of the directory.
type Backup struct {
	File string    `json:"file"` // absolute
	At   time.Time `json:"at"`
}

// WriteReady records a start that became ready.
func (d *Dir) WriteReady(r Ready) error { return writeRecord(d.path, readyFile, r) }

// ReadReady reads the record of WriteReady; fs.ErrNotExist if no start has become ready.
func ReadReady(dir string) (r Ready, err error) {
	err = readRecord(dir, readyFile, &r)
	return r, err
}

// WriteBackup records a backup of the directory dir.
func WriteBackup(dir string, b Backup) error { return writeRecord(dir, backupFile, b) }

// ReadBackup reads the record of WriteBackup; fs.ErrNotExist if none was made.
func ReadBackup(dir string) (b Backup, err error) {
	err = readRecord(dir, backupFile, &b)
	return b, err
}

func writeRecord(dir, name string, record any) error {
	b, err := json.MarshalIndent(record, "", "  ")
	if err == nil {
		err = renameio.WriteFile(filepath.Join(dir, name), append(b, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func readRecord(dir, name string, into any) error {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%s is damaged: %w", filepath.Join(dir, name), err)
	}
	return nil
}
