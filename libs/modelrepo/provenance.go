package modelrepo

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// SourceFile is a file as it was read.
type SourceFile struct {
	Path  string // relative to the repository, with forward slashes
	Bytes []byte
}

// Provenance is the origin of a definition.
type Provenance struct {
	// Commit holds the definition, byte by byte; empty where none does.
	Commit string
	// Digest is the lower-case hex SHA-256 of the files' bytes, one after the other.
	Digest string
}

// Dirty reports that no commit holds the definition.
func (p Provenance) Dirty() bool { return p.Commit == "" }

// ReadProvenance compares files that were read from dir with the commit that is
// checked out there. A folder that is not the root of a repository has none: the
// commit of a repository around it is unrelated to its files.
func ReadProvenance(dir string, files ...SourceFile) (Provenance, error) {
	sum := sha256.New()
	for _, f := range files {
		sum.Write(f.Bytes)
	}
	out := Provenance{Digest: hex.EncodeToString(sum.Sum(nil))}
	repo, err := git.PlainOpenWithOptions(dir, &git.PlainOpenOptions{EnableDotGitCommonDir: true})
	if errors.Is(err, git.ErrRepositoryNotExists) {
		return out, nil
	}
	if err != nil {
		return out, fmt.Errorf("open git repository %s: %w", dir, err)
	}
	head, err := repo.Head()
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return out, nil
	}
	if err != nil {
		return out, fmt.Errorf("read HEAD of %s: %w", dir, err)
	}
	err = checkObjectSize(repo, head.Hash())
	var commit *object.Commit
	if err == nil {
		commit, err = repo.CommitObject(head.Hash())
	}
	if err != nil {
		return out, fmt.Errorf("read commit %s of %s: %w", head.Hash(), dir, err)
	}
	for _, f := range files {
		same, err := committedAs(repo, commit, f)
		if err != nil {
			return out, fmt.Errorf("read %s of commit %s: %w", f.Path, head.Hash(), err)
		}
		if !same {
			return out, nil
		}
	}
	out.Commit = head.Hash().String()
	return out, nil
}

// maxObject limits a commit or folder of git, in bytes: go-git holds these in memory.
const maxObject = 8 << 20

// checkObjectSize refuses an object that unfolds to more than a commit or folder has.
func checkObjectSize(repo *git.Repository, hash plumbing.Hash) error {
	n, err := repo.Storer.EncodedObjectSize(hash)
	if err == nil && n > maxObject {
		err = fmt.Errorf("it has %d bytes; at most %d", n, maxObject)
	}
	return err
}

// committedAs reports whether the commit holds the file with these bytes.
func committedAs(repo *git.Repository, commit *object.Commit, f SourceFile) (bool, error) {
	hash, mode := commit.TreeHash, filemode.Dir
	for _, name := range strings.Split(f.Path, "/") {
		if mode != filemode.Dir {
			return false, nil
		}
		if err := checkObjectSize(repo, hash); err != nil {
			return false, err
		}
		tree, err := repo.TreeObject(hash)
		if err != nil {
			return false, err
		}
		i := slices.IndexFunc(tree.Entries, func(e object.TreeEntry) bool { return e.Name == name })
		if i < 0 {
			return false, nil
		}
		hash, mode = tree.Entries[i].Hash, tree.Entries[i].Mode
	}
	if mode != filemode.Regular && mode != filemode.Executable && mode != filemode.Deprecated {
		return false, nil
	}
	n, err := repo.Storer.EncodedObjectSize(hash)
	if err != nil || n != int64(len(f.Bytes)) {
		return false, err
	}
	blob, err := repo.BlobObject(hash)
	if err != nil {
		return false, err
	}
	r, err := blob.Reader()
	if err != nil {
		return false, err
	}
	defer r.Close()
	have, err := io.ReadAll(io.LimitReader(r, n+1))
	return err == nil && bytes.Equal(have, f.Bytes), err
}
