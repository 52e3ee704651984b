package runbook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// Limits on a folder.
const (
	maxFiles   = 500     // runbooks
	maxEntries = 10_000  // files and folders examined
	maxDepth   = 8       // nested folders
	maxBytes   = 8 << 20 // of all runbooks
	readEvery  = time.Minute
	// mostQuotes limits the runbooks for one subject.
	mostQuotes = 3
)

// Folder holds the runbooks of a folder. A nil Folder has none. It is safe for concurrent use.
type Folder struct {
	path    string
	classes map[string]bool
	log     *slog.Logger
	all     atomic.Pointer[[]Runbook]
	told    map[string]bool // messages logged by the last reading; used by the reader alone
}

// Open reads a folder. classes are the classes of findings, as answers show them. It returns an error if the folder
// does not exist; faults of single files are logged, a sentence for each.
func Open(ctx context.Context, folder string, classes []string, log *slog.Logger) (*Folder, error) {
	f := &Folder{path: folder, classes: map[string]bool{}, log: log}
	for _, class := range classes {
		f.classes[plainClass(class)] = true
	}
	return f, f.read(ctx)
}

// Run rereads the folder each minute, until ctx ends. If the folder is briefly absent, as while it is replaced, the
// last reading stays.
func (f *Folder) Run(ctx context.Context) error {
	if f == nil {
		<-ctx.Done()
		return nil
	}
	every := time.NewTicker(readEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
			if err := f.read(ctx); err != nil {
				f.log.WarnContext(ctx, "the runbooks could not be read; those that were read last stand", slog.Any("err", err))
			}
		}
	}
}

// Find returns the first few runbooks for any of some subjects, by path. Their text is redacted.
func (f *Folder) Find(subjects ...Subject) []Quote {
	if f == nil || f.all.Load() == nil {
		return nil
	}
	var found []Quote
	for _, r := range *f.all.Load() {
		if len(found) < mostQuotes && slices.ContainsFunc(subjects, r.match.fits) {
			found = append(found, Quote{Path: redact.Text(r.Path), Title: redact.Text(r.Title), Text: redact.Text(r.Text)})
		}
	}
	return found
}

// read rereads all runbooks.
func (f *Folder) read(ctx context.Context) error {
	root, err := os.OpenRoot(f.path)
	if err != nil {
		return fmt.Errorf("open the runbooks: %w", err)
	}
	defer root.Close()
	r := &reader{folder: f, root: root, told: map[string]bool{}}
	if err := fs.WalkDir(root.FS(), ".", r.visit(ctx)); err != nil && !errors.Is(err, fs.SkipAll) {
		return fmt.Errorf("read the runbooks: %w", err)
	}
	slices.SortFunc(r.all, func(a, b Runbook) int { return strings.Compare(a.Path, b.Path) })
	f.all.Store(&r.all)
	f.told = r.told
	return nil
}

// reader is one reading of a folder.
type reader struct {
	folder  *Folder
	root    *os.Root // which refuses links that lead out of it
	all     []Runbook
	entries int
	bytes   int64
	told    map[string]bool
}

// tell logs a sentence about a file, unless the last reading did.
func (r *reader) tell(ctx context.Context, name string, line int, why string) {
	key := fmt.Sprintf("%s:%d %s", name, line, why)
	if !r.folder.told[key] && !r.told[key] {
		r.folder.log.WarnContext(ctx, "a runbook is left out", slog.String("file", name), slog.Int("line", line), slog.String("why", why))
	}
	r.told[key] = true
}

func (r *reader) visit(ctx context.Context) fs.WalkDirFunc {
	return func(name string, d fs.DirEntry, err error) error {
		r.entries++
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && name == ".":
			return err
		case err != nil:
			r.tell(ctx, name, 0, "it cannot be read")
			return nil
		case r.entries > maxEntries || len(r.all) == maxFiles:
			r.tell(ctx, name, 0, fmt.Sprintf("the folder has over %d runbooks or %d files, and the others are left out", maxFiles, maxEntries))
			return fs.SkipAll
		case name != "." && strings.HasPrefix(path.Base(name), "."): // such as .git, and the directories in which a ConfigMap volume keeps its files
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			if strings.Count(name, "/") >= maxDepth {
				r.tell(ctx, name, 0, fmt.Sprintf("it is over %d folders deep", maxDepth))
				return fs.SkipDir
			}
			return nil
		case !strings.EqualFold(path.Ext(name), ".md"):
			return nil
		}
		r.readFile(ctx, name)
		return nil
	}
}

func (r *reader) readFile(ctx context.Context, name string) {
	info, err := r.root.Stat(name)
	switch {
	case err != nil: // gone, or a link out of the folder
		r.tell(ctx, name, 0, "it is not there, or leads out of the folder")
		return
	case !info.Mode().IsRegular():
		r.tell(ctx, name, 0, "it is no file")
		return
	case info.Size() > maxFile:
		r.tell(ctx, name, 0, fmt.Sprintf("it has over %d bytes", maxFile))
		return
	}
	file, err := r.root.Open(name)
	if err != nil {
		r.tell(ctx, name, 0, "it cannot be opened")
		return
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil || len(text) > maxFile {
		r.tell(ctx, name, 0, "it cannot be read whole")
		return
	}
	if r.bytes += int64(len(text)); r.bytes > maxBytes {
		r.tell(ctx, name, 0, fmt.Sprintf("the folder has over %d bytes of runbooks", maxBytes))
		return
	}
	one, ok, err := parse(name, text, r.folder.classes)
	var wrong *fault
	switch {
	case errors.As(err, &wrong):
		r.tell(ctx, name, wrong.line, wrong.what)
	case ok && err == nil:
		r.all = append(r.all, one)
	}
}
