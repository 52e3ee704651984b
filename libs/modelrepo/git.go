package modelrepo

import (
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
)

// ErrNoCommit means the folder is in no git repository, or in one without a commit.
var ErrNoCommit = errors.New("no commit")

// HeadCommit returns the SHA of the checked-out commit of the git repository that holds dir. Changes that are
// not committed do not show in it.
func HeadCommit(dir string) (string, error) {
	repo, err := git.PlainOpenWithOptions(dir, &git.PlainOpenOptions{DetectDotGit: true, EnableDotGitCommonDir: true})
	if errors.Is(err, git.ErrRepositoryNotExists) {
		return "", fmt.Errorf("%w: %s is in no git repository", ErrNoCommit, dir)
	}
	if err != nil {
		return "", fmt.Errorf("open git repository of %s: %w", dir, err)
	}
	head, err := repo.Head()
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return "", fmt.Errorf("%w: the git repository of %s is empty", ErrNoCommit, dir)
	}
	if err != nil {
		return "", fmt.Errorf("read HEAD of %s: %w", dir, err)
	}
	return head.Hash().String(), nil
}

// HasRemote reports whether the git repository whose root is dir has a remote to push to; isRepository, whether there is
// one.
func HasRemote(dir string) (remote, isRepository bool) {
	repo, err := git.PlainOpenWithOptions(dir, &git.PlainOpenOptions{EnableDotGitCommonDir: true})
	if err != nil {
		return false, false
	}
	remotes, err := repo.Remotes()
	return err == nil && len(remotes) > 0, true
}

// HasCommit reports whether the git repository whose root is dir has a commit; a folder without one has none.
func HasCommit(dir, sha string) bool {
	repo, err := git.PlainOpenWithOptions(dir, &git.PlainOpenOptions{EnableDotGitCommonDir: true})
	if err != nil {
		return false
	}
	_, err = repo.CommitObject(plumbing.NewHash(sha))
	return err == nil
}
