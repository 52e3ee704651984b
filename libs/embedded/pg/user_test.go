package pg

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Processes that share the server's user can enter its data, so it is not the most widely
// shared user.
func TestServerIsNotNobody(t *testing.T) {
	t.Parallel()
	as, err := runAs(filepath.Join(t.TempDir(), "none"))
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		if as != nil {
			t.Errorf("got user %d, want this process' own", as.Uid)
		}
		return
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	if got := strconv.Itoa(int(as.Uid)); got == nobody.Uid || got == "0" {
		t.Errorf("got user %s, want neither nobody nor root", got)
	}
}

// A password that others can read, or have put there, opens the database to them.
func TestPasswordFileOfOthersIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode  os.FileMode
		owner int
		want  string // empty: it is taken
	}{
		"own":                {0o600, os.Geteuid(), ""},
		"readable by others": {0o640, os.Geteuid(), "chmod 600 it"},
		"another user's":     {0o600, 4242, "belongs to user 4242"},
	} {
		if c.owner != os.Geteuid() && os.Geteuid() != 0 {
			continue // only root can make files of another user
		}
		cl := &cluster{dir: t.TempDir()}
		file := filepath.Join(cl.dir, "password")
		if err := os.WriteFile(file, []byte("secret\n"), c.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(file, c.owner, c.owner); err != nil {
			t.Fatal(err)
		}
		pw, err := cl.keepPassword(true)
		if c.want == "" && (err != nil || pw != "secret") || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %q, %v; want an error with %q (none, if that is empty)", name, pw, err, c.want)
		}
	}
}
