package gatestat

import "math"

// Phi is the Pearson correlation of two vectors of n error bits, of which a and b bits are set, joint in both. It is
// undefined if a vector does not vary. Everything up to the division is counted exactly.
func Phi(n, a, b, joint int) (float64, bool) {
	va, vb := int64(a)*int64(n-a), int64(b)*int64(n-b)
	if va == 0 || vb == 0 {
		return 0, false
	}
	cov := int64(n)*int64(joint) - int64(a)*int64(b)
	return float64(cov) / math.Sqrt(float64(va)*float64(vb)), true
}
