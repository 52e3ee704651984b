package registry_test

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
)

// A refused commit stays refused until a sound one is taken: reading the commit in force again says nothing about it.
func TestRefusedCommitStaysRefused(t *testing.T) {
	t.Parallel()
	samples := func(broken bool) string {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(controlplanetest.Samples())); err != nil {
			t.Fatal(err)
		}
		if broken {
			breakModels(t, dir)
		}
		return dir
	}
	ctx := t.Context()
	r := registry.Open("", "prod", nil, slog.New(slog.DiscardHandler))
	good := samples(false)
	if err := r.Take(ctx, good, "aaa"); err != nil || r.Warning() != "" {
		t.Fatalf("take: %v, warning %q; want neither", err, r.Warning())
	}
	if err := r.Take(ctx, samples(true), "bbb"); err == nil {
		t.Fatal("a broken commit was taken")
	}
	if err := r.Reload(ctx); err != nil || !strings.Contains(r.Warning(), "commit bbb is not in force") {
		t.Errorf("reload: %v, warning %q; want a warning about bbb", err, r.Warning())
	}
	breakModels(t, good)
	if err := r.Reload(ctx); err == nil {
		t.Error("a broken folder was read")
	}
	if err := r.Take(ctx, samples(false), "ccc"); err != nil || r.Warning() != "" {
		t.Errorf("take: %v, warning %q; want neither", err, r.Warning())
	}
}

// breakModels overwrites every model's declaration in dir.
func breakModels(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "model.yaml" {
			return err
		}
		return os.WriteFile(path, []byte("- no model\n"), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}
