package traffic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/libs/problem"
)

// The places were computed with Python: int.from_bytes(sha256(b"<tracker name>\0<key>").digest()[:8], "big") % 100.
func TestSplitIsTheFirstEightBytesOfSHA256Modulo100(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tracker, key string
		want         int
	}{
		{"jpcp", "user-1", 44}, {"jpcp", "user-2", 20}, {"jpcp", "user-3", 42}, {"jpcp", "local:admin", 97}, {"jpcp", "", 2},
		{"JPCP", "user-1", 72}, {"jpcp", "übung", 71}, {"runtimeclass", "user-1", 96}, {"jpcp", "17", 31},
	} {
		if got := bucket(c.tracker, c.key); got != c.want {
			t.Errorf("bucket(%q, %q) = %d, want %d", c.tracker, c.key, got, c.want)
		}
	}
}

func TestAliasesShareThePlacesInTheirOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		weights Weights
		key     string // user-1 is at 44, user-2 at 20, local:admin at 97
		want    string
	}{
		{Weights{"Production": 100}, "local:admin", "Production"},
		{Weights{"Staging": 100}, "user-2", "Staging"},
		{Weights{"Production": 45, "Canary": 55}, "user-1", "Production"},
		{Weights{"Production": 44, "Canary": 56}, "user-1", "Canary"},
		{Weights{"Production": 20, "Canary": 24, "Staging": 56}, "user-1", "Staging"},
		{Weights{"Production": 20, "Canary": 25, "Staging": 55}, "user-1", "Canary"},
		{Weights{"Production": 20, "Canary": 25, "Staging": 55}, "user-2", "Canary"},
		{Weights{"Canary": 21, "Staging": 79}, "user-2", "Canary"},
		{Weights{"Production": 97, "Staging": 3}, "local:admin", "Staging"},
	} {
		if got := NewRule(c.weights).Alias("jpcp", func() string { return c.key }); got != c.want {
			t.Errorf("%v: %s gets %s, want %s", c.weights, c.key, got, c.want)
		}
	}
}

// Over many keys each alias gets its share, to within four standard deviations.
func TestSharesAreThoseOfTheRules(t *testing.T) {
	t.Parallel()
	const keys = 100_000
	got := map[string]int{}
	r := NewRule(Weights{"Production": 90, "Canary": 7, "Staging": 3})
	for i := range keys {
		got[r.Alias("jpcp", func() string { return fmt.Sprintf("user-%d", i) })]++
	}
	for alias, percent := range map[string]int{"Production": 90, "Canary": 7, "Staging": 3} {
		want := keys * percent / 100
		if diff := got[alias] - want; diff*diff > 16*want*(100-percent)/100 {
			t.Errorf("%s gets %d of %d, want about %d", alias, got[alias], keys, want)
		}
	}
}

func TestWeightsAreWholePercentagesOfTheThreeAliases(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]any{
		`{"Production": 90, "Canary": 10}`:                Weights{"Production": 90, "Canary": 10},
		`{"production": 50, "CANARY": 25, "sTaGiNg": 25}`: Weights{"Production": 50, "Canary": 25, "Staging": 25},
		`{"Production": 100, "Canary": 0}`:                Weights{"Production": 100, "Canary": 0},
		`{"Staging": 100}`:                                Weights{"Staging": 100},
		`{}`:                                              "body: the percentages add up to 0; they must add up to 100",
		`{"Production": 90}`:                              "body: the percentages add up to 90; they must add up to 100",
		`{"Production": 90, "Canary": 20}`:                "body: the percentages add up to 110; they must add up to 100",
		`{"Production": 101, "Canary": -1}`:               "body.Canary: must be a whole number from 0 to 100; body.Production: must be a whole number from 0 to 100",
		`{"Production": 99.5, "Canary": 0.5}`:             "body.Canary: must be a whole number from 0 to 100; body.Production: must be a whole number from 0 to 100",
		`{"Production": "100"}`:                           "body.Production: must be a whole number from 0 to 100",
		`{"Production": null, "Canary": 100}`:             "body.Production: must be a whole number from 0 to 100",
		`{"Production": true, "Canary": 100}`:             "body.Production: must be a whole number from 0 to 100",
		`{"Production": 99999999999999999999}`:            "body.Production: must be a whole number from 0 to 100",
		`{"Production": 50, "Shadow": 50}`:                "body.Shadow: is no alias; the aliases are Production, Canary, Staging",
		`{"Production": 50, "Canary": 25, "canary": 25}`:  "given more than once",
	} {
		var raw map[string]*json.RawMessage
		if err := json.Unmarshal([]byte(body), &raw); err != nil {
			t.Fatal(err)
		}
		got, err := parseWeights(raw)
		if weights, ok := want.(Weights); ok {
			if diff := cmp.Diff(weights, got); err != nil || diff != "" {
				t.Errorf("%s: %v, got differs from want:\n%s", body, err, diff)
			}
			continue
		}
		p := problem.From(err)
		if err == nil || p.Status() != http.StatusUnprocessableEntity {
			t.Errorf("%s: %v, %v; want a 422", body, got, err)
			continue
		}
		var faults []string
		for _, f := range p.Errors {
			faults = append(faults, strings.Join(f.Loc, ".")+": "+f.Msg)
		}
		if list := strings.Join(faults, "; "); !strings.Contains(list, want.(string)) {
			t.Errorf("%s: %s, want %s", body, list, want)
		}
	}
}

func TestNewRefusesMissingParts(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{}); err == nil || !strings.Contains(err.Error(), "Pool, Catalog, Log") {
		t.Errorf("New = %v, want the parts named", err)
	}
}

// The cost of the rules for a prediction, without rules and with them.
func BenchmarkRule(b *testing.B) {
	key := func() string { return "local:admin" }
	for name, rules := range map[string]map[string]*Rule{"none": {}, "split": {"JPCP": NewRule(Weights{"Production": 90, "Canary": 10})}} {
		b.Run(name, func(b *testing.B) {
			t := &Traffic{}
			t.rules.Store(&rules)
			b.ReportAllocs()
			for b.Loop() {
				if r := t.Rule("JPCP"); r != nil {
					r.Alias("jpcp", key)
				}
			}
		})
	}
}
