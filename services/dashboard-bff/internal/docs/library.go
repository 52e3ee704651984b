// Package docs serves the documentation: the pages of PLATFORM_DOCS_ROOT, else those inside the binary.
package docs

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"
)

// pages is a copy of README.md and docs/**/*.md that scripts/pages.sh makes; it holds .keep alone until then.
//
//go:embed all:pages
var pages embed.FS

// Limits of the documentation.
const (
	maxPage  = 1 << 20 // bytes; larger pages are as good as absent
	maxPages = 5000
	maxDepth = 16 // directories
)

// freshFor is how long the index of a directory is used before it is read again.
const freshFor = 5 * time.Second

// errAbsent is returned for a page that does not exist or is not served. A caller cannot distinguish the two.
var errAbsent = errors.New("no such page")

// tree reads pages by slash-separated paths that [checkPath] accepts.
type tree interface {
	// read is a regular file that is reached without a symbolic link; errAbsent for anything else.
	read(name string) ([]byte, error)
	// list is the entries of a directory by name.
	list(dir string) ([]fs.DirEntry, error)
}

// Library is the documentation. Its methods may be called at once.
type Library struct {
	tree  tree
	root  *os.Root // nil: embedded
	fixed bool     // the tree never changes

	mu      sync.Mutex
	index   []Page // guarded by mu, the slice is not changed
	indexed time.Time
}

// Open opens the pages below root, or those inside the binary if root is empty.
func Open(root string) (*Library, error) {
	if root == "" {
		sub, err := fs.Sub(pages, "pages")
		if err != nil {
			return nil, err
		}
		return &Library{tree: embedded{sub}, fixed: true}, nil
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("PLATFORM_DOCS_ROOT: %w", err)
	}
	return &Library{tree: directory{dir}, root: dir}, nil
}

// Close gives the directory back.
func (l *Library) Close() error {
	if l.root == nil {
		return nil
	}
	return l.root.Close()
}

// allowed reports whether a path is one of the documentation's: README.md, or Markdown below docs.
func allowed(name string) bool {
	return name == "README.md" || strings.HasPrefix(name, "docs/") && fs.ValidPath(name)
}

// ReadPage returns the Markdown of a page; errAbsent if there is none.
func (l *Library) ReadPage(name string) ([]byte, error) {
	if !allowed(name) {
		return nil, errAbsent
	}
	return l.tree.read(name)
}

// embedded reads the pages inside the binary, which has no symbolic links.
type embedded struct{ fs fs.FS }

func (e embedded) read(name string) ([]byte, error) {
	raw, err := fs.ReadFile(e.fs, name)
	if err != nil || len(raw) > maxPage {
		return nil, errAbsent
	}
	return raw, nil
}

func (e embedded) list(dir string) ([]fs.DirEntry, error) { return fs.ReadDir(e.fs, dir) }

// directory reads below a root that no path leaves.
type directory struct{ root *os.Root }

func (d directory) read(name string) ([]byte, error) {
	seen, err := d.checkWay(name)
	if err != nil {
		return nil, err
	}
	// Without O_NONBLOCK, opening a pipe that has taken the page's place would wait for its writer.
	file, err := d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, explainRead(err)
	}
	defer file.Close()
	opened, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !os.SameFile(seen, opened) || opened.Size() > maxPage {
		return nil, errAbsent // replaced by a link in between
	}
	raw, err := io.ReadAll(io.LimitReader(file, maxPage+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxPage {
		return nil, errAbsent // it grew
	}
	return raw, nil
}

// checkWay returns the file at the path if it is a regular file and no part of the path is a link: a link inside the
// root could point to a page that is not allowed.
func (d directory) checkWay(name string) (fs.FileInfo, error) {
	var info fs.FileInfo
	for i := 0; i <= len(name); i++ {
		if i < len(name) && name[i] != '/' {
			continue
		}
		var err error
		if info, err = d.root.Lstat(name[:i]); err != nil {
			return nil, explainRead(err)
		}
		if i < len(name) && !info.IsDir() {
			return nil, errAbsent
		}
	}
	if !info.Mode().IsRegular() {
		return nil, errAbsent
	}
	return info, nil
}

// explainRead returns errAbsent for paths that name nothing, including names that no file can have.
func explainRead(err error) error {
	if errors.Is(err, syscall.EIO) {
		return err
	}
	return errAbsent
}

func (d directory) list(dir string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(d.root.FS(), dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

// findPages returns the paths of all pages, README.md first.
func (l *Library) findPages() ([]string, error) {
	var found []string
	var walk func(dir string, depth int) error
	walk = func(dir string, depth int) error {
		entries, err := l.tree.list(dir)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			name := path.Join(dir, entry.Name())
			switch {
			case len(found) == maxPages:
				return nil
			case entry.IsDir() && depth < maxDepth:
				if err := walk(name, depth+1); err != nil {
					return err
				}
			case entry.Type().IsRegular() && strings.HasSuffix(name, ".md") && checkPath(name) == nil:
				found = append(found, name)
			}
		}
		return nil
	}
	if _, err := l.tree.read("README.md"); err == nil {
		found = append(found, "README.md")
	}
	err := walk("docs", 1)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // a build without pages
	}
	return found, err
}
