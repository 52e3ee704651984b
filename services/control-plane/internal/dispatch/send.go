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
	// queueTimeout is how long a run waits for its turn at a slow orchestrator, besides the budget.
	queueTimeout = time.Minute
)

// Sender dispatches runs. It is safe for concurrent use.
type Sender struct {
	client  *orchestrator.Client
	target  *Target
	breaker *coord.Breaker // shared by all replicas
	pace    *pace
	opened  func()
	log     *slog.Logger
}

// NewSender dispatches to target; opened is called when a failure here opens the breaker.
func NewSender(client *orchestrator.Client, target *Target, breaker *coord.Breaker, opened func(), log *slog.Logger) *Sender {
	return &Sender{client: client, target: target, breaker: breaker, pace: newPace(), opened: opened, log: log}
}

// Target returns the deployment that runs are sent to.
func (s *Sender) Target() *Target { return s.target }

// Accepted is a run that the orchestrator accepted.
type Accepted struct {
	FlowRunID  string
	Parameters map[string]any
}

// Send starts the run with at most three attempts within 12 s, besides what it waits for its turn.
// The same key always returns the same run. It finishes even if ctx is cancelled, since a
// disconnected caller must not leave the outcome open.
func (s *Sender) Send(ctx context.Context, r Request, key string) (Accepted, error) {
	ctx = context.WithoutCancel(ctx)
	var last error
	left := budget
	for attempt := range attempts {
		begin := time.Now()
		if attempt > 0 && !waitJittered(ctx, firstPause<<(attempt-1)) {
			break
		}
		left -= time.Since(begin)
		turn, err := s.awaitTurn(ctx)
		if err != nil {
			return Accepted{}, err
		}
		permit, err := s.breaker.Allow(ctx)
		var open *coord.OpenError
		if errors.As(err, &open) {
			s.pace.leave(turn, true)
			return Accepted{}, fault.OrchestratorUnreachable.New("The orchestrator has not answered several times in a row, so it is left alone for a while; nothing was started.").
				WithCause(last).After(max(open.RetryAfter, time.Second))
		} // without a coordinator the call is worth a try
		begin = time.Now()
		accepted, err := s.try(ctx, min(attemptTimeout, left), r, key)
		left -= time.Since(begin)
		var p *problem.Error
		answered := err == nil || errors.As(err, &p)
		beside := s.pace.leave(turn, answered)
		if answered {
			s.report(ctx, permit, true)
			return accepted, err
		}
		// An overload that our own calls may have caused says nothing about whether it works.
		if !beside || !isOverload(err) {
			s.report(ctx, permit, false)
		}
		last = err
		s.log.WarnContext(ctx, "dispatch attempt failed", slog.Int("attempt", attempt+1), slog.String("model", r.Model), slog.Any("err", err))
		if left <= 0 {
			break
		}
	}
	return Accepted{}, fault.OrchestratorUnreachable.New(fmt.Sprintf("The orchestrator did not answer in %d attempts; nothing is known to have started. Try again: a run that did start is found, not doubled.", attempts)).WithCause(last)
}

// awaitTurn waits until the orchestrator may be called.
func (s *Sender) awaitTurn(ctx context.Context) (*call, error) {
	ctx, cancel := context.WithTimeout(ctx, queueTimeout)
	defer cancel()
	turn, err := s.pace.enter(ctx)
	if err != nil {
		return nil, fault.OrchestratorUnreachable.New(fmt.Sprintf("The orchestrator is so slow that this run did not get its turn within %s; nothing was started.", queueTimeout)).
			WithCause(err).After(time.Second)
	}
	return turn, nil
}

// isOverload reports whether the orchestrator answered that it has too much to do.
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

// waitJittered waits d ± 50 % and reports false if ctx ends first.
func waitJittered(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d/2 + rand.N(d))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
