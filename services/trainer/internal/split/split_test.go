package split

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/services/trainer/internal/dataset"
	"github.com/mlp-platform/platform/services/trainer/internal/frame"
)

var thirds = []float64{0.6, 0.2, 0.2}

func numberedRows(n int) *dataset.Rows {
	r := &dataset.Rows{N: n, Num: map[string][]float64{"t": nil, "g": nil}}
	for i := range n {
		r.Num["t"] = append(r.Num["t"], float64(i*7919%n)) // all times once, out of order
		r.Num["g"] = append(r.Num["g"], float64(i%13))
		r.File = append(r.File, i*6/n)
	}
	return r
}

func TestPartsAreWholeAndDisjoint(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"time", "random", "group", "files"} {
		for _, n := range []int{20, 100, 1009} {
			r := numberedRows(n)
			p, err := Of(modelrepo.Split{Kind: kind, Column: map[string]string{"time": "t", "group": "g"}[kind], Fractions: thirds, Seed: 1}, modelrepo.Span{}, r)
			if err != nil {
				t.Fatalf("%s of %d: %v", kind, n, err)
			}
			all := slices.Concat(p.Train, p.Validation, p.Test)
			slices.Sort(all)
			if len(all) != n || len(slices.Compact(all)) != n {
				t.Errorf("%s of %d: %d, %d, %d rows; want len(all) == n && len(slices.Compact(all)) == n", kind, n, len(p.Train), len(p.Validation), len(p.Test))
			}
			if (kind == "time" || kind == "random") && (len(p.Train) != n*6/10 || len(p.Test) < n/5 || len(p.Test) > n/5+1) {
				t.Errorf(`%s of %d: %d, %d, %d rows; want (!kind == "time" || kind == "random" || !len(p.Train) != n*6/10 || len(p.Test) < n/5 || len(p.Test) > n/5+1)`, kind, n, len(p.Train), len(p.Validation), len(p.Test))
			}
			if !slices.IsSorted(p.Fit()) || len(p.Fit()) != len(p.Train)+len(p.Validation) {
				t.Errorf("%s: fit rows; want slices.IsSorted(p.Fit()) && len(p.Fit()) == len(p.Train) + len(p.Validation)", kind)
			}
		}
	}
}

func TestTimeGoesForward(t *testing.T) {
	t.Parallel()
	r := numberedRows(500)
	p, err := Of(modelrepo.Split{Kind: "time", Fractions: thirds}, modelrepo.Span{Submit: "t"}, r)
	if err != nil {
		t.Fatal(err)
	}
	latest := func(part []int) float64 { return slices.Max(pickValues(r.Num["t"], part)) }
	earliest := func(part []int) float64 { return slices.Min(pickValues(r.Num["t"], part)) }
	if latest(p.Train) >= earliest(p.Validation) || latest(p.Validation) >= earliest(p.Test) {
		t.Error("a later part holds an earlier row")
	}
}

func pickValues(v []float64, rows []int) []float64 {
	var out []float64
	for _, i := range rows {
		out = append(out, v[i])
	}
	return out
}

func TestGroupsAndFilesStayWhole(t *testing.T) {
	t.Parallel()
	r := numberedRows(300)
	for kind, key := range map[string]func(int) int{
		"group": func(i int) int { return int(r.Num["g"][i]) }, "files": func(i int) int { return r.File[i] },
	} {
		p, err := Of(modelrepo.Split{Kind: kind, Column: "g", Fractions: thirds, Seed: 3}, modelrepo.Span{}, r)
		if err != nil {
			t.Fatal(err)
		}
		at := map[int]int{}
		for part, idx := range [][]int{p.Train, p.Validation, p.Test} {
			for _, i := range idx {
				if was, ok := at[key(i)]; ok && was != part {
					t.Fatalf("%s %d is in parts %d and %d; want (!ok || was == part)", kind, key(i), was, part)
				}
				at[key(i)] = part
			}
		}
	}
}

func TestSeed(t *testing.T) {
	t.Parallel()
	of := func(seed int64) []int {
		p, err := Of(modelrepo.Split{Kind: "random", Fractions: thirds, Seed: seed}, modelrepo.Span{}, numberedRows(100))
		if err != nil {
			t.Fatal(err)
		}
		return p.Test
	}
	if !slices.Equal(of(1), of(1)) || slices.Equal(of(1), of(2)) {
		t.Error("the seed alone must decide")
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	two := numberedRows(2)
	generated := numberedRows(20)
	generated.File = nil
	oneGroup := numberedRows(20)
	oneGroup.Num["g"] = make([]float64, 20)
	for want, c := range map[string]struct {
		spec modelrepo.Split
		r    *dataset.Rows
	}{
		"a part empty":      {modelrepo.Split{Kind: "random", Fractions: thirds}, two},
		"generated":         {modelrepo.Split{Kind: "files", Fractions: thirds}, generated},
		"20 train, 0 valid": {modelrepo.Split{Kind: "group", Column: "g", Fractions: thirds}, oneGroup},
		"no number column":  {modelrepo.Split{Kind: "time", Column: "when", Fractions: thirds}, two},
		"unknown":           {modelrepo.Split{Kind: "magic", Fractions: thirds}, two},
	} {
		if _, err := Of(c.spec, modelrepo.Span{}, c.r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c.spec, err, want)
		}
	}
}

func TestDuplicates(t *testing.T) {
	t.Parallel()
	s := &dataset.Sample{
		Table: frame.Table{Rows: 5, Columns: []frame.Column{
			{Name: "n", Kind: modelrepo.Number, Num: []float32{1, 2, 1, 1, 1}},
			{Name: "c", Kind: modelrepo.Category, Cat: []string{"a", "a", "a", "b", "a"}},
			{Name: "v", Kind: modelrepo.Vector, Length: 1, Vec: [][]float32{{1}, {1}, {1}, {1}, {1}}},
		}},
		Target: frame.Target{Values: []float64{1, 1, 1, 1, 2}},
	}
	// Row 2 repeats row 0; row 3 differs in the category, row 4 in the target.
	if got := Duplicates(s, Parts{Train: []int{0}, Validation: []int{1}, Test: []int{2, 3, 4}}); got != 1./3 {
		t.Errorf("%v; want got == 1. / 3", got)
	}
	s.Target = frame.Target{Class: true, Y: []int{0, 0, 0, 0, 0}}
	if got := Duplicates(s, Parts{Train: []int{0}, Validation: []int{1}, Test: []int{2, 3, 4}}); got != 2./3 {
		t.Errorf("%v; want got == 2. / 3", got)
	}
}

// A job that still runs when the next part begins has no label yet, so that nothing
// may be learnt of it; one of the test part is judged whenever it ends.
func TestTimeSplitIsPurged(t *testing.T) {
	t.Parallel()
	r := &dataset.Rows{N: 9, Num: map[string][]float64{
		"submit": {0, 1, 2, 3, 4, 5, 6, 7, 8},
		"end":    {1, 9, 3, 4, 5, 7, 8, 90, 9}, // 1 runs into validation and beyond, 6 into test
	}}
	got, err := Of(modelrepo.Split{Kind: "time", Fractions: thirds}, modelrepo.Span{Submit: "submit", End: "end"}, r)
	want := Parts{Train: []int{0, 2, 3, 4}, Validation: []int{5}, Test: []int{7, 8}, Purged: 2}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	plain, err := Of(modelrepo.Split{Kind: "time", Fractions: thirds}, modelrepo.Span{Submit: "submit"}, r)
	if err != nil || plain.Purged != 0 || len(plain.Train) != 5 {
		t.Errorf("without an end: got %+v, %v, want all rows", plain, err)
	}
}
