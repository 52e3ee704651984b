//go:build root

package credentials

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file that another user has put into the directory holds secrets that this user knows. One of the directory's owner
// is theirs to give.
func TestSecretsOfAnotherUserAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := LoadOrCreate(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(dir, File), 4242, 4242); err != nil {
		t.Fatal(err)
	}
	for name, load := range map[string]func(string) (Credentials, error){"Load": Load, "LoadOrCreate": LoadOrCreate} {
		if _, err := load(dir); err == nil || !strings.Contains(err.Error(), "belongs to user 4242") || !strings.Contains(err.Error(), "delete it") {
			t.Errorf("%s: got %v, want that the file belongs to user 4242 and should be deleted", name, err)
		}
	}
	if err := os.Chown(dir, 4242, 4242); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err != nil {
		t.Errorf("in a directory of the same user: got %v, want nil", err)
	}
}
