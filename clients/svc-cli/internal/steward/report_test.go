package steward_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/app/apptest"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/samples"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/steward"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
	"github.com/mlp-platform/platform/services/evidence-api/api/schemas/schematest"
)

const (
	completed = "history/day-1/steward-report"
	blocked   = "history/day-2/steward-report"
)

// changedSample is a sample report with values put at JSON pointers; "-" takes a key away.
func changedSample(t testing.TB, name string, changes map[string]string) *canon.Object {
	t.Helper()
	v, err := canon.Parse(samples.File("steward/" + name + ".json"))
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range changes {
		at := v
		keys := strings.Split(path[1:], "/")
		for _, k := range keys[:len(keys)-1] {
			switch x := at.(type) {
			case *canon.Object:
				at, _ = x.Get(k)
			case canon.Array:
				at = x[k[0]-'0']
			}
		}
		last := keys[len(keys)-1]
		if text == "-" {
			at.(*canon.Object).Delete(last)
			continue
		}
		value, err := canon.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		at.(*canon.Object).Set(last, value)
	}
	return v.(*canon.Object)
}

func TestSampleReports(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{completed: true, blocked: true, "history/day-3/steward-report": true, "other-repository": true, "not-planned": false} {
		doc := changedSample(t, name, nil)
		r, err := steward.Parse(doc)
		if (err == nil) != ok {
			t.Errorf("%s: %v; want (err == nil) == %v", name, err, ok)
		}
		if err := schematest.Validate(t, "steward-report", doc); err != nil { // the schema cannot know the plan
			t.Errorf("%s: %v", name, err)
		}
		if ok && "sha256:"+r.Digest != canon.Digest(doc) {
			t.Errorf(`%s: digest %s; want (!ok || "sha256:" + r.Digest == canon.Digest(doc))`, name, r.Digest)
		}
	}
	r, err := steward.Parse(changedSample(t, completed, map[string]string{"/provenance/run_id": `"1001"`, "/provenance/run_attempt": `"2"`, "/status": `"completed"`}))
	if err != nil || r.Provenance.RunID != 1001 || r.Provenance.RunAttempt != 2 {
		t.Error("numbers as texts:", r, err, "want r.Provenance.RunID == 1001 && r.Provenance.RunAttempt == 2")
	}
	r, err = steward.Parse(changedSample(t, blocked, map[string]string{"/status": `"disabled"`, "/blocked_reason": `"policy_disabled"`}))
	if err != nil || r.Status != steward.Disabled {
		t.Error("disabled:", err, "want r.Status == steward.Disabled")
	}
}

func TestReportFaults(t *testing.T) {
	t.Parallel()
	branch := `{"branch":"work/9","base":"main","head_sha":"` + strings.Repeat("4", 40) + `","ahead_by":1,"behind_by":0`
	for _, c := range []struct {
		sample     string
		changes    map[string]string
		code, path string
	}{
		{completed, map[string]string{"/schema": `"v9"`}, steward.UnsupportedSchema, "/schema"},
		{completed, map[string]string{"/repository": `"x"`}, steward.InvalidRepository, "/repository"},
		{completed, map[string]string{"/generated_at": `"2026-01-02T03:04:05+00:00"`}, steward.InvalidTimestamp, "/generated_at"},
		{completed, map[string]string{"/status": `"done"`}, steward.InvalidState, "/status"},
		{completed, map[string]string{"/dry_run": `0`}, steward.InvalidType, "/dry_run"},
		{completed, map[string]string{"/policy/sha256": `"sha256:` + strings.Repeat("a", 64) + `"`}, steward.InvalidDigest, "/policy/sha256"},
		{completed, map[string]string{"/policy/path": `"a\nb"`}, steward.InvalidValue, "/policy/path"},
		{completed, map[string]string{"/provenance/run_id": `0`}, steward.InvalidValue, "/provenance/run_id"},
		{completed, map[string]string{"/provenance/run_id": `"01"`}, steward.InvalidValue, "/provenance/run_id"},
		{completed, map[string]string{"/provenance/trusted_head_sha": `"main"`}, steward.InvalidRevision, "/provenance/trusted_head_sha"},
		{completed, map[string]string{"/authority/merge": `true`}, steward.AuthorityViolation, "/authority/merge"},
		{completed, map[string]string{"/authority/draft_pr_create": `false`}, steward.AuthorityViolation, "/authority/draft_pr_create"},
		{completed, map[string]string{"/authority/approve": `-`}, steward.MissingField, "/authority/approve"},
		{completed, map[string]string{"/more": `1`}, steward.UnknownField, "/more"},
		{completed, map[string]string{"/summary/created": `2`}, steward.CountMismatch, "/summary/created"},
		{completed, map[string]string{"/candidate_count": `2`}, steward.CountMismatch, "/planned"},
		{completed, map[string]string{"/created/0/url": `"https://github.com/example/demo/pull/18"`}, steward.InvalidValue, "/created/0/url"},
		{completed, map[string]string{"/created/0/url": `"https://github.com/example/other/pull/17"`}, steward.InvalidValue, "/created/0/url"},
		{completed, map[string]string{"/created/0/head_sha": `"` + strings.Repeat("9", 40) + `"`}, steward.OutcomeNotPlanned, "/created/0"},
		{completed, map[string]string{"/created/0/ahead_by": `7`}, steward.OutcomeNotPlanned, "/created/0"},
		{completed, map[string]string{"/skipped/0/branch": `"work/9"`}, steward.OutcomeNotPlanned, "/skipped/0"},
		{completed, map[string]string{"/skipped/0/reason": `"tired"`}, steward.InvalidValue, "/skipped/0/reason"},
		{completed, map[string]string{"/skipped/0/current_head_sha": `-`}, steward.MissingField, "/skipped/0/current_head_sha"},
		{completed, map[string]string{"/skipped/1/current_head_sha": `"` + strings.Repeat("9", 40) + `"`}, steward.UnknownField, "/skipped/1/current_head_sha"},
		{completed, map[string]string{"/planned": `[` + branch + `},` + branch + `}]`, "/created": `[]`, "/skipped": `[]`, "/summary": `{"planned":2,"created":0,"skipped":0}`}, steward.DuplicateValue, "/planned/1"},
		{completed, map[string]string{"/planned": `[` + branch + `}]`, "/created": `[]`, "/skipped": `[` + branch + `,"reason":"pr_already_exists"},` + branch + `,"reason":"pr_already_exists"}]`,
			"/summary": `{"planned":1,"created":0,"skipped":2}`}, steward.DuplicateValue, "/skipped/1"},
		{completed, map[string]string{
			"/planned":    `[` + branch + `},` + strings.Replace(branch, "work/9", "work/8", 1) + `}]`,
			"/created":    `[` + branch + `,"number":1,"url":"https://github.com/example/demo/pull/1"},` + strings.Replace(branch, "work/9", "work/8", 1) + `,"number":1,"url":"https://github.com/example/demo/pull/1"}]`,
			"/skipped":    `[]`,
			"/summary":    `{"planned":2,"created":2,"skipped":0}`,
			"/provenance": `{"workflow":"w","run_id":1,"run_attempt":1,"trusted_head_sha":null}`}, steward.DuplicateValue, "/created/1"},
		{completed, map[string]string{"/blocked_reason": `"x"`}, steward.StateConflict, "/blocked_reason"},
		{completed, map[string]string{"/candidate_count": `null`}, steward.StateConflict, "/candidate_count"},
		{blocked, map[string]string{"/blocked_reason": `null`}, steward.StateConflict, "/blocked_reason"},
		{blocked, map[string]string{"/blocked_reason": `"policy_disabled"`}, steward.StateConflict, "/blocked_reason"},
		{blocked, map[string]string{"/status": `"disabled"`}, steward.StateConflict, "/blocked_reason"},
		{blocked, map[string]string{"/candidate_count": `0`}, steward.StateConflict, "/candidate_count"},
		{blocked, map[string]string{"/planned": `[` + branch + `}]`, "/summary/planned": `1`}, steward.StateConflict, "/planned"},
	} {
		_, err := steward.Parse(changedSample(t, c.sample, c.changes))
		var f *closed.Fault
		if !errors.As(err, &f) || f.Code != c.code || f.Path != c.path {
			t.Errorf("%v: %v; want %s at %s", c.changes, err, c.code, c.path)
		}
	}
	if _, err := steward.Parse(canon.Array{}); err == nil {
		t.Error("an array was taken")
	}
}

// The reader and the schema accept and refuse the same reports, as far as a schema can
// express the rules: those across lists are beyond it.
func TestReportSchemaAgrees(t *testing.T) {
	t.Parallel()
	beyond := map[string]bool{steward.CountMismatch: true, steward.DuplicateValue: true, steward.OutcomeNotPlanned: true}
	for _, name := range []string{completed, blocked} {
		doc := changedSample(t, name, nil)
		refused := 0
		schematest.Mutants(doc, func(what string) {
			_, err := steward.Parse(doc)
			schemaErr := schematest.Validate(t, "steward-report", doc)
			var f *closed.Fault
			switch {
			case err == nil && schemaErr != nil:
				t.Errorf("%s: taken, but by the schema %v", what, schemaErr)
			case err != nil && !errors.As(err, &f):
				t.Errorf("%s: %v is no fault", what, err)
			case err != nil && schemaErr == nil && !beyond[f.Code] && !strings.HasSuffix(f.Path, "/url"):
				t.Errorf("%s: the schema takes it, the code says %v", what, err)
			case err != nil:
				refused++
			}
		}, "policy_disabled", "blocked", "disabled", "completed", "head_moved", "pr_already_exists", "1", "01", "\u00a0x", strings.Repeat("é", 1024), strings.Repeat("x", 1025))
		if refused == 0 {
			t.Error("nothing was refused")
		}
	}
}

// A report that is accepted adds up: it has a history that fits the schema.
func FuzzReport(f *testing.F) {
	for _, name := range []string{completed, blocked, "not-planned"} {
		f.Add(samples.File("steward/" + name + ".json"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := canon.Parse(data)
		if err != nil {
			return
		}
		r, err := steward.Parse(v)
		if err != nil {
			var fault *closed.Fault
			if !errors.As(err, &fault) {
				t.Fatalf("%v is no fault; want errors.As(err, &fault)", err)
			}
			return
		}
		if len(r.Created)+len(r.Skipped) > len(r.Planned) {
			t.Fatalf("%d outcomes of %d; want len(r.Created) + len(r.Skipped) <= len(r.Planned)", len(r.Created)+len(r.Skipped), len(r.Planned))
		}
		h, err := steward.NewHistory([]steward.Entry{steward.NewEntry("x", r)})
		if err != nil {
			t.Fatal(err)
		}
		if err := schematest.Validate(t, "steward-history", h); err != nil {
			t.Fatal(err)
		}
	})
}

func TestReportAsADocument(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "steward-report.json")
	text := samples.File("steward/history/day-1/steward-report.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	doc, err := canon.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	want, err := canon.J(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{{"--json"}, {"--output", "json"}} {
		r := apptest.Run(t, append([]string{"steward-report", path}, flags...)...)
		if r.Code != 0 || r.Err != "" || r.Out != string(want) {
			t.Errorf("%q: got %+v, want %s", flags, r, want)
		}
	}
	if r := apptest.Run(t, "steward-report", path, "--json", "--details"); r.Code != 2 || !strings.Contains(r.Out, `"code":"invalid_arguments"`) {
		t.Errorf("--json --details: got %+v, want exit 2 and invalid_arguments", r)
	}
}
