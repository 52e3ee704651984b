package dataset

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/libs/modelrepo"
)

func TestHoursOfRows(t *testing.T) {
	t.Parallel()
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	span := modelrepo.Span{Submit: "submit"}
	for name, c := range map[string]struct {
		rows Rows
		want []int
		zone string
	}{
		"a column":               {Rows{Num: map[string][]float64{"hour": {5, 23, math.NaN(), 24, -1, 1e300}, "submit": {0, 0, 0, 0, 0, 0}}}, []int{5, 23, -1, -1, -1, -1}, ""},
		"a log":                  {Rows{Num: map[string][]float64{"submit": {0, 7200}}, start: time.Date(1993, 10, 1, 22, 30, 0, 0, tokyo)}, []int{22, 0}, "Asia/Tokyo"},
		"since 1970":             {Rows{Num: map[string][]float64{"submit": {1e9, 1e9 + 3600}}}, []int{1, 2}, "UTC"},
		"since an unknown start": {Rows{Num: map[string][]float64{"submit": {0, 3600}}}, nil, ""},
		"no time":                {Rows{Num: map[string][]float64{"x": {0}}}, nil, ""},
	} {
		got, zone := c.rows.Hours(span)
		if d := cmp.Diff(c.want, got); d != "" || zone != c.zone {
			t.Errorf("%s: zone %q, want %q; hours (-want +got): %s", name, zone, c.zone, d)
		}
	}
}
