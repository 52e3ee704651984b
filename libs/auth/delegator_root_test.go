//go:build root

package auth_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/auth"
)

// A key that another user has put there is one that this user can sign with.
func TestDelegationKeyOfAnotherUserIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "delegation.key")
	if _, err := auth.LoadOrCreateDelegator("dashboard", path); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, 4242, 4242); err != nil {
		t.Fatal(err)
	}
	if _, err := auth.LoadOrCreateDelegator("dashboard", path); err == nil || !strings.Contains(err.Error(), "belongs to user 4242") {
		t.Errorf("got %v, want that the file belongs to user 4242", err)
	}
}
