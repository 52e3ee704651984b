package forge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	fdiff "github.com/go-git/go-git/v5/plumbing/format/diff"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/utils/diff"
	"github.com/go-git/go-git/v5/utils/merkletrie"
	"github.com/sergi/go-diff/diffmatchpatch"

	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// Limits of one patch: the time of a comparison grows with the square of the differences.
const (
	maxPatched = 256 << 10 // bytes of a file on either side
	patchTime  = 500 * time.Millisecond
)

// resolveCommit finds a commit by its SHA or a prefix of it.
func resolveCommit(repo *git.Repository, sha string) (*object.Commit, error) {
	id, err := commitID(sha)
	if err != nil {
		return nil, err
	}
	hash := plumbing.NewHash(id)
	if !isFullSHA(id) {
		// The object store has no branches, so the name is not taken as a branch.
		found, err := byPrefix(repo, id)
		if err != nil {
			return nil, err
		}
		hash = found
	}
	c, err := repo.CommitObject(hash)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, fmt.Errorf("commit %s: %w", id, ErrUnknown)
	}
	return c, err
}

// byPrefix finds the only commit with this prefix.
func byPrefix(repo *git.Repository, prefix string) (plumbing.Hash, error) {
	store, ok := repo.Storer.(interface {
		HashesWithPrefix(prefix []byte) ([]plumbing.Hash, error)
	})
	if !ok {
		return plumbing.ZeroHash, fmt.Errorf("commit %s: %w", prefix, ErrUnknown)
	}
	whole := plumbing.NewHash(prefix[:len(prefix)/2*2]) // of whole bytes
	candidates, err := store.HashesWithPrefix(whole[:len(prefix)/2])
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("look for commit %s: %w", prefix, err)
	}
	var found []plumbing.Hash
	for _, h := range candidates {
		if _, err := repo.CommitObject(h); err == nil && strings.HasPrefix(h.String(), prefix) && !slices.Contains(found, h) {
			found = append(found, h)
		}
	}
	if len(found) != 1 {
		return plumbing.ZeroHash, fmt.Errorf("commit %s: %w", prefix, ErrUnknown)
	}
	return found[0], nil
}

// diffCommits compares two commits; from may be nil.
func diffCommits(ctx context.Context, from, to *object.Commit) (object.Changes, error) {
	var before *object.Tree
	if from != nil {
		var err error
		if before, err = from.Tree(); err != nil {
			return nil, fmt.Errorf("read commit %s: %w", from.Hash, err)
		}
	}
	after, err := to.Tree()
	if err != nil {
		return nil, fmt.Errorf("read commit %s: %w", to.Hash, err)
	}
	out, err := object.DiffTreeWithOptions(ctx, before, after, &object.DiffTreeOptions{DetectRenames: true, OnlyExactRenames: true, RenameLimit: maxFiles})
	if err != nil {
		return nil, fmt.Errorf("compare commits: %w", err)
	}
	return out, nil
}

func filesOf(ctx context.Context, repo *git.Repository, from, to string) ([]string, error) {
	before, err := resolveCommit(repo, from)
	if err != nil {
		return nil, err
	}
	after, err := resolveCommit(repo, to)
	if err != nil {
		return nil, err
	}
	list, err := diffCommits(ctx, before, after)
	if err != nil {
		return nil, err
	}
	if len(list) > 10*maxFiles {
		return nil, fmt.Errorf("%d files differ: %w", len(list), ErrUnknown)
	}
	out := make([]string, 0, len(list))
	for _, c := range list {
		for _, p := range []string{c.From.Name, c.To.Name} {
			if p != "" && wire.Storable(p) && (len(out) == 0 || out[len(out)-1] != p) {
				out = append(out, p)
			}
		}
	}
	return out, nil
}

func diffOf(ctx context.Context, repo *git.Repository, from, to string) (Diff, error) {
	after, err := resolveCommit(repo, to)
	if err != nil {
		return Diff{}, err
	}
	if from == "" && len(after.ParentHashes) > 0 {
		from = after.ParentHashes[0].String()
	}
	out := Diff{To: after.Hash.String()}
	var before *object.Commit
	if from != "" {
		if before, err = resolveCommit(repo, from); err != nil {
			return Diff{}, err
		}
		out.From = before.Hash.String()
	}
	list, err := diffCommits(ctx, before, after)
	if err != nil {
		return Diff{}, err
	}
	if len(list) > maxFiles {
		list, out.Truncated = list[:maxFiles], true
	}
	for _, c := range list {
		f, whole, err := fileOf(ctx, c)
		if err != nil {
			return Diff{}, err
		}
		out.Truncated = out.Truncated || !whole
		if f.Path != "" {
			out.Files = append(out.Files, f)
		}
	}
	return out, nil
}

// fileOf describes one change; whole is false if a text file's patch is left out.
func fileOf(ctx context.Context, c *object.Change) (f File, whole bool, err error) {
	if err := ctx.Err(); err != nil {
		return f, false, err
	}
	action, err := c.Action()
	if err != nil {
		return f, false, fmt.Errorf("compare commits: %w", err)
	}
	f = File{Path: c.To.Name, Status: Modified}
	switch {
	case action == merkletrie.Insert:
		f.Status = Added
	case action == merkletrie.Delete:
		f.Status, f.Path = Removed, c.From.Name
	case c.From.Name != c.To.Name:
		f.Status = Renamed
	}
	if !wire.Storable(f.Path) {
		return File{}, false, nil
	}
	before, after, err := c.Files()
	if err != nil {
		return f, false, fmt.Errorf("read %q: %w", f.Path, err)
	}
	if before == nil && after == nil { // a submodule
		return f, true, nil
	}
	src, srcKind, err := readContent(before)
	if err != nil {
		return f, false, fmt.Errorf("read %q: %w", f.Path, err)
	}
	dst, dstKind, err := readContent(after)
	if err != nil {
		return f, false, fmt.Errorf("read %q: %w", f.Path, err)
	}
	switch {
	case srcKind == binaryFile || dstKind == binaryFile:
		return f, true, nil
	case srcKind == largeFile || dstKind == largeFile:
		return f, false, nil
	}
	p := &patch{from: before, to: after}
	for _, d := range diff.DoWithTimeout(src, dst, patchTime) {
		p.parts = append(p.parts, part{d})
		switch d.Type {
		case diffmatchpatch.DiffInsert:
			f.Additions += countLines(d.Text)
		case diffmatchpatch.DiffDelete:
			f.Deletions += countLines(d.Text)
		}
	}
	if f.Additions+f.Deletions == 0 {
		return f, true, nil
	}
	var b bytes.Buffer
	if err := fdiff.NewUnifiedEncoder(&b, fdiff.DefaultContextLines).Encode(p); err != nil {
		return f, false, fmt.Errorf("write the patch of %q: %w", f.Path, err)
	}
	if i := bytes.Index(b.Bytes(), []byte("\n@@ ")); i >= 0 && wire.Storable(b.String()) {
		f.Patch = b.String()[i+1:]
		return f, true, nil
	}
	return f, false, nil
}

// Kinds of file content in a comparison.
const (
	textFile = iota
	binaryFile
	largeFile // text, too large to compare
)

// readContent returns the text of a file, empty if there is none. Content that is not UTF-8 is binary.
func readContent(f *object.File) (string, int, error) {
	if f == nil {
		return "", textFile, nil
	}
	isBinary, err := f.IsBinary()
	switch {
	case err != nil:
		return "", 0, err
	case isBinary:
		return "", binaryFile, nil
	case f.Size > maxPatched:
		return "", largeFile, nil
	}
	s, err := f.Contents()
	if err == nil && !wire.Storable(s) {
		return "", binaryFile, nil
	}
	return s, textFile, err
}

func countLines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

// patch returns one file's difference in the types of go-git's encoder; go-git's own diff has no time limit.
type patch struct {
	from, to *object.File
	parts    []fdiff.Chunk
}

func (p *patch) FilePatches() []fdiff.FilePatch { return []fdiff.FilePatch{p} }
func (p *patch) Message() string                { return "" }
func (p *patch) IsBinary() bool                 { return false }
func (p *patch) Chunks() []fdiff.Chunk          { return p.parts }

func (p *patch) Files() (from, to fdiff.File) {
	if p.from != nil {
		from = side{p.from}
	}
	if p.to != nil {
		to = side{p.to}
	}
	return from, to
}

type side struct{ f *object.File }

func (s side) Hash() plumbing.Hash     { return s.f.Hash }
func (s side) Mode() filemode.FileMode { return s.f.Mode }
func (s side) Path() string            { return s.f.Name }

type part struct{ d diffmatchpatch.Diff }

func (p part) Content() string { return p.d.Text }

func (p part) Type() fdiff.Operation {
	switch p.d.Type {
	case diffmatchpatch.DiffInsert:
		return fdiff.Add
	case diffmatchpatch.DiffDelete:
		return fdiff.Delete
	}
	return fdiff.Equal
}
