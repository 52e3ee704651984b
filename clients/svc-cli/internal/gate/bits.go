package gate

import mathbits "math/bits"

// bits is a vector of bits.
type bits []uint64

func newBits(n int) bits { return make(bits, (n+63)/64) }

// fill sets bit i to column[rows[i]] and counts the bits that are set.
func (b bits) fill(column Column, rows []int) int {
	count := 0
	var word uint64
	for i, row := range rows {
		if column[row] {
			word |= 1 << (i % 64)
			count++
		}
		if i%64 == 63 || i == len(rows)-1 {
			b[i/64], word = word, 0
		}
	}
	return count
}

// joint counts the bits that are set in both.
func (b bits) joint(c bits) int {
	n := 0
	for i, w := range b {
		n += mathbits.OnesCount64(w & c[i])
	}
	return n
}
