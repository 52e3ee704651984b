//go:build root

package datadir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Files left by others while a directory was open are refused, at the next start too, until they are gone.
func TestOpenRefusesWhatOthersLeft(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"credentials.json", "modelrepo/.git/config", "postgres/password", "postgres/data/PG_VERSION"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := makeOpen(t)
			planted := plant(t, 4242, dir, name)
			for _, start := range []string{"first", "second"} {
				if d, err := Open(dir); err == nil || !strings.Contains(err.Error(), planted+" in it belongs to user 4242") || !strings.Contains(err.Error(), "PLATFORM_DATA_DIR") {
					t.Errorf("%s start: got %v, %v; want that %s belongs to user 4242", start, d, err, planted)
				}
			}
			if err := os.Remove(planted); err != nil {
				t.Fatal(err)
			}
			d, err := Open(dir)
			if err != nil {
				t.Fatalf("without it: got %v, want nil", err)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Secrets that make up has handed to the containers' users below the same directory keep nothing from starting.
func TestOpenLeavesTheContainersAlone(t *testing.T) {
	t.Parallel()
	dir := makeOpen(t)
	plant(t, 65532, dir, "compose/secrets/assistant/signing_key")
	d, err := Open(dir)
	if err != nil {
		t.Fatalf("got %v, want nil", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// A folder of that name made by another user would give the containers secrets that he knows.
func TestOpenRefusesAContainersFolderOfOthers(t *testing.T) {
	t.Parallel()
	dir := makeOpen(t)
	theirs := filepath.Join(dir, ContainersDir)
	if err := errors.Join(os.Mkdir(theirs, 0o755), os.Chown(theirs, 4242, 4242)); err != nil {
		t.Fatal(err)
	}
	if d, err := Open(dir); err == nil || !strings.Contains(err.Error(), theirs+" in it belongs to user 4242") {
		t.Errorf("got %v, %v; want that %s belongs to user 4242", d, err, theirs)
	}
}

// Anyone with write access to a directory above, as its owner or through its group, can replace the platform's.
func TestOpenRefusesWhatOthersMayReplace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		uid, gid int
		mode     uint32
		want     string // empty: it is taken
	}{
		{"another user's", 4242, 0, 0o755, "belongs to user 4242"},
		{"another user's, sticky", 4242, 0, 0o1777, "belongs to user 4242"},
		{"a group's", 0, 4242, 0o775, "group 4242 may write"},
		{"a group's, sticky", 0, 4242, 0o1775, ""},
		{"root's group's", 0, 0, 0o775, ""},
		{"everybody's, sticky", 0, 4242, 0o1777, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			above := filepath.Join(t.TempDir(), "above")
			if err := os.Mkdir(above, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(above, c.uid, c.gid); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Chmod(above, c.mode); err != nil {
				t.Fatal(err)
			}
			d, err := Open(filepath.Join(above, "data"))
			if err == nil {
				defer d.Close()
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want an error with %q (none, if that is empty)", err, c.want)
			}
		})
	}
}
