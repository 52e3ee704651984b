package app

import (
	"path/filepath"
	"strings"
	"testing"
)

// Without a cache folder of the user there is none at all: below a shared temporary folder, others could make it first.
func TestModelCacheIsTheUsersOwn(t *testing.T) {
	base := []string{"PLATFORM_DATABASE_URL=postgres://u@localhost/p"} // not parallel: the folder comes from the process's own environment
	home, shared := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", shared)
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", "")
	cfg, err := LoadConfig(base)
	if want := filepath.Join(home, ".cache", "mlp-platform", "models"); err != nil || cfg.ModelCacheDir != want {
		t.Errorf("got the cache %q, %v; want %q", cfg.ModelCacheDir, err, want)
	}
	t.Setenv("HOME", "")
	cfg, err = LoadConfig(base)
	if err == nil || !strings.Contains(err.Error(), "MODEL_CACHE_DIR is not set") || cfg.ModelCacheDir != "" {
		t.Errorf("without a home: got the cache %q, %v; want none, and that MODEL_CACHE_DIR is not set", cfg.ModelCacheDir, err)
	}
}
