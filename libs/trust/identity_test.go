package trust_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/trust"
)

// identify reads a provider of the minimal file with more lines, and maps claims by it.
func identify(t *testing.T, add string, claims map[string]any, accessToken bool) (trust.Identity, error) {
	t.Helper()
	return mustParse(t, minimal+add).Providers[0].Identify(claims, accessToken)
}

// rule is a role_rules of one admin rule.
func rule(rest string) string { return "  role_rules: [{role: admin, " + rest + "}]\n" }

func TestRoleRules(t *testing.T) {
	t.Parallel()
	many := func(more ...any) []any { return more }
	for _, test := range []struct {
		name, add string
		claims    map[string]any
		want      trust.Role
	}{
		{"default rule for admins", "", map[string]any{"groups": many("x", "platform-admins")}, trust.Admin},
		{"default rule for viewers", "", map[string]any{"roles": many("platform-viewer")}, trust.Viewer},
		{"nested claim", "", map[string]any{"realm_access": map[string]any{"roles": many("platform-admin")}}, trust.Admin},
		{"a claim that is one text", "", map[string]any{"entitlements": "platform-admin"}, trust.Admin},
		{"groups as SCIM objects", "", map[string]any{"groups": many(map[string]any{"value": "platform-admin", "display": "x"})}, trust.Admin},
		{"the strongest wins", "", map[string]any{"groups": many("platform-admin", "platform-viewer")}, trust.Admin},
		{"no group", "", nil, trust.None},
		{"a group of another claim", "", map[string]any{"teams": many("platform-admin")}, trust.None},
		{"a leading slash aside", "", map[string]any{"groups": many("/platform-admin")}, trust.Admin},
		{"never the last segment alone", "", map[string]any{"groups": many("/guests/platform-admin", "guests/platform-admin")}, trust.None},
		{"never a part", "", map[string]any{"groups": many("platform-admin-former", "xplatform-admin", "platform-admin\n")}, trust.None},
		{"never another case", "", map[string]any{"groups": many("Platform-Admin")}, trust.None},
		{"exact with a slash in the rule", rule("value: /a/b"), map[string]any{"groups": many("a/b")}, trust.Admin},
		{"explicit empty rules", "  role_rules: []\n", map[string]any{"groups": many("platform-admin")}, trust.None},
		{"glob within a segment", rule("value: 'ops-*', match: glob"), map[string]any{"groups": many("/ops-eu")}, trust.Admin},
		{"glob not across a slash", rule("value: 'ops-*', match: glob"), map[string]any{"groups": many("ops-eu/guests")}, trust.None},
		{"glob of two stars across", rule("value: 'ops/**', match: glob"), map[string]any{"groups": many("ops/eu/night")}, trust.Admin},
		{"glob with a question mark", rule("value: 'ops?', match: glob"), map[string]any{"groups": many("ops1")}, trust.Admin},
		{"glob takes a dot for a dot", rule("value: 'a.b*', match: glob"), map[string]any{"groups": many("axb")}, trust.None},
		{"regex over the whole", rule("value: 'ops|dev', match: regex"), map[string]any{"groups": many("devs", "xops")}, trust.None},
		{"regex", rule("value: 'ops|dev', match: regex"), map[string]any{"groups": many("dev")}, trust.Admin},
		{"regex with lines does not leave its anchors", rule(`value: '(?m)^ops$', match: regex`), map[string]any{"groups": many("x\nops")}, trust.None},
		{"regex with the slash", rule("value: '/ops/[a-z]+', match: regex"), map[string]any{"groups": many("/ops/eu")}, trust.Admin},
		{"claim of the rule alone", rule("value: ops, claim: teams"), map[string]any{"groups": many("ops")}, trust.None},
		{"claim of the rule", rule("value: ops, claim: teams"), map[string]any{"teams": many("ops")}, trust.Admin},
		{"claim with dots in its name", rule("value: ops, claim: https://example.org/groups"), map[string]any{"https://example.org/groups": many("ops")}, trust.Admin},
		{"rdn", rule("value: ops, as: rdn"), map[string]any{"groups": many("CN=ops,OU=groups,DC=example")}, trust.Admin},
		{"rdn with an escape", rule(`value: "ops, night", as: rdn`), map[string]any{"groups": many(`cn=ops\, night,ou=x`)}, trust.Admin},
		{"rdn in hexadecimal escapes", rule(`value: ops, as: rdn`), map[string]any{"groups": many(`cn=\6fps,ou=x`)}, trust.Admin},
		{"rdn of a later part", rule("value: ops, as: rdn"), map[string]any{"groups": many("CN=guests,OU=ops")}, trust.None},
		{"rdn that is none", rule("value: ops, as: rdn"), map[string]any{"groups": many("ops", "=ops", "CN=ops+OU=x", `CN="ops"`)}, trust.None},
		{"entitlement", rule("value: vo, as: entitlement"), map[string]any{"entitlements": many("urn:geant:example.org:group:vo#aai.example.org")}, trust.Admin},
		{"entitlement of a member", rule("value: vo, as: entitlement"), map[string]any{"entitlements": many("urn:geant:example.org:group:vo:role=member#a")}, trust.Admin},
		{"entitlement of a subgroup is not the group", rule("value: vo, as: entitlement"), map[string]any{"entitlements": many("urn:geant:example.org:group:vo:guests#a")}, trust.None},
		{"entitlement of a role is not the group", rule("value: vo, as: entitlement"), map[string]any{"entitlements": many("urn:geant:example.org:group:vo:role=guest#a")}, trust.None},
		{"entitlement with its role", rule("value: 'vo:role=admin', as: entitlement"), map[string]any{"entitlements": many("urn:geant:example.org:group:vo:role=admin#a")}, trust.Admin},
		{"entitlement with an escaped colon", rule("value: 'a:b', as: entitlement"), map[string]any{"entitlements": many("urn:x:y:group:a%3Ab")}, trust.None},
		{"default role", "  default_role: viewer\n", nil, trust.Viewer},
		{"default role does not lower", "  default_role: viewer\n", map[string]any{"groups": many("platform-admin")}, trust.Admin},
		{"assurance met", "  role_assurance: {admin: [high]}\n", map[string]any{"groups": many("platform-admin"), "eduperson_assurance": many("low", "high")}, trust.Admin},
		{"assurance missing", "  role_assurance: {admin: [high]}\n", map[string]any{"groups": many("platform-admin")}, trust.Viewer},
		{"assurance of another claim", "  assurance_claim: acr\n  role_assurance: {admin: gold}\n", map[string]any{"groups": many("platform-admin"), "acr": "gold"}, trust.Admin},
		{"assurance for viewers", "  role_assurance: {admin: [high], viewer: [low]}\n", map[string]any{"groups": many("platform-admin")}, trust.None},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			claims := map[string]any{"sub": "1"}
			for k, v := range test.claims {
				claims[k] = v
			}
			id, err := identify(t, test.add, claims, false)
			if id.Role != test.want || (err != nil) != (test.want == trust.None) || err != nil && !errors.Is(err, trust.ErrNoRole) {
				t.Errorf("got role %q, %v (%q); want %q", id.Role, err, id.Reasons, test.want)
			}
		})
	}
}

func TestScopesGiveRolesInAccessTokensAlone(t *testing.T) {
	t.Parallel()
	const add = "  scope_roles: {platform.admin: admin, platform.read: viewer}\n"
	for _, claims := range []map[string]any{
		{"sub": "1", "scope": "openid platform.read platform.admin"},
		{"sub": "1", "scp": []any{"platform.admin"}},
	} {
		if id, err := identify(t, add, claims, true); err != nil || id.Role != trust.Admin {
			t.Errorf("access token %v: got %q, %v; want admin", claims, id.Role, err)
		}
		if id, err := identify(t, add, claims, false); !errors.Is(err, trust.ErrNoRole) {
			t.Errorf("sign-in %v: got %q, %v; want no role", claims, id.Role, err)
		}
	}
}

func TestReasonsNameTheRules(t *testing.T) {
	t.Parallel()
	id, err := identify(t, "  role_assurance: {admin: [high]}\n", map[string]any{"sub": "1", "groups": []any{"platform-admin", "secret-project"}}, false)
	want := `role_rules[0]: groups exact "platform-admin" gives admin; role_assurance: eduperson_assurance has none of high for admin`
	if got := strings.Join(id.Reasons, "; "); err != nil || got != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
	_, err = identify(t, "", map[string]any{"sub": "1", "_claim_names": map[string]any{"groups": "src1"}}, false)
	if err == nil || !strings.Contains(err.Error(), "by reference") {
		t.Errorf("groups by reference: got %v, want the reason for no role", err)
	}
}

func TestWhoIsWho(t *testing.T) {
	t.Parallel()
	member := func(more map[string]any) map[string]any {
		claims := map[string]any{"sub": "1001", "groups": []any{"platform-viewer"}}
		for k, v := range more {
			claims[k] = v
		}
		return claims
	}
	for _, test := range []struct {
		name, add string
		claims    map[string]any
		want      trust.Identity // without provider, role and reasons
		err       error
	}{
		{"subject and provider", "", member(nil), trust.Identity{Subject: "1001", Principal: "idp-a:1001", Tenant: "idp-a"}, nil},
		{"user name", "", member(map[string]any{"preferred_username": "ann", "email": "a@b.c"}), trust.Identity{Subject: "1001", Principal: "idp-a:1001", Name: "ann", Tenant: "idp-a"}, nil},
		{"e-mail else", "", member(map[string]any{"email": "a@b.c"}), trust.Identity{Subject: "1001", Principal: "idp-a:1001", Name: "a@b.c", Tenant: "idp-a"}, nil},
		{"a name with a line feed is left out", "", member(map[string]any{"preferred_username": "ann\nadmin"}), trust.Identity{Subject: "1001", Principal: "idp-a:1001", Tenant: "idp-a"}, nil},
		{"subject of another claim", "  subject_claim: ids.uid\n", member(map[string]any{"ids": map[string]any{"uid": "u7"}}), trust.Identity{Subject: "u7", Principal: "idp-a:u7", Tenant: "idp-a"}, nil},
		{"fixed tenant", "  tenant: physics\n", member(nil), trust.Identity{Subject: "1001", Principal: "idp-a:1001", Tenant: "physics"}, nil},
		{"tenant of a claim", "  tenant_claim: org\n  tenants_allowed: [physics]\n", member(map[string]any{"org": []any{"x", "/physics"}}), trust.Identity{Subject: "1001", Principal: "idp-a:1001", Tenant: "physics"}, nil},
		{"tenant not allowed", "  tenant_claim: org\n  tenants_allowed: [physics]\n", member(map[string]any{"org": "biology"}), trust.Identity{}, trust.ErrClaims},
		{"two tenants", "  tenant_claim: org\n  tenants_allowed: [physics, biology]\n", member(map[string]any{"org": []any{"biology", "physics"}}), trust.Identity{}, trust.ErrClaims},
		{"no subject", "", map[string]any{"groups": []any{"platform-viewer"}}, trust.Identity{}, trust.ErrClaims},
		{"a subject that is a number", "", map[string]any{"sub": 7.0, "groups": []any{"platform-viewer"}}, trust.Identity{}, trust.ErrClaims},
		{"a subject nobody can see", "", member(map[string]any{"sub": "a\u202eb"}), trust.Identity{}, trust.ErrClaims},
		{"a long subject", "", member(map[string]any{"sub": strings.Repeat("x", 256)}), trust.Identity{}, trust.ErrClaims},
		{"denied", "  deny: ['1001']\n", member(nil), trust.Identity{}, trust.ErrDenied},
		{"denied by principal", "  deny: ['idp-a:1001']\n", member(nil), trust.Identity{}, trust.ErrDenied},
		{"denied although no role", "  deny: ['9']\n", map[string]any{"sub": "9"}, trust.Identity{}, trust.ErrDenied},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := identify(t, test.add, test.claims, false)
			if !errors.Is(err, test.err) {
				t.Fatalf("got %v, want %v", err, test.err)
			}
			if err != nil {
				return
			}
			if got.Subject != test.want.Subject || got.Principal != test.want.Principal || got.Name != test.want.Name || got.Tenant != test.want.Tenant {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
