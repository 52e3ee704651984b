// Package admission decides at once whether a request may come in: so many
// requests, so many event streams, none while the server drains. Nothing queues.
//
// A request is admitted when its head is there and holds a slot until its answer
// is written. A stream goes through its checks in such a slot and swaps it for a
// stream slot afterwards: who fails the checks never holds one of those, and open
// streams take nothing from requests.
package admission

import "sync"

// Refusal is why a request was not admitted.
type Refusal int

// The refusals.
const (
	None           Refusal = iota // it was admitted
	Overloaded                    // all slots are taken
	TooManyStreams                // all stream slots are taken
	Draining                      // the server is shutting down
)

// Control hands out the slots of one server.
type Control struct {
	maxRequests, maxStreams int

	mu                   sync.Mutex // guards what follows
	requests, streams    int
	overloaded, drained  int64
	draining, idleClosed bool
	idle                 chan struct{}
}

// New makes the slots: for requests, and for streams beside them.
func New(requests, streams int) *Control {
	return &Control{maxRequests: requests, maxStreams: streams, idle: make(chan struct{})}
}

// Slot is a place that one request holds.
type Slot struct {
	c      *Control // nil: holds nothing
	stream bool
}

// Enter admits a request or says why not. While the server drains that is the
// reason, however full it is.
func (c *Control) Enter() (Slot, Refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.draining:
		c.drained++
		return Slot{}, Draining
	case c.requests >= c.maxRequests:
		c.overloaded++
		return Slot{}, Overloaded
	}
	c.requests++
	return Slot{c: c}, None
}

// ToStream swaps the slot for a stream slot. If it is refused, the request keeps
// the slot that it has, for the answer that says so.
func (s *Slot) ToStream() Refusal {
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.draining:
		c.drained++
		return Draining
	case c.streams >= c.maxStreams:
		c.overloaded++
		return TooManyStreams
	}
	c.requests--
	c.streams++
	s.stream = true
	return None
}

// Release gives the slot back. Repeating it does nothing.
func (s *Slot) Release() {
	c := s.c
	if c == nil {
		return
	}
	s.c = nil
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.stream {
		c.streams--
	} else {
		c.requests--
	}
	c.settle()
}

// Drain refuses whatever comes from now on.
func (c *Control) Drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	c.settle()
}

// Idle is closed once the server drains and no slot is held.
func (c *Control) Idle() <-chan struct{} { return c.idle }

// settle closes idle when it is time. The caller holds the lock.
func (c *Control) settle() {
	if c.draining && c.requests == 0 && c.streams == 0 && !c.idleClosed {
		c.idleClosed = true
		close(c.idle)
	}
}

// Stats is what the metrics tell of admission.
type Stats struct {
	Requests, MaxRequests int   // slots held and all
	Streams, MaxStreams   int   // stream slots held and all
	Overloaded            int64 // refused because slots or stream slots were taken
	Drained               int64 // refused because the server was shutting down
	Draining              bool
}

// Stats reads the counters, all at one instant.
func (c *Control) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Stats{
		Requests: c.requests, MaxRequests: c.maxRequests, Streams: c.streams, MaxStreams: c.maxStreams,
		Overloaded: c.overloaded, Drained: c.drained, Draining: c.draining,
	}
}
