//go:build e2e

package dashboard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/e2e/keycloak"
)

// typedSecret is stored through the configuration page.
const typedSecret = "forge-token-typed-by-frank-1f0c"

// testBrowser signs people in through the page's button and the provider's forms, at both of its levels.
func (o *organisation) testBrowser(t *testing.T) {
	// Change notices belong to the tenant default, so their deciders must too.
	o.movePeople(t, "  tenant: default\n", "default")
	// Sessions end when their person's tenant changes, so they move back before the next ones begin.
	defer o.movePeople(t, "", "university")
	const model = "JPCP"
	commit, file := change(t, o.Platform, model)
	base := walk{
		URL: o.url, Provider: o.Origin, ProviderName: "Example University", OTPSecrets: keycloak.OTPSecrets, Typed: typedSecret,
		Model: model, ControlPlane: o.Env["CONTROL_PLANE_URL"], CIToken: o.Secret(t, "ci_token"), Commit: commit, File: file,
	}
	for _, part := range []struct{ name, script string }{
		{"sign in, come back to the page, sign out here and there", "login"},
		{"without a role the login page says so", "denied"},
		{"approve after a step-up, where the person left", "approve"},
		{"store a secret after a step-up, which the browser does not keep", "secret"},
	} {
		t.Run(part.name, func(t *testing.T) {
			w := base
			w.Part, w.Name = part.script, "sso-"+part.script
			w.play(t, o.Platform, "sso.cjs")
		})
	}
}

// movePeople changes the tenant of all people in the trust file and waits until new sessions belong to it.
func (o *organisation) movePeople(t *testing.T, more, tenant string) {
	t.Helper()
	o.writeTrust(t, more)
	o.person(t).await("the tenant "+tenant, func(*person) error {
		p := o.person(t)
		p.signIn(login, "bob")
		if me := p.me(); me["tenant"] != tenant {
			return fmt.Errorf("bob is of %v", me["tenant"])
		}
		return nil
	})
}

// testSecrets looks for secrets in everything the platform wrote.
func (o *organisation) testSecrets(t *testing.T) {
	secrets, err := credentials(o.Platform)
	if err != nil {
		t.Fatal(err)
	}
	secrets["the client secret"], secrets["the secret that frank typed"] = keycloak.ClientSecret, typedSecret
	places, err := leftBehind(o.Platform)
	if err != nil {
		t.Fatal(err)
	}
	if leaks := searchPlaces(places, secrets); len(leaks) > 0 {
		t.Error(strings.Join(leaks, "\n"))
	}
}
