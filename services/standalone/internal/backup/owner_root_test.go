//go:build root

package backup

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Root starts a restored platform of another user: the database's files stay this user's, and all others become root's,
// who would not use another user's secrets.
func TestRestoreByRootOwnsAllButTheDatabase(t *testing.T) {
	t.Parallel()
	dir, to := newDataDir(t), filepath.Join(t.TempDir(), "data")
	for _, name := range []string{"credentials.json", "postgres", "postgres/data", "postgres/data/PG_VERSION"} {
		if err := os.Chown(filepath.Join(dir, name), 4242, 4242); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "b")
	if _, err := Write(t.Context(), dir, file, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), file, to); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]uint32{"credentials.json": 0, "nats": 0, "postgres": 4242, "postgres/data/PG_VERSION": 4242} {
		info, err := os.Lstat(filepath.Join(to, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Sys().(*syscall.Stat_t).Uid; got != want {
			t.Errorf("%s: got owner %d, want %d", name, got, want)
		}
	}
}
