package modelrepo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"
)

func TestReadmeAndImages(t *testing.T) {
	t.Parallel()
	base := "models/performance_prediction/Demo/"
	dir := writeRepository(t, map[string]string{base + "README.md": "hello", base + "images/a.png": "png", base + "secret.png": "no"})
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
		t.Errorf(`%q %s %v; want string(text) == "hello" && sha == "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"`, text, sha, err)
	}
	if data, kind, err := r.Image(m, "a.png"); err != nil || string(data) != "png" || kind != "image/png" {
		t.Errorf(`%q %s %v; want string(data) == "png" && kind == "image/png"`, data, kind, err)
	}
	for _, name := range []string{"b.png", "../secret.png", "..%2fsecret.png", "", ".", "/etc/passwd", "a.txt", "..\\a.png", "images/a.png"} {
		if _, _, err := r.Image(m, name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v; want errors.Is(err, fs.ErrNotExist)", name, err)
		}
	}
	if data, _, err := r.Image(m, "link.png"); err == nil {
		t.Errorf("a link out of the repository was followed: %q; want an error", data)
	}
}

// linkGit links to a file of the working copy's own administration.
func linkGit(path, file string) error {
	root := filepath.Dir(path)
	up := ""
	for range 6 {
		if _, err := os.Stat(filepath.Join(root, "models")); err == nil {
			break
		}
		root, up = filepath.Dir(root), "../"+up
	}
	return errors.Join(os.MkdirAll(filepath.Join(root, ".git"), 0o700), os.WriteFile(filepath.Join(root, ".git", file), []byte("https://bot:token@forge"), 0o600), os.Symlink(up+".git/"+file, path))
}

// What is no regular file, too large or elsewhere is neither shown nor waited for.
func TestFilesThatAreNoFiles(t *testing.T) {
	t.Parallel()
	base := "models/performance_prediction/Demo/"
	for name, put := range map[string]func(path string) error{
		"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"socket": func(path string) error { return syscall.Mknod(path, syscall.S_IFSOCK|0o600, 0) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"device": func(path string) error { return os.Symlink("/dev/zero", path) },
		"outside": func(path string) error {
			return os.Symlink("/etc/hostname", path)
		},
		"link inside":        func(path string) error { return os.Symlink("model.yaml", path) },
		"link to the remote": func(path string) error { return linkGit(path, "config") },
		"through a linked folder": func(path string) error {
			return errors.Join(os.Mkdir(path+".d", 0o700), os.WriteFile(path+".d/x", []byte("secret"), 0o600), os.Symlink(filepath.Base(path)+".d/x", path))
		},
		"link to a pipe": func(path string) error {
			return errors.Join(syscall.Mkfifo(filepath.Join(filepath.Dir(path), "pipe"), 0o600), os.Symlink("pipe", path))
		},
		"too large": func(path string) error { return os.WriteFile(path, make([]byte, 9<<20), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := writeRepository(t, map[string]string{base + "images/a.png": "png"})
			for _, file := range []string{"README.md", "images/x.png"} {
				if err := put(filepath.Join(dir, base, file)); err != nil {
					t.Fatal(err)
				}
			}
			r, err := Open(dir, "")
			if err != nil {
				t.Fatal(err)
			}
			m := r.Models["DEMO"]
			if text, _, err := r.Readme(m); err == nil {
				t.Errorf("README: %d bytes; want an error", len(text))
			}
			if data, _, err := r.Image(m, "x.png"); err == nil {
				t.Errorf("image: %d bytes; want an error", len(data))
			}
		})
	}
	// A pipe in the place of a description is a fault, not a wait.
	dir := writeRepository(t, map[string]string{base + "model.yaml": ""})
	if err := os.MkdirAll(filepath.Join(dir, base), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, base, "model.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := Open(dir, ""); err == nil && len(r.Faults) == 0 && len(r.Models) > 0 {
		t.Errorf("models %v; want ((an error || len(r.Faults) != 0) || len(r.Models) <= 0)", r.Models)
	}
}

func TestHeadCommit(t *testing.T) {
	t.Parallel()
	dir := writeRepository(t, nil)
	if _, err := HeadCommit(dir); !errors.Is(err, ErrNoCommit) {
		t.Errorf("no repository: %v; want errors.Is(err, ErrNoCommit)", err)
	}
	repo, err := git.PlainInit(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := HeadCommit(dir); !errors.Is(err, ErrNoCommit) {
		t.Errorf("no commit: %v; want errors.Is(err, ErrNoCommit)", err)
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
