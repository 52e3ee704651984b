package outbox

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"
)

// rewind restarts a consumer at the first event without an answer, when another
// process has left some behind: the broker would hold those back for ackWait and
// send newer ones before. Events answered after it come again, and the inbox knows
// them.
func (c *consumer) rewind(ctx context.Context, js jetstream.JetStream, durable *jetstream.ConsumerConfig) error {
	old, err := js.Consumer(ctx, StreamName, c.cfg.Name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	info := old.CachedInfo() // requested just above
	durable.DeliverPolicy, durable.OptStartSeq = info.Config.DeliverPolicy, info.Config.OptStartSeq
	if info.NumAckPending == 0 {
		return nil
	}
	c.rewound = max(c.rewound, info.Delivered.Stream)
	// Should this process end in between, the next one begins with the stream.
	if err := js.DeleteConsumer(ctx, StreamName, c.cfg.Name); err != nil {
		return err
	}
	durable.DeliverPolicy, durable.OptStartSeq = jetstream.DeliverByStartSequencePolicy, info.AckFloor.Stream+1
	return nil
}

// seenBefore reports whether a handler may have had the event already.
func (c *consumer) seenBefore(m *jetstream.MsgMetadata) bool {
	return m.NumDelivered > 1 || m.Sequence.Stream <= c.rewound
}
