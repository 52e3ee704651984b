package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/orchestrator"
)

// watch stops the attempts whose runs were cancelled, ended or taken elsewhere. While the orchestrator is unreachable,
// nothing is stopped: the trainings continue.
func (w *Worker) watch(ctx context.Context) error {
	ids := w.busy()
	if len(ids) == 0 {
		return nil
	}
	runs, err := w.client.FilterFlowRuns(ctx, orchestrator.Filter{IDs: ids})
	if err != nil {
		return err
	}
	found := map[uuid.UUID]orchestrator.FlowRun{}
	for _, r := range runs {
		found[r.ID] = r
	}
	for _, id := range ids {
		a := w.attempt(id)
		if a == nil {
			continue
		}
		run, ok := found[id]
		switch {
		case ok && run.StateType == orchestrator.Cancelling:
			a.cancel(errCancelled)
		case !ok || !w.holds(run):
			a.cancel(errTaken)
		}
	}
	return nil
}

// holds reports whether the run is in progress and claimed by this worker.
func (w *Worker) holds(run orchestrator.FlowRun) bool {
	return (run.StateType == orchestrator.Pending || run.StateType == orchestrator.Running) && claimer(run.Message()) == w.name
}

// settle handles the journal's runs without an attempt in progress: ends to report, and runs that were cut off.
func (w *Worker) settle(ctx context.Context) error {
	all, err := w.journal.entries()
	if err != nil {
		return err
	}
	var faults []error
	for _, e := range all {
		if w.attempt(e.ID) != nil {
			continue
		}
		if err := w.tell(ctx, e); err != nil {
			faults = append(faults, fmt.Errorf("run %s: %w", e.ID, err))
		}
	}
	return errors.Join(faults...)
}

// tell sets the run to the state that it ended in, or back to be started again if it was cut off, and removes it from
// the journal. A run that another client has moved on meanwhile is left as it is.
func (w *Worker) tell(ctx context.Context, e entry) error {
	run, err := w.client.ReadFlowRun(ctx, e.ID)
	if errors.Is(err, orchestrator.ErrNotFound) {
		return w.journal.remove(e.ID)
	}
	if err != nil {
		return err
	}
	log := w.log.With(slog.String("flow_run_id", e.ID.String()))
	end := e.End
	switch {
	case run.StateType == orchestrator.Cancelling:
		end = &orchestrator.State{Type: orchestrator.Cancelled, Message: w.mark("cancelled")}
	case !w.holds(run):
		log.WarnContext(ctx, "the run has moved on without this worker", slog.String("state", string(run.StateType)))
		return w.journal.remove(e.ID)
	case end == nil && run.RunCount >= maxAttempts:
		end = &orchestrator.State{Type: orchestrator.Crashed, Message: w.mark(fmt.Sprintf("its worker died %d times during this run", run.RunCount))}
	case end == nil:
		end = retry(w.mark("its worker died; the run starts again"))
	}
	res, err := w.client.SetState(ctx, e.ID, *end, false)
	if err != nil && mayPass(err) {
		return err
	}
	if err != nil || res.Status != orchestrator.Accept {
		if err == nil && res.State != nil && res.State.Type == orchestrator.Cancelling {
			return errors.New("it was cancelled meanwhile") // the next turn reports CANCELLED
		}
		log.WarnContext(ctx, "the orchestrator refused the run's state", slog.String("state", string(end.Type)), slog.String("reason", res.Details.Reason), slog.Any("err", err))
	} else {
		log.InfoContext(ctx, "the orchestrator has the run's state", slog.String("state", string(end.Type)))
	}
	return w.journal.remove(e.ID)
}

// crashLost ends the runs of workers that are not heard of any more, and of this one's those that its journal does not
// have, as after a disk was lost. They are not started again here: a worker that
// is only cut off from the orchestrator may still be training.
func (w *Worker) crashLost(ctx context.Context) error {
	w.mu.Lock()
	ids := make([]uuid.UUID, 0, len(w.deployments))
	for id := range w.deployments {
		ids = append(ids, id)
	}
	w.mu.Unlock()
	open := orchestrator.Filter{DeploymentIDs: ids, StateTypes: []orchestrator.StateType{orchestrator.Pending, orchestrator.Running, orchestrator.Cancelling}}
	beats, err := w.lastHeard(ctx)
	if err != nil {
		return err
	}
	watched := map[string]bool{} // runs that w.lost still tracks
	for run, err := range w.client.FlowRuns(ctx, open) {
		if err != nil {
			return err
		}
		name := claimer(run.Message())
		if name == "" && run.StateType == orchestrator.Cancelling {
			if name, err = w.formerClaimer(ctx, run.ID); err != nil {
				return err
			}
		}
		if name == "" {
			continue
		}
		key, sign, why := name, beats[name], fmt.Sprintf("worker %s has not been heard of for %s", name, w.cfg.LostAfter)
		if name == w.name {
			if w.attempt(run.ID) != nil || w.journal.has(run.ID) {
				continue
			}
			key, sign, why = run.ID.String(), time.Time{}, "its worker has no record of it any more"
		}
		watched[key] = true
		if w.lost.unchanged(key, sign) < w.cfg.LostAfter {
			continue
		}
		end := orchestrator.State{Type: orchestrator.Crashed, Message: w.mark(why)}
		if run.StateType == orchestrator.Cancelling {
			end.Type = orchestrator.Cancelled
		}
		if _, err := w.client.SetState(ctx, run.ID, end, false); err != nil {
			return err
		}
		w.log.WarnContext(ctx, "ended the run of a lost worker", slog.String("flow_run_id", run.ID.String()), slog.String("lost", name), slog.String("state", string(end.Type)))
	}
	w.lost.keep(watched)
	return nil
}

// formerClaimer is the worker that carried out a run before it was cancelled.
func (w *Worker) formerClaimer(ctx context.Context, run uuid.UUID) (name string, err error) {
	states, err := w.client.States(ctx, run)
	for _, s := range states {
		if c := claimer(s.Message); c != "" {
			name = c
		}
	}
	return name, err
}

func (w *Worker) lastHeard(ctx context.Context) (map[string]time.Time, error) {
	workers, err := w.client.Workers(ctx, Pool)
	if err != nil {
		return nil, err
	}
	at := map[string]time.Time{}
	for _, x := range workers {
		at[x.Name] = x.LastHeartbeat
	}
	return at, nil
}

// absence measures how long a heartbeat has not changed, by this process's clock alone: the clocks of the orchestrator
// and of this machine may differ. A worker seen for the first time counts as just changed, even without a heartbeat.
type absence struct {
	seen map[string]sign
}

type sign struct{ last, since time.Time }

func newAbsence() *absence { return &absence{map[string]sign{}} }

func (a *absence) unchanged(key string, last time.Time) time.Duration {
	s, ok := a.seen[key]
	if !ok || !s.last.Equal(last) {
		s = sign{last, time.Now()}
		a.seen[key] = s
	}
	return time.Since(s.since)
}

// keep forgets all others.
func (a *absence) keep(keys map[string]bool) {
	maps.DeleteFunc(a.seen, func(key string, _ sign) bool { return !keys[key] })
}
