package cluster

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	lookEvery = 20 * time.Second
	lookLimit = 10 * time.Second
)

// watcher notes when the cluster last answered. A refusal is an answer; a failure of the server, or of a proxy in
// front of it, is none.
type watcher struct {
	next http.RoundTripper
	seen *atomic.Int64
}

func (w *watcher) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(r)
	if err == nil && resp.StatusCode < http.StatusInternalServerError {
		w.seen.Store(time.Now().UnixNano())
	}
	return resp, err
}

// WrappedRoundTripper lets client-go find the transport below.
func (w *watcher) WrappedRoundTripper() http.RoundTripper { return w.next }

// Seen is when the cluster last answered any call; zero: not yet.
func (c *Cluster) Seen() time.Time {
	if at := c.seen.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// Run looks every 20 s whether the cluster answers, so that [Cluster.Seen] is young while it does. It ends with ctx.
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
