package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mlp-platform/platform/libs/outbox"
)

const (
	brokerTimeout = 5 * time.Second
	prefetch      = 1000
	// abandonedAfter is when the broker removes the consumer of a replica that was killed.
	abandonedAfter = time.Minute
	shortestPause  = 100 * time.Millisecond
	longestPause   = 2 * time.Second
	// leaveTime limits the removal of the consumer at the stop.
	leaveTime = time.Second
)

var errDisconnected = errors.New("the connection to NATS is lost")

// Run reads the platform's events until ctx ends. It waits for a broker that is unavailable; connected clients are
// kept for BusGrace, in which case they miss nothing.
func (s *Stream) Run(ctx context.Context) error {
	if s.js == nil {
		return nil // there is no broker: clients poll
	}
	var patience *time.Timer // runs during an outage
	endOutage := func() {
		if patience != nil {
			patience.Stop()
			patience = nil
		}
	}
	defer endOutage()
	defer s.setUp(false)
	for pause := shortestPause; ctx.Err() == nil; pause = min(2*pause, longestPause) {
		err := s.follow(ctx, func() {
			endOutage()
			pause = shortestPause
			s.hub.admit()
			s.setUp(true)
		})
		if ctx.Err() != nil {
			return nil
		}
		s.setUp(false)
		s.log.WarnContext(ctx, "event stream waits for the broker", slog.Any("err", err))
		if patience == nil {
			outage := s.hub.beginOutage()
			patience = time.AfterFunc(s.cfg.BusGrace, func() { s.hub.giveUp(outage) })
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
	}
	return nil
}

func (s *Stream) setUp(up bool) {
	s.up.Store(up)
	value := 0.0
	if up {
		value = 1
	}
	s.metrics.up.Set(value)
}

// follow reads events with a new consumer until something fails; caughtUp is called when all events that the broker
// held at the start have been read.
func (s *Stream) follow(ctx context.Context, caughtUp func()) error {
	ctx, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	defer s.watchConnection(ctx, lost)()
	if !s.cfg.Conn.IsConnected() {
		return errDisconnected
	}
	if err := outbox.EnsureStream(ctx, s.js, s.cfg.Stream); err != nil {
		return err
	}
	consumer, err := s.makeConsumer(ctx)
	if err != nil {
		return err
	}
	defer s.removeConsumer(ctx, consumer)
	messages, err := consumer.Messages(jetstream.PullMaxMessages(prefetch), jetstream.PullHeartbeat(2*time.Second), jetstream.PullExpiry(10*time.Second),
		jetstream.WithMessagesErrOnMissingHeartbeat(true))
	if err != nil {
		return fmt.Errorf("read the stream: %w", err)
	}
	defer messages.Stop()
	behind := consumer.CachedInfo().NumPending > 0
	if !behind {
		caughtUp()
	}
	for delivered := uint64(1); ; delivered++ {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return errors.Join(context.Cause(ctx), fmt.Errorf("read the stream: %w", err))
		}
		meta, err := msg.Metadata()
		if err != nil {
			return fmt.Errorf("read the stream: %w", err)
		}
		// Messages need no acknowledgement: one that was lost on the way shows in the numbering, and the
		// next consumer begins behind the last that came.
		if meta.Sequence.Consumer != delivered {
			return fmt.Errorf("message %d of the consumer came in place of %d", meta.Sequence.Consumer, delivered)
		}
		s.take(ctx, msg, meta.Sequence.Stream)
		if behind && meta.NumPending == 0 {
			behind = false
			caughtUp()
		}
	}
}

// watchConnection cancels by lost when the connection is gone; the result ends the watch.
func (s *Stream) watchConnection(ctx context.Context, lost context.CancelCauseFunc) (stop func()) {
	changes := s.cfg.Conn.StatusChanged(nats.DISCONNECTED, nats.RECONNECTING, nats.CLOSED)
	done := make(chan struct{})
	go func() { // ends with stop
		defer close(done)
		select {
		case <-changes:
			lost(errDisconnected)
		case <-ctx.Done():
		}
	}()
	return func() {
		s.cfg.Conn.RemoveStatusListener(changes) // closes the channel
		<-done
	}
}

// makeConsumer creates a consumer that begins after the last event read or, at first, with those that fill the
// history.
func (s *Stream) makeConsumer(ctx context.Context) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, brokerTimeout)
	defer cancel()
	stream, err := s.js.Stream(ctx, outbox.StreamName)
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", outbox.StreamName, err)
	}
	info := stream.CachedInfo() // just fetched
	next := s.read + 1
	// A recreated stream numbers from 1 again. If a stream has dropped events that this replica has not read, the
	// clients would miss them without notice.
	if s.streamMade.IsZero() || !info.Created.Equal(s.streamMade) || info.State.LastSeq < s.read || info.State.FirstSeq > next {
		next = max(1, info.State.FirstSeq)
		if size := uint64(s.cfg.History); info.State.LastSeq >= next+size {
			next = info.State.LastSeq - size + 1
		}
		s.hub.forget(next - 1)
		s.read = next - 1
	}
	s.streamMade = info.Created
	subjects := make([]string, len(namespaces))
	for i, ns := range namespaces {
		subjects[i] = "platform.*." + ns + ".*"
	}
	consumer, err := s.js.CreateConsumer(ctx, outbox.StreamName, jetstream.ConsumerConfig{
		Description: "event stream of a dashboard replica", FilterSubjects: subjects,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: next,
		AckPolicy: jetstream.AckNonePolicy, InactiveThreshold: abandonedAfter, MemoryStorage: true, Replicas: 1,
	})
	if err != nil {
		return nil, fmt.Errorf("consumer of stream %s: %w", outbox.StreamName, err)
	}
	return consumer, nil
}

// removeConsumer spares the broker the wait for abandonedAfter.
func (s *Stream) removeConsumer(ctx context.Context, consumer jetstream.Consumer) {
	if !s.cfg.Conn.IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	if err := s.js.DeleteConsumer(ctx, outbox.StreamName, consumer.CachedInfo().Name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		s.log.InfoContext(ctx, "consumer not removed, the broker will", slog.Any("err", err))
	}
}

// take publishes one message to the clients.
func (s *Stream) take(ctx context.Context, msg jetstream.Msg, sequence uint64) {
	s.read = sequence
	e, err := encodeEvent(msg.Subject(), msg.Data(), sequence)
	if errors.Is(err, errNotStreamed) {
		return
	}
	if err != nil {
		s.metrics.unreadable.Inc()
		s.log.WarnContext(ctx, "message is no event", slog.String("subject", msg.Subject()), slog.Uint64("sequence", sequence), slog.Any("err", err))
		return
	}
	s.metrics.events.Inc()
	s.hub.publish(e)
}

// holds reports whether the broker's stream has come to a sequence that this replica has not.
func (s *Stream) holds(ctx context.Context, sequence uint64) bool {
	ctx, cancel := context.WithTimeout(ctx, brokerTimeout)
	defer cancel()
	stream, err := s.js.Stream(ctx, outbox.StreamName)
	return err == nil && sequence <= stream.CachedInfo().State.LastSeq
}
