package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/coord"
	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
)

const (
	attempts       = 3
	attemptTimeout = 5 * time.Second
	budget         = 12 * time.Second
	firstPause     = 250 * time.Millisecond // doubles; each ± 50 %
	reportTimeout  = 2 * time.Second
	// longestQueue limits how long a run waits for its turns at a slow orchestrator, in addition to the budget.
	longestQueue = time.Minute
)

// Sender dispatches runs. It is safe for concurrent use.
type Sender struct {
	client  *orchestrator.Client
	target  *Target
	breaker *coord.Breaker // shared by all replicas
	pace    *pace
	queue   time.Duration // total wait of one run for its turns
	opened  func()
	log     *slog.Logger
}

// NewSender dispatches to target; opened is called when a failure here opens the breaker. lease is how long a process
// owns a dispatch: waits and attempts end before it does.
func NewSender(client *orchestrator.Client, target *Target, breaker *coord.Breaker, lease time.Duration, opened func(), log *slog.Logger) *Sender {
	queue := min(longestQueue, max(lease-budget-reportTimeout, time.Second))
	return &Sender{client: client, target: target, breaker: breaker, pace: newPace(), queue: queue, opened: opened, log: log}
}

// Target returns the deployment that runs are sent to.
func (s *Sender) Target() *Target { return s.target }

// Accepted is a run that the orchestrator accepted.
type Accepted struct {
	FlowRunID  string
	Parameters map[string]any
}

// Send starts the run with at most three attempts within 12 s, plus the wait for its turns. An orchestrator's overload
// response while other calls of this process are in progress does not count as an attempt. The same key always returns
// the same run. It finishes even if ctx is cancelled, since a disconnected caller must not leave the outcome open.
func (s *Sender) Send(ctx context.Context, r Request, key string) (Accepted, error) {
	ctx = context.WithoutCancel(ctx)
	queue, cancel := context.WithTimeout(ctx, s.queue)
	defer cancel()
	var last error
	left := budget
	for attempt, pause := 0, time.Duration(0); attempt < attempts && left > 0; {
		begin := time.Now()
		waitJittered(pause)
		left -= time.Since(begin)
		turn, err := s.pace.enter(queue)
		if err != nil {
			return Accepted{}, unreachable(fmt.Sprintf("The orchestrator is so slow that this run did not get its turn within %s", s.queue), last, err).After(time.Second)
		}
		permit, err := s.allow(ctx)
		var open *coord.OpenError
		if errors.As(err, &open) {
			s.pace.drop(turn)
			return Accepted{}, unreachable("The orchestrator has not answered several times in a row, so calls to it are paused for a while", last, last).After(max(open.RetryAfter, time.Second))
		} // without a coordinator the call is worth trying
		begin = time.Now()
		accepted, err := s.try(ctx, max(min(attemptTimeout, left), time.Millisecond), r, key)
		left -= time.Since(begin)
		var p *problem.Error
		answered := err == nil || errors.As(err, &p)
		beside := s.pace.leave(turn, answered)
		if answered {
			s.report(ctx, permit, true)
			return accepted, err
		}
		// An overload that this process may have caused does not show whether the orchestrator works.
		rush := beside && isOverload(err)
		if !rush || permit.Trial() {
			s.report(ctx, permit, false)
		}
		if !rush {
			attempt++
		}
		pause = firstPause << max(attempt-1, 0)
		last = err
		s.log.WarnContext(ctx, "dispatch attempt failed", slog.Int("attempt", attempt), slog.String("model", r.Model), slog.Any("err", err))
	}
	return Accepted{}, fault.OrchestratorUnreachable.New(fmt.Sprintf("The orchestrator did not answer in %d attempts; %s", attempts, unknownStart)).WithCause(last)
}

// unknownStart is the advice to a caller after an attempt that may have been carried out.
const unknownStart = "no run is known to have started. Try again: a run that did start is found, not started twice."

// unreachable is the fault of a run that was not sent; last is the failure of an earlier attempt, which may have been
// carried out without an answer.
func unreachable(why string, last, cause error) *problem.Error {
	if last != nil {
		return fault.OrchestratorUnreachable.New(why + "; " + unknownStart).WithCause(cause)
	}
	return fault.OrchestratorUnreachable.New(why + "; nothing was started.").WithCause(cause)
}

// allow checks the breaker.
func (s *Sender) allow(ctx context.Context) (coord.Permit, error) {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	return s.breaker.Allow(ctx)
}

// isOverload reports whether the orchestrator answered that it is overloaded.
func isOverload(err error) bool {
	var answer *orchestrator.Error
	return errors.As(err, &answer) && (answer.Status == http.StatusServiceUnavailable || answer.Status == http.StatusTooManyRequests)
}

func (s *Sender) report(ctx context.Context, permit coord.Permit, answered bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	var opened bool
	var err error
	if answered {
		err = permit.Success(ctx)
	} else if opened, err = permit.Failure(ctx); opened {
		s.opened()
		s.log.WarnContext(ctx, "breaker of the orchestrator opened")
	}
	if err != nil {
		s.log.WarnContext(ctx, "breaker not told", slog.Any("err", err))
	}
}

// try makes one attempt. An error that is a problem means that the orchestrator answered.
func (s *Sender) try(ctx context.Context, limit time.Duration, r Request, key string) (Accepted, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for again := true; ; again = false {
		d, err := s.target.resolve(ctx)
		if err != nil {
			return Accepted{}, asRefusal(err)
		}
		params := r.flowParameters(d)
		run, _, err := s.client.CreateFlowRun(ctx, d.ID, orchestrator.CreateFlowRun{
			Parameters: params, IdempotencyKey: key, Tags: []string{"platform", "model:" + r.Model},
		})
		switch {
		case err == nil && run.ID == uuid.Nil:
			return Accepted{}, errors.New("dispatch: the orchestrator's answer names no flow run")
		case err == nil:
			return Accepted{run.ID.String(), params}, nil
		case again && errors.Is(err, orchestrator.ErrNotFound):
			s.target.forget() // registered again under another id
		default:
			return Accepted{}, asRefusal(err)
		}
	}
}

// asRefusal converts the orchestrator's refusal into a problem and returns other errors,
// which a retry may cure, unchanged.
func asRefusal(err error) error {
	var p *problem.Error
	var answer *orchestrator.Error
	if errors.As(err, &p) {
		return err // already a problem of the target
	}
	if errors.As(err, &answer) && !answer.Temporary() {
		return fault.OrchestratorRejected.New(fmt.Sprintf("The orchestrator refused the run with status %d: %s", answer.Status, answer.Detail)).WithCause(err)
	}
	return err
}

// waitJittered waits d ± 50 %.
func waitJittered(d time.Duration) {
	if d > 0 {
		<-time.After(d/2 + rand.N(d))
	}
}
