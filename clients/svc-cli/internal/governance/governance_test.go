package governance_test

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/governance"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/samples"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
	"github.com/mlp-platform/platform/services/evidence-api/api/schemas/schematest"
)

// sampleObservation is the sample observation, which is good in every way, with values put at JSON
// pointers.
func sampleObservation(t testing.TB, changes map[string]string) *canon.Object {
	t.Helper()
	v, err := canon.Parse(samples.File("governance/observation.json"))
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range changes {
		value, err := canon.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		at := v.(*canon.Object)
		keys := strings.Split(path[1:], "/")
		for _, k := range keys[:len(keys)-1] {
			next, _ := at.Get(k)
			at = next.(*canon.Object)
		}
		at.Set(keys[len(keys)-1], value)
	}
	return v.(*canon.Object)
}

func readObservation(t testing.TB, changes map[string]string) governance.Observation {
	t.Helper()
	o, err := governance.ParseObservation(sampleObservation(t, changes))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

const (
	pass, warn, unknown, fail = governance.Pass, governance.Warn, governance.Unknown, governance.Fail

	none = "n/a"
)

// guardOutcome returns a guard's outcome in a report.
func guardOutcome(r governance.Report, code string) string {
	for _, g := range r.Guards {
		if g.Code == code {
			return g.Outcome
		}
	}
	if slices.Contains(r.NotApplicable, code) {
		return none
	}
	return "absent"
}

// Which guards each operation has, and their order.
func TestGuardsOfOperations(t *testing.T) {
	t.Parallel()
	all := []string{"actions-default-contents-read", "checkout-persist-credentials-disabled", "branch-deletion-blocked", "force-push-blocked",
		"pull-request-integration", "narrow-bypass-actors", "required-checks-enforced", "codeowner-review-enforced", "risk-review-required",
		"high-risk-environment-approval", "immutable-security-actions", "untrusted-pr-secret-isolation", "environment-self-review-prevented",
		"sensitive-path-codeowners", "stable-ci-checks-present", "oidc-short-lived-cloud-auth"}
	w, p, s := all[:2], append(slices.Clone(all[2:9]), all[13:15]...), all[9:13]
	// Everything applies here.
	o := readObservation(t, map[string]string{"/workflow_source/untrusted_trigger": "true", "/workflow_source/secrets_referenced": "false"})
	for operation, want := range map[string][]string{
		"read_only":               w,
		"candidate_dispatch":      slices.Concat(w, p),
		"secret_bearing_dispatch": slices.Concat(w, p, s),
		"high_risk_dispatch":      slices.Concat(w, p, s),
		"cloud_dispatch":          all,
		"integration":             p,
	} {
		r := governance.Judge(o, operation)
		var got []string
		for _, g := range r.Guards {
			got = append(got, g.Code)
		}
		if order := func(a, b string) int { return slices.Index(all, a) - slices.Index(all, b) }; !slices.IsSortedFunc(got, order) || !slices.IsSortedFunc(r.NotApplicable, order) {
			t.Errorf("%s: out of order: %v, %v; want slices.IsSortedFunc(got, order) && slices.IsSortedFunc(r.NotApplicable, order)", operation, got, r.NotApplicable)
		}
		slices.Sort(got)
		want = slices.Sorted(slices.Values(want))
		if !slices.Equal(got, want) || len(r.NotApplicable) != len(all)-len(want) || r.Status != pass {
			t.Errorf("%s: %v, %v, %s; want slices.Equal(got, want) && len(r.NotApplicable) == len(all) - len(want) && r.Status == pass", operation, got, r.NotApplicable, r.Status)
		}
	}
	if len(governance.Operations()) != 6 {
		t.Error(governance.Operations(), "want len(governance.Operations()) == 6")
	}
}

// Every guard: satisfied, broken, unobserved, not applicable.
func TestGuards(t *testing.T) {
	t.Parallel()
	const op = "cloud_dispatch"
	for _, c := range []struct {
		guard   string
		changes map[string]string
		want    string
	}{
		{"actions-default-contents-read", map[string]string{"/workflow_source/permissions": `"none"`}, pass},
		{"actions-default-contents-read", map[string]string{"/workflow_source/permissions": `"write"`}, fail},
		{"actions-default-contents-read", map[string]string{"/workflow_source/permissions": `"unset"`}, fail},
		{"actions-default-contents-read", map[string]string{"/workflow_source": "null"}, unknown},
		{"checkout-persist-credentials-disabled", map[string]string{"/workflow_source/persist_credentials": `"absent"`}, pass},
		{"checkout-persist-credentials-disabled", map[string]string{"/workflow_source/persist_credentials": `"enabled"`}, fail},
		{"checkout-persist-credentials-disabled", map[string]string{"/workflow_source/persist_credentials": `"enabled"`, "/workflow_source/pushes": "true"}, none},
		{"checkout-persist-credentials-disabled", map[string]string{"/workflow_source": "null"}, unknown},
		{"branch-deletion-blocked", map[string]string{"/repository_rules/deletion_blocked": "false"}, fail},
		{"branch-deletion-blocked", map[string]string{"/repository_rules/deletion_blocked": "null"}, unknown},
		{"force-push-blocked", map[string]string{"/repository_rules/force_push_blocked": "false"}, fail},
		{"pull-request-integration", map[string]string{"/repository_rules/pull_request_required": "false"}, fail},
		{"pull-request-integration", map[string]string{"/repository_rules": "null"}, unknown},
		{"narrow-bypass-actors", map[string]string{"/repository_rules/bypass_actors": `[]`}, pass},
		{"narrow-bypass-actors", map[string]string{"/repository_rules/bypass_actors": `[{"type":"deploy_key","id":"k","mode":"always"},{"type":"team","id":1,"mode":"pull_request"}]`}, pass},
		{"narrow-bypass-actors", map[string]string{"/repository_rules/bypass_actors": `[{"type":"team","id":1,"mode":"always"}]`}, fail},
		// The words of GitHub's API, which gives deploy keys no id.
		{"narrow-bypass-actors", map[string]string{"/repository_rules/bypass_actors": `[{"type":"DeployKey","id":null,"mode":"always"},{"type":"Integration","id":1,"mode":"always"}]`}, pass},
		{"narrow-bypass-actors", map[string]string{"/repository_rules/bypass_actors": `[{"type":"OrganizationAdmin","id":1,"mode":"always"}]`}, fail},
		{"narrow-bypass-actors", map[string]string{"/repository_rules/bypass_actors": `[{"type":"RepositoryRole","id":5,"mode":"always"}]`}, fail},
		{"narrow-bypass-actors", map[string]string{"/repository_rules/bypass_actors": `[{"type":"Team","id":1,"mode":"pull_request"},{"type":"User","id":2,"mode":"always"}]`}, fail},
		{"narrow-bypass-actors", map[string]string{"/repository_rules/bypass_actors": "null"}, unknown},
		{"required-checks-enforced", map[string]string{"/repository_rules/required_checks": "[]"}, fail},
		{"required-checks-enforced", map[string]string{"/repository_rules/required_checks": "null"}, unknown},
		{"required-checks-enforced", map[string]string{"/repository_rules": "null", "/context/required_checks_declared": "false"}, none},
		{"codeowner-review-enforced", map[string]string{"/repository_rules/codeowner_review_required": "false"}, fail},
		{"codeowner-review-enforced", map[string]string{"/repository_rules/codeowner_review_required": "null"}, unknown},
		{"codeowner-review-enforced", map[string]string{"/codeowners": "null"}, unknown},
		{"codeowner-review-enforced", map[string]string{"/repository_rules": "null"}, unknown},
		{"codeowner-review-enforced", map[string]string{"/codeowners/configured": "false"}, none},
		{"codeowner-review-enforced", map[string]string{"/codeowners": "null", "/context/sensitive_paths": "[]"}, none},
		{"risk-review-required", map[string]string{"/repository_rules/required_approving_reviews": "0"}, fail},
		{"risk-review-required", map[string]string{"/repository_rules/required_approving_reviews": "null"}, unknown},
		{"risk-review-required", map[string]string{"/repository_rules/required_approving_reviews": "0", "/context/risk": `"low"`}, none},
		{"high-risk-environment-approval", map[string]string{"/workflow_source/environments": "[]"}, fail},
		{"high-risk-environment-approval", map[string]string{"/workflow_source/environments": `["dispatch","other"]`}, fail},
		{"high-risk-environment-approval", map[string]string{"/environment_settings/environments": `[{"name":"dispatch","required_reviewers":0,"self_review_prevented":true}]`}, fail},
		{"high-risk-environment-approval", map[string]string{"/environment_settings": "null"}, unknown},
		{"high-risk-environment-approval", map[string]string{"/workflow_source": "null"}, unknown},
		{"immutable-security-actions", map[string]string{"/workflow_source/unpinned_actions": `["a/b@v1"]`}, fail},
		{"immutable-security-actions", map[string]string{"/workflow_source": "null"}, unknown},
		{"untrusted-pr-secret-isolation", map[string]string{"/workflow_source/untrusted_trigger": "true"}, fail}, // the sample refers to secrets
		{"untrusted-pr-secret-isolation", map[string]string{"/workflow_source/untrusted_trigger": "true", "/workflow_source/secrets_referenced": "false", "/workflow_source/untrusted_checkout": "true"}, fail},
		{"untrusted-pr-secret-isolation", map[string]string{"/workflow_source/untrusted_trigger": "true", "/workflow_source/secrets_referenced": "false"}, pass},
		{"untrusted-pr-secret-isolation", nil, none},
		{"untrusted-pr-secret-isolation", map[string]string{"/workflow_source": "null"}, unknown},
		{"environment-self-review-prevented", map[string]string{"/environment_settings/environments": `[{"name":"a","required_reviewers":1,"self_review_prevented":null},{"name":"b","required_reviewers":1,"self_review_prevented":false}]`}, warn},
		{"environment-self-review-prevented", map[string]string{"/environment_settings/environments": `[{"name":"a","required_reviewers":1,"self_review_prevented":null}]`}, unknown},
		{"environment-self-review-prevented", map[string]string{"/environment_settings/protection_supported": "false"}, none},
		{"environment-self-review-prevented", map[string]string{"/environment_settings": "null"}, unknown},
		{"sensitive-path-codeowners", map[string]string{"/codeowners/uncovered_sensitive_paths": `["deploy/**"]`}, warn},
		{"sensitive-path-codeowners", map[string]string{"/codeowners/uncovered_sensitive_paths": "true"}, warn},
		{"sensitive-path-codeowners", map[string]string{"/codeowners/uncovered_sensitive_paths": "false"}, pass},
		{"sensitive-path-codeowners", map[string]string{"/codeowners": "null"}, unknown},
		{"sensitive-path-codeowners", map[string]string{"/context/sensitive_paths": "false"}, none},
		{"stable-ci-checks-present", map[string]string{"/repository_rules/required_checks": `["test","lint"]`}, warn},
		{"stable-ci-checks-present", map[string]string{"/repository_rules/required_checks": "null"}, unknown},
		{"stable-ci-checks-present", map[string]string{"/workflow_source": "null"}, unknown},
		{"oidc-short-lived-cloud-auth", map[string]string{"/connector_configuration/cloud_auth": `"long_lived_secret"`}, warn},
		{"oidc-short-lived-cloud-auth", map[string]string{"/connector_configuration/cloud_auth": `"none"`}, warn},
		{"oidc-short-lived-cloud-auth", map[string]string{"/connector_configuration": "null"}, unknown},
	} {
		r := governance.Judge(readObservation(t, c.changes), op)
		if got := guardOutcome(r, c.guard); got != c.want {
			t.Errorf("%s with %v: %s, want %s", c.guard, c.changes, got, c.want)
		}
		for _, g := range r.Guards {
			if g.Reason == "" || len(g.Sources) == 0 {
				t.Errorf(`%s gives no reason or source; want g.Reason != "" && len(g.Sources) != 0`, g.Code)
			}
		}
	}
	good := governance.Judge(readObservation(t, nil), op)
	for _, g := range good.Guards {
		if g.Outcome != pass {
			t.Errorf("of the good sample %s is %s; want g.Outcome == %v", g.Code, g.Outcome, pass)
		}
	}
}

func TestOverall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		changes   map[string]string
		operation string
		want      string
	}{
		{nil, "cloud_dispatch", pass},
		{map[string]string{"/connector_configuration": "null"}, "cloud_dispatch", warn}, // unknown, but optional
		{map[string]string{"/connector_configuration/cloud_auth": `"none"`}, "cloud_dispatch", warn},
		{map[string]string{"/repository_rules": "null"}, "integration", unknown},
		{map[string]string{"/repository_rules": "null"}, "read_only", pass},
		{map[string]string{"/repository_rules": "null", "/workflow_source/permissions": `"write"`}, "candidate_dispatch", fail},
		{map[string]string{"/repository_rules": "null", "/codeowners/uncovered_sensitive_paths": "true"}, "integration", unknown},
	} {
		if got := governance.Judge(readObservation(t, c.changes), c.operation); got.Status != c.want {
			t.Errorf("%v for %s: %s, want %s", c.changes, c.operation, got.Status, c.want)
		}
	}
}

// Every report that can come of these fits its schema.
func TestReportsFitTheirSchema(t *testing.T) {
	t.Parallel()
	blocks := []string{"/repository_rules", "/codeowners", "/environment_settings", "/connector_configuration", "/workflow_source"}
	for mask := range 1 << len(blocks) {
		changes := map[string]string{}
		for i, b := range blocks {
			if mask>>i&1 == 1 {
				changes[b] = "null"
			}
		}
		doc := sampleObservation(t, changes)
		if err := schematest.Validate(t, "github-governance-observation", doc); err != nil {
			t.Error(err)
		}
		o, err := governance.ParseObservation(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, operation := range governance.Operations() {
			if err := schematest.Validate(t, "github-governance-report", governance.Judge(o, operation)); err != nil {
				t.Errorf("%v %s: %v", slices.Collect(maps.Keys(changes)), operation, err)
			}
		}
	}
}

func TestObservationFaults(t *testing.T) {
	t.Parallel()
	for path, c := range map[string]struct{ value, code, at string }{
		"/schema_version":                   {`"9"`, governance.UnsupportedVersion, ""},
		"/kind":                             {`"x"`, governance.InvalidKind, ""},
		"/repository":                       {`"no-owner"`, governance.InvalidRepository, ""},
		"/observed_at":                      {`"yesterday"`, governance.InvalidTimestamp, ""},
		"/default_branch":                   {`"a..b"`, governance.InvalidValue, ""},
		"/context/risk":                     {`"none"`, governance.InvalidRisk, ""},
		"/context/sensitive_paths":          {`1`, governance.InvalidType, ""},
		"/more":                             {`1`, governance.UnknownField, ""},
		"/repository_rules/required_checks": {`["a","a"]`, governance.DuplicateValue, "/1"},
		"/repository_rules/required_approving_reviews": {`-1`, governance.InvalidValue, ""},
		"/repository_rules/bypass_actors":              {`[{"type":"app","id":-1,"mode":"always"}]`, governance.InvalidValue, "/0/id"},
		"/environment_settings/environments":           {`[{"name":"a","required_reviewers":1,"self_review_prevented":null},{"name":"a","required_reviewers":1,"self_review_prevented":null}]`, governance.DuplicateValue, "/1/name"},
		"/workflow_source":                             {`{}`, governance.MissingField, "/permissions"},
		"/codeowners":                                  {`[]`, governance.InvalidType, ""},
		"/connector_configuration/cloud_auth":          {`"key"`, governance.InvalidValue, ""},
	} {
		_, err := governance.ParseObservation(sampleObservation(t, map[string]string{path: c.value}))
		var f *closed.Fault
		if !errors.As(err, &f) || f.Code != c.code || f.Path != path+c.at {
			t.Errorf("%s = %s: %v; want %s", path, c.value, err, c.code)
		}
	}
	if _, err := governance.ParseObservation(canon.Array{}); command.FaultOf(err).Code != governance.InvalidDocument {
		t.Error(err, "want command.FaultOf(err).Code ==", governance.InvalidDocument)
	}
	if _, err := governance.ParseOperation("merge"); command.FaultOf(err).Code != "invalid_operation" {
		t.Error(err, `want command.FaultOf(err).Code == "invalid_operation"`)
	}
}

func TestObservationSchemaAgrees(t *testing.T) {
	t.Parallel()
	doc := sampleObservation(t, nil)
	refused := 0
	schematest.Mutants(doc, func(what string) {
		_, err := governance.ParseObservation(doc)
		schemaErr := schematest.Validate(t, "github-governance-observation", doc)
		var f *closed.Fault
		switch {
		case err == nil && schemaErr != nil, err != nil && schemaErr == nil && !isBeyondSchema(err):
			t.Errorf("%s: code %v, schema %v", what, err, schemaErr)
		case err != nil && !errors.As(err, &f):
			t.Errorf("%s: %v is no fault", what, err)
		case err != nil:
			refused++
		}
	}, "a/b", "a/..", "-a/b", "a..b", "a/", "a.lock", "a//b", "write", "read_only", "high")
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

// isBeyondSchema reports whether err is about a rule that no schema can express: that names differ
// among objects.
func isBeyondSchema(err error) bool {
	var f *closed.Fault
	return errors.As(err, &f) && f.Code == governance.DuplicateValue
}

func TestBranchesAndRepositories(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		"main": true, "a": true, "release/1.x": true, "a_b-c.d": true, strings.Repeat("x", 128): true,
		"": false, ".a": false, "-a": false, "/a": false, "a..b": false, "a//b": false, "a@{1}": false, "a/": false, "a.": false, "a.lock": false,
		"a b": false, "é": false, "a\n": false, strings.Repeat("x", 129): false,
	} {
		if governance.IsBranch(s) != want {
			t.Errorf("branch %q; want governance.IsBranch(s) == %v", s, want)
		}
	}
	for s, want := range map[string]bool{
		"o/n": true, "O-1/n.x_y-z": true, "o": false, "/n": false, "o/": false, "o/n/x": false, "-o/n": false, "o/.": false, "o/..": false, "o_x/n": false,
		strings.Repeat("o", 39) + "/" + strings.Repeat("n", 100): true, strings.Repeat("o", 40) + "/n": false, "o/" + strings.Repeat("n", 101): false,
	} {
		_, err := governance.ParseObservation(sampleObservation(t, map[string]string{"/repository": strconv.Quote(s)}))
		if got := err == nil; got != want {
			t.Errorf("repository %q: got taken %v (%v), want %v", s, got, err, want)
		}
	}
}

// An observation that is accepted can be judged for every operation, with an outcome for every
// guard.
func FuzzObservation(f *testing.F) {
	f.Add(samples.File("governance/observation.json"))
	f.Add(samples.File("governance/observation-without-rules.json"))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := canon.Parse(data)
		if err != nil {
			return
		}
		o, err := governance.ParseObservation(v)
		if err != nil {
			var fault *closed.Fault
			if !errors.As(err, &fault) {
				t.Fatalf("%v is no fault; want errors.As(err, &fault)", err)
			}
			return
		}
		for _, operation := range governance.Operations() {
			r := governance.Judge(o, operation)
			if len(r.Guards)+len(r.NotApplicable) != 16 {
				t.Fatalf("%+v; want len(r.Guards) + len(r.NotApplicable) == 16", r)
			}
			if err := schematest.Validate(t, "github-governance-report", r); err != nil {
				t.Fatal(err)
			}
		}
	})
}
