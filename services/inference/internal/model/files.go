package model

import (
	"bytes"
	"io/fs"
	"path"
	"time"
)

// Files is an artifact folder in memory, by slash-separated path: Open reads the bytes that were hashed.
type Files map[string][]byte

// Open implements fs.FS for the files; folders are not opened.
func (f Files) Open(name string) (fs.File, error) {
	data, ok := f[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &file{Reader: bytes.NewReader(data), name: path.Base(name)}, nil
}

// ReadFile implements fs.ReadFileFS without a copy. Do not change the result.
func (f Files) ReadFile(name string) ([]byte, error) {
	data, ok := f[name]
	if !ok {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	return data, nil
}

// file is an open file and its own description.
type file struct {
	*bytes.Reader
	name string
}

func (f *file) Stat() (fs.FileInfo, error) { return f, nil }
func (f *file) Close() error               { return nil }
func (f *file) Name() string               { return f.name }
func (f *file) Mode() fs.FileMode          { return 0o400 }
func (f *file) ModTime() time.Time         { return time.Time{} }
func (f *file) IsDir() bool                { return false }
func (f *file) Sys() any                   { return nil }
