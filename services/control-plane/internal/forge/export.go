package forge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"github.com/mlp-platform/platform/libs/auth"
)

// trees is the folder of exported commits.
const trees = "trees"

// exported lists the folders that the control plane reads. Data is not exported.
var exported = []string{"datasets", "models", "registries"}

// Limits of one export.
const (
	maxExportFiles = 20_000
	maxExportBytes = 64 << 20
	maxExportFile  = 8 << 20 // as for an image; larger files are never read, so they are left out
	maxExportDepth = 16
)

// Export is part of Exporter. Links and submodules are left out, and a commit
// that names a file outside of its folder is refused.
func (r *Remote) Export(ctx context.Context, sha string) (string, error) {
	if err := r.take(ctx); err != nil {
		return "", err
	}
	defer r.give()
	slot, err := r.folder()
	if err != nil {
		return "", err
	}
	out, err := ask(ctx, request{Op: opExport, URL: r.url.Reveal(), Slot: slot, To: sha})
	return out.Dir, err
}

// export writes the files of a commit to a new folder.
func (r *fetcher) export(ctx context.Context, sha string) (string, error) {
	repo, err := r.open()
	if err != nil {
		return "", err
	}
	commit, err := resolveCommit(repo, sha)
	if err != nil {
		return "", err
	}
	tree, err := commit.Tree()
	if err != nil {
		return "", fmt.Errorf("read commit %s: %w", commit.Hash, err)
	}
	all := filepath.Join(r.slot, trees)
	dir := filepath.Join(all, commit.Hash.String())
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(all, 0o700); err != nil {
		return "", fmt.Errorf("MODELREPO_CACHE_DIR cannot be used: %w", err)
	}
	tmp, err := os.MkdirTemp(all, ".new-")
	if err != nil {
		return "", fmt.Errorf("MODELREPO_CACHE_DIR cannot be used: %w", err)
	}
	err = writeTree(ctx, repo.Storer, tree, tmp)
	if err == nil {
		err = os.Rename(tmp, dir)
	}
	if errors.Is(err, fs.ErrExist) { // git allows two entries of a folder with one name
		err = fmt.Errorf("%w: it holds a name twice", ErrMalformed)
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(tmp))
	}
	return dir, nil
}

// Prune is part of Exporter.
func (r *Remote) Prune(ctx context.Context, keep ...string) error {
	if err := r.take(ctx); err != nil {
		return err
	}
	defer r.give()
	slot, err := r.folder()
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(slot, trees))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("list exported commits: %w", err)
	}
	var faults []error
	for _, e := range entries {
		if !slices.Contains(keep, e.Name()) {
			faults = append(faults, os.RemoveAll(filepath.Join(slot, trees, e.Name())))
		}
	}
	return errors.Join(faults...)
}

// writer writes files below one folder.
type writer struct {
	ctx   context.Context
	store storer.EncodedObjectStorer
	root  *os.Root
	files int
	bytes int64
}

func writeTree(ctx context.Context, store storer.EncodedObjectStorer, tree *object.Tree, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	w := &writer{ctx: ctx, store: store, root: root}
	for _, e := range tree.Entries {
		// Names of files that are not written are checked too: a bad one attacks any client that checks out the commit.
		if err := checkName(e.Name); err != nil {
			return err
		}
		if e.Mode != filemode.Dir || !slices.Contains(exported, e.Name) {
			continue
		}
		if err := w.folder(e, e.Name, 1); err != nil {
			return err
		}
	}
	return nil
}

// checkName refuses names that mean another folder on some system, and git's own.
func checkName(name string) error {
	if len(name) > 255 {
		return fmt.Errorf("%w: it holds a file name of %d bytes", ErrMalformed, len(name))
	}
	if strings.IndexFunc(name, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) >= 0 {
		return fmt.Errorf("%w: it holds the file name %.80q, which cannot be shown as it is", ErrMalformed, name)
	}
	if name == "" || name == "." || name == ".." || strings.EqualFold(name, ".git") || strings.ContainsAny(name, "/\\\x00") {
		return fmt.Errorf("%w: it holds the file name %.80q, which leads out of its folder", ErrMalformed, name)
	}
	return nil
}

func (w *writer) folder(entry object.TreeEntry, at string, depth int) error {
	if depth > maxExportDepth {
		return fmt.Errorf("%w: its folders are more than %d deep", ErrMalformed, maxExportDepth)
	}
	tree, err := object.GetTree(w.store, entry.Hash)
	if err != nil {
		return fmt.Errorf("read %s: %w", at, err)
	}
	if err := w.root.Mkdir(at, 0o700); err != nil {
		return err
	}
	if err := checkCases(tree, at); err != nil {
		return err
	}
	for _, e := range tree.Entries {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		if err := checkName(e.Name); err != nil {
			return err
		}
		name := path.Join(at, e.Name)
		switch e.Mode {
		case filemode.Dir:
			err = w.folder(e, name, depth+1)
		case filemode.Regular, filemode.Executable, filemode.Deprecated:
			err = w.file(tree, e, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkCases refuses names that differ only in case: the file read would depend on the machine.
func checkCases(tree *object.Tree, at string) error {
	seen := make(map[string]string, len(tree.Entries))
	for _, e := range tree.Entries {
		folded := auth.FoldName(e.Name)
		if other, ok := seen[folded]; ok {
			return fmt.Errorf("%w: %s holds both %q and %q, which differ only in case", ErrMalformed, at, other, e.Name)
		}
		seen[folded] = e.Name
	}
	return nil
}

func (w *writer) file(tree *object.Tree, e object.TreeEntry, name string) error {
	f, err := tree.TreeEntryFile(&e)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if f.Size > maxExportFile {
		return nil
	}
	w.files++
	w.bytes += f.Size
	if w.files > maxExportFiles || w.bytes > maxExportBytes {
		return fmt.Errorf("%w: it holds more than %d files or %d bytes of models, data sets and registries", ErrMalformed, maxExportFiles, maxExportBytes)
	}
	src, err := f.Reader()
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	defer src.Close()
	dst, err := w.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, io.LimitReader(src, maxExportFile))
	return errors.Join(err, dst.Close())
}
