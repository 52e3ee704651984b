package backup

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/klauspost/compress/zstd"

	"github.com/mlp-platform/platform/services/standalone/internal/datadir"
)

// maxText bounds backup.json and SHA256SUMS, in bytes; a million files have sums of 150 MB.
const maxText = 256 << 20

// Restore makes the data directory dir of the backup at file. dir must be absent or empty; it appears whole, with every
// digest checked, or not at all.
func Restore(ctx context.Context, file, dir string) (_ Result, err error) {
	dir, err = resolve(dir)
	if err != nil {
		return Result{}, err
	}
	if err := checkEmpty(dir); err != nil {
		return Result{}, err
	}
	in, err := os.Open(file)
	if err != nil {
		return Result{}, fmt.Errorf("the backup cannot be read: %w", err)
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return Result{}, err
	}
	// Next to the directory, so that a rename puts it in place.
	next, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".restore-*")
	if err != nil {
		return Result{}, fmt.Errorf("the data directory cannot be made; name another in PLATFORM_DATA_DIR: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(next)) }()
	r, err := newReader(interruptible{ctx, in}, next, dataDirectory)
	if err != nil {
		return Result{}, err
	}
	defer r.close()
	if err := r.read(); err != nil {
		if ctx.Err() != nil {
			return Result{}, ctx.Err()
		}
		return Result{}, fmt.Errorf("the backup %s is refused: %w", file, err)
	}
	if err := syncFolders(next); err != nil {
		return Result{}, err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Result{}, fmt.Errorf("the data directory cannot be put in place: %w", err)
	}
	if err := os.Rename(next, dir); err != nil {
		return Result{}, fmt.Errorf("the data directory cannot be put in place: %w", err)
	}
	return r.result, syncFolder(filepath.Dir(dir))
}

// resolve follows links, so that the data lands where they lead.
func resolve(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return abs, nil
	}
	return real, err
}

// syncFolders makes names durable; the files were made so as they were written.
func syncFolders(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return syncFolder(path)
	})
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the data directory %s cannot be read: %w", dir, err)
	}
	if above, err := device(filepath.Dir(dir)); err != nil {
		return err
	} else if own, err := device(dir); err != nil || own != above {
		return errors.Join(err, fmt.Errorf("the data directory %s is the root of a volume, which cannot be put in place as a whole: name a folder in it in PLATFORM_DATA_DIR", dir))
	}
	if len(entries) > 0 {
		return fmt.Errorf("the data directory %s is not empty: a backup is restored into an empty one; name it in PLATFORM_DATA_DIR", dir)
	}
	return nil
}

func device(path string) (uint64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Sys().(*syscall.Stat_t).Dev, nil
}

// layout describes the contents of a file of one kind.
type layout struct {
	check   func(About) error // of its kind and format
	allows  func(a About, name string) bool
	mounted func(name string) bool // a folder that is there already
	// keepsOwner selects files that keep their owner; the others become the restoring user's.
	keepsOwner func(name string) bool
	needs      string // an entry without which there is nothing to restore
	missing    string // the error message for that
}

// dataDirectory is the layout of a backup of one process.
var dataDirectory = layout{
	check: func(a About) error {
		switch {
		case a.Kind != "":
			return fmt.Errorf("it is of %s, not of a data directory: restore it with scripts/up.sh restore", a.Kind)
		case a.Layout > datadir.Layout:
			return newerFormat(a)
		}
		return nil
	},
	allows:  func(About, string) bool { return true },
	mounted: func(string) bool { return false },
	keepsOwner: func(name string) bool { // the database's, which runs as a separate user
		top, _, _ := strings.Cut(name, "/")
		return top == "postgres"
	},
	needs:   "layout",
	missing: "it holds no data directory",
}

func newerFormat(a About) error {
	return fmt.Errorf("version %s wrote it, in a newer format than this program reads; use that version", a.Version)
}

type reader struct {
	layout
	tar    *tar.Reader
	packed *zstd.Decoder
	root   *os.Root // confines entries, by name or link; nil: nothing is written
	sums   map[string]string
	folder []*tar.Header // their modes are set last: a folder may be closed to writing
	result Result
}

// newReader reads the file in to the folder next, or only reads it if that is empty.
func newReader(in io.Reader, next string, of layout) (*reader, error) {
	packed, err := zstd.NewReader(in, zstd.WithDecoderMaxMemory(128<<20))
	if err != nil {
		return nil, err
	}
	r := &reader{layout: of, tar: tar.NewReader(packed), packed: packed, sums: map[string]string{}}
	if next == "" {
		return r, nil
	}
	if r.root, err = os.OpenRoot(next); err != nil {
		packed.Close()
		return nil, err
	}
	return r, nil
}

func (r *reader) close() {
	r.packed.Close()
	if r.root != nil {
		_ = r.root.Close()
	}
}

func (r *reader) read() error {
	if err := r.readAbout(); err != nil {
		return err
	}
	for {
		h, err := r.tar.Next()
		if errors.Is(err, io.EOF) {
			return errors.New("it is cut off: its list of digests is missing")
		}
		if err != nil {
			return err
		}
		if h.Name == sumsAs {
			break
		}
		if err := r.extract(h); err != nil {
			return err
		}
	}
	if err := r.checkSums(); err != nil {
		return err
	}
	if h, err := r.tar.Next(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("something follows its list of digests: %v, %w", h, err)
	}
	if r.sums[dataRoot+r.needs] == "" {
		return errors.New(r.missing)
	}
	for _, h := range r.folder {
		if err := r.root.Chmod(localName(h), fs.FileMode(h.Mode).Perm()); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) readAbout() error {
	h, err := r.tar.Next()
	if err != nil || h.Name != aboutAs {
		return errors.New("it is no backup of a platform")
	}
	if err := json.NewDecoder(io.LimitReader(r.tar, maxText)).Decode(&r.result.About); err != nil {
		return fmt.Errorf("%s: %w", aboutAs, err)
	}
	if a := r.result.About; a.Format != format {
		return newerFormat(a)
	}
	return r.check(r.result.About)
}

func localName(h *tar.Header) string {
	return filepath.FromSlash(strings.TrimSuffix(strings.TrimPrefix(h.Name, dataRoot), "/"))
}

func (r *reader) extract(h *tar.Header) error {
	name := localName(h)
	if !strings.HasPrefix(h.Name, dataRoot) || !filepath.IsLocal(name) || path.Clean(h.Name) != strings.TrimSuffix(h.Name, "/") {
		return fmt.Errorf("the entry %q leads out of the data directory", h.Name)
	}
	if !r.allows(r.result.About, filepath.ToSlash(name)) {
		return fmt.Errorf("the entry %q is of no volume that it lists", h.Name)
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if r.root == nil {
			return nil
		}
		r.folder = append(r.folder, h)
		if err := r.root.Mkdir(name, 0o700); err != nil && !(r.mounted(filepath.ToSlash(name)) && errors.Is(err, fs.ErrExist)) {
			return err
		}
	case tar.TypeSymlink:
		if r.root == nil {
			return nil
		}
		if err := r.root.Symlink(h.Linkname, name); err != nil {
			return err
		}
	case tar.TypeReg:
		if err := r.readFile(h, name); err != nil {
			return err
		}
	default:
		return fmt.Errorf("the entry %q is neither file, folder nor link", h.Name)
	}
	if r.root != nil && r.keepsOwner(filepath.ToSlash(name)) && os.Geteuid() == 0 {
		return r.root.Lchown(name, h.Uid, h.Gid)
	}
	return nil
}

// readFile takes the digest of a file's content, and writes it.
func (r *reader) readFile(h *tar.Header, name string) error {
	if _, twice := r.sums[h.Name]; twice {
		return fmt.Errorf("the entry %q exists twice", h.Name)
	}
	sum := sha256.New()
	write := r.extractFile
	if r.root == nil {
		write = func(_ *tar.Header, _ string, content io.Reader) (int64, error) { return io.Copy(io.Discard, content) }
	}
	n, err := write(h, name, io.TeeReader(r.tar, sum))
	if err != nil {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	r.sums[h.Name] = fmt.Sprintf("%x", sum.Sum(nil))
	r.result.Files++
	r.result.Bytes += n
	return nil
}

func (r *reader) extractFile(h *tar.Header, name string, content io.Reader) (int64, error) {
	mode := fs.FileMode(h.Mode).Perm()
	f, err := r.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(f, content)
	return n, errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
}

// checkSums compares the list with the extracted files: the same names, with the same digests.
func (r *reader) checkSums() error {
	raw, err := io.ReadAll(io.LimitReader(r.tar, maxText))
	if err != nil {
		return err
	}
	listed := 0
	for line := range strings.Lines(string(raw)) {
		digest, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || r.sums[name] != digest {
			return fmt.Errorf("%s differs from its digest", name)
		}
		listed++
	}
	if listed != len(r.sums) {
		return fmt.Errorf("it lists %d files and holds %d", listed, len(r.sums))
	}
	return nil
}
