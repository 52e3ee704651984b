package stream

import "sort"

// history holds the newest events, by sequence. It is bounded in events and in bytes: an event may be
// as large as a message of the broker.
type history struct {
	maxEvents, maxBytes int

	ring  []*event // grows to maxEvents, then wraps at head
	head  int      // the oldest, once it wraps
	count int
	bytes int
	// floor is the highest sequence whose event is not held although a client may have missed it: evicted, or older
	// than the start. newest is the highest one seen.
	floor, newest uint64
}

// reset empties the history; later events begin after floor.
func (h *history) reset(floor uint64) {
	h.ring, h.head, h.count, h.bytes = nil, 0, 0, 0
	h.floor, h.newest = floor, floor
}

// add appends the next event; sequences rise.
func (h *history) add(e *event) {
	for h.count > 0 && (h.count == h.maxEvents || h.bytes+len(e.frame) > h.maxBytes) {
		h.evictOldest()
	}
	if h.count == len(h.ring) {
		h.grow()
	}
	h.ring[(h.head+h.count)%len(h.ring)] = e
	h.count++
	h.bytes += len(e.frame)
	h.newest = e.sequence
}

func (h *history) evictOldest() {
	oldest := h.ring[h.head]
	h.ring[h.head] = nil
	h.head = (h.head + 1) % len(h.ring)
	h.count--
	h.bytes -= len(oldest.frame)
	h.floor = oldest.sequence
}

func (h *history) grow() {
	ring := make([]*event, min(h.maxEvents, max(64, 2*len(h.ring))))
	for i := range h.count {
		ring[i] = h.at(i)
	}
	h.ring, h.head = ring, 0
}

// at returns the i-th oldest event.
func (h *history) at(i int) *event { return h.ring[(h.head+i)%len(h.ring)] }

// after lists the wanted events that follow a sequence; ok is false when some of them are no longer
// held or more than limit are wanted.
func (h *history) after(sequence uint64, limit int, wanted func(*event) bool) (events []*event, ok bool) {
	if sequence < h.floor {
		return nil, false
	}
	first := sort.Search(h.count, func(i int) bool { return h.at(i).sequence > sequence })
	for i := first; i < h.count; i++ {
		e := h.at(i)
		if !wanted(e) {
			continue
		}
		if len(events) == limit {
			return nil, false
		}
		events = append(events, e)
	}
	return events, true
}
