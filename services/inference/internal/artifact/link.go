package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// LinkTo makes the artifact's files appear in the empty folder dir, where they stay when the artifact is trimmed: as hard
// links, or as copies where the file system has none. Files that were not hashed are left out; a link is an error.
func (a Artifact) LinkTo(dir string) error {
	from, err := os.OpenRoot(a.Dir)
	if err != nil {
		return fmt.Errorf("model cache: %w", err)
	}
	defer from.Close()
	to, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("model cache: %w", err)
	}
	defer to.Close()
	for name, sum := range a.files {
		if err := linkFile(from, to, filepath.FromSlash(name), sum); err != nil {
			return fmt.Errorf("model cache: %w", err)
		}
	}
	return nil
}

func linkFile(from, to *os.Root, name, sum string) error {
	info, err := from.Lstat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", name)
	}
	if err := to.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	if err := os.Link(filepath.Join(from.Name(), name), filepath.Join(to.Name(), name)); err != nil {
		return copyFile(from, to, name, sum)
	}
	// os.Link resolves folder names itself, and would have followed a symbolic link that replaced one.
	if linked, err := to.Lstat(name); err != nil || !os.SameFile(info, linked) {
		return errors.Join(err, fmt.Errorf("%w: the file %s was changed after it was checked", ErrDigest, name))
	}
	return nil
}

// copyFile copies a file that has the digest.
func copyFile(from, to *os.Root, name, want string) error {
	in, err := from.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode()&fs.ModePerm)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, sum), io.LimitReader(in, info.Size()))
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != want {
		return fmt.Errorf("%w: the file %s was changed after it was checked", ErrDigest, name)
	}
	return nil
}
