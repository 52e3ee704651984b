package gatestat

import (
	"math"
	"math/big"
	"strconv"
)

// Quorum is the share of its votes that a panel needs more than, as an exact fraction. Documents state it as a decimal:
// 0.6666666666666666 is meant to be two thirds, and in floats 0.29 times 100 is less than 29.
type Quorum struct{ fraction *big.Rat }

const (
	maxDenominator   = 1000
	quorumTolerance  = 1e-12
	majorityFraction = 0.5
)

// Majority is the quorum of one half.
func Majority() Quorum { return ParseQuorum(majorityFraction) }

// ParseQuorum reads a share as the fraction with the smallest denominator up to 1000 within 1e-12 of it. If there is
// none, it is the decimal that is written.
func ParseQuorum(share float64) Quorum {
	for denominator := 1.0; denominator <= maxDenominator; denominator++ {
		numerator := math.Round(share * denominator)
		if math.Abs(share-numerator/denominator) <= quorumTolerance {
			return Quorum{big.NewRat(int64(numerator), int64(denominator))}
		}
	}
	// The shortest decimal that denotes this float; it always parses.
	exact, _ := new(big.Rat).SetString(strconv.FormatFloat(share, 'g', -1, 64))
	return Quorum{exact}
}

// Threshold is the largest number of accepting votes out of m that is still a rejection.
func (q Quorum) Threshold(m int) int {
	n := new(big.Int).Mul(q.fraction.Num(), big.NewInt(int64(m)))
	return int(n.Quo(n, q.fraction.Denom()).Int64())
}

// IsMajority reports whether the quorum is one half.
func (q Quorum) IsMajority() bool { return q.fraction.Cmp(big.NewRat(1, 2)) == 0 }

// InRange reports whether the quorum is at least 0 and below 1, so that some vote can accept.
func (q Quorum) InRange() bool { return q.fraction.Sign() >= 0 && q.fraction.Cmp(big.NewRat(1, 1)) < 0 }
