package learn

import (
	"math"
	"runtime"
	"slices"
	"sync"
)

// maxBins is the most intervals a feature is cut into, so that a code fits a byte.
const maxBins = 256

// binned is a Matrix with each feature cut into intervals. A row's code for feature f is the number of
// cuts below its value: code ≤ b exactly when value ≤ cuts[f][b], so a split found on codes and the
// split applied to values agree on every training row.
type binned struct {
	rows  int
	codes [][]uint8   // by feature, then row
	cuts  [][]float32 // by feature, rising; one fewer than the feature's intervals
}

func binColumns(x Matrix) *binned {
	b := &binned{rows: x.Rows, codes: make([][]uint8, x.Cols), cuts: make([][]float32, x.Cols)}
	runParallel(x.Cols, func(f int) {
		col := make([]float32, x.Rows)
		for i := range col {
			col[i] = x.Data[i*x.Cols+f]
		}
		cuts := cutPoints(sortValues(col))
		find := newBinFinder(cuts)
		codes := make([]uint8, x.Rows)
		for i, v := range col {
			codes[i] = find.code(v)
		}
		b.codes[f], b.cuts[f] = codes, cuts
	})
	return b
}

// binFinder holds the cuts of a feature, filled up with infinities to a whole power of two, so that every search takes
// the same eight steps and the processor guesses no branch.
type binFinder [maxBins]float32

func newBinFinder(cuts []float32) *binFinder {
	var f binFinder
	for i := copy(f[:], cuts); i < maxBins; i++ {
		f[i] = float32(math.Inf(1))
	}
	return &f
}

// code is the number of cuts below v.
func (f *binFinder) code(v float32) uint8 {
	var at uint8
	for step := uint8(maxBins / 2); step > 0; step /= 2 {
		next := at + step
		if f[next-1] < v {
			at = next
		}
	}
	return at
}

// sortValues returns the values in rising order. It sorts by digits of eleven bits, several times faster than by
// comparisons on a million rows.
func sortValues(values []float32) []float32 {
	const digit = 1 << 11
	if len(values) < 4*digit {
		out := slices.Clone(values)
		slices.Sort(out)
		return out
	}
	from, to := make([]uint32, len(values)), make([]uint32, len(values))
	var count [3][digit]int
	for i, v := range values {
		key := sortKey(v)
		from[i] = key
		count[0][key%digit]++
		count[1][key>>11%digit]++
		count[2][key>>22]++
	}
	for pass := range count {
		sum := 0
		for i, n := range count[pass] {
			count[pass][i], sum = sum, sum+n
		}
		for _, key := range from {
			at := &count[pass][key>>(11*pass)%digit]
			to[*at] = key
			*at++
		}
		from, to = to, from
	}
	out := make([]float32, len(from))
	for i, key := range from {
		out[i] = sortedValue(key)
	}
	return out
}

// sortKey orders numbers as their values: it sets the sign bit of positive ones and inverts negative ones.
func sortKey(v float32) uint32 {
	if v == 0 {
		v = 0 // not its negative, which is no other value
	}
	b := math.Float32bits(v)
	return b ^ (uint32(int32(b)>>31) | 1<<31)
}

// sortedValue is the number of a key.
func sortedValue(key uint32) float32 {
	return math.Float32frombits(key ^ (^uint32(int32(key)>>31) | 1<<31))
}

// cutPoints places a cut between each two neighbouring values, or, when there are too many, between
// intervals of about equal numbers of rows.
func cutPoints(sorted []float32) []float32 {
	type step struct {
		low, high float32
		count     int
	}
	var steps []step
	for _, v := range sorted {
		if n := len(steps); n > 0 && tooClose(steps[n-1].low, v) {
			steps[n-1].high = v
			steps[n-1].count++
			continue
		}
		steps = append(steps, step{v, v, 1})
	}
	cuts := make([]float32, 0, min(len(steps), maxBins)-1)
	left, bins, held := len(sorted), maxBins, 0
	for i := range len(steps) - 1 {
		held += steps[i].count
		// Fill to the mean of the rest; stop early where the next value alone would overfill.
		want := float64(left) / float64(bins)
		if len(steps) > maxBins && float64(held) < want && float64(held)+float64(steps[i+1].count)/2 < want {
			continue
		}
		cuts = append(cuts, cutBetween(steps[i].high, steps[i+1].low))
		left -= held
		held = 0
		if bins--; bins == 1 {
			break
		}
	}
	return cuts
}

// tooClose reports whether two values are too close for a cut between them: another library's logarithm may differ in
// the last bit, and would then send a row to the other side.
func tooClose(lo, hi float32) bool {
	if lo == hi {
		return true
	}
	d := float64(hi) - float64(lo)
	return d <= 4e-7*math.Max(math.Abs(float64(lo)), math.Abs(float64(hi)))
}

// cutBetween is a float32 t with lo ≤ t < hi, half way where there is room.
func cutBetween(lo, hi float32) float32 {
	t := float32(float64(lo) + (float64(hi)-float64(lo))/2)
	if t >= hi || t < lo {
		return lo
	}
	return t
}

// runParallel calls do for 0..n−1 on as many goroutines as there are processors and waits. Items are assigned to
// goroutines in no fixed order, so do must touch only the data of its item.
func runParallel(n int, do func(i int)) {
	workers := min(runtime.GOMAXPROCS(0), n)
	if workers <= 1 {
		for i := range n {
			do(i)
		}
		return
	}
	var wg sync.WaitGroup
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	for range workers {
		wg.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	wg.Wait()
}
