// Package figure rounds what views show. Sums are made of values that were not rounded.
package figure

import "math"

// Round rounds half away from zero to so many decimals; values too large for that are unchanged.
func Round(v float64, decimals int) float64 {
	scale := math.Pow10(decimals)
	if r := math.Round(v*scale) / scale; !math.IsInf(r, 0) && !math.IsNaN(r) {
		return r
	}
	return v
}

// RoundPointer is Round for a value that may be absent.
func RoundPointer(v *float64, decimals int) *float64 {
	if v == nil {
		return nil
	}
	r := Round(*v, decimals)
	return &r
}
