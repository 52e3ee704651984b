package cluster

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	lookEvery = 20 * time.Second
	lookLimit = 10 * time.Second
)

// errClosed ends the calls of a cluster that is closed.
var errClosed = errors.New("the connection to the cluster is closed")

// watcher records when the cluster last answered, and cancels calls when the cluster is closed. A refusal is an answer;
// a failure of the server, or of a proxy in front of it, is not.
type watcher struct {
	next   http.RoundTripper
	seen   *atomic.Int64
	closed context.Context
}

func (w *watcher) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	unbind := context.AfterFunc(w.closed, func() { cancel(errClosed) })
	done := func() {
		unbind()
		cancel(nil)
	}
	resp, err := w.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		if context.Cause(ctx) == errClosed {
			err = errClosed // not the end of the caller's own context
		}
		done()
		return nil, err
	}
	if resp.StatusCode < http.StatusInternalServerError {
		w.seen.Store(time.Now().UnixNano())
	}
	resp.Body = &ending{resp.Body, done}
	return resp, nil
}

// ending is a body that lets go of its request's context when it is closed.
type ending struct {
	io.ReadCloser
	done func()
}

func (e *ending) Close() error {
	defer e.done()
	return e.ReadCloser.Close()
}

// WrappedRoundTripper lets client-go find the transport below.
func (w *watcher) WrappedRoundTripper() http.RoundTripper { return w.next }

// Seen returns the time of the cluster's last answer to any call; zero if there was none.
func (c *Cluster) Seen() time.Time {
	if at := c.seen.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// Run checks every 20 s whether the cluster answers, so that [Cluster.Seen] stays recent while it does. It ends with
// ctx.
func (c *Cluster) Run(ctx context.Context) error {
	every := time.NewTicker(lookEvery)
	defer every.Stop()
	answers := true
	for {
		err := c.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && answers:
			c.log.WarnContext(ctx, "the cluster does not answer", slog.String("cluster", c.name), slog.Any("err", err))
		case err == nil && !answers:
			c.log.InfoContext(ctx, "the cluster answers again", slog.String("cluster", c.name))
		}
		answers = err == nil
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
	}
}

func (c *Cluster) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	return c.typed.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Error()
}
