package modelrepo

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// SourceFile is a file as it was read.
type SourceFile struct {
	Path  string // relative to the repository, with forward slashes
	Bytes []byte
}

// Provenance is where a definition came from.
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
// commit of a repository around it says nothing about its files.
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
	commit, err := repo.CommitObject(head.Hash())
	if err != nil {
		return out, fmt.Errorf("read commit %s of %s: %w", head.Hash(), dir, err)
	}
	for _, f := range files {
		same, err := committedAs(commit, f)
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

// committedAs reports whether the commit holds the file with these bytes.
func committedAs(commit *object.Commit, f SourceFile) (bool, error) {
	file, err := commit.File(f.Path)
	if errors.Is(err, object.ErrFileNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if file.Size != int64(len(f.Bytes)) {
		return false, nil
	}
	r, err := file.Reader()
	if err != nil {
		return false, err
	}
	defer r.Close()
	have, err := io.ReadAll(r)
	return err == nil && bytes.Equal(have, f.Bytes), err
}
