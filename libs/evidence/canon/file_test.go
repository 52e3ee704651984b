package canon_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/canon"
)

func TestInputFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pad := func(n int) string { return `{"a":"` + strings.Repeat("x", n-len(`{"a":""}`)) + `"}` }
	if v, err := canon.ReadFile(write("most", pad(canon.MaxFile)), canon.ObjectRoot()); err != nil || v.(*canon.Object).Len() != 1 {
		t.Error("a file of 2 MiB:", err, "want v.(*canon.Object).Len() == 1")
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(write("array", `[1]`), link); err != nil {
		t.Fatal(err)
	}
	if v, err := canon.ReadFile(link); err != nil || len(v.(canon.Array)) != 1 {
		t.Error("a link:", v, err, "want len(v.(canon.Array)) == 1")
	}
	for path, want := range map[string]canon.Reason{
		write("more", pad(canon.MaxFile+1)): canon.TooLarge, write("empty", ""): canon.InvalidJSON, link: canon.NotAnObject,
	} {
		var e *canon.SyntaxError
		if _, err := canon.ReadFile(path, canon.ObjectRoot()); !errors.As(err, &e) || e.Reason != want {
			t.Errorf("%s: %v; want %s", filepath.Base(path), err, want)
		}
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, pipe} {
		if _, err := canon.ReadFile(path); err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf(`%s: %v; want an error && strings.Contains(err.Error(), "no regular file")`, path, err)
		}
	}
	if _, err := canon.ReadFile(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err, "want errors.Is(err, fs.ErrNotExist)")
	}
}

func TestReadBytesIsBoundedToo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "in.yml")
	for _, c := range []struct {
		size int
		ok   bool
	}{{canon.MaxFile, true}, {canon.MaxFile + 1, false}} {
		if err := os.WriteFile(path, make([]byte, c.size), 0o600); err != nil {
			t.Fatal(err)
		}
		if data, err := canon.ReadBytes(path); (err == nil) != c.ok || c.ok && len(data) != c.size {
			t.Errorf("%d bytes: %d, %v; want (err == nil) == c.ok && (!c.ok || len(data) == c.size)", c.size, len(data), err)
		}
	}
	if _, err := canon.ReadBytes(dir); err == nil {
		t.Error("a folder was read")
	}
}
