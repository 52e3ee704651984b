package schematest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
	"github.com/mlp-platform/platform/libs/evidence/evidencetest"
	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/report"
	"github.com/mlp-platform/platform/libs/evidence/spine"
	"github.com/mlp-platform/platform/services/evidence-api/api/schemas/schematest"
)

// Documents that the code refuses and the schema cannot express: rules across the parts of a document, and dates that
// do not exist.
var beyondSchema = map[string]bool{
	report.DuplicateAttempt: true, report.StateMismatch: true, report.SummaryMismatch: true,
	spine.InvalidAdmission: true, spine.InvalidAttemptState: true, spine.InvalidAttemptOrder: true,
	spine.InvalidRunEvidence: true, spine.InvalidAttemptEvidence: true, spine.InvalidEventID: true, spine.PayloadDigestMismatch: true,
}

// The validators in the code and the schemas accept and refuse the same documents, as far as a schema can express it.
func TestCodeAndSchemasAgree(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, schema string
		doc          *canon.Object
		read         func(canon.Value) error
	}{
		{"report", "run-evidence-report", fixture.Report().Value(), func(v canon.Value) error { _, err := report.Read(v); return err }},
		{"proposed run", "product-spine-run", fixture.Run().Value(), func(v canon.Value) error { _, err := spine.ReadRun(v); return err }},
		{"imported run", "product-spine-run", importedRun(t).Value(), func(v canon.Value) error { _, err := spine.ReadRun(v); return err }},
		{"created", "event", evidencetest.RunEvents()[0].Value(), func(v canon.Value) error { _, err := spine.ReadEvent(v); return err }},
		{"cancelled", "event", evidencetest.RunEvents()[1].Value(), func(v canon.Value) error { _, err := spine.ReadEvent(v); return err }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			doc := canon.Clone(c.doc).(*canon.Object)
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
				case err != nil && schemaErr == nil && !beyondSchema[f.Code] && !isOrderFault(f):
					t.Errorf("%s: the schema takes it, the code says %v", what, err)
				case err != nil:
					refused++
				}
			})
			if tried < 300 || refused == 0 {
				t.Errorf("%d documents tried, %d refused; want tried >= 300 && refused != 0", tried, refused)
			}
		})
	}
}

// isOrderFault reports whether a fault is about the orders 1..n of attempts, whose code is shared.
func isOrderFault(f *closed.Fault) bool {
	return f.Code == report.InvalidValue && strings.HasSuffix(f.Path, "/order")
}
