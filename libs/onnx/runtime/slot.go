package runtime

import (
	"fmt"
	goruntime "runtime"
	"sync"

	ort "github.com/yalue/onnxruntime_go"
)

// maxSlotRows limits the batches that get slots; it is the serving side's largest micro-batch. Larger batches allocate
// new tensors, which costs less than their own work.
const maxSlotRows = 32

// slot is a set of input and output tensors for one number of rows, kept between runs, so that a run
// is: copy in, one call, copy out. One goroutine at a time has it.
type slot struct {
	rows      int
	in, out   []value
	ins, outs []ort.Value // those of in and out
	dims      [][]int64   // of each output
	guard     *guard
	pin       goruntime.Pinner // the library holds the addresses of in and out between calls
}

// slots keeps idle slots by number of rows.
type slots struct {
	mu   sync.Mutex // guards idle
	idle [maxSlotRows + 1][]*slot
	keep int // idle slots kept per number of rows
}

func (p *slots) take(rows int) *slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.idle[rows]
	if len(list) == 0 {
		return nil
	}
	s := list[len(list)-1]
	p.idle[rows] = list[:len(list)-1]
	return s
}

// put keeps s for the next run, or returns false if there are enough.
func (p *slots) put(s *slot) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle[s.rows]) >= p.keep {
		return false
	}
	p.idle[s.rows] = append(p.idle[s.rows], s)
	return true
}

func (p *slots) destroy() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for rows, list := range p.idle {
		for _, s := range list {
			s.destroy()
		}
		p.idle[rows] = nil
	}
}

// resolveDims is dims with rows in place of a free first dimension; ok is false when more than that is free.
func resolveDims(dims []int64, rows int) (out []int64, n int, ok bool) {
	if len(dims) == 0 || dims[0] >= 0 && dims[0] != int64(rows) {
		return nil, 0, false
	}
	out = append([]int64{int64(rows)}, dims[1:]...)
	n, ok = countElements(out)
	return out, n, ok && n > 0
}

// canPool reports whether slots can serve the model: every size but the number of rows is known.
func canPool(infos ...[]Info) bool {
	for _, list := range infos {
		for _, in := range list {
			if _, _, ok := resolveDims(in.Dims, 1); !ok {
				return false
			}
		}
	}
	return true
}

func newSlot(ins, outs []Info, rows int, newGuard func() (*guard, error)) (s *slot, err error) {
	s = &slot{rows: rows}
	defer func() {
		if err != nil {
			s.destroy()
		}
	}()
	if s.guard, err = newGuard(); err != nil {
		return s, err
	}
	add := func(info Info) (value, []int64, error) {
		dims, n, _ := resolveDims(info.Dims, rows)
		v, err := newValue(info.Type, dims, n)
		if err != nil {
			return v, nil, fmt.Errorf("making tensor %q: %w", info.Name, err)
		}
		if m := v.memory(); m != nil {
			s.pin.Pin(m)
		}
		return v, dims, nil
	}
	for _, info := range ins {
		v, _, err := add(info)
		if err != nil {
			return s, err
		}
		s.in, s.ins = append(s.in, v), append(s.ins, v.ort)
	}
	for _, info := range outs {
		v, dims, err := add(info)
		if err != nil {
			return s, err
		}
		s.out, s.outs, s.dims = append(s.out, v), append(s.outs, v.ort), append(s.dims, dims)
	}
	return s, nil
}

func (s *slot) destroy() {
	if s.guard != nil {
		s.guard.destroy()
	}
	for _, list := range [][]value{s.in, s.out} {
		for _, v := range list {
			_ = v.ort.Destroy()
		}
	}
	s.pin.Unpin()
}
