package datadir

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mlp-platform/platform/libs/embedded/pg"
)

// A directory that others may enter is closed before it contains any secret.
func TestOpenClosesTheDirectory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o700 {
		t.Errorf("got mode %04o, want 0700", got)
	}
}

func TestOpenRefusesWhatOthersRule(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		foreign := filepath.Join(t.TempDir(), "foreign")
		if err := os.Mkdir(foreign, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(foreign, 4242, 4242); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(foreign); err == nil || !strings.Contains(err.Error(), "belongs to user 4242") {
			t.Errorf("another user's directory: got %v, want that it belongs to user 4242", err)
		}
	}
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(open, "data")); err == nil || !strings.Contains(err.Error(), "others may replace") {
		t.Errorf("below a directory that everybody may write: got %v, want that others may replace it", err)
	}
	if err := syscall.Chmod(open, 0o1777); err != nil {
		t.Fatal(err)
	}
	d, err := Open(filepath.Join(open, "data"))
	if err != nil {
		t.Fatalf("below a directory with the sticky bit: got %v, want nil", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// makeOpen makes a directory that everybody may write to, below one that only its owner may write to.
func makeOpen(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// plant makes a file of another user, with the folders above it.
func plant(t *testing.T, owner int, elem ...string) string {
	t.Helper()
	file := filepath.Join(elem...)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Lchown(file, owner, owner); err != nil {
		t.Fatal(err)
	}
	return file
}

// The files of Postgres belong to the user that root starts it as.
func TestOpenTakesTheFilesOfPostgres(t *testing.T) {
	t.Parallel()
	dir := makeOpen(t)
	owner := os.Geteuid()
	if owner == 0 {
		owner = pg.ServerUIDs()[0]
	}
	plant(t, owner, dir, "postgres", "data", "PG_VERSION")
	d, err := Open(dir)
	if err != nil {
		t.Fatalf("got %v, want nil", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
