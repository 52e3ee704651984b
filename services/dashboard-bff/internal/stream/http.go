package stream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/sse"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
)

const (
	// byeTimeout limits the last writes of a stream that has to end.
	byeTimeout = 2 * time.Second
	// pollInterval is how often clients without a stream look at the views.
	pollInterval = 10 * time.Second
)

// Serve answers GET /api/v1/stream with events until the client leaves, its session ends or the service
// drains. HEAD gets the header alone: it must neither wait for events nor take a client's place.
func (s *Stream) Serve(c echo.Context) error {
	channels, err := readQuery(c)
	if err != nil {
		return err
	}
	who := caller.From(c)
	if who.Tenant == "" {
		return fault.Unauthenticated.New("The event stream needs a session; sign in first.")
	}
	if c.Request().Method == http.MethodHead {
		c.Response().Header().Set(echo.HeaderContentType, sse.ContentType)
		return c.NoContent(http.StatusOK)
	}
	sub := subscription{tenant: who.Tenant, person: personKey(who), channels: channels}
	lastID := c.Request().Header.Get("Last-Event-ID")
	if sub.after, err = strconv.ParseUint(lastID, 10, 64); err == nil {
		// An id beyond the newest event of this replica comes from one that is ahead, or from a stream that no longer
		// exists.
		sub.resume = sub.after <= s.hub.newest() || s.js != nil && s.holds(c.Request().Context(), sub.after)
	}
	client, replay, resumed, err := s.hub.subscribe(c.Request().Context(), sub)
	if err != nil {
		s.metrics.refused.Inc()
		return s.refusal(err)
	}
	defer s.hub.unsubscribe(client)
	ctx, reason := s.cfg.Watch(client.ctx, who)
	w, err := sse.NewWriter(c.Response(), s.cfg.WriteTimeout)
	if err != nil {
		return err
	}
	d := &delivery{stream: s, client: client, w: w, ctx: ctx, sessionEnd: reason}
	hastened := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(hastened)
		w.Hasten(byeTimeout)
		d.over.Store(true)
		client.wake()
	})
	defer func() {
		if !stop() {
			<-hastened // the response is used for another request once this one returns
		}
	}()
	err = d.run(hello{Channels: channels.texts(), Resumed: resumed, Gap: lastID != "" && !resumed}, replay)
	s.metrics.ended.WithLabelValues(d.outcome(err)).Inc()
	return nil // the response has begun: its client is gone, or has its bye
}

// readQuery reads the channels; the error is a 422.
func readQuery(c echo.Context) (channelSet, error) {
	query := c.QueryParams()
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if name != "channels" {
			return nil, invalidQuery(cut(name), "unknown parameter; this route has channels")
		}
		if len(query[name]) > 1 {
			return nil, invalidQuery(name, "is given more than once; separate channels by commas")
		}
	}
	return parseChannels(query.Get("channels"))
}

// personKey identifies a person for the stream limit. A new sign-in is the same person.
func personKey(who caller.Caller) string {
	return who.Tenant + "\x00" + who.Subject
}

func (s *Stream) refusal(err error) error {
	switch {
	case errors.Is(err, errDraining):
		return problem.Draining.New("The service is shutting down; connect again, you will reach another or the next process.").After(time.Second)
	case errors.Is(err, errFull):
		return fault.StreamUnavailable.New(fmt.Sprintf(
			"This replica serves as many event streams as it takes (%d, of which some are kept for people who have few); poll the views and connect again later.", s.cfg.MaxClients)).After(pollInterval)
	case errors.Is(err, errPersonFull):
		return fault.StreamUnavailable.New(fmt.Sprintf(
			"You have %d event streams already, over all your sessions; close some of them.", s.hub.maxPerPerson())).After(pollInterval)
	}
	return fault.StreamUnavailable.New("The events of the platform cannot be read now; poll the views and connect again later.").After(pollInterval).WithCause(err)
}

// delivery writes one client's events. Whatever happens wakes its goroutine by the one channel of the
// client: to wait for several would cost more than all else that is done here for an event.
type delivery struct {
	stream     *Stream
	client     *client
	w          *sse.Writer
	ctx        context.Context // ends with request, session or hub
	sessionEnd func() string
	over       atomic.Bool // ctx has ended
	idle       atomic.Bool // a keep-alive is due, unless something was written since
	wrote      time.Time
	said       string // the reason of the bye that was sent
}

// writeBytes is the capacity of one write, if no event is larger. A client that does not read holds it too.
const writeBytes = 16 << 10

// buffers hold the events of one write; a client needs one only while it is written to.
var buffers = sync.Pool{New: func() any {
	b := make([]byte, 0, writeBytes)
	return &b
}}

// run writes frames until the stream ends; the error is that of a write.
func (d *delivery) run(first hello, replay []*event) error {
	if err := d.w.Send(first.frame()); err != nil {
		return err
	}
	if len(replay) > 0 {
		if err := d.send(replay, 0); err != nil {
			return err
		}
	}
	d.wrote = time.Now()
	timer := time.AfterFunc(d.stream.cfg.KeepAlive, func() {
		d.idle.Store(true)
		d.client.wake()
	})
	defer timer.Stop()
	var batch []*event
	for {
		events, dropped, ended := d.client.take(batch)
		batch = events
		if d.over.Load() {
			// When a session ends, what is queued must not be sent on its connection; when the hub ends the client, it
			// is.
			if why := d.endOfSession(); why != "" {
				return d.sayBye(why)
			}
			if len(events) == 0 && ended == "" { // the client left
				return nil
			}
		}
		switch {
		case len(events) > 0:
			if err := d.send(events, dropped); err != nil {
				return err
			}
			clear(batch) // the events may be large
			d.wrote = time.Now()
		case ended != "":
			return d.sayBye(ended)
		case d.idle.CompareAndSwap(true, false):
			if err := d.keepAlive(timer); err != nil {
				return err
			}
		default:
			<-d.client.ready
		}
	}
}

// keepAlive writes a comment if nothing else was written for long enough, and sets the timer again. The
// timer is not set by each write, which costs more than to look at the clock here.
func (d *delivery) keepAlive(timer *time.Timer) error {
	rest := d.stream.cfg.KeepAlive - time.Since(d.wrote)
	if rest <= 0 {
		if err := d.w.Send(keepAliveFrame); err != nil {
			return err
		}
		d.wrote, rest = time.Now(), d.stream.cfg.KeepAlive
	}
	timer.Reset(rest)
	return nil
}

// endOfSession returns why the session has ended; it is empty if client or hub have.
func (d *delivery) endOfSession() string {
	if d.client.ctx.Err() != nil {
		return ""
	}
	return d.sessionEnd()
}

func (d *delivery) sayBye(reason string) error {
	if err := d.w.Send(byeFrame(reason)); err != nil {
		return err
	}
	d.said = reason
	return nil
}

// send writes events, as many at once as writeBytes allows.
func (d *delivery) send(events []*event, dropped uint64) error {
	if len(events) == 1 && dropped == 0 {
		return d.count(d.w.Send(events[0].frame), 1)
	}
	buffer := buffers.Get().(*[]byte)
	frames, held := (*buffer)[:0], 0
	for _, e := range events {
		if held > 0 && len(frames)+len(e.frame)+maxDigits > writeBytes {
			if err := d.count(d.w.Send(frames), held); err != nil {
				return err
			}
			frames, held = frames[:0], 0
		}
		frames, held = e.appendFrame(frames, dropped), held+1
	}
	err := d.count(d.w.Send(frames), held)
	if cap(frames) == writeBytes { // the buffer of a large event is not kept
		*buffer = frames
		buffers.Put(buffer)
	}
	return err
}

// count adds events to the metric once they are written.
func (d *delivery) count(err error, events int) error {
	if err == nil {
		d.stream.metrics.deliveries.Add(float64(events))
	}
	return err
}

// outcome names how the stream ended, for the metric.
func (d *delivery) outcome(err error) string {
	switch {
	case d.said != "":
		return d.said
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "stuck"
	}
	return "left"
}
