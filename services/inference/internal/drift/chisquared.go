package drift

import "math"

// chiSquaredQuantile is the value that a chi-squared variable of so many degrees of freedom stays below with
// probability p. It bisects, since it runs once per evaluation and need not be fast.
func chiSquaredQuantile(p float64, degrees int) float64 {
	if degrees < 1 {
		return 0
	}
	half := float64(degrees) / 2
	low, high := 0.0, 2*half+10
	for gammaP(half, high/2) < p {
		high *= 2
	}
	for range 100 {
		middle := (low + high) / 2
		if gammaP(half, middle/2) < p {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}

// gammaP is the regularised lower incomplete gamma function (DLMF 8.2.4): by its series where that
// converges fast, else by the continued fraction of its complement (DLMF 8.9.2, evaluated after Lentz).
func gammaP(a, x float64) float64 {
	const precision = 1e-15
	if x <= 0 {
		return 0
	}
	logGamma, _ := math.Lgamma(a)
	factor := math.Exp(a*math.Log(x) - x - logGamma)
	if x < a+1 {
		term := 1 / a
		sum := term
		for n := a + 1; term > sum*precision; n++ {
			term *= x / n
			sum += term
		}
		return factor * sum
	}
	const tiny = 1e-300 // replaces a denominator of zero
	b := x + 1 - a
	c, d := 1/tiny, 1/b
	fraction := d
	for i := 1.0; ; i++ {
		numerator := -i * (i - a)
		b += 2
		d = 1 / nonZero(numerator*d+b, tiny)
		c = nonZero(b+numerator/c, tiny)
		step := d * c
		fraction *= step
		if math.Abs(step-1) < precision || i > 10_000 {
			return 1 - factor*fraction
		}
	}
}

func nonZero(v, tiny float64) float64 {
	if math.Abs(v) < tiny {
		return tiny
	}
	return v
}
