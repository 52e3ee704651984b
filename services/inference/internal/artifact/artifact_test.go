package artifact

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

func sampleFiles() map[string][]byte {
	return map[string][]byte{"MLmodel": []byte("flavors: {}\n"), "model.onnx": []byte("graph"), "extra/notes.txt": []byte("n")}
}

func setupStore(t *testing.T, require bool) (*fixturetest.Registry, *tracker.Client, *Store, string) {
	t.Helper()
	reg := fixturetest.NewRegistry(t)
	client := tracker.New(reg.URL, nil)
	dir := t.TempDir()
	s, err := New(dir, client, require)
	if err != nil {
		t.Fatal(err)
	}
	return reg, client, s, dir
}

func getVersion(t *testing.T, c *tracker.Client, number string) tracker.ModelVersion {
	t.Helper()
	v, err := c.GetModelVersion(context.Background(), "m", number)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestFetchKeepsWhatItHas(t *testing.T) {
	t.Parallel()
	reg, client, s, dir := setupStore(t, true)
	v := getVersion(t, client, reg.Register("m", sampleFiles(), nil))
	ctx := context.Background()
	a, err := s.Fetch(ctx, v)
	if err != nil {
		t.Fatal(err)
	}
	if !a.Verified || a.Digest != fixturetest.Digest(sampleFiles()) || a.Dir != filepath.Join(dir, a.Digest) {
		t.Errorf("artifact %+v; want a.Verified && a.Digest == fixturetest.Digest(sampleFiles()) && a.Dir == filepath.Join(dir, a.Digest)", a)
	}
	if b, err := os.ReadFile(filepath.Join(a.Dir, "extra", "notes.txt")); err != nil || string(b) != "n" {
		t.Errorf(`%q, %v; want string(b) == "n"`, b, err)
	}
	n := reg.Downloads("m")
	if _, err := s.Fetch(ctx, v); err != nil || reg.Downloads("m") != n {
		t.Errorf(`the second fetch downloaded %d files, %v; want reg.Downloads("m") == n`, reg.Downloads("m")-n, err)
	}
	reg.Down(true) // local artifacts need no tracker
	if _, err := s.Fetch(ctx, v); err != nil {
		t.Error(err)
	}
	reg.Down(false)
	// A folder that was damaged is not believed.
	if err := os.WriteFile(filepath.Join(a.Dir, "model.onnx"), []byte("evil"), 0o600); err != nil {
		t.Fatal(err)
	}
	if a, err = s.Fetch(ctx, v); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(a.Dir, "model.onnx")); err != nil || string(b) != "graph" {
		t.Errorf(`after damage: %q, %v; want string(b) == "graph"`, b, err)
	}
}

func TestFetchRefuses(t *testing.T) {
	t.Parallel()
	reg, client, s, dir := setupStore(t, true)
	for name, tags := range map[string]map[string]string{
		"other digest": {DigestTag: strings.Repeat("ab", 32)}, "no digest": {DigestTag: ""}, "a path": {DigestTag: "../../etc"},
	} {
		if _, err := s.Fetch(context.Background(), getVersion(t, client, reg.Register("m", sampleFiles(), tags))); !errors.Is(err, ErrDigest) {
			t.Errorf("%s: %v; want errors.Is(err, ErrDigest)", name, err)
		}
	}
	v := getVersion(t, client, reg.Register("m", sampleFiles(), nil))
	reg.Down(true)
	if _, err := s.Fetch(context.Background(), v); !errors.Is(err, tracker.ErrUnavailable) {
		t.Errorf("with the tracker down: %v; want errors.Is(err, tracker.ErrUnavailable)", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("refused fetches left %v, %v; want len(left) == 0", left, err)
	}
}

func TestTrimKeepsTheRecent(t *testing.T) {
	t.Parallel()
	_, _, s, dir := setupStore(t, false)
	old := time.Now().Add(-2 * time.Hour)
	name := func(i int) string {
		return strings.Repeat("0", 62) + string("0123456789abcdef"[i/16]) + string("0123456789abcdef"[i%16])
	}
	for i := range keepFolders + 5 {
		p := filepath.Join(dir, name(i))
		if err := errors.Join(os.Mkdir(p, 0o755), os.Chtimes(p, old, old.Add(time.Duration(i)*time.Second))); err != nil {
			t.Fatal(err)
		}
	}
	stale, fresh := filepath.Join(dir, partial+"stale"), filepath.Join(dir, partial+"fresh")
	if err := errors.Join(os.Mkdir(stale, 0o755), os.Chtimes(stale, old, old), os.Mkdir(fresh, 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := s.Trim(); err != nil {
		t.Fatal(err)
	}
	exists := func(p string) bool { _, err := os.Stat(p); return err == nil }
	if exists(filepath.Join(dir, name(4))) || !exists(filepath.Join(dir, name(5))) || exists(stale) || !exists(fresh) {
		left, _ := os.ReadDir(dir)
		t.Errorf("left are %v; want !exists(filepath.Join(dir, name(4))) && exists(filepath.Join(dir, name(5))) && !exists(stale) && exists(fresh)", left)
	}
}

// Linked files stay when the artifact is removed; nothing but its own regular files is linked.
func TestLinkToOutlivesTheArtifact(t *testing.T) {
	t.Parallel()
	reg, client, s, _ := setupStore(t, true)
	a, err := s.Fetch(context.Background(), getVersion(t, client, reg.Register("m", sampleFiles(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(a.Dir, "unknown"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	linked, copied := t.TempDir(), t.TempDir()
	if err := a.LinkTo(linked); err != nil {
		t.Fatal(err)
	}
	from, err := os.OpenRoot(a.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenRoot(copied)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if err := errors.Join(to.Mkdir("extra", 0o700), copyFile(from, to, "extra/notes.txt", a.files["extra/notes.txt"])); err != nil {
		t.Fatal(err)
	}
	if err := copyFile(from, to, "MLmodel", a.files["model.onnx"]); !errors.Is(err, ErrDigest) {
		t.Errorf("copying a file with another digest: got %v, want ErrDigest", err)
	}
	if err := os.RemoveAll(a.Dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range sampleFiles() {
		if got, err := os.ReadFile(filepath.Join(linked, name)); err != nil || string(got) != string(want) {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
	if got, err := os.ReadFile(filepath.Join(copied, "extra/notes.txt")); err != nil || string(got) != "n" {
		t.Errorf("the copy: got %q, %v, want n", got, err)
	}
	if _, err := os.Lstat(filepath.Join(linked, "unknown")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that was not hashed: got %v, want it left out", err)
	}
}

func TestLinkToFollowsNoLink(t *testing.T) {
	t.Parallel()
	reg, client, s, _ := setupStore(t, true)
	a, err := s.Fetch(context.Background(), getVersion(t, client, reg.Register("m", sampleFiles(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	for _, name := range []string{"notes.txt", "model.onnx"} {
		if err := os.WriteFile(filepath.Join(elsewhere, name), []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"model.onnx": "model.onnx", "extra": ""} {
		old := filepath.Join(t.TempDir(), "old")
		path := filepath.Join(a.Dir, link)
		if err := errors.Join(os.Rename(path, old), os.Symlink(filepath.Join(elsewhere, target), path)); err != nil {
			t.Fatal(err)
		}
		if err := a.LinkTo(t.TempDir()); err == nil {
			t.Errorf("%s is a link: got no error", link)
		}
		if err := errors.Join(os.Remove(path), os.Rename(old, path)); err != nil {
			t.Fatal(err)
		}
	}
}
