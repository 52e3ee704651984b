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
	reg.Down(true) // what is here needs no tracker
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
