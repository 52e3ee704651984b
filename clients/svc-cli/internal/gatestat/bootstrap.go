package gatestat

import (
	"context"
	"fmt"
	"math/big"
	"math/bits"

	"gonum.org/v1/gonum/mathext/prng"

	"github.com/mlp-platform/platform/libs/evidence/closed"
)

// Limits of a bootstrap.
const (
	MinReplicates = 100
	MaxReplicates = 100_000
	// MinRows is the smallest number of rows for a meaningful interval.
	MinRows = 5
)

// Bootstrap holds the number of draws, their seed and the width of the intervals.
type Bootstrap struct {
	Replicates      int      `json:"replicates"`
	Seed            *big.Int `json:"seed"` // any size; its sign has no effect
	ConfidenceLevel float64  `json:"confidence_level"`
}

// Codes of a bootstrap that is refused.
const (
	InvalidReplicates      = "invalid_replicates"
	InvalidConfidenceLevel = "invalid_confidence_level"
	TooMuchWork            = "too_much_work"
)

// Check validates the numbers: it returns a *closed.Fault without a path, or nil.
func (b Bootstrap) Check() error {
	if b.Replicates < MinReplicates || b.Replicates > MaxReplicates {
		return &closed.Fault{Code: InvalidReplicates, Detail: fmt.Sprintf("the number of replicates is from %d to %d", MinReplicates, MaxReplicates)}
	}
	// Written so that NaN is refused too.
	if !(b.ConfidenceLevel > 0 && b.ConfidenceLevel < 1) {
		return &closed.Fault{Code: InvalidConfidenceLevel, Detail: "the confidence level lies between 0 and 1, neither included"}
	}
	return nil
}

// Draws returns row numbers from the generator MT19937, seeded by init_by_array.
type Draws struct {
	source *prng.MT19937
	n      uint32
	shift  int
}

// NewDraws starts at the seed. n, the number of rows, is 1 or more.
func NewDraws(seed *big.Int, n int) *Draws {
	d := &Draws{source: prng.NewMT19937(), n: uint32(n), shift: 32 - bits.Len32(uint32(n))}
	d.source.SeedFromKeys(splitLimbs(new(big.Int).Abs(seed)))
	return d
}

// splitLimbs are the words of 32 bits of x, the lowest first; zero has one.
func splitLimbs(x *big.Int) []uint32 {
	data := x.Bytes() // the highest first
	out := make([]uint32, max(1, (len(data)+3)/4))
	for i, b := range data {
		at := len(data) - 1 - i
		out[at/4] |= uint32(b) << (8 * (at % 4))
	}
	return out
}

// Fill draws len(rows) rows.
func (d *Draws) Fill(rows []int) {
	for i := range rows {
		x := d.source.Uint32() >> d.shift
		for x >= d.n {
			x = d.source.Uint32() >> d.shift
		}
		rows[i] = int(x)
	}
}

// Progress is called with the progress of a bootstrap; nil is allowed.
type Progress func(done, total int)

// Run draws the rows of every replicate and hands them to each, which must not keep them.
func (b Bootstrap) Run(ctx context.Context, n int, progress Progress, each func(rows []int)) error {
	draws, rows := NewDraws(b.Seed, n), make([]int, n)
	for i := range b.Replicates {
		if i%64 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if progress != nil {
				progress(i, b.Replicates)
			}
		}
		draws.Fill(rows)
		each(rows)
	}
	if progress != nil {
		progress(b.Replicates, b.Replicates)
	}
	return nil
}

// MaxWork limits the steps of a bootstrap, all replicates together: a few tens of seconds.
const MaxWork = 10_000_000_000

// Affordable returns a fault if a bootstrap whose replicates take so many steps each exceeds the limits, before it
// starts. A step is a verdict looked up, or as long as that.
func (b Bootstrap) Affordable(steps int) error {
	if most := MaxWork / max(steps, 1); b.Replicates > most {
		return &closed.Fault{Code: TooMuchWork, Detail: fmt.Sprintf(
			"%d replicates of this matrix are more than this command computes; use %d or fewer", b.Replicates, most)}
	}
	return nil
}
