package auth_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/auth"
)

func oneCredential(principal string) string {
	return fmt.Sprintf(`{"secret-of-somebody-0001": {"principal": %q, "tenant": "default", "scopes": ["read"]}}`, principal)
}

// A credential with a reserved name would be exempt from separation of duties.
func TestReservedPrincipalsAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"system:seed", "System:seed", "SYSTEM:X", " system:seed", "tracker:unknown", "Tracker:ada", "forge:ada", "modelrepo:x",
		"legacy", "Legacy", "external", "unknown",
	} {
		a := auth.Load("", oneCredential(name), rules)
		if err := a.State(); err == nil || !strings.Contains(err.Error(), "reserved for the platform") {
			t.Errorf("%q: state %v; want a refusal that the name is reserved for the platform", name, err)
		}
	}
	for _, name := range []string{"ci", "systemd", "ada", "legacy-ci", "trackers"} {
		if err := auth.Load("", oneCredential(name), rules).State(); err != nil {
			t.Errorf("%q: state %v; want nil", name, err)
		}
	}
}

func TestPrincipalsAreNormalized(t *testing.T) {
	t.Parallel()
	const decomposed, composed = "Jose\u0301", "Jos\u00e9"
	p, err := auth.Load("", oneCredential(" "+decomposed+" "), rules).Authenticate("Bearer secret-of-somebody-0001")
	if err != nil || p.Name != composed {
		t.Fatalf("principal %q, %v; want %q, nil", p.Name, err, composed)
	}
	if !auth.SameName("Ada", "aDA ") || !auth.SameName("Stra\u00dfe", "STRASSE") || auth.SameName("ada", "adam") {
		t.Error("names are not compared under case folding")
	}
}

func TestPrincipalsAreUniqueUnderCaseFolding(t *testing.T) {
	t.Parallel()
	two := func(first, second string) error {
		return auth.Load("", fmt.Sprintf(`{"secret-of-somebody-0001": {"principal": %q, "tenant": "default", "scopes": ["read"]},
			"secret-of-somebody-0002": {"principal": %q, "tenant": "default", "scopes": ["read"]}}`, first, second), rules).State()
	}
	if err := two("ada", "Ada"); err == nil || !strings.Contains(err.Error(), "differ only in case") {
		t.Errorf("ada and Ada: %v; want a refusal", err)
	}
	if err := two("ada", "ada"); err != nil {
		t.Errorf("two secrets of ada: %v; want nil", err)
	}
}

// The platform's own components come by a map that no environment variable holds.
func TestSystemCredentials(t *testing.T) {
	t.Parallel()
	a, err := auth.Load("", oneCredential("ci"), rules).WithSystem(strings.ReplaceAll(oneCredential("system:seed"), "somebody-0001", "seed-00000001"))
	if err != nil {
		t.Fatal(err)
	}
	if p, err := a.Authenticate("Bearer secret-of-seed-00000001"); err != nil || p.Name != "system:seed" {
		t.Errorf("principal %q, %v; want system:seed, nil", p.Name, err)
	}
	if p, err := a.Authenticate("Bearer secret-of-somebody-0001"); err != nil || p.Name != "ci" {
		t.Errorf("principal %q, %v; want ci, nil", p.Name, err)
	}
	if _, err := auth.Load("", "", rules).WithSystem(oneCredential("ada")); err == nil {
		t.Error("a person among the platform's own components: no error; want one")
	}
}
