package stream

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/mlp-platform/platform/libs/outbox"
)

// Why the hub refuses a client.
var (
	errDown       = errors.New("the events of the platform cannot be read now")
	errDraining   = errors.New("the service is shutting down")
	errFull       = errors.New("this replica has as many event streams as it takes")
	errPersonFull = errors.New("this person has as many event streams as one may have")
)

type state int

const (
	down state = iota // not yet, or no longer, connected to the broker
	open
	draining
)

// group holds the clients of one tenant that requested the same channels: an event is matched once for all of them.
type group struct {
	tenant   string
	channels channelSet
	members  []*client // copied on write: the publisher reads it without the lock
}

// visible reports whether a reader's tenant may see the events of another.
func visible(eventTenant, readerTenant string) bool {
	return eventTenant == readerTenant || eventTenant == outbox.PlatformTenant
}

// hub queues events for clients.
type hub struct {
	queue, replay int
	maxClients    int
	metrics       *metrics

	targets [][]*client // of the event being published; only the publisher uses it

	mu      sync.Mutex // guards all below
	state   state
	outage  uint64 // counts its beginnings and ends
	history history
	groups  map[string]*group
	persons map[string]int // streams of each, however often they have signed in
	clients int
}

// maxPerPerson returns half of all streams.
func (h *hub) maxPerPerson() int { return max(1, h.maxClients/2) }

// full returns the reason to refuse one more stream of a person. The last quarter of the places is for people with few
// streams: as many as one browser opens. It is called with mu held.
func (h *hub) full(person string) error {
	held := h.persons[person]
	switch {
	case h.clients >= h.maxClients:
		return errFull
	case held >= h.maxPerPerson():
		return errPersonFull
	case held >= fewStreams && h.clients >= h.maxClients-h.maxClients/4:
		return errFull
	}
	return nil
}

// fewStreams is the number of streams a person may always have while any place is free: HTTP/1.1 browsers open six
// connections to a site.
const fewStreams = 6

// publish queues an event for all who want it, and keeps it for those who resume. It never waits for
// a client. Call it from one goroutine, sequences rising.
func (h *hub) publish(e *event) {
	h.mu.Lock()
	h.history.add(e)
	h.targets = h.targets[:0]
	for _, g := range h.groups {
		if visible(e.tenant, g.tenant) && g.channels.matches(e.namespace, e.name) {
			h.targets = append(h.targets, g.members)
		}
	}
	h.mu.Unlock()
	// A client that subscribes from here on finds the event in the history, and is not among the targets.
	dropped := 0
	for _, members := range h.targets {
		for _, c := range members {
			if c.push(e, h.queue) {
				dropped++
			}
		}
	}
	if dropped > 0 {
		h.metrics.drops.Add(float64(dropped))
	}
}

// subscription is a client's request.
type subscription struct {
	tenant, person string
	channels       channelSet
	resume         bool
	after          uint64 // the last event that the client has, if it resumes
}

// subscribe adds a client until unsubscribe. replay holds the events that it has missed; resumed reports that there
// are no others.
func (h *hub) subscribe(ctx context.Context, s subscription) (c *client, replay []*event, resumed bool, err error) {
	c = &client{
		tenant: s.tenant, channels: s.channels, person: s.person, ready: make(chan struct{}, 1),
		group: s.tenant + "\x00" + strings.Join(s.channels.texts(), ","),
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.state == draining:
		return nil, nil, false, errDraining
	case h.state == down:
		return nil, nil, false, errDown
	}
	if err := h.full(s.person); err != nil {
		return nil, nil, false, err
	}
	if s.resume {
		if replay, resumed = h.history.after(s.after, h.replay, c.wants); resumed {
			// Another replica may have been ahead of this one: it has seen events that are yet to arrive here.
			c.after = s.after
		}
	}
	c.ctx, c.cancel = context.WithCancel(ctx)
	g := h.groups[c.group]
	if g == nil {
		g = &group{tenant: s.tenant, channels: s.channels}
		h.groups[c.group] = g
	}
	g.members = append(slices.Clip(g.members), c)
	h.persons[s.person]++
	h.clients++
	h.metrics.clients.Set(float64(h.clients))
	return c, replay, resumed, nil
}

// unsubscribe removes a client.
func (h *hub) unsubscribe(c *client) {
	c.cancel()
	h.mu.Lock()
	defer h.mu.Unlock()
	g := h.groups[c.group]
	if len(g.members) == 1 {
		delete(h.groups, c.group)
	} else {
		kept := make([]*client, 0, len(g.members)-1)
		for _, m := range g.members {
			if m != c {
				kept = append(kept, m)
			}
		}
		g.members = kept
	}
	if h.persons[c.person]--; h.persons[c.person] == 0 {
		delete(h.persons, c.person)
	}
	h.clients--
	h.metrics.clients.Set(float64(h.clients))
}

// newest returns the sequence of the last event that this replica has seen.
func (h *hub) newest() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.history.newest
}

// admit admits clients, once the history is complete.
func (h *hub) admit() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.outage++
	if h.state == down {
		h.state = open
	}
}

// beginOutage notes that the broker is away; the number is for endOutage.
func (h *hub) beginOutage() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.outage++
	return h.outage
}

// giveUp ends all clients if the outage still lasts.
func (h *hub) giveUp(outage uint64) {
	h.mu.Lock()
	all := []*client(nil)
	if h.outage == outage {
		all = h.closeLocked(down)
	}
	h.mu.Unlock()
	endClients(all, BusUnavailable)
}

// forget restarts the history after floor: the events between those held and the next are lost, or the stream is
// another one. Connected clients have to resume, to learn of the gap.
func (h *hub) forget(floor uint64) {
	h.mu.Lock()
	all := h.closeLocked(down)
	h.history.reset(floor)
	h.mu.Unlock()
	endClients(all, BusUnavailable)
}

// drain ends all clients for good.
func (h *hub) drain() {
	h.mu.Lock()
	all := h.closeLocked(draining)
	h.mu.Unlock()
	endClients(all, Draining)
}

// closeLocked stops admitting clients and lists the connected ones. Call it with mu held.
func (h *hub) closeLocked(next state) []*client {
	if h.state != draining {
		h.state = next
	}
	var all []*client
	for _, g := range h.groups {
		all = append(all, g.members...)
	}
	return all
}

func endClients(all []*client, reason string) {
	for _, c := range all {
		c.end(reason)
	}
}
