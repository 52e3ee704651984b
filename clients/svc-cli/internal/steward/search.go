package steward

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
)

// FileName is the name that folders are searched for.
const FileName = "steward-report.json"

// Limits of a search.
const (
	MaxInputs  = 128
	MaxReports = 1000
	MaxFolders = 10000
	MaxDepth   = 8 // folders inside an input; deeper ones are not looked into
)

// Codes of a search that came to a bound or a thing that is neither file nor folder.
const (
	TooManyInputs  = "too_many_inputs"
	TooManyReports = "too_many_reports"
	TooManyFolders = "too_many_folders"
	LinkedFolder   = "linked_folder"
)

// Load reads one report's file.
func Load(path string) (*Report, error) {
	v, err := command.ReadDocument(path)
	if err != nil {
		return nil, err
	}
	r, err := Parse(v)
	if err != nil {
		f := *command.FaultOf(err)
		f.Message = path + ": " + f.Message
		return nil, &f
	}
	return r, nil
}

// LoadAll reads the reports that inputs name: files, and folders that are searched for
// steward-report.json.
func LoadAll(inputs []string) ([]Entry, error) {
	if len(inputs) > MaxInputs {
		return nil, command.Failf(TooManyInputs, "%d inputs are more than %d: name a folder that holds them", len(inputs), MaxInputs)
	}
	var s search
	for _, path := range inputs {
		if err := s.input(path); err != nil {
			return nil, err
		}
	}
	out := make([]Entry, 0, len(s.files))
	for _, path := range s.files {
		r, err := Load(path)
		if err != nil {
			return nil, err
		}
		out = append(out, NewEntry(path, r))
	}
	return out, nil
}

type search struct {
	files   []string
	folders int
}

func (s *search) input(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return unreadableFault(path, err)
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		if info, err = os.Stat(path); err != nil {
			return unreadableFault(path, err)
		}
		if info.IsDir() {
			return command.Failf(LinkedFolder, "%s is a link to a folder: name the folder itself", path)
		}
	}
	if info.IsDir() {
		return s.folder(path, 0)
	}
	return s.add(path)
}

func (s *search) add(path string) error {
	if s.files = append(s.files, path); len(s.files) > MaxReports {
		return command.Failf(TooManyReports, "there are more than %d reports: name fewer folders", MaxReports)
	}
	return nil
}

// folder looks into a folder and those inside it, in the order of their names.
func (s *search) folder(path string, depth int) error {
	if s.folders++; s.folders > MaxFolders {
		return command.Failf(TooManyFolders, "there are more than %d folders: name fewer of them", MaxFolders)
	}
	var inside []string
	err := walkEntries(path, func(e fs.DirEntry) error {
		full := filepath.Join(path, e.Name())
		switch {
		case e.IsDir():
			if inside = append(inside, full); s.folders+len(inside) > MaxFolders {
				return command.Failf(TooManyFolders, "there are more than %d folders: name fewer of them", MaxFolders)
			}
		case e.Name() == FileName && !linksToFolder(full, e):
			return s.add(full)
		}
		return nil
	})
	if err != nil || depth == MaxDepth {
		return err
	}
	slices.Sort(inside)
	for _, f := range inside {
		if err := s.folder(f, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func linksToFolder(path string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// walkEntries walks a folder in pieces: one of millions of files must not fill the memory.
func walkEntries(path string, each func(fs.DirEntry) error) error {
	d, err := os.Open(path)
	if err != nil {
		return unreadableFault(path, err)
	}
	defer func() { _ = d.Close() }()
	for {
		list, err := d.ReadDir(256)
		for _, e := range list {
			if err := each(e); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return unreadableFault(path, err)
		}
	}
}

func unreadableFault(path string, err error) error {
	var e *fs.PathError
	if errors.As(err, &e) {
		err = e.Err
	}
	return &command.Fault{Code: command.InputReadError, Message: "cannot read " + strings.TrimSpace(path) + ": " + err.Error(), Cause: err}
}
