package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/store"
)

// writeSize limits the bytes of one write. The deadline applies to each write, so a slow
// reader must take this many bytes in that time.
const writeSize = 32 << 10

var errReplaced = errors.New("the event log got shorter: another store took its place")

// BeyondError reports that a stream was to resume after an event that does not exist.
type BeyondError struct{ Latest int64 }

func (e *BeyondError) Error() string {
	return fmt.Sprintf("there is no event yet with that sequence: the newest is %d", e.Latest)
}

// Reason is why a stream ended.
type Reason string

// The reasons. Those of the first group are sent as a marker.
const (
	MaxDuration Reason = "max-duration"
	Shutdown    Reason = "shutdown"
	StoreError  Reason = "store-error"

	Gone Reason = "gone" // the peer left, or a write took too long
)

// Peer is the far end of a stream, an httpd.Stream.
type Peer interface {
	Write(p []byte) (int, error) // fails for good once it took too long
	Gone() <-chan struct{}       // closed when the peer left
}

// Session is a stream before and while it runs.
type Session struct {
	hub    *Hub
	filter store.EventFilter
	newest int64 // of the store when the session was opened
	at     int64 // the newest sequence that was sent or passed over

	past     []store.Event // history that was read and not yet sent
	pastHigh int64         // the value of at afterwards
	buffer   []byte        // of one write
}

// Open reads where the log ends. A nil after starts there, any other after that sequence; beyond the end it is a
// [BeyondError]. No resources are held until Run.
func (h *Hub) Open(ctx context.Context, after *int64, filter store.EventFilter) (*Session, error) {
	newest, err := h.reader.LatestSequence(ctx)
	if err != nil {
		return nil, err
	}
	s := &Session{hub: h, filter: filter, at: newest, newest: newest}
	if after != nil {
		if *after > newest {
			return nil, &BeyondError{Latest: newest}
		}
		s.at = *after
	}
	return s, nil
}

// Run sends the stream until it ends and returns why. It is called once.
func (s *Session) Run(peer Peer) Reason {
	t := s.hub.join(s.newest)
	defer s.hub.leave()
	end := time.NewTimer(s.hub.config.MaxStream)
	defer end.Stop()
	beat := time.NewTimer(s.hub.config.Heartbeat)
	defer beat.Stop()

	if !s.send(peer, beat, []byte("retry: 3000\n\n")) {
		return Gone
	}
	// Each turn writes once at most, so that nothing else is late by more than one
	// write.
	for {
		if reason := s.ended(peer, end.C, t); reason != "" {
			return s.finish(peer, reason)
		}
		if len(s.past) > 0 {
			if !s.sendPast(peer, beat) {
				return Gone
			}
			continue
		}
		frames, high, history, wake := t.view(s.at)
		if history {
			if reason := s.readPast(peer, end.C, t); reason != "" {
				return s.finish(peer, reason)
			}
			continue
		}
		if high > s.at {
			if !s.sendFrames(peer, beat, frames, high) {
				return Gone
			}
			continue
		}
		select {
		case <-wake:
		case <-beat.C:
			if !s.send(peer, beat, append(s.buffer[:0], ": keepalive\n\n"...)) {
				return Gone
			}
		case <-end.C:
			return s.finish(peer, MaxDuration)
		case <-s.hub.life.Done():
			return s.finish(peer, Shutdown)
		case <-t.failed:
			return s.finish(peer, StoreError)
		case <-peer.Gone():
			return Gone
		}
	}
}

// ended reports whether the stream has to end now.
func (s *Session) ended(peer Peer, end <-chan time.Time, t *tailer) Reason {
	select {
	case <-peer.Gone():
		return Gone
	default:
	}
	select {
	case <-s.hub.life.Done():
		return Shutdown
	case <-t.failed:
		return StoreError
	case <-end:
		return MaxDuration
	default:
		return ""
	}
}

// sendFrames writes the frames that pass the filter, at most one write's worth.
func (s *Session) sendFrames(peer Peer, beat *time.Timer, frames []frame, high int64) bool {
	b := s.buffer[:0]
	for i := range frames {
		if matchesFilter(s.filter, &frames[i].Event) {
			b = append(b, frames[i].text...)
		}
		s.at = frames[i].Sequence
		if len(b) >= writeSize {
			return s.send(peer, beat, b)
		}
	}
	s.at = high
	return s.send(peer, beat, b)
}

// sendPast writes history, at most one write's worth.
func (s *Session) sendPast(peer Peer, beat *time.Timer) bool {
	b := s.buffer[:0]
	n := 0
	for n < len(s.past) && len(b) < writeSize {
		b = appendFrame(b, s.past[n])
		n++
	}
	if s.past = s.past[n:]; len(s.past) == 0 {
		s.past, s.at = nil, s.pastHigh
	}
	return s.send(peer, beat, b)
}

// readPast reads the next batch of history from the store.
func (s *Session) readPast(peer Peer, end <-chan time.Time, t *tailer) Reason {
	select {
	case s.hub.history <- struct{}{}:
	case <-end:
		return MaxDuration
	case <-s.hub.life.Done():
		return Shutdown
	case <-t.failed:
		return StoreError
	case <-peer.Gone():
		return Gone
	}
	events, seen, err := s.hub.reader.EventsAfter(s.hub.life, s.at, s.filter, batchSize)
	<-s.hub.history
	if err == nil && seen < s.at {
		err = errReplaced
	}
	if s.hub.life.Err() != nil {
		return Shutdown
	}
	if err != nil {
		s.hub.config.Log.Error("reading the event log for a stream failed", slog.Any("err", err))
		return StoreError
	}
	if s.past, s.pastHigh = events, seen; len(events) == 0 {
		s.at = seen
	}
	return ""
}

// send writes b, which becomes the buffer of the next write.
func (s *Session) send(peer Peer, beat *time.Timer, b []byte) bool {
	s.buffer = b[:0]
	if len(b) == 0 {
		return true
	}
	_, err := peer.Write(b)
	beat.Reset(s.hub.config.Heartbeat)
	return err == nil
}

// finish writes the marker if a peer is left to read it.
func (s *Session) finish(peer Peer, reason Reason) Reason {
	if reason != Gone {
		if _, err := peer.Write([]byte(": stream-ended reason=" + string(reason) + "\n\n")); err != nil {
			return Gone
		}
	}
	return reason
}
