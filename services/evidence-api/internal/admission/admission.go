// Package admission decides without waiting whether a request is admitted. It limits the
// number of requests and of event streams, and admits none while the server drains.
//
// A request is admitted once its head has arrived and holds a slot until its answer is
// written. A stream passes its checks in such a slot and then swaps it for a stream slot:
// a request that fails the checks never holds a stream slot, and open streams use up no
// request slots.
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

	mu                   sync.Mutex // guards the fields below
	requests, streams    int
	overloaded, drained  int64
	draining, idleClosed bool
	idle                 chan struct{}
}

// New returns a Control with this many slots for requests and for streams.
func New(requests, streams int) *Control {
	return &Control{maxRequests: requests, maxStreams: streams, idle: make(chan struct{})}
}

// Slot is a place that one request holds.
type Slot struct {
	c      *Control // nil: holds nothing
	stream bool
}

// Enter admits a request or returns the reason why not. While the server drains, that is
// the reason, even if it is also full.
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

// ToStream swaps the slot for a stream slot. If that is refused, the request keeps its
// slot for the answer.
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

// Release returns the slot. Further calls do nothing.
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

// Drain refuses all requests from now on.
func (c *Control) Drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	c.settle()
}

// Idle returns a channel that is closed once the server drains and no slot is held.
func (c *Control) Idle() <-chan struct{} { return c.idle }

// settle closes idle once the server drains and no slot is held. The caller holds the
// lock.
func (c *Control) settle() {
	if c.draining && c.requests == 0 && c.streams == 0 && !c.idleClosed {
		c.idleClosed = true
		close(c.idle)
	}
}

// Stats are the counters of admission for the metrics.
type Stats struct {
	Requests, MaxRequests int   // slots held and all
	Streams, MaxStreams   int   // stream slots held and all
	Overloaded            int64 // refused because slots or stream slots were taken
	Drained               int64 // refused because the server was shutting down
	Draining              bool
}

// Stats reads all counters at one instant.
func (c *Control) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Stats{
		Requests: c.requests, MaxRequests: c.maxRequests, Streams: c.streams, MaxStreams: c.maxStreams,
		Overloaded: c.overloaded, Drained: c.drained, Draining: c.draining,
	}
}
