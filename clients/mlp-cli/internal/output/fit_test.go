package output

import (
	"bytes"
	"strings"
	"testing"
)

// A table that does not fit loses the columns it can spare, and says so; a wide one and CSV keep them.
func TestSpareColumnsAreLeftOut(t *testing.T) {
	t.Parallel()
	g := Grid{Columns: []string{"ID", "Model", "Message"}, Spare: []string{"ID"},
		Rows: [][]any{{strings.Repeat("i", 36), "JPCP", strings.Repeat("m", 40)}}}
	for _, tc := range []struct {
		width  int
		format Format
		id     bool
	}{{80, Table, false}, {120, Table, true}, {0, Table, true}, {40, Table, true}, {80, CSV, true}} {
		var b bytes.Buffer
		if err := (&Printer{Out: &b, Format: tc.format, Width: tc.width}).Print(g); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "iiiii"); got != tc.id || strings.Contains(b.String(), "not shown: id") == tc.id {
			t.Errorf("%d columns, %s: got the id %v, want %v\n%s", tc.width, tc.format, got, tc.id, b.String())
		}
	}
}
