package orchestratord

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"
)

// Clients report events over one websocket and receive them over another. This server keeps no events. It reads and
// drops those reported, since a client without the socket loses seconds on every run; it sends only the event that runs
// wait for, their cancellation.

const (
	maxEventStreams = 200
	maxEventMessage = 4 << 20
	eventPing       = 30 * time.Second
	eventHello      = 10 * time.Second // until a client must have sent its greeting
	cancellingEvent = "prefect.flow-run.Cancelling"
)

// event is the JSON form of an event.
type event struct {
	Occurred time.Time         `json:"occurred"`
	Received time.Time         `json:"received"`
	Event    string            `json:"event"`
	Resource map[string]string `json:"resource"`
	Related  []any             `json:"related"`
	Payload  map[string]any    `json:"payload"`
	ID       uuid.UUID         `json:"id"`
}

// eventHub holds the open streams.
type eventHub struct {
	mu          sync.Mutex
	open        int                     // guarded by mu
	subscribers map[chan event]struct{} // guarded by mu
}

// enter counts a stream, unless there are too many.
func (h *eventHub) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open >= maxEventStreams {
		return false
	}
	h.open++
	return true
}

func (h *eventHub) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open--
}

func (h *eventHub) subscribe() (ch chan event, end func()) {
	ch = make(chan event, 100)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subscribers == nil {
		h.subscribers = map[chan event]struct{}{}
	}
	h.subscribers[ch] = struct{}{}
	return ch, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.subscribers, ch)
	}
}

// cancelling sends the event to the open streams. A stream that is a hundred events behind misses it.
func (h *eventHub) cancelling(run uuid.UUID, at time.Time) {
	e := event{at, at, cancellingEvent, map[string]string{"prefect.resource.id": "prefect.flow-run." + run.String()}, []any{}, map[string]any{}, newID()}
	h.mu.Lock()
	defer h.mu.Unlock()
	for ch := range h.subscribers {
		select {
		case ch <- e:
		default:
		}
	}
}

// stream answers for a websocket: it greets the client, then calls serve until that returns, the client is gone or the
// server ends.
func (s *Server) stream(serve func(context.Context, *websocket.Conn)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.events.enter() {
			w.Header().Set("Retry-After", "10")
			writeJSON(w, http.StatusServiceUnavailable, problem{Detail: "Too many event streams are open."})
			return
		}
		defer s.events.leave()
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"prefect"}})
		if err != nil {
			return // the client has its answer
		}
		defer c.CloseNow()
		c.SetReadLimit(maxEventMessage)
		ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
		defer cancel()
		defer context.AfterFunc(s.ending, cancel)()
		// The request's own credential has already been checked; the token in the greeting repeats it.
		if _, ok := hear(ctx, c, "auth"); ok && c.Write(ctx, websocket.MessageText, []byte(`{"type":"auth_success"}`)) == nil {
			serve(ctx, c)
		}
	})
}

// hear reads the message of one kind that a client begins with.
func hear(ctx context.Context, c *websocket.Conn, kind string) (message json.RawMessage, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, eventHello)
	defer cancel()
	_, b, err := c.Read(ctx)
	var m struct {
		Type string `json:"type"`
	}
	if err != nil {
		return nil, false
	}
	if json.Unmarshal(b, &m) != nil || m.Type != kind {
		_ = c.Close(websocket.StatusPolicyViolation, "expected a message of type "+kind) // it may be gone
		return nil, false
	}
	return b, true
}

// dropEvents reads and drops a client's events.
func dropEvents(ctx context.Context, c *websocket.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		for {
			_, r, err := c.Reader(ctx)
			if err == nil {
				_, err = io.Copy(io.Discard, r)
			}
			if err != nil {
				return
			}
		}
	}()
	pingUntil(ctx, c, nil)
}

// tellEvents sends the events that a client subscribed to.
func (s *Server) tellEvents(ctx context.Context, c *websocket.Conn) {
	var in struct {
		Filter struct {
			Event *struct {
				Name []string `json:"name"`
			} `json:"event"`
		} `json:"filter"`
	}
	ch, end := s.events.subscribe() // before the client is answered, so that no event is missed
	defer end()
	b, ok := hear(ctx, c, "filter")
	if !ok || json.Unmarshal(b, &in) != nil {
		return
	}
	ctx = c.CloseRead(ctx)
	if e := in.Filter.Event; e != nil && !slices.Contains(e.Name, cancellingEvent) {
		ch = nil // none of the requested events occur here
	}
	pingUntil(ctx, c, ch)
}

// pingUntil passes events on and finds out whether the client is still there.
func pingUntil(ctx context.Context, c *websocket.Conn, events <-chan event) {
	ticker := time.NewTicker(eventPing)
	defer ticker.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case e := <-events:
			var b []byte
			if b, err = json.Marshal(map[string]any{"type": "event", "event": e}); err == nil {
				err = c.Write(ctx, websocket.MessageText, b)
			}
		case <-ticker.C:
			pong, cancel := context.WithTimeout(ctx, eventHello)
			err = c.Ping(pong)
			cancel()
		}
		if err != nil {
			return
		}
	}
}
