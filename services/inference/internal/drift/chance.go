package drift

import (
	"math"
	"math/rand/v2"
	"slices"
)

const (
	// chanceRounds decides a probability of 0.001 by the fifth exceedance. Smaller ones get as many more rounds.
	chanceRounds = 5000
	// chanceRows is the largest window that needs the simulation: beyond it the bins hold enough for the
	// chi-squared distribution to be true of the tail as well.
	chanceRows = 1000
)

// psiChance is the probability that n rows of the baseline's own distribution have a psi of at least that
// much. The chi-squared distribution is wrong about the tail for small windows: of 20 rows one decile in eight
// is empty, and one empty bin alone is a psi of 0.7. So the rows are drawn. That the nb rows of the baseline
// are a sample too widens the drawn psi as it widens the thresholds. Draws are seeded, so that equal samples
// have equal verdicts, and end where the answer is past atLeast, which is all that the caller asks.
func psiChance(psi float64, baseline []float64, n, nb int, atLeast float64, s share) float64 {
	r := rand.New(rand.NewPCG(uint64(n), uint64(nb)))
	widen := 1 + float64(n)/float64(nb)
	draw := newBinDraw(baseline)
	terms := make([][]float64, len(baseline)) // of each bin by its count: the logarithm costs more than the draws
	for i, q := range baseline {
		terms[i] = make([]float64, n+1)
		for count := range terms[i] {
			terms[i][count] = psiTerm(float64(count)/float64(n), q)
		}
	}
	counts := make([]int, len(baseline))
	exceeded := 0
	rounds := chanceRounds * int(s)
	for range rounds {
		clear(counts)
		for range n {
			counts[draw.bin(r.Float64())]++
		}
		var drawn float64
		for i, count := range counts {
			drawn += terms[i][count]
		}
		if drawn*widen >= psi {
			if exceeded++; float64(exceeded) >= atLeast*float64(rounds) {
				break
			}
		}
	}
	return float64(exceeded) / float64(rounds)
}

// binDraw finds the bin of a uniform number.
type binDraw struct {
	ends  []float64 // up to which number a bin reaches; the last takes the rest
	first [64]int   // the bin of the least number of each 64th
}

func newBinDraw(shares []float64) *binDraw {
	d := &binDraw{ends: make([]float64, len(shares))}
	sum := 0.0
	for i, s := range shares {
		sum += s
		d.ends[i] = sum
	}
	for i := range d.first {
		d.first[i] = d.search(0, float64(i)/float64(len(d.first)))
	}
	return d
}

func (d *binDraw) bin(u float64) int { return d.search(d.first[int(u*float64(len(d.first)))], u) }

func (d *binDraw) search(i int, u float64) int {
	for i < len(d.ends)-1 && u >= d.ends[i] {
		i++
	}
	return i
}

// wassersteinRounds decides a probability of 0.001 by the second exceedance.
const wassersteinRounds = 2000

// wassersteinChance is the probability that two samples drawn at random from the union of these two are at least that
// far apart: a permutation test. Where a few outliers make up most of the deviation, their split between the samples
// alone can move the distance past its thresholds. Like psiChance, it stops at atLeast.
func wassersteinChance(distance float64, live, base []float64, atLeast float64, s share) float64 {
	r := rand.New(rand.NewPCG(uint64(len(live)), uint64(len(base))))
	pooled := slices.Concat(live, base)
	slices.Sort(pooled)
	order := make([]int, len(pooled))
	for i := range order {
		order[i] = i
	}
	isLive := make([]bool, len(pooled))
	exceeded := 0
	rounds := wassersteinRounds * int(s)
	for range rounds {
		clear(isLive)
		for i := range live { // only the live ones are drawn, mostly the fewer
			j := i + r.IntN(len(order)-i)
			order[i], order[j] = order[j], order[i]
			isLive[order[i]] = true
		}
		var area, gap float64 // gap is that of the two distribution functions
		for i, of := range isLive {
			if i > 0 {
				area += math.Abs(gap) * (pooled[i] - pooled[i-1])
			}
			if of {
				gap += 1 / float64(len(live))
			} else {
				gap -= 1 / float64(len(base))
			}
		}
		if area >= distance {
			if exceeded++; float64(exceeded) >= atLeast*float64(rounds) {
				break
			}
		}
	}
	return float64(exceeded) / float64(rounds)
}
