package coord

import (
	"context"
	"fmt"
	"time"
)

// Breaker states.
const (
	Closed   = "closed"    // calls go out
	Open     = "open"      // none goes out until the reset time has passed
	HalfOpen = "half_open" // one call in the fleet goes out on trial
)

// BreakerState is a breaker's state, shared by all replicas.
type BreakerState struct {
	State      string // Closed, Open or HalfOpen
	Failures   int    // in a row
	RetryAfter time.Duration
}

// BreakerDecision answers BreakerAllow.
type BreakerDecision struct {
	OK         bool
	Trial      bool          // this call decides whether the breaker closes
	RetryAfter time.Duration // when not OK
}

// BreakerReport is the outcome of a call.
type BreakerReport struct {
	Failed  bool
	Trial   bool          // from the decision
	FailMax int           // failures in a row that open the breaker
	Reset   time.Duration // how long it then stays open
}

// OpenError means that the breaker is open.
type OpenError struct {
	Name       string
	RetryAfter time.Duration
}

func (e *OpenError) Error() string {
	return fmt.Sprintf("%s failed repeatedly and is not called for now; try again in %v", e.Name, e.RetryAfter.Round(time.Second))
}

// Breaker stops the calls of all replicas to a neighbour that fails.
type Breaker struct {
	c       Coordinator
	name    string
	failMax int
	reset   time.Duration
}

// NewBreaker opens after failMax failures in a row, on any replicas, and allows one trial call in the fleet after
// reset.
func NewBreaker(c Coordinator, name string, failMax int, reset time.Duration) *Breaker {
	return &Breaker{c: c, name: name, failMax: max(1, failMax), reset: reset}
}

// Permit allows one call. The caller must report its outcome; a trial that is never reported expires after the reset
// time.
type Permit struct {
	b     *Breaker
	trial bool
}

// Trial reports whether the permit is an open breaker's trial call: its outcome must be reported.
func (p Permit) Trial() bool { return p.trial }

// Allow returns a permit, an *OpenError, or ErrUnavailable if the coordinator does not answer.
func (b *Breaker) Allow(ctx context.Context) (Permit, error) {
	d, err := b.c.BreakerAllow(ctx, b.name, b.reset)
	switch {
	case err != nil:
		return Permit{}, err
	case !d.OK:
		return Permit{}, &OpenError{Name: b.name, RetryAfter: d.RetryAfter}
	}
	return Permit{b: b, trial: d.Trial}, nil
}

// Success ends a row of failures and closes the breaker after a trial.
func (p Permit) Success(ctx context.Context) error {
	_, err := p.report(ctx, false)
	return err
}

// Failure counts a failure; opened reports whether it opened the breaker.
func (p Permit) Failure(ctx context.Context) (opened bool, err error) { return p.report(ctx, true) }

func (p Permit) report(ctx context.Context, failed bool) (bool, error) {
	if p.b == nil { // without a coordinator there is nothing to report
		return false, nil
	}
	return p.b.c.BreakerReport(ctx, p.b.name, BreakerReport{Failed: failed, Trial: p.trial, FailMax: p.b.failMax, Reset: p.b.reset})
}

// State reads the breaker.
func (b *Breaker) State(ctx context.Context) (BreakerState, error) {
	return b.c.BreakerState(ctx, b.name, b.reset)
}
