package forge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/mlp-platform/platform/libs/modelrepo"
)

// Local is a git repository on this machine, as it is; it queries no remote.
type Local struct{ dir string }

// OpenLocal reports whether dir is the root of a git repository. A subfolder of a larger repository does not count:
// most commits there do not concern the models.
func OpenLocal(dir string) (*Local, bool) {
	if dir == "" {
		return nil, false
	}
	if _, err := os.Stat(filepath.Join(dir, git.GitDirName)); err != nil {
		return nil, false
	}
	if dir, err := filepath.Abs(dir); err == nil { // a child starts in another folder
		return &Local{dir}, true
	}
	return nil, false
}

// Kind is part of Source.
func (l *Local) Kind() string { return "local" }

func (l localReader) open() (*git.Repository, error) {
	repo, err := git.PlainOpenWithOptions(l.dir, &git.PlainOpenOptions{EnableDotGitCommonDir: true})
	switch {
	case errors.Is(err, git.ErrRepositoryNotExists), errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("MODELREPO_DIR is no longer a git repository")
	case err != nil:
		return nil, fmt.Errorf("open the git repository in MODELREPO_DIR: %w", err)
	}
	return repo, nil
}

// Head is part of Source. Where no branch is checked out, as in deployments that pin a commit, the checked-out commit
// is the head of every branch.
func (l *Local) Head(ctx context.Context, branch string) (Commit, error) {
	out, err := ask(ctx, request{Op: opHead, Dir: l.dir, Branch: branch})
	if err != nil {
		return Commit{SHA: out.Commit.SHA}, err
	}
	return out.Commit, nil
}

// localReader is the child's side of a Local.
type localReader struct {
	dir  string
	tell func(response)
}

func (l localReader) head(branch string) (Commit, error) {
	repo, err := l.open()
	if err != nil {
		return Commit{}, err
	}
	ref, err := repo.Reference(plumbing.NewBranchReferenceName(branch), true)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		head, headErr := repo.Reference(plumbing.HEAD, false)
		switch {
		case headErr != nil:
			return Commit{}, fmt.Errorf("read HEAD of MODELREPO_DIR: %w", headErr)
		case head.Type() == plumbing.HashReference:
			ref, err = head, nil
		case head.Target() == plumbing.NewBranchReferenceName(branch):
			return Commit{}, nil // the branch is unborn
		default:
			return Commit{}, noBranch(branch)
		}
	}
	if err != nil {
		return Commit{}, fmt.Errorf("read the branch: %w", err)
	}
	l.tell(response{Commit: Commit{SHA: ref.Hash().String()}, Stage: stageReading})
	return describeCommit(repo, ref.Hash())
}

// CheckedOut returns the commit checked out in the folder, ignoring uncommitted changes.
func (l *Local) CheckedOut() (string, error) { return modelrepo.HeadCommit(l.dir) }

func describeCommit(repo *git.Repository, hash plumbing.Hash) (Commit, error) {
	c, err := repo.CommitObject(hash)
	if err != nil {
		return Commit{}, fmt.Errorf("read commit %s: %w", hash, err)
	}
	return newCommit(hash.String(), c.Author.Name, c.Message), nil
}

// Files is part of Source.
func (l *Local) Files(ctx context.Context, from, to string) ([]string, error) {
	out, err := askReader(ctx, request{Op: opFiles, Dir: l.dir, From: from, To: to})
	return out.Files, err
}

func (l localReader) files(ctx context.Context, from, to string) ([]string, error) {
	repo, err := l.open()
	if err != nil {
		return nil, err
	}
	return filesOf(ctx, repo, from, to)
}

// Diff is part of Source.
func (l *Local) Diff(ctx context.Context, from, to string) (Diff, error) {
	out, err := askReader(ctx, request{Op: opDiff, Dir: l.dir, From: from, To: to})
	if err != nil || out.Diff == nil {
		return Diff{}, err
	}
	return *out.Diff, nil
}

func (l localReader) diff(ctx context.Context, from, to string) (Diff, error) {
	repo, err := l.open()
	if err != nil {
		return Diff{}, err
	}
	return diffOf(ctx, repo, from, to)
}
