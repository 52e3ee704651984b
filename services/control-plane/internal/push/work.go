package push

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/dispatch"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

const (
	// workLease is how long a process owns the work of a push. It exceeds workBudget
	// plus the one dispatch that may start just before its end.
	workLease = 60 * time.Second
	// workBudget keeps a push of many models from blocking the forge's request:
	// forges give up after 10 s. The leader continues with the rest.
	workBudget = 8 * time.Second
	// settleTimeout limits recording the result, even during shutdown.
	settleTimeout = 5 * time.Second
	// giveUpAfter is how long a dispatch is retried while the platform is busy.
	giveUpAfter = 15 * time.Minute
	// resumeEvery is the interval at which the leader looks for unfinished work.
	resumeEvery = 5 * time.Second
	// keepDeliveries is how long a repeated delivery is recognised.
	keepDeliveries = 30 * 24 * time.Hour
	sweepEvery     = time.Hour
)

// Run finishes the work that other processes left unfinished and deletes old deliveries,
// until ctx ends. One replica runs it, under a lease.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(resumeEvery)
	defer tick.Stop()
	var swept time.Time
	for {
		err := s.resume(ctx)
		if now := s.Now(); now.Sub(swept) >= sweepEvery {
			_, sweep := s.Store.DeleteOldDeliveries(ctx, now.Add(-keepDeliveries))
			if sweep == nil && s.Keep > 0 {
				_, sweep = s.Store.DeleteOldPushes(ctx, now.Add(-s.Keep))
			}
			if err = errors.Join(err, sweep); sweep == nil {
				swept = now
			}
		}
		if err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "work of pushes not resumed", slog.Any("err", err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *Service) resume(ctx context.Context) error {
	begin := s.Now() // work postponed from here on waits for the next round
	for ctx.Err() == nil {
		// One at a time: the lease lasts for the work of one.
		until := s.Now().Add(workLease)
		row, err := s.Store.ClaimPushWork(ctx, store.ClaimPushWorkParams{Now: &begin, Until: &until})
		switch {
		case store.None(err):
			return nil
		case err != nil:
			return err
		}
		s.work(ctx, row)
	}
	return nil
}

// work makes the external calls of a recorded push. It never fails: permanent errors are
// in the ledger, and what a retry may cure remains to be done.
func (s *Service) work(ctx context.Context, row store.Push) (dispatched []string, triggered bool) {
	piped := make(chan bool, 1)
	go func() { piped <- row.TriggerCi && s.Pipeline != nil && s.trigger(ctx, row) }()
	again := false
	if row.Dispatch {
		dispatched, again = s.dispatch(ctx, row)
	}
	triggered = <-piped
	var until *time.Time
	if again {
		now := s.Now()
		until = &now
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if err := s.Store.KeepPushWork(ctx, store.KeepPushWorkParams{ID: row.ID, Dispatch: again, WorkUntil: until}); err != nil {
		s.Log.WarnContext(ctx, "work of a push not marked as done; it will be repeated", slog.Int64("push", row.ID), slog.Any("err", err))
	}
	return dispatched, triggered
}

// dispatch starts the training of each model that this push touched and no later one
// did; again means that some are left. The failure of one model does not stop the others.
func (s *Service) dispatch(ctx context.Context, row store.Push) (done []string, again bool) {
	log := s.Log.With(slog.Int64("push", row.ID))
	begin := time.Now()
	newer, err := s.Store.TouchedAfter(ctx, store.TouchedAfterParams{ID: row.ID, Models: row.Touched})
	if err != nil {
		log.WarnContext(ctx, "later pushes not readable; training is dispatched later", slog.Any("err", err))
		return nil, true
	}
	trained, err := s.Store.TrainedFrom(ctx, store.TrainedFromParams{CommitSha: &row.CommitSha, Models: row.Touched})
	if err != nil {
		log.WarnContext(ctx, "trained models not readable; training is dispatched later", slog.Any("err", err))
		return nil, true
	}
	for _, model := range row.Touched {
		if slices.Contains(newer, model) || slices.Contains(trained, model) {
			continue
		}
		if time.Since(begin) > workBudget {
			return done, true
		}
		err := s.start(ctx, row, model)
		switch {
		case err == nil:
			done = append(done, model)
		case isBusy(err) && s.Now().Sub(row.ReceivedAt) < giveUpAfter:
			log.InfoContext(ctx, "training is dispatched later", slog.String("model", model), slog.Any("err", err))
			again = true
		default:
			log.WarnContext(ctx, "training not dispatched", slog.String("model", model), slog.Any("err", err))
			s.failed(ctx, row, model, err)
		}
	}
	return done, again
}

// start dispatches one model on its default data set. The key limits all attempts to one
// run.
func (s *Service) start(ctx context.Context, row store.Push, model string) error {
	m, err := s.Registry.Require(model)
	if err != nil {
		return err
	}
	d, err := s.Registry.RequireDataset(m, "")
	if err != nil {
		return err
	}
	_, err = s.Retrain.Dispatch(ctx, auth.Principal{Name: system.Name, Tenant: m.Owner()}, fmt.Sprintf("modelrepo:%s:%s:%s", row.CommitSha, model, d.Name),
		dispatch.Request{Model: model, Dataset: d.Name, CommitSHA: row.CommitSha, Origin: "modelrepo"})
	return err
}

// isBusy reports whether the same dispatch may succeed soon: the orchestrator was not called.
func isBusy(err error) bool {
	kind := problem.From(err).Kind
	switch kind.Code {
	case fault.RetrainInFlight.Code, fault.CommandInProgress.Code:
		return true
	}
	return kind.Status == http.StatusTooManyRequests || kind.Status == http.StatusServiceUnavailable
}

func (s *Service) failed(ctx context.Context, row store.Push, model string, cause error) {
	p := problem.From(cause)
	s.tell(ctx, row, "modelrepo.retrain", event.Model(model), event.Failed, map[string]any{"code": p.Kind.Code, "reason": p.Detail})
}

// trigger starts the CI pipeline. It is not retried: the pipeline also reacts to pushes
// at its own forge, and a person can start it.
func (s *Service) trigger(ctx context.Context, row store.Push) bool {
	details := map[string]any{"project": s.Pipeline.Project}
	id, err := s.Pipeline.Trigger(ctx, row.Branch, row.CommitSha)
	if err != nil {
		s.Log.WarnContext(ctx, "CI pipeline not triggered", slog.Int64("push", row.ID), slog.Any("err", err))
		details["reason"] = err.Error()
		s.tell(ctx, row, "modelrepo.ci_triggered", "modelrepo:"+row.Branch, event.Failed, details)
		return false
	}
	details["pipeline_id"] = id
	s.tell(ctx, row, "modelrepo.ci_triggered", "modelrepo:"+row.Branch, event.OK, details)
	return true
}

// tell writes an action on a push to the ledger.
func (s *Service) tell(ctx context.Context, row store.Push, action, target, outcome string, details map[string]any) {
	details["event_id"], details["commit_sha"] = row.ID, row.CommitSha
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if err := s.Store.InTx(ctx, func(tx store.Tx) error {
		return tx.Emit(ctx, event.Audit(system.Tenant, system.Name, action, target, outcome, details))
	}); err != nil {
		s.Log.ErrorContext(ctx, "action on a push not recorded in the ledger", slog.String("action", action), slog.Any("err", err))
	}
}
