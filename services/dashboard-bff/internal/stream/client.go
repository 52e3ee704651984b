package stream

import (
	"context"
	"sync"
)

// client is one reader's bounded queue. The publisher pushes, one goroutine takes.
type client struct {
	tenant   string
	channels channelSet
	person   string
	group    string        // key in the hub
	after    uint64        // events up to this sequence are known to the reader
	ready    chan struct{} // holds a token when there may be something to take

	ctx    context.Context // ends with the request, or when the hub ends the client
	cancel context.CancelFunc

	mu      sync.Mutex // guards all below
	ring    []*event   // grows to the hub's queue, then wraps at head
	head    int
	count   int
	dropped uint64 // since the start of the connection
	reason  string // why the hub ended the client; empty before
}

// wants reports whether the client may see the event and subscribed to it.
func (c *client) wants(e *event) bool {
	return visible(e.tenant, c.tenant) && c.channels.matches(e.namespace, e.name)
}

// push queues an event. A full queue loses its oldest; dropped then is true.
func (c *client) push(e *event, queue int) (dropped bool) {
	if e.sequence <= c.after {
		return false
	}
	c.mu.Lock()
	if c.reason != "" {
		c.mu.Unlock()
		return false
	}
	switch {
	case c.count < len(c.ring):
	case len(c.ring) < queue:
		ring := make([]*event, min(queue, max(8, 2*len(c.ring))))
		for i := range c.count {
			ring[i] = c.ring[(c.head+i)%len(c.ring)]
		}
		c.ring, c.head = ring, 0
	default:
		c.head = (c.head + 1) % len(c.ring)
		c.count--
		c.dropped++
		dropped = true
	}
	c.ring[(c.head+c.count)%len(c.ring)] = e
	c.count++
	first := c.count == 1 // else the taker has not come to an empty queue and will look again
	c.mu.Unlock()
	if first {
		c.wake()
	}
	return dropped
}

func (c *client) wake() {
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

// batchEvents limits the events taken at once; a client that does not read holds these in addition to its queue.
const batchEvents = 64

// take moves the oldest events into into[:0]. dropped counts those lost on this connection, all of them older than the
// events returned. reason is why the client has ended, if it has.
func (c *client) take(into []*event) (events []*event, dropped uint64, reason string) {
	events = into[:0]
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.count > 0 && len(events) < batchEvents {
		events = append(events, c.ring[c.head])
		c.ring[c.head] = nil
		c.head = (c.head + 1) % len(c.ring)
		c.count--
	}
	return events, c.dropped, c.reason
}

// end lets the client finish sending its queue; the first reason stays.
func (c *client) end(reason string) {
	c.mu.Lock()
	if c.reason == "" {
		c.reason = reason
	}
	c.mu.Unlock()
	c.cancel()
}
