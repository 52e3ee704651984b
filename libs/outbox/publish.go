package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/trace"

	"github.com/mlp-platform/platform/libs/outbox/internal/store"
	"github.com/mlp-platform/platform/libs/service"
)

// drain publishes all that is due. While a batch is at the broker, the one before
// it is settled and the next one claimed. An error that is an outage comes after
// every row that was not published was given back.
func (r *Relay) drain(ctx context.Context, nc *nats.Conn, js jetstream.JetStream) error {
	if !nc.IsConnected() {
		return &outage{errors.New("no connection to " + serverAddress(nc))}
	}
	rows, err := r.claim(ctx)
	if err != nil {
		return err
	}
	var last []outcome // of the batch before
	for len(rows) > 0 {
		var next []store.ClaimDueRow
		full := len(rows) == batchRows
		beside := make(chan error, 1)
		go func() {
			err := r.settle(ctx, last)
			if err == nil && full && ctx.Err() == nil {
				next, err = r.claim(ctx)
			}
			beside <- err
		}()
		outcomes, broker := r.send(ctx, nc, js, rows)
		err := <-beside
		if err == nil && broker == nil && ctx.Err() == nil {
			last, rows = outcomes, next
			continue
		}
		for _, w := range next {
			outcomes = append(outcomes, outcome{id: w.ID})
		}
		return errors.Join(broker, err, r.settle(ctx, outcomes))
	}
	return r.settle(ctx, last)
}

// errReplaced makes the relay compare again: the connection held, but the stream was deleted and
// recreated.
var errReplaced = errors.New("the stream counts from the beginning again")

// letter is a message and where to write down what became of it.
type letter struct {
	msg     *nats.Msg
	outcome *outcome
	span    trace.Span
}

// send publishes rows and waits for all answers; the error is the outage that
// left rows unpublished.
func (r *Relay) send(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, rows []store.ClaimDueRow) ([]outcome, error) {
	outcomes := make([]outcome, len(rows))
	letters := make([]letter, 0, len(rows))
	for i, w := range rows {
		outcomes[i].id = w.ID
		traceparent, span := startPublish(ctx, w)
		msg, err := r.message(nc, w, traceparent)
		if err != nil {
			outcomes[i].refused = err.Error()
			service.EndSpan(span, err)
			continue
		}
		letters = append(letters, letter{msg, &outcomes[i], span})
	}
	defer func(all []letter) {
		for _, l := range all {
			l.end()
		}
	}(letters)
	if !r.atomic {
		return outcomes, r.sendSingly(ctx, js, letters)
	}
	for len(letters) > 0 && ctx.Err() == nil {
		n := batchOf(letters)
		broker := r.sendBatch(ctx, nc, letters[:n])
		if errors.Is(broker, errNotAtOnce) {
			broker = r.sendSingly(ctx, js, letters[:n])
		}
		if broker != nil {
			return outcomes, broker
		}
		letters = letters[n:]
	}
	return outcomes, nil // those that ctx left over are given back
}

// sendSingly publishes each message separately, so that a refused or known message delays no other.
func (r *Relay) sendSingly(ctx context.Context, js jetstream.JetStream, letters []letter) (broker error) {
	futures := make([]jetstream.PubAckFuture, len(letters))
	for i, l := range letters {
		if broker != nil || ctx.Err() != nil {
			break // the rest is given back
		}
		var err error
		if futures[i], err = js.PublishMsgAsync(l.msg); err != nil {
			broker = &outage{err}
		}
	}
	for i, f := range futures {
		if f == nil {
			continue
		}
		select { // one of them comes within ackTimeout
		case ack := <-f.Ok():
			letters[i].outcome.seq = ack.Sequence
			if !ack.Duplicate && ack.Sequence <= r.highest && broker == nil {
				broker = &outage{errReplaced}
			}
			r.highest = max(r.highest, ack.Sequence)
		case err := <-f.Err():
			if blamesRow(err) {
				letters[i].outcome.refused = err.Error()
			} else if broker == nil {
				broker = &outage{err}
			}
		}
	}
	return broker
}

// blamesRow reports whether the broker refused this very message. JetStream's error codes follow
// HTTP: 4xx is the request's fault. A missing stream is not.
func blamesRow(err error) bool {
	var api *jetstream.APIError
	if !errors.As(err, &api) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return false
	}
	return api.Code >= 400 && api.Code < 500 && api.Code != 404 && api.Code != 408
}

// message encodes a row; an error is the row's own fault.
func (r *Relay) message(nc *nats.Conn, w store.ClaimDueRow, traceparent string) (*nats.Msg, error) {
	kind := w.Namespace + "." + w.Name
	body, err := json.Marshal(Envelope{
		SpecVersion: specVersion, ID: w.ID, Source: "/services/" + r.cfg.Service, Type: typePrefix + kind,
		Subject: w.SubjectID, Time: w.CreatedAt.UTC(), DataContentType: "application/json",
		DataSchema: "urn:platform:event:" + kind + ":1", Tenant: w.Tenant, Actor: w.Actor,
		RequestID: w.RequestID, Traceparent: w.Traceparent, Data: w.Payload,
	})
	if err != nil {
		return nil, fmt.Errorf("the envelope cannot be encoded: %w", err)
	}
	msg := &nats.Msg{
		Subject: Subject(w.Tenant, w.Namespace, w.Name), Data: body,
		Header: nats.Header{jetstream.MsgIDHeader: []string{w.ID.String()}},
	}
	if traceparent != "" {
		msg.Header[headerTraceparent] = []string{traceparent}
	}
	if size, limit := int64(msg.Size()), min(nc.MaxPayload(), MaxMessage); size > limit {
		return nil, fmt.Errorf("the event has %d bytes, more than the %d that the broker takes", size, limit)
	}
	return msg, nil
}

// serverAddress returns the address of the connection's server, without the credentials of its URL.
func serverAddress(nc *nats.Conn) string {
	if a := nc.ConnectedAddr(); a != "" {
		return a
	}
	if s := nc.Servers(); len(s) > 0 {
		return redactURL(s[0])
	}
	return "the broker"
}
