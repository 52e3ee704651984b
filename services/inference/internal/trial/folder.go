package trial

import (
	"io/fs"

	"github.com/mlp-platform/platform/services/inference/internal/model"
)

// Folder is an artifact folder whose files are fetched on first use, and kept.
type Folder struct {
	model.Files
	fetch func(name string) ([]byte, error) // nil where there is no such file
}

// NewFolder returns a folder of src that fetches only the files used.
func NewFolder(src Source) *Folder {
	return &Folder{Files: model.Files{}, fetch: func(name string) ([]byte, error) { return readOptional(src, name, model.MaxGraph) }}
}

// Open implements fs.FS.
func (f *Folder) Open(name string) (fs.File, error) {
	if err := f.want(name); err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return f.Files.Open(name)
}

// ReadFile implements fs.ReadFileFS.
func (f *Folder) ReadFile(name string) ([]byte, error) {
	if err := f.want(name); err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return f.Files.ReadFile(name)
}

func (f *Folder) want(name string) error {
	if _, have := f.Files[name]; have {
		return nil
	}
	data, err := f.fetch(name)
	if data != nil && err == nil {
		f.Files[name] = data
	}
	return err
}
