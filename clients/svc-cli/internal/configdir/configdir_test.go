package configdir_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/configdir"
)

func TestIsRelative(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"a": true, "a/b.json": true, "./a": true, "a/../b": true, "…": true,
		"": false, ".": false, "a/..": false, "..": false, "../a": false, "a/../../b": false, "/a": false, `a\b`: false, "a\x00": false, strings.Repeat("a", 1025): false,
	} {
		if configdir.IsRelative(name) != want {
			t.Errorf("IsRelative(%.30q) is %v", name, !want)
		}
	}
}

// A pipe without a writer, on which a read would block, is refused like every special file.
func TestPipesAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := configdir.Open(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Read("pipe"); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Error(err, `want an error && strings.Contains(err.Error(), "no regular file")`)
	}
	if err := os.WriteFile(filepath.Join(dir, "large"), make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Read("large"); err == nil || !strings.Contains(err.Error(), "too_large") {
		t.Error(err, `want an error && strings.Contains(err.Error(), "too_large")`)
	}
	if _, err := f.Read("/etc/hostname"); err == nil {
		t.Error("an absolute path was read")
	}
	if _, err := configdir.Open(filepath.Join(dir, "none", "config.json")); err == nil {
		t.Error("a folder that is not there was opened")
	}
}
