package pyfunc

import (
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// folderPrefix begins the names of the folders of started servers.
const folderPrefix = ".scoring-"

// lockAfter is how long after a folder was made its process has surely locked it.
const lockAfter = time.Minute

// lockFolder marks a folder as in use until unlock is called or this process ends.
func lockFolder(dir string) (unlock func()) {
	f, err := os.Open(dir)
	if err != nil {
		return func() {}
	}
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) // no other process has a reason to hold it
	return func() { _ = f.Close() }
}

// sweep removes the folders that processes left behind when they were killed. Others may use the same parent folder, so
// that one which is locked, or was only just made, stays.
func sweep(parent string) error {
	left, err := filepath.Glob(filepath.Join(parent, folderPrefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range left {
		f, err := os.Open(dir)
		if err != nil { // already gone
			continue
		}
		st, err := f.Stat()
		if err == nil && time.Since(st.ModTime()) > lockAfter && syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			err = os.RemoveAll(dir)
		}
		_ = f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}
