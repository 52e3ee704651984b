package sse

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// ErrClosed means that the hub ended its streams.
var ErrClosed = errors.New("sse: hub closed")

// Frame is an event, encoded once for all its readers.
type Frame struct {
	Topic string
	ID    string
	Bytes []byte
}

// Hub passes events to subscribers. A subscriber that does not keep up loses its
// oldest events, and learns how many; it never slows the others or the publisher.
type Hub struct {
	queue int

	mu     sync.Mutex // guards closed and writing subs
	closed bool
	subs   atomic.Pointer[[]*Subscription] // copied on write, so that Publish takes no lock of the hub

	dropped atomic.Uint64
}

// NewHub makes a hub whose subscribers hold at most queue events each.
func NewHub(queue int) *Hub {
	h := &Hub{queue: max(1, queue)}
	h.subs.Store(&[]*Subscription{})
	return h
}

// Subscribe adds a subscriber for the topics that match accepts; nil accepts
// all. Close the subscription.
func (h *Hub) Subscribe(match func(topic string) bool) (*Subscription, error) {
	s := &Subscription{hub: h, match: match, ready: make(chan struct{}, 1), ring: make([]Frame, 0, min(h.queue, 16))}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrClosed
	}
	subs := append(slices.Clone(*h.subs.Load()), s)
	h.subs.Store(&subs)
	return s, nil
}

// Publish encodes an event and queues it for each subscriber. It never blocks.
func (h *Hub) Publish(topic string, e Event) error {
	b, err := e.Append(nil)
	if err != nil {
		return err
	}
	h.PublishFrame(Frame{Topic: topic, ID: e.ID, Bytes: b})
	return nil
}

// PublishFrame is Publish of what is encoded already; Bytes must not change afterwards.
func (h *Hub) PublishFrame(f Frame) {
	for _, s := range *h.subs.Load() {
		if s.match == nil || s.match(f.Topic) {
			s.push(f, h.queue)
		}
	}
}

// Close ends every subscription once it has read what is queued. Later
// subscribers get ErrClosed, later events go nowhere.
func (h *Hub) Close() {
	h.mu.Lock()
	subs := *h.subs.Load()
	h.closed = true
	h.subs.Store(&[]*Subscription{})
	h.mu.Unlock()
	for _, s := range subs {
		s.end()
	}
}

// Subscribers is how many there are.
func (h *Hub) Subscribers() int { return len(*h.subs.Load()) }

// Dropped counts events that subscribers lost since the start.
func (h *Hub) Dropped() uint64 { return h.dropped.Load() }

// Subscription is one reader's bounded queue. Use it from one goroutine.
type Subscription struct {
	hub   *Hub
	match func(string) bool
	ready chan struct{} // holds a token when there may be something to read

	mu      sync.Mutex // guards all below
	ring    []Frame    // grows to the hub's queue, then wraps at head
	head    int
	dropped int
	ended   bool
}

func (s *Subscription) push(f Frame, queue int) {
	s.mu.Lock()
	switch {
	case s.ended:
		s.mu.Unlock()
		return
	case len(s.ring) < queue:
		s.ring = append(s.ring, f)
	default: // full: the oldest gives way
		s.ring[s.head] = f
		s.head = (s.head + 1) % len(s.ring)
		s.dropped++
		s.hub.dropped.Add(1)
	}
	s.mu.Unlock()
	s.wake()
}

func (s *Subscription) wake() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

func (s *Subscription) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.wake()
}

// Next waits for events and takes all that are queued, oldest first, appending
// them to into[:0]. dropped is how many older ones were lost since the last call.
// The error is ErrClosed when the hub closed and all was read, or ctx's.
func (s *Subscription) Next(ctx context.Context, into []Frame) (frames []Frame, dropped int, err error) {
	for {
		s.mu.Lock()
		if len(s.ring) > 0 {
			frames = append(append(into[:0], s.ring[s.head:]...), s.ring[:s.head]...)
			dropped = s.dropped
			clear(s.ring) // let go of the bytes
			s.ring, s.head, s.dropped = s.ring[:0], 0, 0
			s.mu.Unlock()
			return frames, dropped, nil
		}
		ended := s.ended
		s.mu.Unlock()
		if ended {
			return nil, 0, ErrClosed
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
}

// Close removes the subscription from its hub.
func (s *Subscription) Close() {
	h := s.hub
	h.mu.Lock()
	subs := slices.DeleteFunc(slices.Clone(*h.subs.Load()), func(o *Subscription) bool { return o == s })
	h.subs.Store(&subs)
	h.mu.Unlock()
	s.end()
}
