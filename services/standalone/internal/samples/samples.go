// Package samples sets up the sample model repository: a real git repository in the data directory.
package samples

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Ensure makes dir a git repository with files committed on branch main, and returns whether it was made
// now. An existing repository is left as it is: it is the user's from then on. It is built beside dir and
// renamed, so a killed process leaves either nothing or the whole.
func Ensure(dir string, files fs.FS, now time.Time) (made bool, err error) {
	switch _, err := os.Stat(filepath.Join(dir, ".git")); {
	case err == nil:
		return false, nil
	case !errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("look at the model repository: %w", err)
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return false, fmt.Errorf("%s holds files but is no git repository; move it away, or run git init in it", dir)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return false, fmt.Errorf("make the data directory: %w", err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".modelrepo-*")
	if err != nil {
		return false, fmt.Errorf("make the model repository: %w", err)
	}
	defer os.RemoveAll(tmp) // a no-op once renamed
	if err := os.Chmod(tmp, 0o755); err != nil {
		return false, fmt.Errorf("make the model repository: %w", err)
	}
	if err := os.CopyFS(tmp, files); err != nil {
		return false, fmt.Errorf("copy the sample model repository: %w", err)
	}
	repo, err := git.PlainInitWithOptions(tmp, &git.PlainInitOptions{
		InitOptions: git.InitOptions{DefaultBranch: plumbing.NewBranchReferenceName("main")},
	})
	if err != nil {
		return false, fmt.Errorf("git init: %w", err)
	}
	tree, err := repo.Worktree()
	if err != nil {
		return false, fmt.Errorf("git init: %w", err)
	}
	if err := tree.AddGlob("."); err != nil {
		return false, fmt.Errorf("git add: %w", err)
	}
	_, err = tree.Commit("Sample models", &git.CommitOptions{
		Author: &object.Signature{Name: "platform", Email: "platform@localhost", When: now},
	})
	if err != nil {
		return false, fmt.Errorf("git commit: %w", err)
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("replace the empty model repository: %w", err)
	}
	if err := os.Rename(tmp, dir); err != nil {
		return false, fmt.Errorf("put the model repository in place: %w", err)
	}
	return true, nil
}
