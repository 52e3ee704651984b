package controltower

import (
	"context"
	"errors"
	"io"
	"iter"
	"net"
	"strconv"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// StreamOptions selects the events to stream and limits the stream.
type StreamOptions struct {
	// IdleTimeout is how long the stream may be without a frame; it is required. The
	// server writes one at least every 15 seconds, so use 20 or more.
	IdleTimeout time.Duration
	// LastEventID is the event after which to start: newer events come first, so 0
	// is the whole history. Nil starts at the newest event.
	LastEventID   *int64
	Filter        EventFilter
	MaxEvents     int           // end after so many; 0: no limit
	MaxDuration   time.Duration // end after so long; 0 is no bound
	MaxFrameBytes int           // 0 is 1 MiB
	// State, if given, is kept up to date while the stream is ranged over.
	State *StreamState
}

// StreamState is the progress of a stream. Read it from the goroutine that ranges
// over the stream.
type StreamState struct {
	RequestID   string
	LastEventID int64  // of the last event that was yielded; at first the requested one
	EndReason   string // "" until the end
}

// Why a stream ended: the first three by the server, the last two by the limits of
// StreamOptions.
const (
	EndMaxDuration      = "max-duration"
	EndShutdown         = "shutdown"
	EndStoreError       = "store-error"
	EndClientMaxEvents  = "client-max-events"
	EndClientMaxSeconds = "client-max-seconds"
)

// DefaultMaxFrameBytes limits a frame unless StreamOptions does.
const DefaultMaxFrameBytes = 1 << 20

// StreamedEvent is one event. Delivery is at-least-once across connections: drop an
// EventID already seen.
type StreamedEvent struct {
	Sequence  int64
	EventType string
	Envelope  spine.Event
}

// Stream reads the event stream. Each range opens a new connection, and leaving the
// loop closes it. The sequence ends without an error on a marker of the server or a
// limit of o, which o.State then names, and after any error. It never reconnects: to
// continue, stream again with the last event's sequence as LastEventID.
func (c *Client) Stream(ctx context.Context, o StreamOptions) iter.Seq2[StreamedEvent, error] {
	return func(yield func(StreamedEvent, error) bool) {
		s := &readStream{client: c, options: o, state: o.State}
		if s.state == nil {
			s.state = &StreamState{}
		}
		*s.state = StreamState{}
		x, err := s.open(ctx)
		if err != nil {
			yield(StreamedEvent{}, err)
			return
		}
		defer x.close()
		for count := 0; ; count++ {
			if o.MaxEvents > 0 && count == o.MaxEvents {
				s.state.EndReason = EndClientMaxEvents
				return
			}
			event, err := s.next(x)
			if err != nil {
				yield(StreamedEvent{}, err)
				return
			}
			if s.state.EndReason != "" {
				return
			}
			s.state.LastEventID = event.Sequence
			if !yield(event, nil) {
				return
			}
		}
	}
}

type readStream struct {
	client  *Client
	options StreamOptions
	state   *StreamState
	filters query
	frames  frames
	answer  documentReply // the reply to which faults of the stream are attributed
	endsAt  time.Time
	started bool // the retry block came
}

func (s *readStream) open(ctx context.Context) (*exchange, error) {
	o := s.options
	if o.IdleTimeout <= 0 {
		return nil, misuseError("a stream needs an IdleTimeout above 0; take 20 seconds or more for a quiet one")
	}
	if o.MaxEvents < 0 || o.MaxDuration < 0 || o.MaxFrameBytes < 0 {
		return nil, misuseError("the bounds of a stream must not be negative")
	}
	s.frames.max = o.MaxFrameBytes
	if o.MaxFrameBytes == 0 {
		s.frames.max = DefaultMaxFrameBytes
	}
	fields := []field{{"Accept", typeStream}}
	if o.LastEventID != nil {
		if *o.LastEventID < 0 || *o.LastEventID > spine.MaxSequence {
			return nil, misuseError("LastEventID must be from 0, of at most 18 digits")
		}
		s.state.LastEventID = *o.LastEventID
		fields = append(fields, field{"Last-Event-ID", strconv.FormatInt(*o.LastEventID, 10)})
	}
	s.filters = o.Filter.query(nil)
	target, err := s.filters.on("/events/stream")
	if err != nil {
		return nil, err
	}
	x, err := s.client.open(ctx, time.Now().Add(s.client.timeout), "GET", target, nil, fields...)
	if err != nil {
		return nil, err
	}
	if err := s.checkHead(x); err != nil {
		x.close()
		return nil, err
	}
	if o.MaxDuration > 0 {
		s.endsAt = time.Now().Add(o.MaxDuration)
	}
	return x, nil
}

func (s *readStream) checkHead(x *exchange) error {
	name, err := x.mediaType(typeStream, typeJSON, typeVendor)
	if err != nil {
		return err
	}
	if name != typeStream {
		a, err := readAnswer(x)
		if err != nil {
			return err
		}
		return a.broken("the server answered the stream with a document")
	}
	if s.state.RequestID, err = x.requestID(); err != nil {
		return err
	}
	s.answer.meta.RequestID = s.state.RequestID
	if x.StatusCode != 200 {
		return s.answer.broken("the stream has status %d and is no error envelope", x.StatusCode)
	}
	if x.ContentLength >= 0 || len(x.TransferEncoding) > 0 {
		return s.answer.broken("the stream states a length or a transfer coding")
	}
	return nil
}

// next reads up to the next event, or to the end, which sets state.EndReason.
func (s *readStream) next(x *exchange) (StreamedEvent, error) {
	for {
		text, ok, err := s.block(x)
		if err != nil {
			return StreamedEvent{}, err
		}
		if !ok {
			s.state.EndReason = EndClientMaxSeconds
			return StreamedEvent{}, nil
		}
		b, err := parseBlock(text, !s.started)
		if err != nil {
			return StreamedEvent{}, s.answer.broken("%v", err)
		}
		s.started = true
		switch {
		case b.end != "":
			if err := s.expectEnd(x); err != nil {
				return StreamedEvent{}, err
			}
			s.state.EndReason = b.end
			return StreamedEvent{}, nil
		case b.event != nil:
			return s.event(b.event)
		}
	}
}

func (s *readStream) event(f *eventFields) (StreamedEvent, error) {
	value, err := canon.Parse([]byte(f.data), canon.ObjectRoot())
	if err != nil {
		return StreamedEvent{}, s.answer.broken("the data of an event is no acceptable JSON: %v", err)
	}
	o, _ := value.(*canon.Object)
	sequence, _ := o.Get("sequence")
	kind, _ := o.Get("event_type")
	if sequence != canon.Value(canon.NewInt(f.id)) || kind != canon.Value(f.event) {
		return StreamedEvent{}, s.answer.broken("the id or event field of an event is not that of its envelope")
	}
	e, err := s.answer.event(o, s.filters, s.state.LastEventID)
	if err != nil {
		return StreamedEvent{}, err
	}
	return StreamedEvent{Sequence: e.Sequence, EventType: e.EventType, Envelope: e}, nil
}

// block reads the next block; false means that MaxDuration has passed. The idle
// clock runs only while this waits: a slow caller is not mistaken for a silent
// server.
func (s *readStream) block(x *exchange) (string, bool, error) {
	idleAt := time.Now().Add(s.options.IdleTimeout)
	for {
		if !s.endsAt.IsZero() && !time.Now().Before(s.endsAt) {
			return "", false, nil
		}
		text, ok, err := s.frames.next()
		if err != nil {
			return "", false, s.answer.broken("%v", err)
		}
		if ok {
			return text, true, nil
		}
		deadline := idleAt
		if !s.endsAt.IsZero() && s.endsAt.Before(idleAt) {
			deadline = s.endsAt
		}
		if err := s.receive(x, deadline); err != nil {
			timeout, _ := errors.AsType[net.Error](err)
			switch {
			case errors.Is(err, io.EOF):
				return "", false, &TransportError{Detail: "the stream ended without its end marker"}
			case context.Cause(x.ctx) != nil || timeout == nil || !timeout.Timeout():
				return "", false, x.broke("the stream broke", err)
			case deadline.Equal(s.endsAt):
				return "", false, nil
			}
			return "", false, &TransportError{Detail: "the stream was silent for " + s.options.IdleTimeout.String()}
		}
	}
}

// receive adds the next bytes to the frames; an error means that none came.
func (s *readStream) receive(x *exchange, deadline time.Time) error {
	if err := x.conn.SetReadDeadline(deadline); err != nil {
		return err
	}
	var chunk [4096]byte
	n, err := x.Body.Read(chunk[:])
	s.frames.push(chunk[:n])
	if n > 0 {
		return nil
	}
	return err
}

// expectEnd reads on after the end marker, where nothing may follow. How the
// connection then closes does not matter.
func (s *readStream) expectEnd(x *exchange) error {
	if s.frames.empty() {
		_ = s.receive(x, time.Now().Add(min(s.options.IdleTimeout, s.client.timeout)))
	}
	if !s.frames.empty() {
		return s.answer.broken("the stream continues after its end marker")
	}
	return nil
}
