package model

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
)

// A graph may leave sizes of a row open, such as the length of a text or the height of an image. What a size costs is
// known from a run with it, so that Open tries sizes on a row of zeros, and requests stay within those that ran:
//
//   - If the graph does not compute with sizes, a larger size costs at least as much. Sizes double until one fails, and
//     any combination up to the last is known.
//   - Otherwise no size's cost predicts another's. Each is tried, all open sizes being equal, as they must be in requests.

const (
	// MaxLength limits an open size, maxEachLength where each is tried.
	MaxLength     = 4096
	maxEachLength = 1024
	// maxTriedAnswer ends the trial of sizes, in bytes: the answers of the next may be too large for its process.
	maxTriedAnswer = 16 << 20
	// defaultSweep is the time for sizes outside of a trial.
	defaultSweep = 2 * time.Second
)

// opensSizes reports whether a request chooses sizes of a row.
func (m *Model) opensSizes() bool {
	return m.tensorsOnly != "" && slices.ContainsFunc(m.session.Inputs(), func(in runtime.Info) bool { return slices.Contains(in.Dims[1:], -1) })
}

// rowDims are the dimensions of an input of so many rows, with length for its open sizes.
func rowDims(dims []int64, rows, length int64) []int64 {
	out := slices.Clone(dims)
	out[0] = rows
	for i, d := range out {
		if d < 0 {
			out[i] = length
		}
	}
	return out
}

// tryLengths finds the largest size that requests may choose.
func (m *Model) tryLengths(o Options) error {
	if o.Tried {
		m.bounds.Length = o.Length
		if o.Length < 1 {
			return errors.New("the graph leaves sizes open, and no trial knows which it takes")
		}
		_, err := m.runLength(o.Length)
		return err
	}
	clock := o.clock()
	end := clock() + max(o.SweepLengths, defaultSweep)
	var fault error
	most := MaxLength
	if m.session.ReadsSize() {
		most = maxEachLength
	}
	for n := 1; n <= most && m.rowValues(n) <= maxRow && clock() < end; n = m.nextLength(n) {
		size, err := m.runLength(n)
		switch {
		case err == nil:
			m.bounds.Length = n
		case concernsAll(err) || runtime.IsOutOfMemory(err):
			if m.bounds.Length == 0 {
				return fmt.Errorf("the model fails on a row of size %d: %w", n, err)
			}
			return nil
		default: // a size too small, or beyond a table's
			fault = err
		}
		if size > maxTriedAnswer {
			break
		}
	}
	if m.bounds.Length == 0 {
		return fmt.Errorf("the graph leaves sizes of a row open, and fails on each that was tried: %w", fault)
	}
	return nil
}

func (m *Model) nextLength(n int) int {
	if m.session.ReadsSize() {
		return n + 1
	}
	return 2 * n
}

// maxRow limits the values of a row, as in a graph of fixed sizes.
const maxRow = 1 << 20

func (m *Model) rowValues(length int) int {
	most := 0
	for _, in := range m.session.Inputs() {
		most = max(most, width(rowDims(in.Dims, 1, int64(length))))
	}
	return most
}

// runLength runs a row of zeros, and returns the bytes of the answer.
func (m *Model) runLength(n int) (size int, err error) {
	in := make([]runtime.Tensor, len(m.session.Inputs()))
	for i, info := range m.session.Inputs() {
		in[i] = NewTensor(info.Type, rowDims(info.Dims, 1, int64(n)))
		if known := m.session.KnownTexts(info.Name); len(known) > 0 {
			for j := range in[i].Strings {
				in[i].Strings[j] = known[0]
			}
		}
	}
	outs, err := m.tryTensors(in, 1)
	for i := range outs {
		size += 8 * width(outs[i].Dims)
	}
	if errors.Is(err, errNonFinite) { // zeros need not make sense, such as a mask that hides all
		err = nil
	}
	return size, err
}

// CheckLengths returns why a request may not choose these sizes, or "". shapes are those of the graph's inputs.
func (m *Model) CheckLengths(shapes [][]int64) string {
	first := int64(0)
	for i, in := range m.session.Inputs() {
		for k, d := range in.Dims {
			if k == 0 || d >= 0 {
				continue
			}
			size := shapes[i][k]
			if size < 1 || size > int64(m.bounds.Length) {
				return fmt.Sprintf("the input %q has a size of %d where the model leaves it open; from 1 to %d are served, the largest that its trial had time and memory for", in.Name, size, m.bounds.Length)
			}
			if first == 0 {
				first = size
			}
			if size != first && m.session.ReadsSize() {
				return fmt.Sprintf("the input %q has a size of %d, another one %d; the model computes with sizes, so that those that it leaves open must be equal", in.Name, size, first)
			}
		}
	}
	return ""
}
