package output

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func renderGrids(t *testing.T, p Printer, grids ...Grid) string {
	t.Helper()
	var b bytes.Buffer
	p.Out, p.Now = &b, func() time.Time { return now }
	if p.Format == "" {
		p.Format = Table
	}
	if err := p.Print(grids...); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func sampleGrid() Grid {
	v := 0.123456
	var unknown *float64
	return Grid{Columns: []string{"Model", "Message", "Live μ", "z-score", "Age"}, Doc: []string{}, Rows: [][]any{
		{"JPCP", strings.Repeat("a very long message ", 6), &v, unknown, Age(now.Add(-90 * time.Second))},
		{"MCBound", "kürzer\nzwei", 1234.56, 3, Age{}},
	}}
}

// An age in a record ends in "ago"; a document and a file hold the time itself.
func TestAgoIsATimeInFiles(t *testing.T) {
	t.Parallel()
	g := Grid{Columns: []string{"Field", "Value"}, Rows: [][]any{{"Requested", Ago(now.Add(-90 * time.Second))}, {"Decided", Ago{}}}}
	if got, want := renderGrids(t, Printer{}, g), "FIELD      VALUE\nRequested  1m 30s ago\nDecided    —\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := renderGrids(t, Printer{Format: CSV}, g), "field,value\nRequested,2026-01-02T03:02:35Z\n"; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want it to begin with %q", got, want)
	}
}

// No line is wider than the terminal. A table marks what it cuts; records, used below 60 columns, cut nothing.
func TestTablesFit(t *testing.T) {
	t.Parallel()
	for _, width := range []int{200, 120, 80, 60, 59, 40, 30} {
		out := renderGrids(t, Printer{Width: width}, sampleGrid())
		for line := range strings.Lines(out) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
				t.Errorf("width %d: %d columns in %q; want n <= width", width, n, line)
			}
		}
		if cut := strings.Contains(out, "…"); cut != (width < 200 && width >= recordWidth) {
			t.Errorf("width %d: cut is %v\n%s; want tables alone cut", width, cut, out)
		}
	}
	if out := renderGrids(t, Printer{}, sampleGrid()); strings.Contains(out, "…") {
		t.Errorf("a pipe has no width:\n%s; want !strings.Contains(out, \"…\")", out)
	}
}

func TestRecordsWhenNarrow(t *testing.T) {
	t.Parallel()
	got := renderGrids(t, Printer{Width: 40}, sampleGrid())
	want := `Model    JPCP
Message  a very long message a very long
         message a very long message a
         very long message a very long
         message a very long message
Live μ   0.1235
z-score  —
Age      1m 30s

Model    MCBound
Message  kürzer zwei
Live μ   1234.6
z-score  3
Age      —
`
	if got != want {
		t.Fatalf("got\n%s; want %v", got, want)
	}
	if table := renderGrids(t, Printer{Width: 60}, sampleGrid()); !strings.HasPrefix(table, "MODEL") || !strings.Contains(table, "LIVE μ") {
		t.Fatalf("60 columns hold a table:\n%s; want strings.HasPrefix(table, \"MODEL\") && strings.Contains(table, \"LIVE μ\")", table)
	}
}

func TestEmptyGridIsASentence(t *testing.T) {
	t.Parallel()
	g := Grid{Title: "Approvals", Columns: []string{"A"}, Empty: "Nothing is pending.", Doc: []int{}, Notes: []string{"note"}}
	if got := renderGrids(t, Printer{}, g); got != "Approvals\nNothing is pending.\nnote\n" {
		t.Fatalf("%q; want \"Approvals\\nNothing is pending.\\nnote\\n\"", got)
	}
	if got := renderGrids(t, Printer{Format: JSON}, g); got != "[]\n" {
		t.Fatalf("%q; want \"[]\\n\"", got)
	}
	if got := renderGrids(t, Printer{Format: YAML}, g); got != "[]\n" {
		t.Fatalf("%q; want \"[]\\n\"", got)
	}
	if got := renderGrids(t, Printer{Format: CSV}, g); got != "a\n" {
		t.Fatalf("%q; want \"a\\n\"", got)
	}
}

func TestCSVCells(t *testing.T) {
	t.Parallel()
	var none *string
	got := renderGrids(t, Printer{Format: CSV}, Grid{Columns: []string{"Pushed By", "z-score", "#", "Cost (USD)", "List", "Age", "State"},
		Rows: [][]any{{none, 0.5, 7, true, []string{"a", "b"}, Age(now), Styled{"ok, so", Good}}}})
	if want := "pushed_by,z_score,number,cost_usd,list,age,state\n,0.5,7,true,\"[\"\"a\"\",\"\"b\"\"]\",2026-01-02T03:04:05Z,\"ok, so\"\n"; got != want {
		t.Fatalf("got %q; want %v", got, want)
	}
}

// Structured formats print the first grid's document only: one document.
func TestOneDocument(t *testing.T) {
	t.Parallel()
	var doc map[string]any
	out := renderGrids(t, Printer{Format: JSON}, Grid{Doc: map[string]any{"a": "<b> & c", "n": nil}}, Grid{Doc: 2})
	if err := json.Unmarshal([]byte(out), &doc); err != nil || !strings.Contains(out, "<b> & c") {
		t.Fatalf(`%v: %s; want strings.Contains(out, "<b> & c")`, err, out)
	}
}

func TestColourAddsNoWords(t *testing.T) {
	t.Parallel()
	g := Grid{Columns: []string{"Status"}, Rows: [][]any{{Styled{"FAILED", Bad}}}}
	plain := renderGrids(t, Printer{}, g)
	if strings.Contains(plain, "\x1b") || !strings.Contains(plain, "FAILED") {
		t.Fatalf("%q; want !strings.Contains(plain, \"\\x1b\") && strings.Contains(plain, \"FAILED\")", plain)
	}
	// Text of others cannot colour or move anything, with colour on either.
	hostile := renderGrids(t, Printer{Color: true}, Grid{Columns: []string{"M"}, Rows: [][]any{{"\x1b[2Jx\r\u009b1m"}}})
	if strings.Contains(hostile, "\x1b[2J") || strings.ContainsAny(hostile, "\r\u009b") {
		t.Fatalf("%q; want !strings.Contains(hostile, \"\\x1b[2J\") && !strings.ContainsAny(hostile, \"\\r\\u009b\")", hostile)
	}
}

func TestSince(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{-time.Hour: "0s", 0: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m 1s",
		25 * time.Hour: "1d 1h", 3*time.Hour + 5*time.Minute: "3h 5m"} {
		if got := Since(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{0: "0", 12: "12", 1234.56: "1234.6", 1.23456: "1.235", 0.000123456: "0.0001235", 1.5e15: "1.5e+15", -math.MaxFloat64: "-1.798e+308", math.Inf(1): "NaN"} {
		if got := Number(x); got != want {
			t.Errorf("%v: %s, want %s", x, got, want)
		}
	}
	if Number(math.NaN()) != "NaN" {
		t.Error("NaN")
	}
}

func TestSparkline(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in   []float64
		want string
	}{{nil, ""}, {[]float64{1}, ""}, {[]float64{0, 7}, "▁█"}, {[]float64{3, 3}, "▅▅"}, {[]float64{0, math.NaN(), 1}, "▁ █"}} {
		if got := Sparkline(tc.in); got != tc.want {
			t.Errorf("%v: %q; want got == %v", tc.in, got, tc.want)
		}
	}
}
