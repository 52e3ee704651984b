package output

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// A run may log NaN or an infinity, which JSON has no number for.
func TestFiguresThatAreNoNumbers(t *testing.T) {
	t.Parallel()
	inf, nan := math.Inf(-1), math.NaN()
	g := Grid{Columns: []string{"A", "B", "C"}, Rows: [][]any{{nan, &inf, Styled{Value: math.Inf(1)}}},
		Doc: struct {
			A any                `json:"a"`
			B *float64           `json:"b"`
			C map[string]float64 `json:"c"`
			D []float64          `json:"d"`
			E float64            `json:"e"`
		}{nan, &inf, map[string]float64{"rmse": nan, "mae": 0.5}, []float64{1, math.Inf(1)}, 1e21}}
	for format, want := range map[Format]string{
		Table: "  A    B  C\nNaN  NaN  NaN\n",
		JSON: `{
  "a": null,
  "b": null,
  "c": {
    "mae": 0.5,
    "rmse": null
  },
  "d": [
    1,
    null
  ],
  "e": 1e+21
}
`,
		YAML: "a: null\nb: null\nc:\n  mae: 0.5\n  rmse: null\nd:\n- 1\n- null\ne: 1e+21\n",
		CSV:  "a,b,c\nNaN,-Inf,+Inf\n",
	} {
		if diff := cmp.Diff(want, renderGrids(t, Printer{Format: format}, g)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
	nested := Grid{Columns: []string{"A"}, Rows: [][]any{{map[string]float64{"x": nan}}}}
	if got, want := renderGrids(t, Printer{Format: CSV}, nested), "a\n\"{\"\"x\"\":null}\"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Whatever text others wrote, YAML has it back, and holds no character that YAML forbids.
func TestYAMLHoldsAnyText(t *testing.T) {
	t.Parallel()
	texts := []string{"plain", "", "yes", "123", "1e5", "~", "null", "- a", "a: b", "# a", "two\nlines", "two\nlines\n", " \n x \n\n", "tab\t", "\x1b[31mred\x07\x00", "del\x7f",
		"c1\u0085\u009b", "bidi\u202eevil\u2066", "\ufeffbom", "\u2028\u2029", "tag\U000e0041😀", `back\slash "quoted"`, "cr\rlf\r\n", "\x1b\nline", strings.Repeat("long ", 100), "日本"}
	for r := range rune(0x100) {
		texts = append(texts, "a"+string(r)+"b", string(r))
	}
	doc := map[string]any{"texts": texts, "none": []string{}, "empty": map[string]any{}, "keys": map[string]int{"a\x1b": 1, "b": 2}}
	out := renderGrids(t, Printer{Format: YAML}, Grid{Doc: doc})
	if i := strings.IndexFunc(out, func(r rune) bool { return r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 && r != 0x85 }); i >= 0 {
		t.Errorf("character %q at %d is forbidden in YAML", out[i], i)
	}
	var got map[string]any
	if err := yaml.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	gotJSON, _ := json.Marshal(got)
	wantJSON, _ := json.Marshal(doc)
	if diff := cmp.Diff(string(wantJSON), string(gotJSON)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
