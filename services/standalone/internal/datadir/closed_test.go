package datadir

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A directory that others may enter is closed before anything secret lies in it.
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
