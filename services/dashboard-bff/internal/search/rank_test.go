package search

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestClassesOfAMatch(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text, query string
		want        int
	}{
		{"JPCP", "jpcp", 100}, {"Straße", "STRASSE", 100}, {"ｊｐｃｐ", "JPCP", 100}, {"ﬁle", "FILE", 100}, {"É", "e\u0301", 100},
		{"JPCP-small", "jpcp", 80}, {"JPCP", "j", 80},
		{"the jpcp", "jpcp", 60}, {"a/jpcp", "jpcp", 60}, {"a-jpcp", "jpcp", 60}, {"a_jpcp", "jpcp", 60}, {"a.jpcpx", "jpcp", 60}, {"a:jpcp", "jpcp", 60},
		{"xjpcp jpcp", "jpcp", 60}, // the second place is a word's beginning
		{"retrain the model", "the mo", 60},
		{"xjpcp", "jpcp", 40}, {"a,jpcp", "jpcp", 40}, {"aaab", "ab", 40},
		{"j-p-c-p", "jpcp", 20}, {"RuntimeRegressor", "rgr", 20}, {"größe", "gö", 20},
		{"jpc", "jpcp", 0}, {"pcpj", "jpcp", 0}, {"", "a", 0},
	} {
		if got := scoreText(foldText(tc.text), foldText(tc.query)); got != tc.want {
			t.Errorf("%q in %q: got %d, want %d", tc.query, tc.text, got, tc.want)
		}
	}
}

func TestRankTakesTheBetterOfLabelAndIdAndBreaksTiesByLabelKindId(t *testing.T) {
	t.Parallel()
	found := map[string][]Entry{
		"one": {{Kind: "b", ID: "2", Label: "x jpcp"}, {Kind: "a", ID: "2", Label: "x jpcp"}, {Kind: "a", ID: "1", Label: "x jpcp"}, {Kind: "z", ID: "jpcp", Label: "unlike"}},
		"two": {{Kind: "k", ID: "1", Label: "JPCP"}, {Kind: "k", ID: "9", Label: "nothing"}, {Kind: "k", ID: "3", Label: "A jpcp"}},
	}
	for _, entries := range found {
		for i := range entries {
			entries[i].fold()
		}
	}
	list := func(limit int) (got []string) {
		for _, m := range rank(found, "jpcp", limit) {
			got = append(got, m.Label+"/"+m.Kind+"/"+m.ID)
		}
		return got
	}
	want := []string{"JPCP/k/1", "unlike/z/jpcp", "A jpcp/k/3", "x jpcp/a/1", "x jpcp/a/2", "x jpcp/b/2"}
	if diff := cmp.Diff(want, list(100)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(want[:2], list(2)); diff != "" {
		t.Errorf("cut -want +got:\n%s", diff)
	}
}

// Any text ranks without panic, and is its own exact match.
func FuzzScore(f *testing.F) {
	f.Add("Straße", "ss")
	f.Add("a-b", "\xff")
	f.Fuzz(func(t *testing.T, text, query string) {
		folded := foldText(text)
		if foldText(folded) != folded {
			t.Fatalf("%q folds to %q, which folds further", text, folded)
		}
		if got := scoreText(folded, folded); got != exact {
			t.Fatalf("%q in itself: got %d, want %d", text, got, exact)
		}
		switch got := scoreText(folded, foldText(query)); got {
		case 0, subsequence, substring, wordPrefix, prefix, exact:
		default:
			t.Fatalf("got score %d, want one of the classes", got)
		}
	})
}
