package identity_test

import (
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/identity"
)

func TestAccountsMapToPrincipals(t *testing.T) {
	t.Parallel()
	m, err := identity.Parse(`{"forge-a:Ada.L": "ada", "forge-b:ada-l": "ada", "local": "legacy"}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id    identity.Identity
		name  string
		known bool
	}{
		{identity.Identity{Source: identity.ForgeA, Login: "ada.l"}, "ada", true},
		{identity.Identity{Source: identity.ForgeB, Login: "ADA-L"}, "ada", true},
		{identity.Identity{Source: identity.ForgeB, Login: "ada.l"}, "", false}, // another forge's account
		{identity.Identity{Source: identity.Local}, "legacy", true},
		{identity.Identity{Source: identity.ForgeA}, "", false},
		{identity.Identity{}, "", false},
	} {
		if name, known := m.Principal(c.id); name != c.name || known != c.known {
			t.Errorf("%v: %q, %v; want %q, %v", c.id, name, known, c.name, c.known)
		}
	}
}

func TestFaultyIdentitiesAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[]`:                                              "object",
		`{"forge-c:ada":"ada"}`:                           "must be forge-a:",
		`{"forge-a:":"ada"}`:                              "must be forge-a:",
		`{"ada":"ada"}`:                                   "must be forge-a:",
		`{"forge-a:ada":" "}`:                             "names no principal",
		`{"forge-a:ada":"System:seed"}`:                   "platform's own",
		`{"forge-a:ada":"tracker:ada"}`:                   "platform's own",
		`{"forge-a:ada":"legacy"}`:                        "exempt from the separation of duties",
		`{"forge-b:ada":" Legacy "}`:                      "platform's own",
		`{"forge-a:ada":"ada","forge-a:Ada":"eve"}`:       "twice",
		`{"forge-a:ada":"ada","forge-a:ada":"eve"}`:       "twice",
		`{"forge-a:ada":1}`:                               "",
		strings.Repeat(`{"forge-a:x":`, 2) + `"a"` + `}}`: "",
	} {
		if _, err := identity.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want an error that says %q", text, err, want)
		}
	}
}

// A stored map may come from a version that accepted this: a forge's account is still not exempt.
func TestForgeAccountIsNeverTheLegacyPrincipal(t *testing.T) {
	t.Parallel()
	m := identity.FromMap(map[string]string{"forge-a:ada": "legacy", "forge-a:eve": "eve", "local": "legacy"})
	for id, want := range map[identity.Identity]string{
		{Source: identity.ForgeA, Login: "ada"}: "", {Source: identity.ForgeA, Login: "eve"}: "eve", {Source: identity.Local}: "legacy",
	} {
		if got, _ := m.Principal(id); got != want {
			t.Errorf("%v: got principal %q, want %q", id, got, want)
		}
	}
}
