package command

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

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

// WriteFile writes a file as a whole: beside its place, flushed to the disk, then renamed over it.
func WriteFile(path string, data []byte) (err error) {
	defer func() {
		if err != nil {
			err = Failf(OutputWriteError, "cannot write %s: %w", path, err)
		}
	}()
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := f.Chmod(0o644); err != nil {
		return err
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
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	// The rename too must outlive a crash; a system that cannot flush a folder keeps it in its own time.
	if d, err := os.Open(filepath.Dir(path)); err == nil {
		_ = d.Sync()
		d.Close()
	}
	return nil
}
