package stream

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/mlp-platform/platform/services/evidence-api/internal/catalogue"
	"github.com/mlp-platform/platform/services/evidence-api/internal/exchange"
	"github.com/mlp-platform/platform/services/evidence-api/internal/query"
	"github.com/mlp-platform/platform/services/evidence-api/internal/route"
)

const lastEventID = "Last-Event-ID"

// Handler serves the event stream.
type Handler struct {
	Hub            *Hub
	RequestTimeout time.Duration
	Lifetime       context.Context // ends when requests are cut
}

// Serve answers with the event stream. Every error is answered before its first byte;
// what goes wrong later is in its end marker.
func (h *Handler) Serve(x *exchange.Exchange, values query.Values) {
	filter := route.EventFilter(values)
	if err := filter.Check(); err != nil {
		x.Fail(catalogue.FromRead(err))
		return
	}
	after, f := parsePosition(x.Request.Header.Values(lastEventID))
	if f != nil {
		x.Fail(f)
		return
	}
	ctx, cancel := context.WithTimeout(h.Lifetime, h.RequestTimeout)
	session, err := h.Hub.Open(ctx, after, filter)
	cancel()
	if err != nil {
		var beyond *BeyondError
		if errors.As(err, &beyond) {
			x.Fail(catalogue.New(catalogue.InvalidLastEventID, "latest_sequence", beyond.Latest))
			return
		}
		x.Fail(catalogue.FromRead(err))
		return
	}
	if f := x.AdmitStream(); f != nil {
		x.Fail(f)
		return
	}
	x.Stream(max(h.RequestTimeout, h.Hub.config.Heartbeat+5*time.Second), func(body *exchange.Stream) { session.Run(body) })
}

// parsePosition parses the sequence after which a stream resumes; nil is the end of the log.
func parsePosition(values []string) (*int64, *catalogue.Fault) {
	if len(values) == 0 {
		return nil, nil
	}
	n, ok := query.ParseDigits(strings.Trim(values[0], " \t"), 18)
	if !ok || len(values) > 1 {
		return nil, catalogue.New(catalogue.InvalidLastEventID)
	}
	return &n, nil
}
