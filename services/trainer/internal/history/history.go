// Package history summarises, for each row, the rows of its group that had ended when it was submitted. Nothing a
// row could not have known at its submit enters its summary.
package history

import (
	"cmp"
	"container/heap"
	"slices"
)

// None is the value of every statistic of a group without an ended row.
const None = -1

// Stats of one row.
type Stats struct {
	// Last is the value of the row that ended last; Median5 the median of the last five.
	Last, Median5, Median, Max float64
	// Count is how many rows had ended.
	Count int
}

// Events are rows in the order of their submit; Submit and End are seconds since one origin.
type Events struct {
	Submit, End, Value []float64
	byEnd              []int
}

// New prepares the events. Rows must be sorted by submit; rows of equal submit keep their order.
func New(submit, end, value []float64) *Events {
	e := &Events{Submit: submit, End: end, Value: value, byEnd: make([]int, len(submit))}
	for i := range e.byEnd {
		e.byEnd[i] = i
	}
	slices.SortStableFunc(e.byEnd, func(a, b int) int { return cmp.Compare(end[a], end[b]) })
	return e
}

// Walk calls ended(j) for each row j that ended by the submit of row i, in the order of their ends, and then row(i),
// for every i in order. A row never sees itself or a later row, even if all of them end in the second in which they are
// submitted.
func (e *Events) Walk(ended, row func(i int)) {
	next := 0
	for i := range e.Submit {
		for next < len(e.byEnd) {
			j := e.byEnd[next]
			if e.End[j] > e.Submit[i] || j >= i {
				break
			}
			ended(j)
			next++
		}
		row(i)
	}
}

// Of returns the statistics of each row over its group, in O(n log n).
func Of(e *Events, group []int) []Stats {
	groups := map[int]*summary{}
	out := make([]Stats, len(group))
	e.Walk(func(j int) {
		s := groups[group[j]]
		if s == nil {
			s = &summary{}
			groups[group[j]] = s
		}
		s.add(e.Value[j])
	}, func(i int) { out[i] = groups[group[i]].stats() })
	return out
}

type summary struct {
	recent []float64 // at most five, oldest first
	max    float64
	Median
}

func (s *summary) add(v float64) {
	if len(s.recent) == 5 {
		s.recent = append(s.recent[:0], s.recent[1:]...)
	}
	s.recent = append(s.recent, v)
	if s.Count() == 0 || v > s.max {
		s.max = v
	}
	s.Add(v)
}

func (s *summary) stats() Stats {
	if s == nil {
		return Stats{None, None, None, None, 0}
	}
	r := slices.Clone(s.recent)
	slices.Sort(r)
	return Stats{
		Last:    s.recent[len(s.recent)-1],
		Median5: (r[(len(r)-1)/2] + r[len(r)/2]) / 2,
		Median:  s.Value(),
		Max:     s.max,
		Count:   s.Count(),
	}
}

// Median of a growing set: the lower half in a max-heap, the upper half in a min-heap.
type Median struct{ low, high floats }

// Add takes O(log n).
func (m *Median) Add(v float64) {
	if m.low.Len() == 0 || v <= -m.low[0] {
		heap.Push(&m.low, -v)
	} else {
		heap.Push(&m.high, v)
	}
	if m.low.Len() > m.high.Len()+1 {
		heap.Push(&m.high, -heap.Pop(&m.low).(float64))
	} else if m.high.Len() > m.low.Len() {
		heap.Push(&m.low, -heap.Pop(&m.high).(float64))
	}
}

// Count of the values.
func (m *Median) Count() int { return m.low.Len() + m.high.Len() }

// Value is the median, the mean of the middle two of an even count; None of an empty set.
func (m *Median) Value() float64 {
	switch {
	case m.low.Len() == 0:
		return None
	case m.low.Len() > m.high.Len():
		return -m.low[0]
	}
	return (m.high[0] - m.low[0]) / 2
}

type floats []float64

func (f floats) Len() int           { return len(f) }
func (f floats) Less(i, j int) bool { return f[i] < f[j] }
func (f floats) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *floats) Push(x any)        { *f = append(*f, x.(float64)) }
func (f *floats) Pop() any {
	old := *f
	x := old[len(old)-1]
	*f = old[:len(old)-1]
	return x
}
