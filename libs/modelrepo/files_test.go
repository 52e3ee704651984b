package modelrepo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"
)

func TestReadmeAndImages(t *testing.T) {
	t.Parallel()
	base := "models/performance_prediction/Demo/"
	dir := repository(t, map[string]string{base + "README.md": "hello", base + "images/a.png": "png", base + "secret.png": "no"})
	outside := filepath.Join(t.TempDir(), "x.png")
	if err := os.WriteFile(outside, []byte("outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, base, "images", "link.png")); err != nil {
		t.Fatal(err)
	}
	r, err := Open(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	m := r.Models["DEMO"]
	text, sha, err := r.Readme(m)
	if err != nil || string(text) != "hello" || sha != "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" {
		t.Errorf("%q %s %v", text, sha, err)
	}
	if data, kind, err := r.Image(m, "a.png"); err != nil || string(data) != "png" || kind != "image/png" {
		t.Errorf("%q %s %v", data, kind, err)
	}
	for _, name := range []string{"b.png", "../secret.png", "..%2fsecret.png", "", ".", "/etc/passwd", "a.txt", "..\\a.png", "images/a.png"} {
		if _, _, err := r.Image(m, name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if data, _, err := r.Image(m, "link.png"); err == nil {
		t.Errorf("a link out of the repository was followed: %q", data)
	}
}

func TestHeadCommit(t *testing.T) {
	t.Parallel()
	dir := repository(t, nil)
	if _, err := HeadCommit(dir); !errors.Is(err, ErrNoCommit) {
		t.Errorf("no repository: %v", err)
	}
	repo, err := git.PlainInit(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := HeadCommit(dir); !errors.Is(err, ErrNoCommit) {
		t.Errorf("no commit: %v", err)
	}
	w, err := repo.Worktree()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.AddGlob("."); err != nil {
		t.Fatal(err)
	}
	want, err := w.Commit("first", &git.CommitOptions{Author: &object.Signature{Name: "a", Email: "a@localhost", When: time.Unix(1, 0)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dir, filepath.Join(dir, "models")} {
		if got, err := HeadCommit(d); err != nil || got != want.String() {
			t.Errorf("%s: %s, %v; want %s", d, got, err, want)
		}
	}
}
