package localloop

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// CheckOutput returns why a run cannot be written to dir: it must be absent or an empty
// folder, and lie in no candidate, which the run would change.
func (s *Source) CheckOutput(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return writeFault(dir, err)
	case info.Mode()&fs.ModeSymlink != 0:
		return &Fault{Code: OutputNotEmpty, Detail: fmt.Sprintf("the output folder %s is a symbolic link; name a folder that is absent or empty", dir)}
	case !info.IsDir():
		return &Fault{Code: OutputNotEmpty, Detail: fmt.Sprintf("the output folder %s is no folder; name one that is absent or empty", dir)}
	default:
		entries, err := os.ReadDir(dir)
		if err != nil {
			return writeFault(dir, err)
		}
		if len(entries) > 0 {
			return &Fault{Code: OutputNotEmpty, Detail: fmt.Sprintf("the output folder %s is not empty; nothing was written; name one that is absent or empty", dir)}
		}
	}
	for _, a := range s.Config.Attempts {
		if a.CandidateRoot != "" && s.inside(dir, filepath.Join(s.dir, filepath.FromSlash(a.CandidateRoot))) {
			return &Fault{Code: OutputInside, Detail: fmt.Sprintf("the output folder %s lies within the candidate of %s, which the run would change", dir, a.ID)}
		}
	}
	return nil
}

// inside reports whether dir, which may be absent, is root or lies below it.
func (s *Source) inside(dir, root string) bool {
	outer, err := os.Stat(root)
	if err != nil {
		return false // an absent candidate is a state of its attempt
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return false
	}
	for p := dir; ; p = filepath.Dir(p) {
		// What exists of the path may go through links, as may every other path of the caller.
		if real, err := filepath.EvalSymlinks(p); err == nil {
			for q := real; ; q = filepath.Dir(q) {
				if inner, err := os.Stat(q); err == nil && os.SameFile(outer, inner) {
					return true
				}
				if q == filepath.Dir(q) {
					return false
				}
			}
		}
		if p == filepath.Dir(p) {
			return false
		}
	}
}

// Write writes the files of a run to dir, all of them or none: they are written and flushed in
// a folder beside it, which is then renamed. So a run that is killed leaves dir as it was.
func (o *Outcome) Write(dir string) (err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return writeFault(dir, err)
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return writeFault(dir, err)
	}
	// Not MkdirTemp, whose mode would not be the caller's umask's to choose.
	beside := filepath.Join(parent, "."+filepath.Base(dir)+"."+rand.Text())
	if err := os.Mkdir(beside, 0o777); err != nil {
		return writeFault(dir, err)
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(beside)
			err = writeFault(dir, err)
		}
	}()
	for _, name := range o.FileNames() {
		if err := writeFile(filepath.Join(beside, name), o.Files[name]); err != nil {
			return err
		}
	}
	if err := syncFolder(beside); err != nil {
		return err
	}
	// Only an empty folder can be removed; one that was filled meanwhile stays.
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(beside, dir); err != nil {
		return err
	}
	return syncFolder(parent)
}

func writeFault(dir string, err error) error {
	return &Fault{Code: WriteError, Detail: fmt.Sprintf("the run cannot be written to %s: %v", dir, err), Cause: err}
}

func writeFile(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		_ = f.Close()
		return err
	}
	if err := f.Sync(); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// syncFolder makes the names in a folder outlive a crash, where the system can.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = d.Sync()
	return d.Close()
}
