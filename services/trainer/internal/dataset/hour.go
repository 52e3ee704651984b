package dataset

import (
	"math"
	"time"

	"github.com/mlp-platform/platform/libs/modelrepo"
)

// leastInstant is the smallest number that is read as seconds since 1970 (in 1973) rather than since some other start.
const leastInstant = 1e8

// Hours returns the hour of the day of each row's submit and its zone: from the column hour if there is one, else from
// the time column. A row without one is -1; nil if the data has no times of day.
func (r *Rows) Hours(span modelrepo.Span) (hours []int, zone string) {
	if column, ok := r.Num["hour"]; ok {
		return hoursOf(column, func(v float64) int { return int(v) }), r.zone()
	}
	submit, ok := r.Num[span.Submit]
	if !ok {
		return nil, ""
	}
	start := r.start
	if start.IsZero() {
		for _, v := range submit {
			if v < leastInstant {
				return nil, "" // counted from an undeclared start
			}
		}
		start = time.Unix(0, 0).UTC()
	}
	return hoursOf(submit, func(v float64) int { return start.Add(time.Duration(v * float64(time.Second))).Hour() }), start.Location().String()
}

// zone is that of the log, or unknown.
func (r *Rows) zone() string {
	if r.start.IsZero() {
		return ""
	}
	return r.start.Location().String()
}

func hoursOf(column []float64, hour func(float64) int) []int {
	out := make([]int, len(column))
	for i, v := range column {
		out[i] = -1
		if math.IsNaN(v) || math.Abs(v) > 1e10 {
			continue
		}
		if h := hour(v); h >= 0 && h < 24 {
			out[i] = h
		}
	}
	return out
}
