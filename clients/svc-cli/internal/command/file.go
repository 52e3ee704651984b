package command

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/mlp-platform/platform/libs/evidence/canon"
)

// ReadDocument reads an input file: a regular file of at most 2 MiB whose root is an object. A fault of the file
// has the code input_read_error, one of its text invalid_json, invalid_utf8 or invalid_document.
func ReadDocument(path string, o ...canon.Option) (canon.Value, error) {
	return ReadValue(path, append(o, canon.ObjectRoot())...)
}

// ReadValue is ReadDocument for any root.
func ReadValue(path string, o ...canon.Option) (canon.Value, error) {
	v, err := canon.ReadFile(path, o...)
	var syntax *canon.SyntaxError
	var where *fs.PathError
	switch {
	case err == nil:
		return v, nil
	case errors.As(err, &syntax):
		f := syntaxFault(syntax, err)
		f.Message = path + ": " + f.Message
		return nil, f
	case errors.As(err, &where):
		return nil, &Fault{Code: InputReadError, Message: "cannot read " + path + ": " + where.Err.Error(), Cause: err}
	}
	return nil, &Fault{Code: InputReadError, Message: err.Error(), Cause: err}
}

// ReadRegular reads an input file that need not be JSON: a regular file of at most 2 MiB.
func ReadRegular(path string) ([]byte, error) {
	refused := Failf(InputReadError, "%s is no regular file of at most 2 MiB", path)
	// Before opening, which would wait for ever on a pipe without a writer.
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, Failf(InputReadError, "cannot read %w", err)
	case !info.Mode().IsRegular():
		return nil, refused
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, Failf(InputReadError, "cannot read %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, canon.MaxFile+1))
	switch {
	case err != nil:
		return nil, Failf(InputReadError, "cannot read %w", err)
	case len(data) > canon.MaxFile:
		return nil, refused
	}
	return data, nil
}

// WriteFile writes a file as a whole: under a temporary name beside it, flushed to the disk, then renamed over it. For
// a link it replaces the file that the link leads to, and a file keeps its mode. A special file, such as a device or a
// pipe, stays what it is and gets the data.
func WriteFile(path string, data []byte) error {
	if err := writeFile(path, data); err != nil {
		return Failf(OutputWriteError, "cannot write %s: %w", path, err)
	}
	return nil
}

func writeFile(path string, data []byte) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(path); err == nil {
			return errors.New("it is a link to nothing")
		}
		return replaceFile(path, data, nil)
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return writeInto(path, data)
	}
	// A rename would put the file in the place of the link.
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return err
	}
	return replaceFile(path, data, info)
}

// writeInto writes to a special file. It does not wait for a pipe without a reader.
func writeInto(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// replaceFile makes the file at path, or puts another in place of the one that old describes.
func replaceFile(path string, data []byte, old fs.FileInfo) (err error) {
	// Not CreateTemp, whose mode would not be the caller's umask's to choose.
	beside := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+rand.Text())
	f, err := os.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(beside)
		}
	}()
	if old != nil {
		if err := f.Chmod(old.Mode().Perm()); err != nil {
			return err
		}
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(beside, path); err != nil {
		return err
	}
	// The rename too must outlive a crash; a system that cannot flush a folder keeps it in its own time.
	if d, err := os.Open(filepath.Dir(path)); err == nil {
		_ = d.Sync()
		d.Close()
	}
	return nil
}
