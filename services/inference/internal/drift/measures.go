package drift

import (
	"math"
	"slices"
)

// meanAndStd are mean and population standard deviation. Equal values have exactly no deviation.
func meanAndStd(v []float64) (mean, std float64) {
	if slices.Min(v) == slices.Max(v) {
		return v[0], 0
	}
	n := float64(len(v))
	var sum float64
	for _, x := range v {
		sum += x
	}
	if mean = sum / n; math.IsInf(mean, 0) { // the sum has overflowed, the mean need not
		mean = 0
		for _, x := range v {
			mean += x / n
		}
	}
	var ss float64
	for _, x := range v {
		ss += (x - mean) / n * (x - mean)
	}
	return mean, math.Sqrt(ss)
}

// epsilon keeps empty bins out of the logarithm of the PSI.
const epsilon = 1e-4

func psiTerm(p, q float64) float64 {
	p, q = max(p, epsilon), max(q, epsilon)
	if math.Abs(p-q) < 1e-12 { // equal but for rounding
		return 0
	}
	return (p - q) * math.Log(p/q)
}

// psiNumbers is the population stability index over the deciles of base. Deciles that coincide count
// once; a value on an edge belongs to the bin above it.
func psiNumbers(live, base []float64) (psi float64, baseline []float64) {
	sorted := slices.Clone(base)
	slices.Sort(sorted)
	var edges []float64
	for i := 1; i < 10; i++ {
		if e := interpolateQuantile(sorted, float64(i)/10); len(edges) == 0 || e > edges[len(edges)-1] {
			edges = append(edges, e)
		}
	}
	bins := func(v []float64) []float64 {
		out := make([]float64, len(edges)+1)
		for _, x := range v {
			i, found := slices.BinarySearch(edges, x)
			if found {
				i++
			}
			out[i] += 1 / float64(len(v))
		}
		return out
	}
	q := bins(base)
	for i, p := range bins(live) {
		psi += psiTerm(p, q[i])
	}
	return psi, q
}

// interpolateQuantile interpolates linearly (Hyndman and Fan 1996, type 7).
func interpolateQuantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

func labelShares(labels []string) map[string]float64 {
	counts := map[string]int{}
	for _, l := range labels {
		counts[l]++
	}
	out := make(map[string]float64, len(counts))
	for l, n := range counts {
		out[l] = float64(n) / float64(len(labels))
	}
	return out
}

func unionKeys(a, b map[string]float64) map[string]struct{} {
	out := make(map[string]struct{}, len(a)+len(b))
	for k := range a {
		out[k] = struct{}{}
	}
	for k := range b {
		out[k] = struct{}{}
	}
	return out
}

func psiShares(p, q map[string]float64) float64 {
	var sum float64
	for class := range unionKeys(p, q) {
		sum += psiTerm(p[class], q[class])
	}
	return sum
}

// twoSampleKS is the two-sample Kolmogorov-Smirnov statistic and its exact two-sided p-value, ties not
// corrected for. The p-value counts lattice paths (Hodges 1958) as a probability of reaching the border,
// so that small ones keep their precision. Time grows with the product of the sizes and the statistic.
func twoSampleKS(a, b []float64) (d, p float64) {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	m, n := len(a), len(b)
	// The statistic is a multiple of 1/(mn): whole numbers compare without rounding.
	most := 0
	for i, j := 0, 0; i < m && j < n; {
		x := min(a[i], b[j])
		for i < m && a[i] == x {
			i++
		}
		for j < n && b[j] == x {
			j++
		}
		most = max(most, absInt(i*n-j*m))
	}
	d = float64(most) / (float64(m) * float64(n))
	if most == 0 {
		return 0, 1
	}
	// row[j] is the probability that a random path from the origin has met the border by (i, j): 1 outside the
	// border, so that only the places between its two sides are visited.
	row := make([]float64, n+1)
	for j := range row {
		if j*m >= most {
			row[j] = 1
		}
	}
	first := 0 // inside the border at i
	for i := 1; i <= m; i++ {
		for first <= n && i*n-first*m >= most {
			row[first] = 1
			first++
		}
		for j := first; j <= n && j*m-i*n < most; j++ {
			if j == 0 {
				continue // along the edge, not met yet
			}
			up := float64(i) / float64(i+j)
			row[j] = up*row[j] + (1-up)*row[j-1]
		}
	}
	return d, row[n]
}

func absInt(x int) int {
	if x < 0 {
		return -x
	}
	return x
}

// wassersteinDistance is the first-order distance: the area between the two distribution functions.
func wassersteinDistance(a, b []float64) float64 {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	var area float64
	i, j := 0, 0
	at := min(a[0], b[0])
	for i < len(a) || j < len(b) {
		next := math.Inf(1)
		if i < len(a) {
			next = a[i]
		}
		if j < len(b) {
			next = min(next, b[j])
		}
		fa, fb := float64(i)/float64(len(a)), float64(j)/float64(len(b))
		area += math.Abs(fa-fb) * (next - at)
		at = next
		for i < len(a) && a[i] == at {
			i++
		}
		for j < len(b) && b[j] == at {
			j++
		}
	}
	return area
}
