package app

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/loopback/httpd"
	"github.com/mlp-platform/platform/services/evidence-api/internal/admission"
	"github.com/mlp-platform/platform/services/evidence-api/internal/catalogue"
	"github.com/mlp-platform/platform/services/evidence-api/internal/query"
	"github.com/mlp-platform/platform/services/evidence-api/internal/stream"
)

const lastEventID = "Last-Event-ID"

// stream answers with the event stream. All that can be wrong shows before its first
// byte; what goes wrong later, its end marker tells.
func (x *exchange) stream(values query.Values) {
	filter := eventFilter(values)
	if err := filter.Check(); err != nil {
		x.fail(asFault(err))
		return
	}
	after, f := parsePosition(x.r.Header.Values(lastEventID))
	if f != nil {
		x.fail(f)
		return
	}
	ctx, cancel := context.WithTimeout(x.app.Lifetime, x.app.Settings.RequestTimeout)
	session, err := x.app.Streams.Open(ctx, after, filter)
	cancel()
	if err != nil {
		var beyond *stream.BeyondError
		if errors.As(err, &beyond) {
			x.fail(catalogue.New(catalogue.InvalidLastEventID, "latest_sequence", beyond.Latest))
			return
		}
		x.fail(asFault(err))
		return
	}
	if refusal := x.slot.ToStream(); refusal != admission.None {
		x.fail(refusalFault(refusal))
		return
	}
	h := append(x.head(),
		httpd.Field{Name: "Content-Type", Value: "text/event-stream; charset=utf-8"},
		httpd.Field{Name: "X-Accel-Buffering", Value: "no"})
	x.answered, x.status = true, 200
	x.app.counters.Answered(200, time.Since(x.began))
	out, err := x.w.Stream(200, h, max(x.app.Settings.RequestTimeout, x.app.Settings.Heartbeat+5*time.Second))
	if err != nil { // the client left
		return
	}
	peer := &counted{Stream: out}
	session.Run(peer)
	x.sent = peer.sent
}

// counted counts the bytes of a stream for the access log.
type counted struct {
	*httpd.Stream
	sent int64
}

// Write implements [stream.Peer].
func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Stream.Write(p)
	c.sent += int64(n)
	return n, err
}

// parsePosition reads after which event a stream goes on; nil is the end of the log.
func parsePosition(values []string) (*int64, *catalogue.Fault) {
	if len(values) == 0 {
		return nil, nil
	}
	n, ok := parseDigits(strings.Trim(values[0], " \t"), 18)
	if !ok || len(values) > 1 {
		return nil, catalogue.New(catalogue.InvalidLastEventID)
	}
	return &n, nil
}
