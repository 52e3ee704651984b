package auth_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mlp-platform/platform/libs/auth"
)

func TestDelegatorRefusesNamesThatNoReceiverAccepts(t *testing.T) {
	t.Parallel()
	d, err := auth.LoadOrCreateDelegator("dashboard", filepath.Join(t.TempDir(), "delegation.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []auth.Person{
		{Name: "legacy", Tenant: "default"}, {Name: "System:seed", Tenant: "default"}, {Name: "", Tenant: "default"},
		{Name: "a\nb", Tenant: "default"}, {Name: "alice"},
	} {
		if token, err := d.Mint("control-plane", p); err == nil {
			t.Errorf("Mint(%q of tenant %q) = %q, want an error", p.Name, p.Tenant, token)
		}
	}
	if _, err := d.Mint("control-plane", auth.Person{Name: "local:admin", Tenant: "default", Scopes: []string{"read"}}); err != nil {
		t.Errorf("Mint(local:admin): %v, want a token", err)
	}
}

// Processes that start at once must agree, or one signs tokens that the receivers of the other
// refuse.
func TestDelegationKeyIsMadeOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "delegation.key")
	keys := make([]string, 8)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			d, err := auth.LoadOrCreateDelegator("dashboard", path)
			if err != nil {
				t.Error(err)
				return
			}
			keys[i] = d.PublicKey()
		})
	}
	wg.Wait()
	for i, key := range keys {
		if key != keys[0] {
			t.Errorf("key %d = %s, want that of the first, %s", i, key, keys[0])
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("files beside the key: %v, %v; want none", entries, err)
	}
}

func TestDelegationKeyFileIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content string
		mode    os.FileMode
		want    string
	}{
		"readable by others": {"AAAA", 0o640, "chmod 600"},
		"damaged":            {"AAAA", 0o600, "delete it, and a new one is made"},
	} {
		path := filepath.Join(t.TempDir(), "delegation.key")
		if err := os.WriteFile(path, []byte(c.content), c.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := auth.LoadOrCreateDelegator("dashboard", path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error = %v, want one with %q", name, err, c.want)
		}
	}
}
