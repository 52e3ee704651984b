package gatestat

import (
	"math"
	"math/big"
	"sync"
)

// Saturated is the largest number of effective votes that can be measured; a panel worth that is worth that or more.
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

// Setting holds the parameters, apart from its size, of the error of a panel of independent verifiers.
type Setting struct {
	Accuracy float64 // of each verifier: above 1/2 and at most 1
	Good     float64 // share of the candidates that are good; without effect on a majority
	Quorum   Quorum
}

// Curve is the error of panels of independent verifiers, all right with the same probability, by panel size.
type Curve struct {
	setting      Setting
	right, wrong [int(Saturated) + 1]float64 // powers of the probability to be right, and to be wrong
	known        [sizes]bool
	errors       [sizes]float64
}

// NewCurve makes the curve of a setting.
func NewCurve(s Setting) *Curve {
	c := &Curve{setting: s}
	for k := range c.right {
		c.right[k], c.wrong[k] = math.Pow(s.Accuracy, float64(k)), math.Pow(1-s.Accuracy, float64(k))
	}
	return c
}

// errorAt is the error of 2i+1 verifiers.
//
// A good candidate is rejected if at most threshold of them are right, a bad one accepted if more than that are wrong.
// At a quorum of one half both have the same probability; at another they do not, and the mix of candidates counts.
func (c *Curve) errorAt(i int) float64 {
	if c.known[i] {
		return c.errors[i]
	}
	m := 2*i + 1
	threshold := c.setting.Quorum.Threshold(m)
	var rejected Sum
	for k := range threshold + 1 {
		rejected.Add(float64(binomials()[i][k] * c.right[k] * c.wrong[m-k])) // the conversion forbids a fused step
	}
	err := rejected.Value()
	if !c.setting.Quorum.IsMajority() {
		var accepted Sum
		for k := threshold + 1; k <= m; k++ {
			accepted.Add(float64(binomials()[i][k] * c.wrong[k] * c.right[m-k]))
		}
		err = float64(c.setting.Good*err) + float64((1-c.setting.Good)*accepted.Value())
	}
	c.known[i], c.errors[i] = true, err
	return err
}

// errorTolerance is less than two different shares of errors can lie apart, and more than rounding makes of equal ones.
const errorTolerance = 1e-12

// Votes returns the number of such verifiers that make a panel of this error: 1 if one is no worse, Saturated if 199
// are no better, and in between on the straight line between the first two sizes around it. At a quorum other than one
// half more verifiers may err more: there 199 that are no better prove nothing, unless each size errs no more than the
// one before. A figure that no two sizes enclose is undefined; an error between the first and the last size has some.
func (c *Curve) Votes(err float64) (float64, bool) {
	if err >= c.errorAt(0)-errorTolerance {
		return 1, true
	}
	saturated := err <= c.errorAt(sizes-1)
	if saturated && c.setting.Quorum.IsMajority() {
		return Saturated, true
	}
	for i := range sizes - 1 {
		m, high, low := float64(2*i+1), c.errorAt(i), c.errorAt(i+1)
		switch {
		case err < low || err > high:
		case high == low:
			return m, true
		default:
			return m + 2*(high-err)/(high-low), true
		}
	}
	if saturated && c.neverRises() {
		return Saturated, true
	}
	return 0, false
}

// neverRises reports whether no panel errs more than a smaller one, rounding aside.
func (c *Curve) neverRises() bool {
	for i := range sizes - 1 {
		if c.errorAt(i+1) > c.errorAt(i)*(1+errorTolerance) {
			return false
		}
	}
	return true
}

// EffectiveVotes is [Curve.Votes] for one panel; also undefined if the verifiers are no better than chance.
func EffectiveVotes(s Setting, err float64) (float64, bool) {
	if s.Accuracy <= 0.5 {
		return 0, false
	}
	return NewCurve(s).Votes(err)
}

// Curves keeps the curves of settings that come again, as they do in a bootstrap.
type Curves struct {
	quorum    Quorum
	bySetting map[curveKey]*Curve
}

type curveKey struct{ accuracy, good float64 }

// NewCurves makes an empty store for panels of one quorum.
func NewCurves(quorum Quorum) *Curves {
	return &Curves{quorum: quorum, bySetting: map[curveKey]*Curve{}}
}

const maxCurves = 2048 // of 4 KiB each

// Votes is [EffectiveVotes] at the quorum of the store.
func (c *Curves) Votes(accuracy, good, err float64) (float64, bool) {
	if accuracy <= 0.5 {
		return 0, false
	}
	if c.quorum.IsMajority() {
		good = 0 // without effect: one curve serves all mixes
	}
	key := curveKey{accuracy, good}
	curve := c.bySetting[key]
	if curve == nil {
		if len(c.bySetting) >= maxCurves {
			clear(c.bySetting)
		}
		curve = NewCurve(Setting{Accuracy: accuracy, Good: good, Quorum: c.quorum})
		c.bySetting[key] = curve
	}
	return curve.Votes(err)
}
