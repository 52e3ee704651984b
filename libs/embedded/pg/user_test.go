package pg

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"
)

// Whoever shares the server's user can enter its data, so it is not the one that most share.
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
