package drift

import (
	"slices"
	"testing"
)

// Shares are sums of fractions, so those of equal distributions differ by rounding. That is no drift, however small.
func TestPSIOfEqualSharesIsZero(t *testing.T) {
	t.Parallel()
	if psi, _ := psiNumbers(slices.Repeat([]float64{0.1}, 20), slices.Repeat([]float64{0.1}, 60)); psi != 0 {
		t.Errorf("got a PSI of %g, want 0", psi)
	}
}
