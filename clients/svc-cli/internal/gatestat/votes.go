package gatestat

import (
	"math"
	"math/big"
	"sync"
)

// Saturated is the largest number of effective votes that is told apart; a panel worth that is worth that or more.
const Saturated = 199.0

const sizes = 100 // panels of 1, 3, …, 199 independent verifiers

// binomials holds C(m,k) for odd m up to 199, at (m-1)/2, each rounded once.
var binomials = sync.OnceValue(func() *[sizes][]float64 {
	var out [sizes][]float64
	row := []*big.Int{big.NewInt(1)} // of Pascal's triangle
	for m := 1; m <= int(Saturated); m++ {
		next := make([]*big.Int, m+1)
		next[0], next[m] = row[0], row[0]
		for k := 1; k < m; k++ {
			next[k] = new(big.Int).Add(row[k-1], row[k])
		}
		row = next
		if m%2 == 0 {
			continue
		}
		floats := make([]float64, m+1)
		for k := range floats {
			floats[k], _ = new(big.Float).SetInt(row[k]).Float64()
		}
		out[m/2] = floats
	}
	return &out
})

// Curve is the error of panels of independent verifiers that are all right with the same probability.
type Curve struct {
	accuracy, quorum float64
	right, wrong     [int(Saturated) + 1]float64 // powers of the probability to be right, and to be wrong
	known            [sizes]bool
	errors           [sizes]float64
}

// NewCurve makes the curve of verifiers of this accuracy, above 1/2 and at most 1, in panels that accept when more
// than quorum of the votes accept.
func NewCurve(accuracy, quorum float64) *Curve {
	c := &Curve{accuracy: accuracy, quorum: quorum}
	for k := range c.right {
		c.right[k], c.wrong[k] = math.Pow(accuracy, float64(k)), math.Pow(1-accuracy, float64(k))
	}
	return c
}

// at is the error of 2i+1 verifiers: the probability that at most floor(quorum·m) are right.
func (c *Curve) at(i int) float64 {
	if c.known[i] {
		return c.errors[i]
	}
	m := 2*i + 1
	var s Sum
	for k := range int(math.Floor(c.quorum*float64(m))) + 1 {
		s.Add(float64(binomials()[i][k] * c.right[k] * c.wrong[m-k])) // the conversion forbids a fused step
	}
	c.known[i], c.errors[i] = true, s.Value()
	return c.errors[i]
}

// Votes is how many such verifiers make a panel of this error: 1 if one is no worse, Saturated if 199 are no better,
// and in between on the straight line between the two sizes around it.
func (c *Curve) Votes(err float64) float64 {
	if err >= c.at(0) {
		return 1
	}
	if err <= c.at(sizes-1) {
		return Saturated
	}
	i := 0
	for i < sizes-2 && c.at(i+1) > err {
		i++
	}
	m, high, low := float64(2*i+1), c.at(i), c.at(i+1)
	if high == low {
		return m
	}
	return m + 2*(high-err)/(high-low)
}

// EffectiveVotes is [Curve.Votes] for one panel; undefined if the verifiers are no better than chance.
func EffectiveVotes(accuracy, quorum, err float64) (float64, bool) {
	if accuracy <= 0.5 {
		return 0, false
	}
	return NewCurve(accuracy, quorum).Votes(err), true
}

// Curves keeps the curves of accuracies that come again, as they do in a bootstrap.
type Curves struct {
	quorum float64
	byA    map[float64]*Curve
}

// NewCurves makes an empty store for panels of one quorum.
func NewCurves(quorum float64) *Curves { return &Curves{quorum: quorum, byA: map[float64]*Curve{}} }

const maxCurves = 2048 // of 4 KiB each

// Votes is [EffectiveVotes].
func (c *Curves) Votes(accuracy, err float64) (float64, bool) {
	if accuracy <= 0.5 {
		return 0, false
	}
	curve := c.byA[accuracy]
	if curve == nil {
		if len(c.byA) >= maxCurves {
			clear(c.byA)
		}
		curve = NewCurve(accuracy, c.quorum)
		c.byA[accuracy] = curve
	}
	return curve.Votes(err), true
}
