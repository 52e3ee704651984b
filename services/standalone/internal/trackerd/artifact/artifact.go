// Package artifact keeps files below one folder. No path leads out of it, not
// through symbolic links either. A file appears whole, on disk, or not at all.
package artifact

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

var (
	// ErrPath means that a path is not a plain relative one.
	ErrPath = errors.New("invalid path")
	// ErrTooLarge means that a file exceeds the bound.
	ErrTooLarge = errors.New("file too large")
	// ErrFull means that the disk or quota is used up.
	ErrFull = errors.New("no space left for artifacts")
	// ErrFolder means that a folder is where a file was meant.
	ErrFolder = errors.New("the path is a folder")
	// ErrFile means that a file is where a folder was meant.
	ErrFile = errors.New("a part of the path is a file")
	// ErrTooMany means that a folder has more entries than are listed.
	ErrTooMany = errors.New("too many files in one folder")
)

const (
	filesDir   = "files"
	uploadsDir = "uploads"
	maxEntries = 50_000
)

// Store keeps files. It is safe for concurrent use; of two writers of one path
// the later to finish wins.
type Store struct {
	root    *os.Root
	maxFile int64
	create  func(name string) (*os.File, error) // of a new file below root
}

// Open opens the store in dir, which is created if absent, and removes partial uploads left by a crash. maxFile limits
// a file in bytes.
func Open(dir string, maxFile int64) (*Store, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("artifact folder: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("artifact folder: %w", err)
	}
	s := &Store{root: root, maxFile: maxFile}
	s.create = func(name string) (*os.File, error) {
		return root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	}
	if err := errors.Join(root.RemoveAll(uploadsDir), root.MkdirAll(filesDir, 0o750), root.Mkdir(uploadsDir, 0o750)); err != nil {
		return nil, errors.Join(fmt.Errorf("artifact folder: %w", err), root.Close())
	}
	return s, nil
}

// Close gives the folder back.
func (s *Store) Close() error { return s.root.Close() }

// Entry is a file or folder.
type Entry struct {
	Name string
	Dir  bool
	Size int64
}

// List lists a folder by name; "" is the root. A path that is absent or a file
// has no entries.
func (s *Store) List(p string) ([]Entry, error) {
	at := filesDir
	if p != "" {
		if err := checkPath(p); err != nil {
			return nil, err
		}
		at = path.Join(filesDir, p)
	}
	d, err := s.root.Open(at)
	if err != nil {
		return nil, ignoreAbsent(err)
	}
	defer d.Close()
	entries, err := d.ReadDir(maxEntries + 1)
	if err != nil && err != io.EOF {
		return nil, ignoreAbsent(err)
	}
	if len(entries) > maxEntries {
		return nil, fmt.Errorf("%w: %s has over %d", ErrTooMany, p, maxEntries)
	}
	out := make([]Entry, 0, len(entries))
	for _, e := range entries {
		// Through the root, so that links are followed as reading would, or not at all.
		info, err := s.root.Stat(path.Join(at, e.Name()))
		if err != nil {
			continue // gone since, or a link out of the root
		}
		out = append(out, Entry{e.Name(), info.IsDir(), info.Size()})
	}
	slices.SortFunc(out, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// ignoreAbsent returns nil for errors that mean "not found".
func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}

// Open opens a file to read; fs.ErrNotExist if there is none.
func (s *Store) Open(p string) (*os.File, fs.FileInfo, error) {
	if err := checkPath(p); err != nil {
		return nil, nil, err
	}
	f, err := s.root.Open(path.Join(filesDir, p))
	if errors.Is(err, syscall.ENOTDIR) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = ErrFolder
	case !info.Mode().IsRegular():
		err = fs.ErrNotExist
	default:
		return f, info, nil
	}
	_ = f.Close() // only opened to read
	return nil, nil, err
}

// Write stores the content of r at p. After it returns nil the file survives a power failure; after an error the path
// is unchanged.
func (s *Store) Write(p string, r io.Reader) error {
	if err := checkPath(p); err != nil {
		return err
	}
	tmp := path.Join(uploadsDir, rand.Text())
	if err := s.fill(tmp, r); err != nil {
		return errors.Join(translateError(err), s.drop(tmp))
	}
	to := path.Join(filesDir, p)
	if err := s.place(tmp, to); err != nil {
		return errors.Join(translateError(err), s.drop(tmp))
	}
	return nil
}

func (s *Store) drop(tmp string) error {
	if err := s.root.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// fill writes r's bytes to a file, synced to disk.
func (s *Store) fill(name string, r io.Reader) (err error) {
	f, err := s.create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	n, err := io.Copy(f, io.LimitReader(r, s.maxFile))
	if err != nil {
		return err
	}
	if n == s.maxFile {
		if more, _ := io.ReadFull(r, make([]byte, 1)); more > 0 {
			return fmt.Errorf("%w: at most %d bytes are kept", ErrTooLarge, s.maxFile)
		}
	}
	return f.Sync()
}

// place moves a finished file to its path and makes the names on the way last.
func (s *Store) place(tmp, to string) error {
	if info, err := s.root.Stat(to); err == nil && info.IsDir() {
		return ErrFolder
	}
	dir := path.Dir(to)
	if err := s.root.MkdirAll(dir, 0o750); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return ErrFile
		}
		return err
	}
	if err := s.root.Rename(tmp, to); err != nil {
		return err
	}
	for ; ; dir = path.Dir(dir) {
		if err := s.syncDir(dir); err != nil {
			return err
		}
		if dir == filesDir {
			return nil
		}
	}
}

func (s *Store) syncDir(p string) error {
	d, err := s.root.Open(p)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Delete removes a file or a folder with all it holds; nothing there is no error.
func (s *Store) Delete(p string) error {
	if err := checkPath(p); err != nil {
		return err
	}
	return ignoreAbsent(s.root.RemoveAll(path.Join(filesDir, p)))
}

func translateError(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w", ErrFull, err)
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w: %w", ErrFile, err)
	case errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("%w: %w", ErrFolder, err)
	}
	return err
}
