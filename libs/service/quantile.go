package service

import (
	"math"
	"time"
)

// Quantile is the smallest value, in milliseconds, that at least a share q of the sorted times does not exceed;
// nil without times.
func Quantile(sorted []time.Duration, q float64) *float64 {
	if len(sorted) == 0 {
		return nil
	}
	at := sorted[max(int(math.Ceil(q*float64(len(sorted))))-1, 0)]
	ms := math.Round(float64(at.Microseconds())) / 1000
	return &ms
}
