package canon_test

import (
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/canon"
)

// TestRawIsWrittenAsWhatItHolds: in every form, a document that was written before has
// the same bytes as its values.
func TestRawIsWrittenAsWhatItHolds(t *testing.T) {
	t.Parallel()
	inner, err := canon.Parse([]byte(`{"z":[1,2.50,{"é":"\u0007<"}],"a":null,"b":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := canon.C1(inner)
	if err != nil {
		t.Fatal(err)
	}
	type document struct {
		Inner any `json:"inner"`
		A     int `json:"a"`
	}
	for name, form := range map[string]func(canon.Value) ([]byte, error){
		"C1": canon.C1, "C2": canon.C2, "J": canon.J, "P": canon.P,
	} {
		want, err := form(document{Inner: inner})
		if err != nil {
			t.Fatal(err)
		}
		got, err := form(document{Inner: canon.Raw(raw)})
		if err != nil || string(got) != string(want) {
			t.Errorf("%s: %s, want %s (%v)", name, got, want, err)
		}
	}
	if _, err := canon.J(canon.Raw(`{`)); err == nil {
		t.Error("half a document was written")
	}
}
