package forge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// Limits of a pack's unfolded size, in bytes.
const (
	maxObject   = 128 << 20
	maxTree     = 8 << 20 // of a commit, tag or folder: these are held in memory
	maxUnpacked = 1 << 30
	maxObjects  = 1_000_000
)

// maxStored limits the fetched repository's folder, in bytes; beyond it the folder is recreated.
const maxStored = 1 << 30

func tooLargePack(format string, a ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, a...))
}

// checkPack reads a pack once, holding none of it, and refuses one that unfolds to more than git's readers should be
// given. Objects and the results of deltas declare their size; their content is counted all the same.
func checkPack(ctx context.Context, r io.Reader) error {
	scanner := packfile.NewScanner(r)
	_, n, err := scanner.Header()
	if errors.Is(err, packfile.ErrEmptyPackfile) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if n > maxObjects {
		return tooLargePack("its pack has %d objects; at most %d", n, maxObjects)
	}
	total := int64(0)
	for range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := scanner.NextObjectHeader()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		most := int64(maxObject)
		switch h.Type {
		case plumbing.CommitObject, plumbing.TreeObject, plumbing.TagObject:
			most = maxTree
		}
		if h.Length < 0 || h.Length > most {
			return tooLargePack("its pack has an object of %d bytes; at most %d", h.Length, most)
		}
		w := &counted{left: h.Length}
		if _, _, err := scanner.NextObject(w); err != nil {
			return fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		if w.left != 0 {
			return tooLargePack("its pack has an object of %d bytes less than it says", w.left)
		}
		size := h.Length
		if h.Type == plumbing.OFSDeltaObject || h.Type == plumbing.REFDeltaObject {
			if result, ok := w.resultSize(); ok {
				size += result
			}
			if size > maxObject {
				return tooLargePack("its pack has a delta to %d bytes; at most %d", size, maxObject)
			}
		}
		if total += size; total > maxUnpacked {
			return tooLargePack("its pack unfolds to more than %d bytes", maxUnpacked)
		}
	}
	return nil
}

// counted reads an object's bytes, keeps the first few, and fails beyond the declared size.
type counted struct {
	left  int64
	begin []byte
}

func (c *counted) Write(p []byte) (int, error) {
	if c.left -= int64(len(p)); c.left < 0 {
		return 0, errors.New("an object is larger than it says")
	}
	if room := 20 - len(c.begin); room > 0 {
		c.begin = append(c.begin, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

// resultSize returns the declared size of a delta's result: the second of the two numbers that it begins with.
func (c *counted) resultSize() (int64, bool) {
	b, size := c.begin, int64(0)
	for range 2 {
		size = 0
		for shift := 0; ; shift += 7 {
			if len(b) == 0 || shift > 42 {
				return 0, false
			}
			size |= int64(b[0]&0x7f) << shift
			more := b[0]&0x80 != 0
			if b = b[1:]; !more {
				break
			}
		}
	}
	return size, true
}

// spool writes a pack to a file of the folder, at most maxFetch bytes of it.
func spool(pack io.Reader, dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, ".pack-")
	if err != nil {
		return nil, fmt.Errorf("MODELREPO_CACHE_DIR cannot be used: %w", err)
	}
	_ = os.Remove(f.Name()) // the file exists while it is open
	n, err := io.Copy(f, io.LimitReader(pack, maxFetch+1))
	switch {
	case err != nil:
		return nil, errors.Join(gitFault(err), f.Close())
	case n > maxFetch:
		return nil, errors.Join(tooLargePack("its pack has more than %d bytes", maxFetch), f.Close())
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// storedBytes sums the sizes of the files below dir; unreadable files count as 0.
func storedBytes(dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
		return nil
	})
	return total
}
