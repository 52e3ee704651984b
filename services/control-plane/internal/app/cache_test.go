package app

import (
	"path/filepath"
	"strings"
	"testing"
)

// Without a user cache folder there is none: below a shared temporary folder, others could create it first.
func TestModelrepoCacheIsTheUsersOwn(t *testing.T) {
	home, shared := t.TempDir(), t.TempDir() // not parallel: the folder comes from the process's own environment
	t.Setenv("TMPDIR", shared)
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", "")
	if got, err := defaultCacheDir(); err != nil || got != filepath.Join(home, ".cache", "mlp-platform", "modelrepo") {
		t.Errorf("got %q, %v; want a folder below %s", got, err, home)
	}
	t.Setenv("HOME", "")
	cfg := Config{GitURL: "https://git.invalid/models.git"}
	if source, id, err := cfg.modelrepoSource(); err == nil || !strings.Contains(err.Error(), "MODELREPO_CACHE_DIR is not set") {
		t.Errorf("without a home: got %v, %q, %v; want that MODELREPO_CACHE_DIR is not set", source, id, err)
	}
}
