// Package configdir reads the documents that a config names by relative paths. They must lie in the config's folder: a
// config from another person must not read other files of the user who runs it, not even through a link.
package configdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
)

// Codes of files that are refused.
const (
	OutsideFolder = "path_outside_config_folder"
	Unreadable    = "input_read_error"
	SameFile      = "repeated_file"
)

// maxPath limits the characters of a path in a config.
const maxPath = 1024

// IsRelative reports whether name is a path, with slashes, that stays below the folder it starts in.
func IsRelative(name string) bool {
	return name != "" && len(name) <= maxPath && !strings.ContainsAny(name, "\\\x00") && filepath.IsLocal(name) && path.Clean(name) != "."
}

// WhatRelative describes a valid path, see IsRelative.
const WhatRelative = "a relative path within the config's folder, with slashes"

// Folder is the folder of one config.
type Folder struct {
	dir  string
	root *os.Root
}

// Open opens the folder that a config file lies in.
func Open(config string) (*Folder, error) {
	dir := filepath.Dir(config)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, &closed.Fault{Code: Unreadable, Detail: fmt.Sprintf("the folder of the config cannot be opened: %v", err)}
	}
	return &Folder{dir: dir, root: root}, nil
}

// Close closes the folder.
func (f *Folder) Close() { _ = f.root.Close() }

// Path is the path of the file that name leads to, for people and for other checks of paths.
func (f *Folder) Path(name string) string { return filepath.Join(f.dir, filepath.FromSlash(name)) }

// Read reads a document: a regular file of at most 2 MiB whose root is an object.
func (f *Folder) Read(name string) (canon.Value, error) {
	data, err := f.bytes(name)
	if err != nil {
		return nil, err
	}
	v, err := canon.Parse(data, canon.MaxBytes(canon.MaxFile), canon.ObjectRoot())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path(name), err)
	}
	return v, nil
}

func (f *Folder) bytes(name string) ([]byte, error) {
	if !IsRelative(name) {
		return nil, &closed.Fault{Code: OutsideFolder, Detail: "expected " + WhatRelative}
	}
	name = filepath.FromSlash(name)
	// Before opening, which would wait for ever on a pipe without a writer.
	info, err := f.root.Stat(name)
	if err != nil {
		return nil, f.unreadable(name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, f.unreadable(name, errors.New("no regular file"))
	}
	file, err := f.root.Open(name)
	if err != nil {
		return nil, f.unreadable(name, err)
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, canon.MaxFile+1))
	if err != nil {
		return nil, f.unreadable(name, err)
	}
	return data, nil
}

// unreadable distinguishes a missing file from a link that leads out of the folder, as far as the system allows.
func (f *Folder) unreadable(name string, err error) error {
	var where *fs.PathError
	if errors.As(err, &where) {
		err = where.Err
	}
	if strings.Contains(err.Error(), "escapes") {
		return &closed.Fault{Code: OutsideFolder, Detail: fmt.Sprintf("%s leads out of the config's folder", f.Path(name))}
	}
	return &closed.Fault{Code: Unreadable, Detail: fmt.Sprintf("cannot read %s: %v", f.Path(name), err)}
}

// Distinct returns a fault if two of the names mean one file, by their text or through links. A name that cannot be
// checked is left to Read.
func (f *Folder) Distinct(names ...string) error {
	for i, a := range names {
		for _, b := range names[:i] {
			if path.Clean(a) == path.Clean(b) || f.same(a, b) {
				return &closed.Fault{Code: SameFile, Detail: fmt.Sprintf("%s and %s are one file", f.Path(b), f.Path(a))}
			}
		}
	}
	return nil
}

func (f *Folder) same(a, b string) bool {
	x, err := f.root.Stat(filepath.FromSlash(a))
	if err != nil {
		return false
	}
	y, err := f.root.Stat(filepath.FromSlash(b))
	return err == nil && os.SameFile(x, y)
}
