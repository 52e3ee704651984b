package artifact

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

func openStore(t testing.TB, maxFile int64) (*Store, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "artifacts")
	s, err := Open(dir, maxFile)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, dir
}

func readContent(t *testing.T, s *Store, p string) string {
	t.Helper()
	f, _, err := s.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// listUploads lists the remains of uploads.
func listUploads(t *testing.T, dir string) []fs.DirEntry {
	t.Helper()
	left, err := os.ReadDir(filepath.Join(dir, uploadsDir))
	if err != nil {
		t.Fatal(err)
	}
	return left
}

func TestWriteListDelete(t *testing.T) {
	t.Parallel()
	s, dir := openStore(t, 100)
	for p, body := range map[string]string{"1/run/model/MLmodel": "a", "1/run/model/data/w.bin": "bb", "1/run/größe & 5%.txt": "", "2/x": "c"} {
		if err := s.Write(p, strings.NewReader(body)); err != nil {
			t.Fatal(err)
		}
		if got := readContent(t, s, p); got != body {
			t.Errorf("%s holds %q, want %q", p, got, body)
		}
	}
	if err := s.Write("2/x", strings.NewReader("again")); err != nil || readContent(t, s, "2/x") != "again" {
		t.Errorf(`written again: %v, %q; want readContent(t, s, "2/x") == "again"`, err, readContent(t, s, "2/x"))
	}
	for p, want := range map[string]string{
		"": "[{1 true} {2 true}]", "1/run": "[{größe & 5%.txt false} {model true}]", "1/run/model": "[{MLmodel false} {data true}]",
		"none": "[]", "2/x": "[]", "2/x/y": "[]",
	} {
		entries, err := s.List(p)
		if err != nil {
			t.Fatal(err)
		}
		type short struct {
			name string
			dir  bool
		}
		got := []short{}
		for _, e := range entries {
			got = append(got, short{e.Name, e.Dir})
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%q holds %v, want %s", p, got, want)
		}
	}
	for p, want := range map[string]error{"1": ErrFolder, "none": fs.ErrNotExist, "2/x/y": fs.ErrNotExist, "": ErrPath} {
		if _, _, err := s.Open(p); !errors.Is(err, want) {
			t.Errorf("open %q: %v, want %v", p, err, want)
		}
	}
	if err := s.Write("1/run", strings.NewReader("")); !errors.Is(err, ErrFolder) {
		t.Errorf("a file over a folder: %v; want errors.Is(err, ErrFolder)", err)
	}
	if err := s.Write("2/x/y", strings.NewReader("")); !errors.Is(err, ErrFile) {
		t.Errorf("a file below a file: %v; want errors.Is(err, ErrFile)", err)
	}
	for _, p := range []string{"1/run/model", "none", "2/x/y", "2/x"} {
		if err := s.Delete(p); err != nil {
			t.Errorf("delete %q: %v", p, err)
		}
	}
	if _, _, err := s.Open("1/run/model/data/w.bin"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("deleted file: %v; want errors.Is(err, fs.ErrNotExist)", err)
	}
	if left := listUploads(t, dir); len(left) > 0 {
		t.Errorf("uploads left: %v; want len(left) <= 0", left)
	}
}

func TestFailedWriteLeavesWhatWas(t *testing.T) {
	t.Parallel()
	s, dir := openStore(t, 100)
	if err := s.Write("a/f", strings.NewReader("old")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("connection lost")
	for name, c := range map[string]struct {
		body   io.Reader
		create func(string) (*os.File, error)
		want   error
	}{
		"too large": {strings.NewReader(strings.Repeat("x", 101)), s.create, ErrTooLarge},
		"cut off":   {io.MultiReader(strings.NewReader("new"), iotest.ErrReader(broken)), s.create, broken},
		// The kernel's own "no space left on device".
		"disk full": {strings.NewReader("new"), func(string) (*os.File, error) { return os.OpenFile("/dev/full", os.O_WRONLY, 0) }, ErrFull},
	} {
		s := &Store{root: s.root, maxFile: s.maxFile, create: c.create}
		if err := s.Write("a/f", c.body); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if got := readContent(t, s, "a/f"); got != "old" {
			t.Errorf(`%s: the file holds %q; want got == "old"`, name, got)
		}
		if left := listUploads(t, dir); len(left) > 0 {
			t.Errorf("%s: uploads left: %v; want len(left) <= 0", name, left)
		}
	}
	if err := s.Write("a/g", strings.NewReader(strings.Repeat("x", 100))); err != nil {
		t.Errorf("a file of the largest size: %v", err)
	}
}

func TestReadersSeeWholeFiles(t *testing.T) {
	t.Parallel()
	s, _ := openStore(t, 1<<20)
	bodies := [][]byte{bytes.Repeat([]byte("a"), 200_000), bytes.Repeat([]byte("b"), 100_000)}
	if err := s.Write("f", bytes.NewReader(bodies[0])); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 20 {
				if i%2 == 0 {
					if err := s.Write("f", bytes.NewReader(bodies[i/2])); err != nil {
						t.Error(err)
					}
					continue
				}
				if got := readContent(t, s, "f"); got != string(bodies[0]) && got != string(bodies[1]) {
					t.Errorf("half a file: %d bytes; want (got == string(bodies[0]) || got == string(bodies[1]))", len(got))
				}
			}
		})
	}
	wg.Wait()
}

func TestLinksDoNotLeadOut(t *testing.T) {
	t.Parallel()
	s, dir := openStore(t, 100)
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"dir": outside, "file": secret, "up": "../../..", "self": "self"} {
		if err := os.Symlink(to, filepath.Join(dir, filesDir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{"dir/secret", "file", "up/secret", "self"} {
		if f, _, err := s.Open(p); err == nil {
			f.Close()
			t.Errorf("%s was read; want an error", p)
		}
	}
	for _, p := range []string{"dir/new", "up/new", "self/new"} {
		if err := s.Write(p, strings.NewReader("x")); err == nil {
			t.Errorf("%s was written; want an error", p)
		}
	}
	if entries, err := s.List("dir"); err == nil && len(entries) > 0 {
		t.Errorf("listed %v; want (an error || len(entries) <= 0)", entries)
	}
	if entries, err := s.List(""); err != nil || len(entries) > 0 {
		t.Errorf("the root lists %v, %v; want len(entries) <= 0", entries, err)
	}
	_ = s.Delete("dir/secret") // refused or not, only the file matters
	if err := s.Delete("dir"); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != "secret" {
		t.Errorf(`the file outside: %q, %v; want string(b) == "secret"`, b, err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("outside are %v, %v; want len(entries) == 1", entries, err)
	}
}

var badPaths = []string{"", ".", "..", "/", "/etc/passwd", "../x", "a/../b", "a/..", "a//b", "a/", "./a", "a/./b", `a\b`, `..\x`,
	"a\x00b", "a\nb", "a\x7fb", "%2e%2e/x", "%252e%252e/x", "%25252e%25252e/x", "a/%2e%2e/%2e%2e/b", "%2fetc", "a%00b", "%00/%", "%2e%2e/%", "\xff",
	strings.Repeat("x", 256), strings.Repeat("x/", 600) + "x"}

func TestBadPaths(t *testing.T) {
	t.Parallel()
	s, _ := openStore(t, 100)
	for _, p := range badPaths {
		_, _, err := s.Open(p)
		if !errors.Is(err, ErrPath) {
			t.Errorf("open %q: %v; want errors.Is(err, ErrPath)", p, err)
		}
		if err := s.Write(p, strings.NewReader("x")); !errors.Is(err, ErrPath) {
			t.Errorf("write %q: %v; want errors.Is(err, ErrPath)", p, err)
		}
		if err := s.Delete(p); !errors.Is(err, ErrPath) {
			t.Errorf("delete %q: %v; want errors.Is(err, ErrPath)", p, err)
		}
		if _, err := s.List(p); p != "" && !errors.Is(err, ErrPath) {
			t.Errorf(`list %q: %v; want (p == "" || errors.Is(err, ErrPath))`, p, err)
		}
	}
}

// FuzzPath: a path that is accepted names a file strictly below the folder, and a file written there can be read and
// listed under the same name.
func FuzzPath(f *testing.F) {
	for _, p := range badPaths {
		f.Add(p)
	}
	for _, p := range []string{"a", "1/run/artifacts/model/MLmodel", "größe & 5%.txt", "a%zz", "...", ".hidden", "a b/c"} {
		f.Add(p)
	}
	s, dir := openStore(f, 1<<20)
	base := filepath.Join(dir, filesDir)
	f.Fuzz(func(t *testing.T, p string) {
		if checkPath(p) != nil {
			return
		}
		at := filepath.Join(base, filepath.FromSlash(p))
		if !strings.HasPrefix(at, base+"/") {
			t.Fatalf(`%q leads to %s; want strings.HasPrefix(at, base+"/")`, p, at)
		}
		// Inputs may name each other's folders; each starts from nothing.
		first, _, _ := strings.Cut(p, "/")
		if err := s.Delete(first); err != nil {
			t.Fatal(err)
		}
		if err := s.Write(p, strings.NewReader(p)); err != nil {
			t.Fatalf("write %q: %v", p, err)
		}
		if b, err := os.ReadFile(at); err != nil || string(b) != p {
			t.Fatalf("%q holds %q, %v; want string(b) == p", p, b, err)
		}
		if err := s.Delete(first); err != nil {
			t.Fatal(err)
		}
	})
}
