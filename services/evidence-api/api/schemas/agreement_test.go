package schemas_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/report"
	"github.com/mlp-platform/platform/services/evidence-api/api/schemas/schematest"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// mutants calls each with the document after one change at one place: every value
// replaced by values of every type and by values just out of bounds, every key taken
// away, a key added to every object, every array doubled and emptied. The change is
// undone afterwards.
func mutants(doc *canon.Object, each func(what string)) {
	values := []canon.Value{
		nil, true, false, canon.NewInt(0), canon.NewInt(1), canon.NewInt(-1), canon.Float(0.5), canon.Float(-0.5), "", "x", " ", "x y", "x\n",
		"main", strings.Repeat("a", 40), strings.Repeat("A", 40), strings.Repeat("x", 193), fixture.Digest("c"), fixture.Digest("c") + "\n",
		"2026-01-02T03:04:05Z", "verified", "cancelled", "decided", canon.Array{}, canon.Array{"x"}, canon.Array{"x", "x"}, canon.NewObject(),
		huge,
	}
	var walk func(v canon.Value, path string)
	replace := func(path string, old canon.Value, set func(canon.Value)) {
		for _, v := range values {
			set(v)
			each(path)
		}
		if a, ok := old.(canon.Array); ok {
			set(append(append(canon.Array{}, a...), a...))
			each(path + " doubled")
		}
		set(old)
		walk(old, path)
	}
	walk = func(v canon.Value, path string) {
		switch v := v.(type) {
		case *canon.Object:
			for _, k := range v.Keys() {
				old, _ := v.Get(k)
				replace(canon.Pointer(path, k), old, func(n canon.Value) { v.Set(k, n) })
				v.Delete(k)
				each(path + " without " + k)
				v.Set(k, old)
			}
			v.Set("unknown_key", nil)
			each(path + " with a key more")
			v.Delete("unknown_key")
		case canon.Array:
			if len(v) > 0 { // the other elements have the same shape
				replace(canon.Element(path, 0), v[0], func(n canon.Value) { v[0] = n })
			}
		}
	}
	walk(doc, "")
}

var huge = canon.BigInt(canon.NewInt(1).Big().Lsh(canon.NewInt(1).Big(), 64))

// What the code refuses and the schema cannot say: rules across the parts of a
// document, and times that are no day of the calendar.
var beyondSchema = map[string]bool{
	report.DuplicateAttempt: true, report.StateMismatch: true, report.SummaryMismatch: true,
	spine.InvalidAdmission: true, spine.InvalidAttemptState: true, spine.InvalidAttemptOrder: true,
	spine.InvalidRunEvidence: true, spine.InvalidAttemptEvidence: true, spine.InvalidEventID: true, spine.PayloadDigestMismatch: true,
}

// The validators in the code and the schemas take and refuse the same documents, as
// far as a schema can tell.
func TestCodeAndSchemasAgree(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, schema string
		doc          *canon.Object
		read         func(canon.Value) error
	}{
		{"report", "run-evidence-report", fixture.Report().Value(), func(v canon.Value) error { _, err := report.Read(v); return err }},
		{"proposed run", "product-spine-run", fixture.Run().Value(), func(v canon.Value) error { _, err := spine.ReadRun(v); return err }},
		{"imported run", "product-spine-run", imported(t).Value(), func(v canon.Value) error { _, err := spine.ReadRun(v); return err }},
		{"created", "event", fixture.RunEvents()[0].Value(), func(v canon.Value) error { _, err := spine.ReadEvent(v); return err }},
		{"cancelled", "event", fixture.RunEvents()[1].Value(), func(v canon.Value) error { _, err := spine.ReadEvent(v); return err }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			doc := canon.Clone(c.doc).(*canon.Object)
			tried, refused := 0, 0
			mutants(doc, func(what string) {
				tried++
				err := c.read(doc)
				schemaErr := schematest.Validate(t, c.schema, doc)
				var f *closed.Fault
				switch {
				case err == nil && schemaErr != nil:
					t.Errorf("%s: taken, but by the schema %v", what, schemaErr)
				case err != nil && !errors.As(err, &f):
					t.Errorf("%s: %v is no fault", what, err)
				case err != nil && schemaErr == nil && !beyondSchema[f.Code] && !ordered(f):
					t.Errorf("%s: the schema takes it, the code says %v", what, err)
				case err != nil:
					refused++
				}
			})
			if tried < 300 || refused == 0 {
				t.Errorf("%d documents tried, %d refused", tried, refused)
			}
		})
	}
}

// ordered says that a fault is about the orders 1..n of attempts, whose code is shared.
func ordered(f *closed.Fault) bool {
	return f.Code == report.InvalidValue && strings.HasSuffix(f.Path, "/order")
}
