package gatestat

import "math"

// Sum adds floats without losing anything: it keeps the exact total as floats that do not overlap (Shewchuk, Adaptive
// Precision Floating-Point Arithmetic, 1997) and rounds once, in Value. The terms must be finite and their total far
// from overflow.
type Sum struct {
	parts []float64 // from the smallest to the largest
}

// Add adds x.
func (s *Sum) Add(x float64) {
	kept := 0
	for _, y := range s.parts {
		if math.Abs(x) < math.Abs(y) {
			x, y = y, x
		}
		// The conversions forbid a fused multiply-add, so that each step is rounded.
		high := float64(x + y)
		low := float64(y - float64(high-x))
		if low != 0 {
			s.parts[kept] = low
			kept++
		}
		x = high
	}
	s.parts = append(s.parts[:kept], x)
}

// AddTimes adds x n times, at the cost of two additions.
func (s *Sum) AddTimes(n int, x float64) {
	high := float64(float64(n) * x)
	s.Add(high)
	if low := math.FMA(float64(n), x, -high); low != 0 {
		s.Add(low)
	}
}

// Value is the exact total, rounded to the nearest float, ties to even.
func (s *Sum) Value() float64 {
	n := len(s.parts)
	if n == 0 {
		return 0
	}
	n--
	high := s.parts[n]
	for n > 0 {
		n--
		x, y := high, s.parts[n]
		high = float64(x + y)
		low := float64(y - float64(high-x))
		if low == 0 {
			continue
		}
		// A half was rounded to even, but the parts below decide on which side of the half the total lies.
		if n > 0 && (low < 0) == (s.parts[n-1] < 0) {
			twice := low * 2
			up := float64(high + twice)
			if twice == float64(up-high) {
				high = up
			}
		}
		break
	}
	return high
}

// Reset makes the sum zero again.
func (s *Sum) Reset() { s.parts = s.parts[:0] }

// Mean is the exact total of xs, rounded, divided by their number. There must be one.
func Mean(xs []float64) float64 {
	var s Sum
	for _, x := range xs {
		s.Add(x)
	}
	return s.Value() / float64(len(xs))
}
