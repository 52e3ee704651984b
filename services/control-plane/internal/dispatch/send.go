package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
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
)

// Sender dispatches runs. It is safe for concurrent use.
type Sender struct {
	client  *orchestrator.Client
	target  *Target
	breaker *coord.Breaker // shared by all replicas
	opened  func()
	log     *slog.Logger
}

// NewSender dispatches to target; opened is called when a failure here opens the breaker.
func NewSender(client *orchestrator.Client, target *Target, breaker *coord.Breaker, opened func(), log *slog.Logger) *Sender {
	return &Sender{client, target, breaker, opened, log}
}

// Target returns the deployment that runs are sent to.
func (s *Sender) Target() *Target { return s.target }

// Accepted is a run that the orchestrator accepted.
type Accepted struct {
	FlowRunID  string
	Parameters map[string]any
}

// Send starts the run with at most three attempts within 12 s. The same key always
// returns the same run. It finishes even if ctx is cancelled, since a disconnected
// caller must not leave the outcome open.
func (s *Sender) Send(ctx context.Context, r Request, key string) (Accepted, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), budget)
	defer cancel()
	var last error
	for attempt := range attempts {
		if attempt > 0 {
			if !waitJittered(ctx, firstPause<<(attempt-1)) {
				break
			}
		}
		permit, err := s.breaker.Allow(ctx)
		var open *coord.OpenError
		if errors.As(err, &open) {
			return Accepted{}, fault.OrchestratorUnreachable.New("The orchestrator has not answered several times in a row, so it is left alone for a while; nothing was started.").
				WithCause(last).After(max(open.RetryAfter, time.Second))
		} // without a coordinator the call is worth a try
		accepted, err := s.try(ctx, r, key)
		var p *problem.Error
		if err == nil || errors.As(err, &p) {
			s.report(ctx, permit, true)
			return accepted, err
		}
		s.report(ctx, permit, false)
		last = err
		s.log.WarnContext(ctx, "dispatch attempt failed", slog.Int("attempt", attempt+1), slog.String("model", r.Model), slog.Any("err", err))
	}
	return Accepted{}, fault.OrchestratorUnreachable.New(fmt.Sprintf("The orchestrator did not answer in %d attempts; nothing is known to have started. Try again: a run that did start is found, not doubled.", attempts)).WithCause(last)
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
func (s *Sender) try(ctx context.Context, r Request, key string) (Accepted, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
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
