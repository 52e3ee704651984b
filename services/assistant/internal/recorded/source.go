package recorded

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/ulikunitz/xz"
)

// Limits on reading a recording.
const (
	maxFiles = 200_000
	maxFile  = 128 << 20 // of one file; a longer log keeps its end, a longer list is left out
	maxTotal = 2 << 30   // of all files together, decompressed
	maxDepth = 40        // folders above a file
)

// errTooLarge stops the reading of a recording beyond its limits.
var errTooLarge = errors.New("the recording is too large")

// visitor is called with each file; the path has slashes and no "..".
type visitor func(name string, content io.Reader) error

// budget counts the bytes and files read.
type budget struct {
	files, bytes int64
	total        int64 // limit on bytes
}

// take limits a reader to the rest of the budget; reading beyond it is an error, not an end.
func (b *budget) take(r io.Reader) io.Reader { return &counted{b, r} }

type counted struct {
	budget *budget
	from   io.Reader
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	if c.budget.bytes += int64(n); c.budget.bytes > c.budget.total {
		return n, fmt.Errorf("%w: over %d MiB of files", errTooLarge, c.budget.total>>20)
	}
	return n, err
}

// visit counts a file and passes it on if its name is to be read.
func (b *budget) visit(name string, content io.Reader, to visitor) error {
	if b.files++; b.files > maxFiles {
		return fmt.Errorf("%w: over %d files", errTooLarge, maxFiles)
	}
	clean := path.Clean(strings.ReplaceAll(name, `\`, "/"))
	if !fs.ValidPath(clean) || strings.Count(clean, "/") > maxDepth || strings.HasPrefix(path.Base(clean), ".") {
		return nil
	}
	return to(clean, b.take(content))
}

// walk calls to with every regular file of a directory or an archive. It skips links, devices and other special files.
func walk(location string, to visitor) error {
	info, err := os.Stat(location)
	if err != nil {
		return err
	}
	b := &budget{total: maxTotal}
	if info.IsDir() {
		return walkDirectory(location, b, to)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is neither a directory nor a file", location)
	}
	f, err := os.Open(location)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	return walkArchive(f, info.Size(), b, to)
}

func walkDirectory(location string, b *budget, to visitor) error {
	root, err := os.OpenRoot(location) // confines paths to the directory
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // it was only read
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		f, err := root.Open(name)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // it was only read
		return b.visit(name, f, to)
	})
}

// file is an archive with random access.
type file interface {
	io.Reader
	io.ReaderAt
}

// walkArchive reads an archive, whose first bytes identify its format.
func walkArchive(f file, size int64, b *budget, to visitor) error {
	head := make([]byte, 6)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte("PK")):
		return walkZip(f, size, b, to)
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		r, err := gzip.NewReader(f)
		if err != nil {
			return fmt.Errorf("read gzip: %w", err)
		}
		return walkTar(r, b, to)
	case bytes.HasPrefix(head, []byte{0xfd, '7', 'z', 'X', 'Z', 0}):
		// The dictionary size limits the memory that an archive can make this process allocate.
		r, err := xz.ReaderConfig{DictCap: maxFile}.NewReader(bufio.NewReader(f))
		if err != nil {
			return fmt.Errorf("read xz: %w", err)
		}
		return walkTar(r, b, to)
	}
	return walkTar(f, b, to)
}

func walkTar(r io.Reader, b *budget, to visitor) error {
	// Bytes between the files count, too: they are decompressed as well.
	archive := tar.NewReader(&counted{&budget{total: b.total}, r})
	for {
		h, err := archive.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the archive, which must be tar, tar.gz, tar.xz or zip: %w", err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if err := b.visit(h.Name, archive, to); err != nil {
			return err
		}
	}
}

func walkZip(f io.ReaderAt, size int64, b *budget, to visitor) error {
	archive, err := zip.NewReader(f, size)
	if err != nil {
		return fmt.Errorf("read zip: %w", err)
	}
	for _, entry := range archive.File {
		if !entry.Mode().IsRegular() {
			continue
		}
		content, err := entry.Open()
		if err != nil {
			return fmt.Errorf("read %q of the zip: %w", entry.Name, err)
		}
		err = b.visit(entry.Name, content, to)
		_ = content.Close() // it was only read
		if err != nil {
			return err
		}
	}
	return nil
}

// readFile reads a whole file, or the end of a longer one; whole reports which.
func readFile(r io.Reader, most int) (data []byte, whole bool, err error) {
	data, err = io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err != nil || len(data) <= most {
		return data, true, err
	}
	end := data
	chunk := make([]byte, 1<<20)
	for {
		n, err := r.Read(chunk)
		if end = append(end, chunk[:n]...); len(end) > 2*most {
			end = append(end[:0], end[len(end)-most:]...)
		}
		if err == io.EOF {
			return end[max(0, len(end)-most):], false, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
}
