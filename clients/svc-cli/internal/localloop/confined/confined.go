// Package confined reads files within one folder and nothing outside it. No link is
// followed, wherever it points: a link in place of a file or of a folder on the way to
// it is a fault. os.Root keeps a link that appears meanwhile from leading out.
package confined

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// Limits of reading.
const (
	MaxFileBytes = 256 << 20 // of a file that is only hashed
	MaxReadBytes = 1 << 30   // of all files of a folder together, however often one is named
	MaxEntries   = 10_000    // files and folders below a folder that is listed
	MaxDepth     = 64
)

// Fault is why something cannot be read. It names the path within the folder, never
// the folder, so that it is the same wherever the folder lies.
type Fault struct {
	Path   string
	Reason string // what follows the path in a sentence
	// Absent means that there is no file at the path.
	Absent bool
}

func (f *Fault) Error() string { return f.Path + " " + f.Reason }

// Folder is an open folder. It is for one goroutine.
type Folder struct {
	root *os.Root
	name string // within the folder that was opened first; "" is that one
	read int64  // bytes, since it was opened
}

// Open opens a folder by a path of the caller's own, which may pass through links.
func Open(dir string) (*Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("the folder %s cannot be opened: %w", dir, plainError(err))
	}
	return &Folder{root: root}, nil
}

// Close ends the use of the folder.
func (f *Folder) Close() error { return f.root.Close() }

func (f *Folder) fault(name, reason string) *Fault {
	return &Fault{Path: path.Join(f.name, name), Reason: reason}
}

// lstat returns the file info of name, and refuses a link at it or on the way to it.
func (f *Folder) lstat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, f.fault(name, "is no path within the folder")
	}
	var info fs.FileInfo
	for i := 0; i <= len(name); i++ {
		if i < len(name) && name[i] != '/' {
			continue
		}
		part, err := f.root.Lstat(name[:i])
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, &Fault{Path: path.Join(f.name, name), Reason: "does not exist", Absent: true}
		case err != nil:
			return nil, f.fault(name, "cannot be read: "+plainError(err).Error())
		case part.Mode()&fs.ModeSymlink != 0:
			return nil, f.fault(name[:i], "is a symbolic link, which is not followed")
		case i < len(name) && !part.IsDir():
			return nil, f.fault(name[:i], "is no folder")
		}
		info = part
	}
	return info, nil
}

// Sub opens a folder within this one.
func (f *Folder) Sub(name string) (*Folder, error) {
	info, err := f.lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, f.fault(name, "is no folder")
	}
	sub, err := f.root.OpenRoot(name)
	if err != nil {
		return nil, f.fault(name, "cannot be opened: "+plainError(err).Error())
	}
	// The opened folder must be the one that was checked.
	if now, err := sub.Stat("."); err != nil || !os.SameFile(info, now) {
		_ = sub.Close()
		return nil, f.fault(name, "changed while it was opened")
	}
	return &Folder{root: sub, name: path.Join(f.name, name)}, nil
}

func (f *Folder) open(name string) (*os.File, fs.FileInfo, error) {
	info, err := f.lstat(name)
	if err != nil {
		return nil, nil, err
	}
	// Before opening, which would wait for ever on a pipe without a writer.
	if !info.Mode().IsRegular() {
		return nil, nil, f.fault(name, "is no regular file")
	}
	file, err := f.root.Open(name)
	if err != nil {
		return nil, nil, f.fault(name, "cannot be opened: "+plainError(err).Error())
	}
	if now, err := file.Stat(); err != nil || !os.SameFile(info, now) {
		_ = file.Close()
		return nil, nil, f.fault(name, "changed while it was opened")
	}
	return file, info, nil
}

// Read returns the content of a regular file of at most most bytes.
func (f *Folder) Read(name string, most int64) ([]byte, error) {
	file, _, err := f.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	// One byte more than is taken, so that a file that grows meanwhile is refused too.
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return nil, f.fault(name, "cannot be read: "+plainError(err).Error())
	}
	if int64(len(data)) > most {
		return nil, f.fault(name, fmt.Sprintf("is larger than %d bytes", most))
	}
	return data, nil
}

// Content is the content of a file: its digest, its size, and its bytes if they are
// within the requested limit.
type Content struct {
	Digest string
	Size   int64
	Bytes  []byte // nil if larger than the requested limit
}

// Inspect reads a regular file of at most MaxFileBytes, hashes all of it and keeps its
// bytes if they are at most most.
func (f *Folder) Inspect(name string, most int64) (Content, error) {
	file, info, err := f.open(name)
	if err != nil {
		return Content{}, err
	}
	defer func() { _ = file.Close() }()
	switch {
	case info.Size() > MaxFileBytes:
		return Content{}, f.fault(name, fmt.Sprintf("is larger than %d bytes", int64(MaxFileBytes)))
	case f.read+info.Size() > MaxReadBytes:
		return Content{}, f.fault(name, fmt.Sprintf("is not read: of one folder %d bytes are read", int64(MaxReadBytes)))
	}
	f.read += info.Size()
	sum := sha256.New()
	kept := &keeper{most: most, data: []byte{}}
	n, err := io.Copy(io.MultiWriter(sum, kept), io.LimitReader(file, MaxFileBytes+1))
	if err != nil {
		return Content{}, f.fault(name, "cannot be read: "+plainError(err).Error())
	}
	if n > MaxFileBytes {
		return Content{}, f.fault(name, fmt.Sprintf("is larger than %d bytes", int64(MaxFileBytes)))
	}
	return Content{Digest: "sha256:" + hex.EncodeToString(sum.Sum(nil)), Size: n, Bytes: kept.data}, nil
}

// keeper keeps its input until that is more than most.
type keeper struct {
	most int64
	data []byte
}

func (k *keeper) Write(p []byte) (int, error) {
	if k.data != nil && int64(len(k.data)+len(p)) > k.most {
		k.data = nil
	}
	if k.data != nil {
		k.data = append(k.data, p...)
	}
	return len(p), nil
}

// Listing holds the entries below a folder, by path.
type Listing struct {
	Files []string // regular files
	Other []string // links, pipes and what else a candidate cannot hold
}

// List names every file below the folder, sorted. Empty folders hold nothing.
func (f *Folder) List() (Listing, error) {
	var out Listing
	count := 0
	var walk func(dir string, depth int) error
	walk = func(dir string, depth int) error {
		if depth > MaxDepth {
			return f.fault(dir, fmt.Sprintf("lies more than %d folders deep", MaxDepth))
		}
		names, err := f.names(dir, MaxEntries-count)
		if err != nil {
			return err
		}
		count += len(names)
		for _, base := range names {
			name := path.Join(dir, base)
			info, err := f.lstat(name)
			var fault *Fault
			switch {
			case errors.As(err, &fault) && strings.HasPrefix(fault.Reason, "is a symbolic link"):
				out.Other = append(out.Other, name)
			case err != nil:
				return err
			case info.IsDir():
				if err := walk(name, depth+1); err != nil {
					return err
				}
			case info.Mode().IsRegular():
				out.Files = append(out.Files, name)
			default:
				out.Other = append(out.Other, name)
			}
		}
		return nil
	}
	if err := walk(".", 0); err != nil {
		return Listing{}, err
	}
	slices.Sort(out.Files)
	slices.Sort(out.Other)
	return out, nil
}

// names reads a folder's entries, at most most of them.
func (f *Folder) names(dir string, most int) ([]string, error) {
	d, err := f.root.Open(dir)
	if err != nil {
		return nil, f.fault(dir, "cannot be opened: "+plainError(err).Error())
	}
	defer func() { _ = d.Close() }()
	names, err := d.Readdirnames(most + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, f.fault(dir, "cannot be read: "+plainError(err).Error())
	}
	if len(names) > most {
		return nil, f.fault(".", fmt.Sprintf("holds more than %d files and folders", MaxEntries))
	}
	slices.Sort(names)
	return names, nil
}

// Contains reports whether the file or folder at name is other or lies within it, however
// either is spelled.
func (f *Folder) Contains(other, name string) bool {
	outer, err := f.root.Stat(other)
	if err != nil {
		return false // what does not exist contains nothing
	}
	for p := name; ; p = path.Dir(p) {
		if inner, err := f.root.Stat(p); err == nil && os.SameFile(outer, inner) {
			return true
		}
		if p == "." {
			return false
		}
	}
}

// plainError removes the operation and path from an error, since they are specific to the
// machine.
func plainError(err error) error {
	var where *fs.PathError
	if errors.As(err, &where) {
		return where.Err
	}
	return err
}
