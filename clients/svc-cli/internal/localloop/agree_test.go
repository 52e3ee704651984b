package localloop_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/control"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/field"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/looptest"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/manifest"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/verification"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/workunit"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
	"github.com/mlp-platform/platform/services/evidence-api/api/schemas/schematest"
)

// mutations are the values beside the common ones that these documents are tried with: paths, globs, long texts.
var mutations = []canon.Value{
	canon.NewInt(2<<20 + 1), "xyz", "../x", "/x", "x/", "a//b", ".", "..", "...", ".x", "..x", "a/./b", "a/../b", `a\b`, "a:b", "a\x7f", "é/ö", "[", "{a,b}",
	strings.Repeat("é", 1024), strings.Repeat("x", 1025), strings.Repeat("é", 4096), strings.Repeat("x", 4097), "2026-01-02T03:04:05", "0.1", "0.2",
	"fixture-failure", "passed", "failed",
}

// beyondSchema reports faults of rules that no schema can express: across the parts of a document, of patterns, of
// times.
func beyondSchema(f *closed.Fault) bool {
	path := f.Path
	return f.Code == field.DuplicateValue ||
		strings.Contains(path, "_paths/") || strings.Contains(path, "/filesystem_write/") || // invalid patterns
		strings.HasSuffix(path, "/finished_at") || strings.Contains(path, "/evidence_artifact_ids/") ||
		strings.Contains(path, "/evidence_ids/") || strings.HasSuffix(path, "/check_id") ||
		path == "/status" || path == "/metrics" || // derived from the checks
		strings.HasSuffix(path, "/candidate_root")
}

// The readers in the code and the schemas accept and refuse the same documents, as far as a schema can express the
// rules.
func TestCodeAndSchemasAgree(t *testing.T) {
	t.Parallel()
	type document struct {
		name, schema string
		doc          *canon.Object
		read         func(canon.Value) error
	}
	var all []document
	add := func(name, schema string, doc *canon.Object, read func(canon.Value) error) {
		all = append(all, document{name, schema, doc, read})
	}
	loop := looptest.JSON().Seal()
	looptest.Set(loop.Unit, "provenance.source_revision", looptest.Revision)
	add("work unit", "work-unit", loop.Unit, func(v canon.Value) error { _, err := workunit.Read(v); return err })
	add("manifest", "result-manifest", loop.Manifests[0], func(v canon.Value) error { _, err := manifest.Read(v); return err })
	add("policy", "verifier-policy", loop.Control, func(v canon.Value) error { _, err := control.ReadPolicy(v); return err })
	config := func(v canon.Value) error { _, err := localloop.ReadConfig(v); return err }
	add("config", "local-loop-config", loop.Config, config)
	add("config of a failure", "local-loop-config", looptest.Failing().Config, config)
	plan := func(v canon.Value) error { _, err := control.ReadPlan(v); return err }
	add("plan 0.1", "evaluator-plan", looptest.JSONPlan().Seal().Control, plan)
	for _, version := range []string{"0.2", "0.3", "0.4"} {
		add("plan "+version, "evaluator-plan", looptest.Patch(version).Seal().Control, plan)
	}
	out := runLoop(t, looptest.JSON())
	result := canon.MustFrom(out.Results["attempt-2"]).(*canon.Object)
	add("result", "verification-result", result, func(v canon.Value) error { _, err := verification.Read(v); return err })
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			doc := canon.Clone(c.doc).(*canon.Object)
			if err := c.read(doc); err != nil {
				t.Fatal(err)
			}
			tried, refused := 0, 0
			schematest.Mutants(doc, func(what string) {
				tried++
				err := c.read(doc)
				schemaErr := schematest.Validate(t, c.schema, doc)
				var f *closed.Fault
				switch {
				case err == nil && schemaErr != nil:
					t.Errorf("%s: taken, but by the schema %v", what, schemaErr)
				case err != nil && !errors.As(err, &f):
					t.Errorf("%s: %v is no fault", what, err)
				case err != nil && schemaErr == nil && !beyondSchema(f):
					t.Errorf("%s: the schema takes it, the code says %v", what, err)
				case err != nil:
					refused++
				}
			}, mutations...)
			if tried < 200 || refused == 0 {
				t.Errorf("%d documents tried, %d refused; want tried >= 200 && refused != 0", tried, refused)
			}
		})
	}
}

// What a run writes fits the schemas, whatever came of it.
func TestWhatIsWrittenFitsTheSchemas(t *testing.T) {
	t.Parallel()
	for name, l := range looptest.Samples() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := runLoop(t, l)
			for file, schema := range map[string]string{
				localloop.RecordFile: "two-attempt-run", localloop.ReportFile: "run-evidence-report", localloop.ReplayFile: "replay-source",
			} {
				if err := schematest.ValidateBytes(t, schema, out.Files[file]); err != nil {
					t.Errorf("%s: %v", file, err)
				}
			}
			for _, r := range out.Results {
				if err := schematest.Validate(t, "verification-result", r); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
