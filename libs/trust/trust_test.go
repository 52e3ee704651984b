package trust_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/trust"
)

// full uses every key of the format.
const full = `version: 1
providers:
- name: idp-a
  issuer: https://idp.example.org/realms/a
  display_name: Example University
  audience: [platform, platform-test]
  discovery: true
  algorithms: [RS256, EdDSA]
  leeway_s: 30
  require_typ: true
  subject_claim: uid
  username_claim: user.name
  email_claim: mail
  tenant_claim: org
  tenants_allowed: [physics, biology]
  group_claims: [groups]
  role_rules:
  - {value: ops, role: admin}
  - {value: "team-*", role: viewer, match: glob, claim: teams}
  - {value: "x[0-9]+", role: viewer, match: regex}
  - {value: staff, role: viewer, claim: dn, as: rdn}
  - {value: vo, role: viewer, claim: ent, as: entitlement}
  scope_roles: {platform.admin: admin, platform.read: viewer}
  default_role: viewer
  assurance_claim: eduperson_assurance
  role_assurance: {admin: [high]}
  introspection: {client_id: x, client_secret_ref: "env:X", endpoint: https://idp.example.org/introspect}
  clients:
    dashboard: {client_id: d, client_secret_ref: "file:/run/s", scopes: openid groups}
    cli: {client_id: c}
  step_up: {acr_values: [mfa], max_age_s: 60}
  deny: [mallory]
`

// secrets has env:X and file:/run/s.
func secrets() trust.Environment {
	return trust.Environment{
		LookupEnv: func(name string) (string, bool) { return "from-env", name == "X" },
		ReadFile: func(path string, _ int64) ([]byte, error) {
			if path != "/run/s" {
				return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
			}
			return []byte("from-file\n"), nil
		},
	}
}

func mustParse(t *testing.T, src string) *trust.File {
	t.Helper()
	f, err := trust.Parse("trust.yaml", []byte(src), secrets())
	if err != nil {
		t.Fatalf("got %v; want no fault", err)
	}
	return f
}

func TestEveryKeyIsRead(t *testing.T) {
	t.Parallel()
	p := mustParse(t, full).Providers[0]
	if got, want := p.Introspection.ClientSecret.Reveal()+" "+p.Dashboard.ClientSecret.Reveal(), "from-env from-file"; got != want {
		t.Errorf("secrets: got %q, want %q", got, want)
	}
	rules := p.RoleRules
	p.RoleRules = nil
	want := trust.Provider{
		Name: "idp-a", Issuer: "https://idp.example.org/realms/a", DisplayName: "Example University",
		Audience: []string{"platform", "platform-test"}, Discovery: true, Algorithms: []string{"RS256", "EdDSA"},
		Leeway: 30 * time.Second, RequireTyp: true, SubjectClaim: "uid", UsernameClaim: "user.name", EmailClaim: "mail",
		TenantClaim: "org", TenantsAllowed: []string{"physics", "biology"}, GroupClaims: []string{"groups"},
		ScopeRoles: map[string]trust.Role{"platform.admin": trust.Admin, "platform.read": trust.Viewer}, DefaultRole: trust.Viewer,
		AssuranceClaim: "eduperson_assurance", RoleAssurance: map[trust.Role][]string{trust.Admin: {"high"}},
		Introspection: &trust.Introspection{ClientID: "x", ClientSecret: "from-env", Endpoint: "https://idp.example.org/introspect"},
		Dashboard:     &trust.Client{ClientID: "d", ClientSecret: "from-file", Scopes: []string{"openid", "groups"}},
		CLI:           &trust.Client{ClientID: "c", Scopes: []string{"openid", "profile", "email"}},
		StepUp:        &trust.StepUp{ACRValues: []string{"mfa"}, MaxAge: time.Minute}, Deny: []string{"mallory"},
	}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("got  %+v\nwant %+v", p, want)
	}
	var got []string
	for _, r := range rules {
		got = append(got, fmt.Sprintf("%s %s %s %s %s", r.Value, r.Role, r.Match, r.Claim, r.As))
	}
	wantRules := []string{"ops admin exact  raw", "team-* viewer glob teams raw", "x[0-9]+ viewer regex  raw", "staff viewer exact dn rdn", "vo viewer exact ent entitlement"}
	if !reflect.DeepEqual(got, wantRules) {
		t.Errorf("rules: got %q, want %q", got, wantRules)
	}
}

const minimal = `version: 1
providers:
- name: idp-a
  issuer: https://idp.example.org
  audience: platform
`

func TestWhatIsAbsentHasItsDefault(t *testing.T) {
	t.Parallel()
	p := mustParse(t, minimal).Providers[0]
	var rules []string
	for _, r := range p.RoleRules {
		rules = append(rules, r.Value+" "+string(r.Role))
	}
	p.RoleRules = nil
	want := trust.Provider{
		Name: "idp-a", Issuer: "https://idp.example.org", DisplayName: "idp-a", Audience: []string{"platform"}, Discovery: true,
		Algorithms: []string{"RS256", "PS256", "ES256"}, Leeway: time.Minute, SubjectClaim: "sub", UsernameClaim: "preferred_username",
		EmailClaim: "email", Tenant: "idp-a", GroupClaims: []string{"groups", "roles", "realm_access.roles", "entitlements"},
		AssuranceClaim: "eduperson_assurance",
	}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("got  %+v\nwant %+v", p, want)
	}
	wantRules := []string{"platform-admin admin", "platform-admins admin", "platform-viewer viewer", "platform-viewers viewer"}
	if !reflect.DeepEqual(rules, wantRules) {
		t.Errorf("rules: got %q, want %q", rules, wantRules)
	}
	stepUp := mustParse(t, minimal+"  step_up: {}\n").Providers[0].StepUp
	if stepUp == nil || stepUp.MaxAge != 15*time.Minute || len(stepUp.ACRValues) != 0 {
		t.Errorf("step_up: {}: got %+v, want any level within 15 minutes", stepUp)
	}
}

// faultyLines are added to the minimal file, which has five lines.
var faultyLines = []struct{ name, add, want string }{
	{"unknown key", "  issuers: x\n", "trust.yaml:6: providers[0].issuers is unknown"},
	{"unknown key of the file", "extra: 1\n", "trust.yaml:6: extra is unknown"},
	{"another file", "root:*:20228:0:99999:7:::: x\n", "trust.yaml:6: a key of the file is unknown"},
	{"unknown key of a rule", "  role_rules:\n  - value: a\n    role: admin\n    matches: exact\n", "trust.yaml:9: providers[0].role_rules[0].matches is unknown"},
	{"duplicate key", "  audience: other\n", "trust.yaml:6: "},
	{"no text", "  display_name: 12\n", "trust.yaml:6: providers[0].display_name must be text"},
	{"null", "  display_name:\n", "trust.yaml:6: providers[0].display_name has no value"},
	{"algorithm none", "  algorithms: [none]\n", `trust.yaml:6: providers[0].algorithms has "none"`},
	{"algorithm HS256", "  algorithms: [HS256]\n", `has "HS256"`},
	{"no algorithm", "  algorithms: []\n", "algorithms is empty"},
	{"leeway", "  leeway_s: 301\n", "trust.yaml:6: providers[0].leeway_s must be a whole number from 0 to 300"},
	{"negative leeway", "  leeway_s: -1\n", "from 0 to 300"},
	{"flag", "  require_typ: \"yes\"\n", "require_typ must be true or false"},
	{"two sources of keys", "  discovery: true\n  jwks_uri: https://x/keys\n", "trust.yaml:6: providers[0].discovery is one of three sources"},
	{"no source of keys", "  discovery: false\n", "discovery is false, so jwks_uri or jwks must name the keys"},
	{"keys over http", "  jwks_uri: http://x.example/keys\n", "jwks_uri is http"},
	{"empty key set", "  jwks: {keys: []}\n", "at least one"},
	{"shared key", "  jwks: {keys: [{kty: oct, k: abc}]}\n", `of type "oct"`},
	{"private key", "  jwks: {keys: [{kty: OKP, crv: Ed25519, x: abc, d: abc}]}\n", "private part"},
	{"tenant and claim", "  tenant: a\n  tenant_claim: org\n  tenants_allowed: [a]\n", "trust.yaml:6: providers[0].tenant and tenant_claim exclude"},
	{"claim without list", "  tenant_claim: org\n", "needs tenants_allowed"},
	{"list without claim", "  tenants_allowed: [a]\n", "needs tenant_claim"},
	{"reserved tenant", "  tenant: platform\n", "must not be platform"},
	{"tenant of other characters", "  tenant: A.B\n", `has "A.B"`},
	{"role", "  role_rules: [{value: a, role: root}]\n", `is "root"; it must be admin or viewer`},
	{"match", "  role_rules: [{value: a, role: admin, match: prefix}]\n", "must be exact, glob, regex"},
	{"as", "  role_rules: [{value: a, role: admin, as: dn}]\n", "must be raw, rdn, entitlement"},
	{"regex", "  role_rules: [{value: \"(\", role: admin, match: regex}]\n", "no regular expression"},
	{"regex out of its anchors", "  role_rules: [{value: \"a)|(.*\", role: admin, match: regex}]\n", "no regular expression"},
	{"glob with a class", "  role_rules: [{value: \"[ab]\", role: admin, match: glob}]\n", "a glob here does not know"},
	{"rule for a slash", "  role_rules: [{value: /, role: admin}]\n", "names no group"},
	{"everyone an admin", "  default_role: admin\n", "default_role must not be admin"},
	{"scope role", "  scope_roles: {x: owner}\n", `is "owner"`},
	{"assurance nobody can have", "  role_assurance: {admin: []}\n", "empty list"},
	{"assurance of no role", "  role_assurance: {root: [x]}\n", "role_assurance.root is unknown"},
	{"introspection without secret", "  introspection: {client_id: x}\n", "client_secret_ref is missing"},
	{"unset variable", "  introspection: {client_id: x, client_secret_ref: \"env:NOPE\"}\n", `trust.yaml:6: providers[0].introspection.client_secret_ref cannot be used: the environment variable "NOPE" is not set`},
	{"absent secret file", "  clients: {dashboard: {client_id: x, client_secret_ref: \"file:/no\"}}\n", "the file /no cannot be read: file does not exist"},
	{"relative secret file", "  clients: {dashboard: {client_id: x, client_secret_ref: \"file:no\"}}\n", "no absolute path"},
	{"secret in the file", "  clients: {dashboard: {client_id: x, client_secret_ref: hunter2hunter2}}\n", "must be env:NAME or file:/path"},
	{"secret of a public client", "  clients: {cli: {client_id: x, client_secret_ref: \"env:X\"}}\n", "client_secret_ref is unknown"},
	{"client without openid", "  clients: {dashboard: {client_id: x, scopes: [profile]}}\n", "must have openid"},
	{"dashboard without discovery", "  jwks_uri: https://x/keys\n  clients: {dashboard: {client_id: x}}\n", "needs discovery: true"},
	{"step-up age", "  step_up: {max_age_s: 0}\n", "from 1 to 86400"},
	{"acr with a space", "  step_up: {acr_values: [a b]}\n", "must not have spaces"},
	{"second name", "- name: idp-a\n  issuer: https://b.example\n  audience: p\n", "trust.yaml:6: providers[1].name repeats the name of line 3"},
	{"second issuer", "- name: idp-b\n  issuer: https://idp.example.org\n  audience: p\n", "trust.yaml:7: providers[1].issuer repeats the issuer of line 4"},
	{"local", "- name: local\n  issuer: https://b.example\n  audience: p\n", "must not be local"},
	{"name of other characters", "- name: Idp\n  issuer: https://b.example\n  audience: p\n", "must match"},
	{"no audience", "- name: b\n  issuer: https://b.example\n", "trust.yaml:6: providers[1].audience is missing"},
	{"empty audience", "- name: b\n  issuer: https://b.example\n  audience: []\n", "audience is an empty list"},
	{"issuer over http", "- name: b\n  issuer: http://b.example\n  audience: p\n", "issuer is http"},
	{"issuer with a query", "- name: b\n  issuer: https://b.example?x=1\n  audience: p\n", "must not have a user, a query or a fragment"},
	{"issuer of another scheme", "- name: b\n  issuer: file:///etc/passwd\n  audience: p\n", "issuer is no URL"},
	{"alias", "  deny: &a [x]\n", "trust.yaml:6: anchors, aliases and tags"},
	{"tag", "  display_name: !!binary aGk=\n", "anchors, aliases and tags"},
	{"second document", "---\nversion: 1\n", "must hold one YAML document; it holds 2"},
	{"syntax", "  deny: [x\n", "trust.yaml:6: "},
	{"deep flow", "  deny: " + strings.Repeat("[", 40) + "\n", "trust.yaml:6: nests more than 24 levels"},
	{"deep list", "  deny:\n  " + strings.Repeat("- ", 40) + "x\n", "trust.yaml:7: nests more than 24 levels"},
	{"control character", "  display_name: \"a\\u0007\"\n", "has control characters"},
}

func TestAFaultRefusesTheFileAndNamesItsLine(t *testing.T) {
	t.Parallel()
	for _, test := range faultyLines {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f, err := trust.Parse("trust.yaml", []byte(minimal+test.add), secrets())
			var faults trust.Faults
			if !errors.As(err, &faults) || f != nil {
				t.Fatalf("got %v, %v; want faults and no file", f, err)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got  %s\nwant %s", err, test.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %s; want no secret in a fault", err)
			}
		})
	}
}

func TestOtherFilesAreRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, src, want string }{
		{"empty", "", "must hold one YAML document; it holds 0"},
		{"a list", "- 1\n", "the file must be a mapping"},
		{"no version", "providers: []\n", "version is missing"},
		{"later version", "version: 2\nproviders: []\n", "trust.yaml:1: version must be a whole number from 1 to 1"},
		{"no providers", "version: 1\n", "providers is missing"},
		{"a provider that is text", "version: 1\nproviders: [x]\n", "providers[0] must be a mapping"},
		{"too large", "version: 1\nproviders: []\n#" + strings.Repeat("x", trust.MaxFile), "larger than 256 KiB"},
		{"not UTF-8", "version: 1\nproviders: []\n#\xff", "trust.yaml:3: column 2: not UTF-8 (byte 0xff); save the file as UTF-8"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := trust.Parse("trust.yaml", []byte(test.src), secrets())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestAllFaultsAreReportedTogetherInTheOrderOfLines(t *testing.T) {
	t.Parallel()
	_, err := trust.Parse("trust.yaml", []byte(minimal+"  leeway_s: 999\n  colour: red\n  default_role: admin\n"), secrets())
	var faults trust.Faults
	errors.As(err, &faults)
	var lines []int
	for _, f := range faults {
		lines = append(lines, f.Line)
	}
	if want := []int{6, 7, 8}; !reflect.DeepEqual(lines, want) {
		t.Errorf("got lines %v of %v, want %v", lines, err, want)
	}
}

func TestHTTPIsAllowedOnLoopbackAndWhereTheFileSaysSo(t *testing.T) {
	t.Parallel()
	for _, issuer := range []string{"http://127.0.0.1:8080/x", "http://localhost", "http://[::1]:1"} {
		mustParse(t, strings.Replace(minimal, "https://idp.example.org", issuer, 1))
	}
	mustParse(t, strings.Replace(minimal, "https:", "http:", 1)+"  allow_insecure_http: true\n")
}

func TestKeysMayBeWrittenIntoTheFile(t *testing.T) {
	t.Parallel()
	for name, jwks := range map[string]string{
		"YAML": "  jwks:\n    keys:\n    - {kty: OKP, crv: Ed25519, x: abc, kid: k1}\n",
		"JSON": "  jwks: '{\"keys\": [{\"kty\": \"OKP\", \"crv\": \"Ed25519\", \"x\": \"abc\", \"kid\": \"k1\"}]}'\n",
	} {
		p := mustParse(t, minimal+jwks).Providers[0]
		if p.Discovery || !strings.Contains(string(p.JWKS), `"k1"`) {
			t.Errorf("%s: got discovery %v, keys %s; want the keys alone", name, p.Discovery, p.JWKS)
		}
	}
}

func TestSecretsPrintAsRedacted(t *testing.T) {
	t.Parallel()
	p := mustParse(t, full).Providers[0]
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if got := fmt.Sprintf(verb, *p.Introspection); strings.Contains(got, "from-env") || strings.Contains(got, "66726f6d") {
			t.Errorf("%s: got %s, want no secret", verb, got)
		}
	}
}

func TestLoadReadsFilesOfTheMachine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret, file := filepath.Join(dir, "secret"), filepath.Join(dir, "trust.yaml")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(secret, "s3cr3t\n")
	write(file, minimal+"  clients: {dashboard: {client_id: d, client_secret_ref: \"file:"+secret+"\"}}\n")
	f, src, err := trust.Load(file, trust.Environment{})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Providers[0].Dashboard.ClientSecret.Reveal(); got != "s3cr3t" {
		t.Errorf("secret: got %q, want the file's without its line feed", got)
	}
	if !reflect.DeepEqual(f.SecretFiles, []string{secret}) || !strings.HasPrefix(string(src), "version: 1") {
		t.Errorf("got secret files %q, content %.20q", f.SecretFiles, src)
	}
	if _, _, err := trust.Load(dir, trust.Environment{}); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a directory: got %v, want that it is no regular file", err)
	}
	if _, _, err := trust.Load(filepath.Join(dir, "none"), trust.Environment{}); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("no file: got %v, want that it cannot be read", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte(minimal))
	f.Add([]byte("version: 1\nproviders: [{name: a, issuer: https://x, audience: p, role_rules: [{value: '**/a?', role: admin, match: glob}]}]"))
	f.Add([]byte("a: b: c: d\n? ? ?\n- - -\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		file, err := trust.Parse("f", src, secrets())
		if (file == nil) == (err == nil) {
			t.Fatalf("got %v, %v; want a file or faults", file, err)
		}
		var faults trust.Faults
		if err != nil {
			if !errors.As(err, &faults) || len(faults) == 0 {
				t.Fatalf("got %v, want faults", err)
			}
			return
		}
		for i := range file.Providers {
			p := &file.Providers[i]
			id, err := p.Identify(map[string]any{"sub": "x", p.SubjectClaim: "x", "groups": []any{"ops", "/a/b"}}, false)
			if err == nil && (id.Role != trust.Admin && id.Role != trust.Viewer || id.Tenant == "" || id.Tenant == "platform") {
				t.Fatalf("got %+v; want a role and a tenant", id)
			}
		}
	})
}
