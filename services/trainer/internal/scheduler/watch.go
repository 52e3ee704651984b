package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Cluster is a batch scheduler.
type Cluster interface {
	// Submit returns the job's id.
	Submit(context.Context, Spec) (string, error)
	// State is Unknown without an error if the scheduler does not know the job.
	State(context.Context, string) (State, error)
	Cancel(context.Context, string) error
	// Find returns the ids of the jobs of that name that wait or run.
	Find(ctx context.Context, name string) ([]string, error)
	// Usage fails while the accounting does not have the job's end, or if it lacks the GPUs that the job requested.
	Usage(ctx context.Context, id string, gpus int) (Usage, error)
}

// ErrLost means that the scheduler has not known the job for lostAfter polls.
var ErrLost = errors.New("the scheduler no longer knows the job")

// lostAfter is how many polls in a row may bring nothing: a controller that restarts needs a few.
const lostAfter = 5

// CancelTimeout limits the cancellation of a job whose training has been stopped.
const CancelTimeout = time.Minute

// Wait polls until the job has ended and returns how. changed is called on each change of its state, Submitted
// first. When ctx ends, the job is cancelled.
func Wait(ctx context.Context, c Cluster, id string, every time.Duration, changed func(State)) (State, error) {
	last, unknown := Submitted, 0
	changed(last)
	for {
		t := time.NewTimer(every)
		select {
		case <-ctx.Done():
			t.Stop()
			return cancelJob(ctx, c, id, changed)
		case <-t.C:
		}
		st, err := c.State(ctx, id)
		if ctx.Err() != nil {
			return cancelJob(ctx, c, id, changed)
		}
		if st == Unknown {
			if unknown++; unknown >= lostAfter {
				changed(Unknown)
				return Unknown, fmt.Errorf("%w %s: %d times in a row: %w", ErrLost, id, unknown, noAnswer(err))
			}
			continue
		}
		unknown = 0
		if st != last {
			last = st
			changed(st)
		}
		if st.Ended() {
			return st, nil
		}
	}
}

func noAnswer(err error) error {
	if err == nil {
		return errors.New("it answers, but has no record")
	}
	return err
}

func cancelJob(ctx context.Context, c Cluster, id string, changed func(State)) (State, error) {
	cause := context.Cause(ctx)
	last, stop := context.WithTimeout(context.WithoutCancel(ctx), CancelTimeout)
	defer stop()
	if err := c.Cancel(last, id); err != nil {
		return Unknown, errors.Join(cause, fmt.Errorf("cancel job %s: %w", id, err))
	}
	changed(Cancelled)
	return Cancelled, cause
}
