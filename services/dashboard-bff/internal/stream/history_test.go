package stream

import (
	"fmt"
	"testing"
)

func add(h *history, sequence uint64, size int) {
	h.add(&event{sequence: sequence, tenant: fmt.Sprint(sequence % 2), frame: make([]byte, size)})
}

func all(*event) bool { return true }

func sequences(events []*event) string {
	var out []uint64
	for _, e := range events {
		out = append(out, e.sequence)
	}
	return fmt.Sprint(out)
}

func TestHistoryKeepsTheNewest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name              string
		maxEvents         int
		maxBytes          int
		last              uint64
		after             uint64
		limit             int
		wanted            func(*event) bool
		want              string
		ok                bool
		floor, heldEvents int
	}{
		{"all", 10, 1000, 5, 2, 10, all, "[3 4 5]", true, 0, 5},
		{"from the beginning", 10, 1000, 5, 0, 10, all, "[1 2 3 4 5]", true, 0, 5},
		{"nothing new", 10, 1000, 5, 5, 10, all, "[]", true, 0, 5},
		{"ahead", 10, 1000, 5, 9, 10, all, "[]", true, 0, 5},
		{"evicted by number", 300, 1 << 20, 1000, 700, 1000, func(e *event) bool { return e.sequence > 997 }, "[998 999 1000]", true, 700, 300},
		{"behind the evicted", 300, 1 << 20, 1000, 699, 1000, all, "[]", false, 700, 300},
		{"evicted by bytes", 1000, 100, 20, 10, 10, all, "[11 12 13 14 15 16 17 18 19 20]", true, 10, 10},
		{"behind by bytes", 1000, 100, 20, 9, 10, all, "[]", false, 10, 10},
		{"as many as allowed", 10, 1000, 5, 2, 3, all, "[3 4 5]", true, 0, 5},
		{"more than allowed", 10, 1000, 5, 2, 2, all, "[]", false, 0, 5},
		{"only those wanted count", 10, 1000, 5, 1, 2, func(e *event) bool { return e.tenant == "1" }, "[3 5]", true, 0, 5},
	} {
		h := &history{maxEvents: c.maxEvents, maxBytes: c.maxBytes}
		for s := uint64(1); s <= c.last; s++ {
			add(h, s, 10)
		}
		events, ok := h.after(c.after, c.limit, c.wanted)
		if got := sequences(events); got != c.want || ok != c.ok {
			t.Errorf("%s: after = %s, %t; want %s, %t", c.name, got, ok, c.want, c.ok)
		}
		if h.floor != uint64(c.floor) || h.count != c.heldEvents || h.bytes != 10*c.heldEvents || h.newest != c.last {
			t.Errorf("%s: floor %d, %d events of %d bytes, newest %d; want %d, %d, %d, %d", c.name, h.floor, h.count, h.bytes, h.newest, c.floor, c.heldEvents, 10*c.heldEvents, c.last)
		}
	}
}

func TestHistoryOfOneLargeEvent(t *testing.T) {
	t.Parallel()
	h := &history{maxEvents: 10, maxBytes: 100}
	add(h, 1, 10)
	add(h, 2, 500) // more than all that fits: it is kept alone
	if events, ok := h.after(1, 10, all); sequences(events) != "[2]" || !ok || h.floor != 1 {
		t.Errorf("after = %s, %t, floor %d; want [2], true, 1", sequences(events), ok, h.floor)
	}
	h.reset(7)
	if _, ok := h.after(6, 10, all); ok || h.count != 0 {
		t.Errorf("after a reset: ok %t, %d events; want false, 0", ok, h.count)
	}
	add(h, 8, 10)
	if events, ok := h.after(7, 10, all); sequences(events) != "[8]" || !ok {
		t.Errorf("after a reset and an event: %s, %t; want [8], true", sequences(events), ok)
	}
}
