package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/orchestrator"
)

// Why a run's child is stopped.
var (
	errCancelled = errors.New("the run was cancelled")
	errTaken     = errors.New("the run is no longer this worker's")
)

// awaitingRetry is the orchestrator's name of a run that waits to be started again.
const awaitingRetry = "AwaitingRetry"

// mark is the message of a state that this worker sets; claimer reads the worker's name from it.
func (w *Worker) mark(text string) string { return "Worker " + w.name + ": " + text }

func claimer(message string) (worker string) {
	rest, ok := strings.CutPrefix(message, "Worker ")
	name, _, found := strings.Cut(rest, ": ")
	if !ok || !found {
		return ""
	}
	return name
}

// claim takes the run to PENDING, which the orchestrator refuses to all workers but one.
func (w *Worker) claim(ctx context.Context, run orchestrator.FlowRun) (bool, error) {
	if err := w.journal.write(entry{ID: run.ID}); err != nil {
		return false, err
	}
	res, err := w.client.SetState(ctx, run.ID, orchestrator.State{Type: orchestrator.Pending, Message: w.mark("the run is about to start")}, false)
	if err != nil && mayPass(err) {
		return false, fmt.Errorf("claim run %s: %w", run.ID, err) // settle finds out whether it was taken
	}
	if err == nil && res.Status == orchestrator.Accept {
		return true, nil
	}
	if rerr := w.journal.remove(run.ID); rerr != nil {
		return false, rerr
	}
	if err != nil {
		return false, fmt.Errorf("claim run %s: %w", run.ID, err)
	}
	w.log.InfoContext(ctx, "run not taken", slog.String("flow_run_id", run.ID.String()), slog.String("reason", res.Details.Reason))
	return false, nil
}

// carryOut trains, and leaves in the journal how the run ended.
func (w *Worker) carryOut(ctx context.Context, run orchestrator.FlowRun) {
	log := w.log.With(slog.String("flow_run_id", run.ID.String()))
	said := &lines{client: w.client, log: log, run: run.ID}
	side, stop := context.WithCancel(context.WithoutCancel(ctx))
	var beside sync.WaitGroup
	beside.Go(func() { w.announce(ctx, run.ID) })
	beside.Go(func() { said.follow(side) })
	log.InfoContext(ctx, "run started")
	end := w.train(ctx, run, said)
	stop()
	if a := w.attempt(run.ID); a != nil {
		a.cancel(nil) // the announcement, should the orchestrator still not have heard of it
	}
	beside.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	if end == nil {
		log.InfoContext(ctx, "run given up", slog.Any("reason", errTaken))
		if err := w.journal.remove(run.ID); err != nil {
			log.ErrorContext(ctx, "journal", slog.Any("err", err))
		}
		said.send(last)
		return
	}
	log.InfoContext(ctx, "run ended", slog.String("state", string(end.Type)), slog.String("message", end.Message))
	said.add(orchestrator.Info, string(end.Type)+": "+end.Message)
	if err := w.journal.write(entry{run.ID, end}); err != nil {
		log.ErrorContext(ctx, "journal; the run's end is told now or never", slog.Any("err", err))
		if err := w.tell(last, entry{run.ID, end}); err != nil {
			log.ErrorContext(ctx, "the run's end is lost", slog.Any("err", err))
		}
	}
	said.send(last)
}

// announce reports the run as RUNNING, until the orchestrator has accepted it.
func (w *Worker) announce(ctx context.Context, id uuid.UUID) {
	for {
		res, err := w.client.SetState(ctx, id, orchestrator.State{Type: orchestrator.Running, Message: w.mark("training")}, false)
		switch {
		case ctx.Err() != nil, err == nil && res.Status == orchestrator.Accept:
			return
		case err == nil, !mayPass(err):
			// Cancelled or taken since the claim: watch sees which.
			w.log.WarnContext(ctx, "the run was not set to RUNNING", slog.String("flow_run_id", id.String()), slog.String("reason", res.Details.Reason), slog.Any("err", err))
			return
		}
		if !pause(ctx, w.cfg.Poll) {
			return
		}
	}
}

// train runs the trainings of a run one after the other and returns the state that it ended in; nil if the run is not
// this worker's any more.
func (w *Worker) train(ctx context.Context, run orchestrator.FlowRun, said *lines) *orchestrator.State {
	all, err := w.commandsOf(run)
	if err != nil {
		return &orchestrator.State{Type: orchestrator.Failed, Message: w.mark(err.Error())}
	}
	var versions []string
	var faults []error
	crashed := false
	environ := w.cfg.Environ
	if p, err := readParameters(run); err == nil && p.Traceparent != "" {
		environ = append(environ[:len(environ):len(environ)], "TRACEPARENT="+p.Traceparent)
	}
	for _, args := range all {
		argv := append(append([]string{}, w.cfg.Command...), args...)
		end := runChild(ctx, argv, environ, func(line string) { said.add(levelOf(line), line) })
		if ctx.Err() != nil {
			break
		}
		if end.err != nil {
			faults = append(faults, end.err)
			crashed = crashed || end.signalled
			said.add(orchestrator.Err, end.err.Error())
			continue
		}
		var res struct{ Model, Version string }
		if json.Unmarshal(end.stdout, &res) == nil && res.Version != "" {
			versions = append(versions, fmt.Sprintf("%s version %s", res.Model, res.Version))
		}
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errCancelled):
		return &orchestrator.State{Type: orchestrator.Cancelled, Message: w.mark("cancelled")}
	case errors.Is(cause, errTaken):
		return nil
	case ctx.Err() != nil:
		return retry(w.mark("the worker was stopped; the run waits for the next one"))
	case crashed:
		return &orchestrator.State{Type: orchestrator.Crashed, Message: w.mark(errors.Join(faults...).Error())}
	case len(faults) > 0:
		return &orchestrator.State{Type: orchestrator.Failed, Message: w.mark(errors.Join(faults...).Error())}
	}
	return &orchestrator.State{Type: orchestrator.Completed, Message: w.mark("registered " + strings.Join(versions, ", "))}
}

func (w *Worker) commandsOf(run orchestrator.FlowRun) ([][]string, error) {
	repo, err := w.openRepo()
	if err != nil {
		return nil, err
	}
	return commands(run, repo)
}

func retry(message string) *orchestrator.State {
	now := time.Now().UTC()
	return &orchestrator.State{Type: orchestrator.Scheduled, Name: awaitingRetry, Message: message, Details: orchestrator.StateDetails{ScheduledTime: &now}}
}
