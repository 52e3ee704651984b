package cli

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// graceTransport lets a mutating request, which carries an idempotency key, complete for a while after Ctrl-C. If cut
// off at once, it might take effect unnoticed; the command, still waiting for the answer, can report what continues.
type graceTransport struct {
	next  http.RoundTripper
	grace time.Duration // from the interrupt to the end of the request
}

// RoundTrip implements http.RoundTripper.
func (g graceTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if req.Header.Get("Idempotency-Key") == "" || ctx.Err() != nil {
		return g.next.RoundTrip(req)
	}
	longer, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if !errors.Is(ctx.Err(), context.Canceled) {
			cut(ctx.Err()) // the request's own deadline
			return
		}
		timer := time.AfterFunc(g.grace, func() { cut(context.Cause(ctx)) })
		context.AfterFunc(longer, func() { timer.Stop() })
	})
	end := func() { stop(); cut(nil) }
	resp, err := g.next.RoundTrip(req.WithContext(longer))
	if err != nil {
		if cause := context.Cause(longer); cause != nil {
			err = cause
		}
		end()
		return nil, err
	}
	resp.Body = endingBody{resp.Body, end}
	return resp, nil
}

// endingBody ends what belongs to the request once its body is closed.
type endingBody struct {
	io.ReadCloser
	end func()
}

func (b endingBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// CloseIdleConnections serves http.Client.CloseIdleConnections.
func (g graceTransport) CloseIdleConnections() {
	if c, ok := g.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
