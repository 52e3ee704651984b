package health

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/mlp-platform/platform/libs/service"
)

const (
	// probeTimeout of each probe, keepRound of the answers to all of them.
	probeTimeout = 2 * time.Second
	keepRound    = 5 * time.Second
	// drained is how much of an answer is read so that its connection can be used again.
	drained = 64 << 10
)

// newProbeClient follows no redirects: a service that sends its probe elsewhere has not said that it is well.
func newProbeClient() *http.Client {
	c := service.HTTPClient(probeTimeout)
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c
}

// errNoAnswer replaces whatever kept a service from answering; its text may be shown to strangers, the cause may not.
var errNoAnswer = errors.New("no answer")

// Probe asks one address how it is: the HTTP status it answers, or an error if it does not.
func Probe(ctx context.Context, client *http.Client, address string) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	_, _ = io.CopyN(io.Discard, resp.Body, drained) // the status is the answer
	_ = resp.Body.Close()
	return resp.StatusCode, nil
}

// Round is a set of probes whose answers are shared by all callers within [keepRound]. One round runs at a time. It is
// safe for concurrent use.
type Round[T any] struct {
	// Measure makes the probes. It ends within its context.
	Measure func(ctx context.Context) T

	mu   sync.Mutex // guards those below
	last T
	at   time.Time
	done chan struct{} // of the round that runs; nil without one
}

// Read returns the newest answer, at most [keepRound] old, and when it was made. ok is false if ctx ended first.
func (r *Round[T]) Read(ctx context.Context) (answer T, at time.Time, ok bool) {
	for {
		r.mu.Lock()
		if !r.at.IsZero() && time.Since(r.at) < keepRound {
			answer, at = r.last, r.at
			r.mu.Unlock()
			return answer, at, true
		}
		if r.done == nil {
			r.done = make(chan struct{})
			go r.run(context.WithoutCancel(ctx)) // the caller that began it may leave; others wait for it
		}
		done := r.done
		r.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			return answer, at, false
		}
	}
}

func (r *Round[T]) run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout+time.Second)
	defer cancel()
	answer := r.Measure(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last, r.at = answer, time.Now()
	close(r.done)
	r.done = nil
}
