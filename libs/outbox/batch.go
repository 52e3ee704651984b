package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The headers of JetStream's atomic batches (ADR-50). The client library has no
// call for them yet.
const (
	batchIDHeader     = "Nats-Batch-Id"
	batchSeqHeader    = "Nats-Batch-Sequence"
	batchCommitHeader = "Nats-Batch-Commit"
)

const (
	batchBytes = 4 << 20 // the broker holds a batch in memory while it commits
	batchMin   = 12      // below that, the files of a batch cost the broker more than its syncs save
)

// errNotAtOnce means that the broker has nothing of a batch and that its messages
// are to go singly: one of them is known to it already or cannot be taken, or a
// part of the batch was lost on the way.
var errNotAtOnce = errors.New("the batch was refused")

// batchOf returns how many of the messages are sent in one batch.
func batchOf(letters []letter) int {
	size := 0
	for i, l := range letters {
		if size += l.msg.Size(); size > batchBytes && i > 0 {
			return i
		}
	}
	return len(letters)
}

// sendBatch publishes messages all or none: the broker stores them one after the
// other, syncs its disk once and answers once. An error is an outage or errNotAtOnce.
func (r *Relay) sendBatch(ctx context.Context, nc *nats.Conn, letters []letter) error {
	if len(letters) < batchMin {
		return errNotAtOnce
	}
	id := uuid.NewString()
	defer func() { // for those that go singly now
		for _, l := range letters {
			for _, h := range []string{batchIDHeader, batchSeqHeader, batchCommitHeader} {
				l.msg.Header.Del(h)
			}
		}
	}()
	for i, l := range letters {
		l.msg.Header.Set(batchIDHeader, id)
		l.msg.Header.Set(batchSeqHeader, strconv.Itoa(i+1))
	}
	last := letters[len(letters)-1].msg
	last.Header.Set(batchCommitHeader, "1")
	for _, l := range letters[:len(letters)-1] {
		if err := nc.PublishMsg(l.msg); err != nil {
			return batchFault(err)
		}
	}
	// A batch that is at the broker is waited for also while the relay stops: its
	// messages would be sent again for nothing.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ackTimeout)
	defer cancel()
	answer, err := nc.RequestMsgWithContext(ctx, last)
	if err != nil {
		return batchFault(err)
	}
	var ack struct {
		Error *jetstream.APIError `json:"error"`
		Seq   uint64              `json:"seq"` // of the last one
		Count uint64              `json:"count"`
	}
	if err := json.Unmarshal(answer.Data, &ack); err != nil {
		return &outage{err}
	}
	if ack.Error != nil {
		return batchFault(ack.Error)
	}
	n := uint64(len(letters))
	if ack.Count != n || ack.Seq < n {
		return &outage{errors.New("the broker's answer is for another batch: " + string(answer.Data))}
	}
	// Nothing comes between the messages of a batch.
	first := ack.Seq - n + 1
	for i, l := range letters {
		l.outcome.seq = first + uint64(i)
	}
	if first <= r.highest {
		return &outage{errReplaced}
	}
	r.highest = ack.Seq
	return nil
}

// batchFault separates faults of a batch, or of one of its messages, from faults of
// the broker.
func batchFault(err error) error {
	if blamesRow(err) || errors.Is(err, nats.ErrMaxPayload) { // the headers of the batch make messages longer
		return errNotAtOnce
	}
	return &outage{err}
}
