package modelrepo

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"
)

func commitAll(t *testing.T, repo *git.Repository) string {
	t.Helper()
	w, err := repo.Worktree()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.AddGlob("."); err != nil {
		t.Fatal(err)
	}
	hash, err := w.Commit("all", &git.CommitOptions{Author: &object.Signature{Name: "a", Email: "a@localhost", When: time.Unix(1, 0)}})
	if err != nil {
		t.Fatal(err)
	}
	return hash.String()
}

// A commit is claimed only where it holds the files to the byte, in a repository of
// the folder's own.
func TestReadProvenance(t *testing.T) {
	t.Parallel()
	outer := t.TempDir()
	dir := filepath.Join(outer, "modelrepo")
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	model, set := "models/a/M/model.yaml", "datasets/D.yaml"
	check := func(what, modelText, commit string) {
		t.Helper()
		got, err := ReadProvenance(dir, SourceFile{Path: model, Bytes: []byte(modelText)}, SourceFile{Path: set, Bytes: []byte("set")})
		sum := sha256.Sum256([]byte(modelText + "set"))
		if want := (Provenance{Commit: commit, Digest: hex.EncodeToString(sum[:])}); err != nil || got != want || got.Dirty() != (commit == "") {
			t.Errorf("%s: got %+v, %v, want %+v", what, got, err, want)
		}
	}
	write(model, "one")
	write(set, "set")
	check("a plain folder", "one", "")
	around, err := git.PlainInit(outer, false)
	if err != nil {
		t.Fatal(err)
	}
	commitAll(t, around)
	check("a plain folder inside another repository", "one", "")
	own, err := git.PlainInit(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	check("a repository without a commit", "one", "")
	commit := commitAll(t, own)
	check("as committed", "one", commit)
	write(model, "two")
	check("edited, not committed", "two", "")
	write("models/a/N/model.yaml", "new")
	write(model, "one")
	check("another model is uncommitted", "one", commit)
}
