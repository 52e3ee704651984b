package confined_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/confined"
	"github.com/mlp-platform/platform/libs/evidence/canon"
)

func openFolder(t testing.TB) (*confined.Folder, string) {
	t.Helper()
	outer := t.TempDir()
	dir := filepath.Join(outer, "folder")
	for name, text := range map[string]string{"folder/a/b/file": "hello", "folder/top": "top", "secret": "secret"} {
		path := filepath.Join(outer, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"out": "../secret", "up": "..", "in": "a", "loop": "loop", "a/link": "b/file", "none": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(dir, filepath.FromSlash(link))); err != nil {
			t.Fatal(err)
		}
	}
	f, err := confined.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f, dir
}

func TestRead(t *testing.T) {
	t.Parallel()
	f, _ := openFolder(t)
	if data, err := f.Read("a/b/file", 5); err != nil || string(data) != "hello" {
		t.Errorf(`%q %v; want string(data) == "hello"`, data, err)
	}
	for name, want := range map[string]string{
		"none-such": "none-such does not exist", "a/none": "a/none does not exist", "top/x": "top is no folder", "a": "a is no regular file", ".": ". is no regular file",
		"out": "out is a symbolic link", "up/secret": "up is a symbolic link", "in/b/file": "in is a symbolic link", "loop": "loop is a symbolic link",
		"a/link": "a/link is a symbolic link", "none": "none is a symbolic link",
		"../secret": "is no path within the folder", "a/../top": "is no path within", "/etc/passwd": "is no path within", "": "is no path within", "a//b": "is no path within", "a\x00": "cannot be read",
	} {
		_, err := f.Read(name, 10)
		var fault *confined.Fault
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret\x00") {
			t.Errorf("%q: %v; want errors.As(err, &fault) && strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), \"secret\\x00\")", name, err)
		}
		if fault != nil && fault.Absent != strings.Contains(want, "does not exist") {
			t.Errorf(`%q: absent %v; want (fault == nil || fault.Absent == strings.Contains(want, "does not exist"))`, name, fault.Absent)
		}
	}
	if _, err := f.Read("a/b/file", 4); err == nil || !strings.Contains(err.Error(), "a/b/file is larger than 4 bytes") {
		t.Error(err, `want an error && strings.Contains(err.Error(), "a/b/file is larger than 4 bytes")`)
	}
}

func TestInspect(t *testing.T) {
	t.Parallel()
	f, dir := openFolder(t)
	want := canon.DigestBytes([]byte("hello"))
	for _, c := range []struct {
		most int64
		kept bool
	}{{5, true}, {4, false}, {0, false}} {
		got, err := f.Inspect("a/b/file", c.most)
		if err != nil || got.Digest != want || got.Size != 5 || (got.Bytes != nil) != c.kept || c.kept && string(got.Bytes) != "hello" {
			t.Errorf(`%d: %+v %v; want got.Digest == want && got.Size == 5 && (got.Bytes != nil) == c.kept && (!c.kept || string(got.Bytes) == "hello")`, c.most, got, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "empty"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Inspect("empty", 0); err != nil || got.Bytes == nil {
		t.Errorf("%+v %v; want got.Bytes != nil", got, err)
	}
	if err := os.Truncate(filepath.Join(dir, "empty"), confined.MaxFileBytes); err != nil { // a hole takes no room
		t.Fatal(err)
	}
	for i := range 4 {
		if _, err := f.Inspect("empty", 0); (err != nil) != (i == 3) {
			t.Error(i, err, "want (err != nil) == (i == 3)") // a few bytes were read before, so the fourth is too much
		}
	}
	if err := os.Truncate(filepath.Join(dir, "empty"), confined.MaxFileBytes+1); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Inspect("empty", 0); err == nil || !strings.Contains(err.Error(), "is larger than") {
		t.Error(err, `want an error && strings.Contains(err.Error(), "is larger than")`)
	}
}

func TestSub(t *testing.T) {
	t.Parallel()
	f, _ := openFolder(t)
	sub, err := f.Sub("a")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Close() }()
	if _, err := sub.Read("link", 10); err == nil || err.Error() != "a/link is a symbolic link, which is not followed" {
		t.Error(err, `want an error && err.Error() == "a/link is a symbolic link, which is not followed"`)
	}
	for _, name := range []string{"top", "in", "up", "none-such", ".."} {
		if _, err := f.Sub(name); err == nil {
			t.Errorf("%s was opened; want an error", name)
		}
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	f, dir := openFolder(t)
	got, err := f.List()
	if err != nil || !slices.Equal(got.Files, []string{"a/b/file", "top"}) || !slices.Equal(got.Other, []string{"a/link", "in", "loop", "none", "out", "up"}) {
		t.Errorf(`%+v %v; want slices.Equal(got.Files, []string{"a/b/file", "top"}) && slices.Equal(got.Other, []string{"a/link", "in", "loop", "none", "out", "up"})`, got, err)
	}
	if err := os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", confined.MaxDepth+1)), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := f.List(); err == nil || !strings.Contains(err.Error(), "folders deep") {
		t.Error(err, `want an error && strings.Contains(err.Error(), "folders deep")`)
	}
}

func TestListIsBounded(t *testing.T) {
	t.Parallel()
	f, dir := openFolder(t)
	for i := range confined.MaxEntries {
		if err := os.WriteFile(filepath.Join(dir, "a", strconv.Itoa(i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.List(); err == nil || !strings.Contains(err.Error(), "holds more than 10000") {
		t.Error(err, `want an error && strings.Contains(err.Error(), "holds more than 10000")`)
	}
}

func TestContains(t *testing.T) {
	t.Parallel()
	f, _ := openFolder(t)
	for _, c := range []struct {
		outer, name string
		want        bool
	}{
		{"a", "a/b/file", true}, {"a", "a", true}, {".", "top", true}, {"in", "a/b/file", true},
		{"a/b", "a/link", false}, {"a", "top", false}, {"none-such", "top", false}, {"a", "none-such", false},
	} {
		if got := f.Contains(c.outer, c.name); got != c.want {
			t.Errorf("%s in %s: %v; want got == %v", c.name, c.outer, got, c.want)
		}
	}
}

func TestOpenFaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"none", "file"} {
		if _, err := confined.Open(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was opened; want an error", name)
		}
	}
}
