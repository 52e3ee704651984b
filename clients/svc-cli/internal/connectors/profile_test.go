package connectors_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/connectors"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/samples"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
	"github.com/mlp-platform/platform/services/evidence-api/api/schemas/schematest"
)

func parseText(t testing.TB, text string) canon.Value {
	t.Helper()
	v, err := canon.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// profileWith is a profile with more members.
func profileWith(more ...string) string {
	return `{` + strings.Join(append([]string{`"api_version":"svc.io/v1alpha1","id":"a","driver":"fake-agent","kind":"agent","enabled":true`}, more...), ",") + `}`
}

func TestProfileDefaults(t *testing.T) {
	t.Parallel()
	all, err := connectors.Parse(parseText(t, profileWith()))
	if err != nil || len(all) != 1 {
		t.Fatal(all, err, "want len(all) == 1")
	}
	got, err := canon.C1(all[0].Connection)
	want := `{"auth_ref_configured":false,"candidate_types":[],"capability_tiers":[],"driver":"fake-agent","enabled":true,"external_processing":false,` +
		`"id":"a","kind":"agent","max_concurrency":1,"max_risk":"low","project_spend_usd_max":0.0,"task_classes":[],"tools":[]}`
	if err != nil || string(got) != want {
		t.Errorf("%s %v; want string(got) == want", got, err)
	}
}

func TestProfileIsRead(t *testing.T) {
	t.Parallel()
	all, err := connectors.Parse(parseText(t, `[`+profileWith(
		`"auth":{"secret_ref":"env:KEY"}`,
		`"settings":{"depth":{"list":[1,{"x":null}]}}`,
		`"capabilities":{"tiers":["T2","T0"],"task_classes":["b","a"],"tools":["z","y"],"candidate_types":["t"],"max_risk":"high"}`,
		`"policy":{"task_classes":["a","b"],"allowed_risk":["low","medium","high"],"external_processing":true,"project_spend_usd_max":3,"max_concurrency":7}`,
		`"independence":{"provider_family":"p","agent_family":"g","execution_family":"e"}`)+`,`+strings.Replace(profileWith(`"policy":{"allowed_risk":["low","medium"],"task_classes":["c"]}`), `"a"`, `"B"`, 1)+`]`))
	if err != nil {
		t.Fatal(err)
	}
	if all[0].ID != "B" || all[0].MaxRisk != "medium" || !slices.Equal(all[0].TaskClasses, []string{"c"}) {
		t.Errorf(`by id, and from the policy alone: %+v; want all[0].ID == "B" && all[0].MaxRisk == "medium" && slices.Equal(all[0].TaskClasses, []string{"c"})`, all[0])
	}
	c := all[1]
	if c.Independence != (connectors.Independence{ProviderFamily: "p", AgentFamily: "g", ExecutionFamily: "e"}) || !c.AuthRefConfigured || !c.ExternalProcessing ||
		c.ProjectSpendUSDMax != 3 || c.MaxConcurrency != 7 || c.MaxRisk != "high" || !slices.Equal(c.CapabilityTiers, []string{"T0", "T2"}) ||
		!slices.Equal(c.Tools, []string{"y", "z"}) || !slices.Equal(c.TaskClasses, []string{"a", "b"}) {
		t.Errorf(`%+v; want c.Independence == (connectors.Independence{ProviderFamily: "p", AgentFamily: "g", ExecutionFamily: "e"}) && c.AuthRefConfigured && c.ExternalProcessing && …`, c)
	}
}

// Every code of the list, with the place that it names. Values that the profiles hold
// as a secret must not be printed.
func TestProfileFaults(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-v4lue"
	for _, c := range []struct{ text, code, path string }{
		{`1`, connectors.InvalidDocument, ""},
		{`[]`, connectors.InvalidDocument, ""},
		{`[[]]`, connectors.InvalidDocument, "/0"},
		{`{}`, connectors.MissingField, "/api_version"},
		{profileWith(`"auth":{}`), connectors.MissingField, "/auth/secret_ref"},
		{profileWith(`"labels":{}`), connectors.UnknownField, "/labels"},
		{profileWith(`"policy":{"tools":[]}`), connectors.UnknownField, "/policy/tools"},
		{profileWith(`"settings":{"a":[{"My_Api_Key":"` + secret + `"}]}`), connectors.InlineSecretForbidden, "/settings/a/0/My_Api_Key"},
		{profileWith(`"settings":{"max_tokens":1}`), connectors.InlineSecretForbidden, "/settings/max_tokens"},
		{profileWith(`"auth":{"password":"` + secret + `"}`), connectors.InlineSecretForbidden, "/auth/password"},
		{profileWith(`"auth":{"secret_ref":"` + secret + `"}`), connectors.InlineSecretForbidden, "/auth/secret_ref"},
		{profileWith(`"auth":{"secret_ref":"env:1X"}`), connectors.InlineSecretForbidden, "/auth/secret_ref"},
		{profileWith(`"bearer":"` + secret + `"`), connectors.InlineSecretForbidden, "/bearer"},
		{profileWith(`"settings":{"secret_ref":"env:X"}`), connectors.SecretRefOutsideAuth, "/settings/secret_ref"},
		{profileWith(`"settings":{"auth":{"secret_ref":"env:X"}}`), connectors.SecretRefOutsideAuth, "/settings/auth/secret_ref"},
		{profileWith(`"auth":{"DB_Secret_Ref":"env:X"}`), connectors.SecretRefOutsideAuth, "/auth/DB_Secret_Ref"},
		{strings.Replace(profileWith(), "v1alpha1", "v2", 1), connectors.UnsupportedAPIVersion, "/api_version"},
		{strings.Replace(profileWith(), `"a"`, `"a b"`, 1), connectors.InvalidIdentifier, "/id"},
		{strings.Replace(profileWith(), `"fake-agent"`, `"`+strings.Repeat("x", 129)+`"`, 1), connectors.InvalidIdentifier, "/driver"},
		{strings.Replace(profileWith(), `"agent"`, `"robot"`, 1), connectors.UnknownConnectorKind, "/kind"},
		{profileWith(`"capabilities":{"tiers":["T5"]}`), connectors.InvalidCapabilityTier, "/capabilities/tiers/0"},
		{profileWith(`"capabilities":{"max_risk":"none"}`), connectors.InvalidRisk, "/capabilities/max_risk"},
		{profileWith(`"policy":{"allowed_risk":["none"]}`), connectors.InvalidRisk, "/policy/allowed_risk/0"},
		{profileWith(`"policy":{"allowed_risk":["low","high"]}`), connectors.NonMonotonicRiskPolicy, "/policy/allowed_risk"},
		{profileWith(`"policy":{"allowed_risk":["medium"]}`), connectors.NonMonotonicRiskPolicy, "/policy/allowed_risk"},
		{profileWith(`"policy":{"allowed_risk":[]}`), connectors.NonMonotonicRiskPolicy, "/policy/allowed_risk"},
		{profileWith(`"capabilities":{"task_classes":["a"]}`, `"policy":{"task_classes":["b"]}`), connectors.ConflictingField, "/policy/task_classes"},
		{profileWith(`"capabilities":{"max_risk":"high"}`, `"policy":{"allowed_risk":["low"]}`), connectors.ConflictingField, "/policy/allowed_risk"},
		{profileWith(`"capabilities":{"tools":["a","a"]}`), connectors.DuplicateValue, "/capabilities/tools/1"},
		{profileWith(`"policy":{"allowed_risk":["low","low"]}`), connectors.DuplicateValue, "/policy/allowed_risk/1"},
		{`[` + profileWith() + `,` + profileWith() + `]`, connectors.DuplicateConnectionID, "/1/id"},
		{strings.Replace(profileWith(), "true", `"true"`, 1), connectors.InvalidType, "/enabled"},
		{profileWith(`"auth":null`), connectors.InvalidType, "/auth"},
		{profileWith(`"settings":[]`), connectors.InvalidType, "/settings"},
		{profileWith(`"policy":{"project_spend_usd_max":"1"}`), connectors.InvalidType, "/policy/project_spend_usd_max"},
		{profileWith(`"policy":{"max_concurrency":1.0}`), connectors.InvalidType, "/policy/max_concurrency"},
		{profileWith(`"policy":{"max_concurrency":0}`), connectors.InvalidValue, "/policy/max_concurrency"},
		{profileWith(`"policy":{"project_spend_usd_max":-0.5}`), connectors.InvalidValue, "/policy/project_spend_usd_max"},
		{profileWith(`"policy":{"project_spend_usd_max":1` + strings.Repeat("0", 400) + `}`), connectors.InvalidValue, "/policy/project_spend_usd_max"},
		{profileWith(`"capabilities":{"tools":[" "]}`), connectors.InvalidValue, "/capabilities/tools/0"},
		{profileWith(`"independence":{"agent_family":""}`), connectors.InvalidValue, "/independence/agent_family"},
		{profileWith(`"settings":{"a b":1}`), connectors.InvalidFieldName, "/settings"},
		{profileWith(`"settings":{"":1}`), connectors.InvalidFieldName, "/settings"},
		{profileWith(`"settings":{"` + strings.Repeat("x", 129) + `":1}`), connectors.InvalidFieldName, "/settings"},
	} {
		_, err := connectors.Parse(parseText(t, c.text))
		var f *closed.Fault
		if !errors.As(err, &f) || f.Code != c.code || f.Path != c.path || f.Detail == "" {
			t.Errorf("%s: %v; want %s at %q", c.text, err, c.code, c.path)
			continue
		}
		if strings.Contains(f.Error(), secret) {
			t.Errorf("the fault tells the secret: %v; want !strings.Contains(f.Error(), secret)", f)
		}
	}
}

// What the file itself can have wrong.
func TestLoadFaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for path, code := range map[string]string{
		write("syntax", `{`):                           connectors.InvalidJSON,
		write("twice", `{"a":1,"a":2}`):                connectors.InvalidJSON,
		write("bytes", "{\"a\":\"\xff\"}"):             connectors.InvalidUTF8,
		write("large", strings.Repeat(" ", 2<<20)+`1`): connectors.ProfileReadError,
		filepath.Join(dir, "none"):                     connectors.ProfileReadError,
		dir:                                            connectors.ProfileReadError,
		write("number", `1`):                           connectors.InvalidDocument,
	} {
		if _, err := connectors.Load(path); err == nil || command.FaultOf(err).Code != code {
			t.Errorf("%s: %v; want %s", filepath.Base(path), err, code)
		}
	}
}

// The reader and the schema take and refuse the same profiles.
func TestProfileSchemaAgrees(t *testing.T) {
	t.Parallel()
	doc := parseText(t, profileWith(
		`"auth":{"secret_ref":"env:KEY"}`, `"settings":{"region":"north"}`,
		`"capabilities":{"tiers":["T2"],"task_classes":["a"],"tools":["z"],"candidate_types":["t"],"max_risk":"low"}`,
		`"policy":{"task_classes":["a"],"allowed_risk":["low"],"external_processing":true,"project_spend_usd_max":3.5,"max_concurrency":7}`,
		`"independence":{"provider_family":"p"}`)).(*canon.Object)
	beyond := map[string]bool{connectors.ConflictingField: true}
	tried, refused := 0, 0
	schematest.Mutants(doc, func(what string) {
		tried++
		_, err := connectors.Parse(doc)
		schemaErr := schematest.Validate(t, "connector-profile", doc)
		var f *closed.Fault
		switch {
		case err == nil && schemaErr != nil:
			t.Errorf("%s: taken, but by the schema %v", what, schemaErr)
		case err != nil && !errors.As(err, &f):
			t.Errorf("%s: %v is no fault", what, err)
		case err != nil && schemaErr == nil && !beyond[f.Code]:
			t.Errorf("%s: the schema takes it, the code says %v", what, err)
		case err != nil:
			refused++
		}
	}, canon.Array{"low"}, canon.Array{"low", "medium"}, canon.Array{"medium"}, "T1", "high", "env:X",
		canon.NewObject(canon.Member{Key: "api_key", Value: "x"}), canon.NewObject(canon.Member{Key: "a b", Value: "x"}))
	if tried < 300 || refused == 0 {
		t.Errorf("%d tried, %d refused; want tried >= 300 && refused != 0", tried, refused)
	}
}

func TestSampleProfiles(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{"profile": true, "healthy": true, "inline-secret": false} {
		v := parseText(t, string(samples.File("connectors/"+name+".json")))
		if _, err := connectors.Parse(v); (err == nil) != ok {
			t.Errorf("%s: %v; want (err == nil) == %v", name, err, ok)
		}
		if err := schematest.Validate(t, "connector-profile", v); (err == nil) != ok {
			t.Errorf("%s: %v; want (err == nil) == %v", name, err, ok)
		}
	}
}

// A profile that is accepted makes records that a store accepts, and a fault names a
// place in the document and none of its texts.
func FuzzProfile(f *testing.F) {
	for _, name := range []string{"profile", "healthy", "inline-secret"} {
		f.Add(samples.File("connectors/" + name + ".json"))
	}
	f.Add([]byte(profileWith(`"settings":{"a b":1}`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := canon.Parse(data)
		if err != nil {
			return
		}
		all, err := connectors.Parse(v)
		var fault *closed.Fault
		switch {
		case err != nil && (!errors.As(err, &fault) || fault.Code == "" || fault.Detail == ""):
			t.Fatalf("%v is no fault", err)
		case err == nil && len(all) == 0:
			t.Fatal("a profile of nothing")
		}
		for _, c := range all {
			again, err := connectors.Parse(v)
			if err != nil || len(again) != len(all) {
				t.Fatal("the same document is read differently", err, "want len(again) == len(all)")
			}
			if err := schematest.Validate(t, "control-tower-connection-response", wrapConnector(c)); err != nil {
				t.Fatal(err)
			}
		}
	})
}
