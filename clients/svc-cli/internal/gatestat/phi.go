package gatestat

import "math"

// Pairs correlates vectors of n error bits. Not for use by several goroutines at once.
type Pairs struct {
	n       int
	spreads []float64 // by the number of bits set; 0 is not known yet
	sum     Sum
}

// NewPairs is for vectors of n bits.
func NewPairs(n int) *Pairs { return &Pairs{n: n, spreads: make([]float64, n)} }

// Phi is the Pearson correlation of two vectors, of which a and b bits are set, joint in both. It is undefined if a
// vector does not vary.
//
// The sums over the n products of deviations from the means are exact; that no more than four products differ makes
// them cheap. Whether the vectors are correlated at all is decided by the counts, not by what rounding the means left.
func (p *Pairs) Phi(a, b, joint int) (float64, bool) {
	if a == 0 || b == 0 || a == p.n || b == p.n {
		return 0, false
	}
	if int64(p.n)*int64(joint) == int64(a)*int64(b) {
		return 0, true
	}
	root := math.Sqrt(p.spread(a) * p.spread(b)) // before cov, which shares the sum
	meanA, meanB := p.mean(a), p.mean(b)
	p.sum.Reset()
	p.sum.AddTimes(joint, (1-meanA)*(1-meanB))
	p.sum.AddTimes(a-joint, (1-meanA)*-meanB)
	p.sum.AddTimes(b-joint, -meanA*(1-meanB))
	p.sum.AddTimes(p.n-a-b+joint, meanA*meanB)
	return min(max(p.sum.Value()/root, -1), 1), true
}

func (p *Pairs) mean(a int) float64 { return float64(a) / float64(p.n) }

// spread is the sum of the squared deviations from the mean of a vector with a bits set.
func (p *Pairs) spread(a int) float64 {
	if p.spreads[a] == 0 {
		mean := p.mean(a)
		p.sum.Reset()
		p.sum.AddTimes(a, (1-mean)*(1-mean))
		p.sum.AddTimes(p.n-a, mean*mean)
		p.spreads[a] = p.sum.Value()
	}
	return p.spreads[a]
}
