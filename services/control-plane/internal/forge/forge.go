// Package forge reads the model repository at its source: over a forge's REST interface, over git's own protocol, or
// from a folder of this machine. It returns the newest commit of a branch and the differences between two commits; it
// never writes to the source.
package forge

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// Commit is one commit of the model repository.
type Commit struct {
	SHA     string // 40 or 64 lower-case hex digits; empty: the repository has no commit yet
	Author  string
	Message string
}

// Statuses of a changed file.
const (
	Added    = "added"
	Modified = "modified"
	Removed  = "removed"
	Renamed  = "renamed"
)

// File is one changed file. Binary and very large files have no patch and no line counts.
type File struct {
	Path      string
	Status    string
	Additions int
	Deletions int
	Patch     string // unified hunks without file headers, as forges show them
}

// Diff is the difference between two commits.
type Diff struct {
	From      string // empty: To is the first commit
	To        string
	Files     []File
	Truncated bool // a file or the patch of a text file is left out
}

// Source is the location of the model repository. Its methods are safe for concurrent use and end with ctx; their
// errors contain no credentials.
type Source interface {
	// Kind is gitlab, git or local.
	Kind() string
	// Head is the newest commit of branch; ErrNoBranch if there is no such branch.
	Head(ctx context.Context, branch string) (Commit, error)
	// Files lists the paths that differ between two commits; ErrUnknown if that cannot be determined.
	Files(ctx context.Context, from, to string) ([]string, error)
	// Diff compares two commits, each given by its SHA or a prefix of it. An empty from is the first parent of to.
	// ErrUnknown if one does not exist.
	Diff(ctx context.Context, from, to string) (Diff, error)
}

// Exporter is a Source that can write the files of a commit to a separate folder.
type Exporter interface {
	Source
	// Export returns the folder with the models, data sets and registries of a commit that Head has returned. It stays
	// until Prune.
	Export(ctx context.Context, sha string) (dir string, err error)
	// Prune removes the folders of all other commits.
	Prune(ctx context.Context, keep ...string) error
	// Close releases the cache.
	Close() error
}

// ErrNoBranch means that the repository answers but has no such branch.
var ErrNoBranch = errors.New("no such branch")

// ErrUnknown means that the repository does not have a commit, or cannot tell the changes between two.
var ErrUnknown = errors.New("unknown to the model repository")

// ErrMalformed means that a commit cannot be written to a folder.
var ErrMalformed = errors.New("the commit cannot be written to a folder")

// maxFiles limits the files of a diff and the paths of a comparison. GitLab's own limit is the same by default; at the
// limit, there may be more.
const maxFiles = 1000

var abbreviated = regexp.MustCompile(`^[0-9a-f]{7,64}$`)

// commitID returns sha in lower case. A text that is not a hexadecimal number could be a branch, a range or a path, so
// it is not passed on.
func commitID(sha string) (string, error) {
	sha = strings.ToLower(sha)
	if !abbreviated.MatchString(sha) {
		return "", fmt.Errorf("commit %.80q: %w", sha, ErrUnknown)
	}
	return sha, nil
}

func isFullSHA(sha string) bool { return len(sha) == 40 || len(sha) == 64 }

func noBranch(branch string) error {
	return fmt.Errorf("the model repository: %w: %.100q", ErrNoBranch, branch)
}

// maxText limits an author or message, in bytes.
const maxText = 4 << 10

// newCommit returns a commit with its author's texts truncated.
func newCommit(sha, author, message string) Commit {
	return Commit{SHA: sha, Author: wire.TruncateText(author, maxText), Message: wire.TruncateText(message, maxText)}
}
