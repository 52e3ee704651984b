package query

import (
	"reflect"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	allowed := []string{"cursor", "limit", "state"}
	for raw, want := range map[string]Values{
		"":                     nil,
		"&&":                   nil,
		"limit=1":              {"limit": "1"},
		"limit":                {"limit": ""},
		"limit=":               {"limit": ""},
		"limit=1&state=%20x":   {"limit": "1", "state": " x"},
		"limit=+5":             {"limit": " 5"},
		"state=a;b=c":          {"state": "a;b=c"},
		"state=%zz%4":          {"state": "%zz%4"},
		"%6cimit=1=2":          {"limit": "1=2"},
		"state=%2525&cursor=%": {"state": "%25", "cursor": "%"},
	} {
		got, ok := Parse(raw, allowed)
		if !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v %v, want %v", raw, got, ok, want)
		}
	}
	for _, raw := range []string{"x=1", "limit=1&limit=1", "limit=1&l%69mit=2", "=1", "LIMIT=1", "limit=1;state=x&foo", "limit%00=1"} {
		if got, ok := Parse(raw, allowed); ok {
			t.Errorf("%q was taken: %v; want !ok", raw, got)
		}
	}
}

// FuzzParse: an accepted query has allowed names only, and one without escapes returns its values unchanged.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"limit=1", "a=%41&limit=%", "&&=;", "limit=+%2B"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		v, ok := Parse(raw, []string{"limit", "state"})
		if !ok && v != nil {
			t.Fatal("values beside a refusal")
		}
		for name, value := range v {
			if name != "limit" && name != "state" {
				t.Fatalf(`name %q; want (name == "limit" || name == "state")`, name)
			}
			if len(value) > len(raw) {
				t.Fatalf("value %q grew; want len(value) <= len(raw)", value)
			}
		}
	})
}
