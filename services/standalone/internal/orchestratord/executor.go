package orchestratord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord/store"
)

const (
	tick          = time.Second      // how late a due run or a change by another process is seen at most
	scheduleEvery = 30 * time.Second // a cron schedule has no finer unit than a minute
	pruneEvery    = time.Hour
	finishTimeout = 10 * time.Second // for the last word on a run when the process stops
	// executorLock is held, as an advisory lock of the database, by the process that executes.
	executorLock = "platform.orchestrator.executor"
)

var (
	errCancelled = errors.New("the run was cancelled")
	errStopping  = errors.New("the orchestrator stopped")
)

// attempt is one execution of a run.
type attempt struct {
	cancel context.CancelCauseFunc
}

// entered informs the executor of a run's new state.
func (s *Server) entered(id uuid.UUID, t orchestrator.StateType) {
	if t == orchestrator.Cancelling {
		s.events.cancelling(id, s.now())
	}
	s.stopUnless(id, t)
	s.poke()
}

// stopUnless ends the attempt of a run that is no longer PENDING or RUNNING.
func (s *Server) stopUnless(id uuid.UUID, t orchestrator.StateType) {
	if t == orchestrator.Pending || t == orchestrator.Running {
		return
	}
	s.mu.Lock()
	a := s.attempts[id]
	s.mu.Unlock()
	if a != nil {
		a.cancel(errCancelled)
	}
}

// Run executes until ctx ends, whenever no other process does; it returns nil
// once every attempt has ended and been recorded.
func (s *Server) Run(ctx context.Context) error {
	defer s.end()
	for ctx.Err() == nil {
		if err := s.lead(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "executor interrupted; it starts again", slog.Any("err", err))
		}
		waitFor(ctx, tick)
	}
	return nil
}

func waitFor(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// lead executes while it holds the lock. The lock lives as long as its
// connection, so a lost connection ends it.
func (s *Server) lead(ctx context.Context) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connection for the executor's lock: %w", err)
	}
	defer func() {
		// Closed, not returned: a lock must not stay behind in the pool.
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
		defer cancel()
		_ = conn.Hijack().Close(closing)
	}()
	var held bool
	if err := conn.QueryRow(ctx, "select pg_try_advisory_lock(hashtextextended($1, 0))", executorLock).Scan(&held); err != nil {
		return fmt.Errorf("lock of the executor: %w", err)
	}
	if !held {
		return nil // another process executes
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.guard(ctx, conn) })
	g.Go(func() error { return s.keepHouse(ctx) })
	g.Go(func() error { return s.execute(ctx) })
	return g.Wait()
}

// guard watches the connection that holds the lock.
func (s *Server) guard(ctx context.Context, conn *pgxpool.Conn) error {
	for {
		waitFor(ctx, 2*tick)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		ping, cancel := context.WithTimeout(ctx, finishTimeout)
		err := conn.Ping(ping)
		cancel()
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("lock of the executor lost: %w", err)
		}
	}
}

// keepHouse makes the runs of schedules and drops old logs.
func (s *Server) keepHouse(ctx context.Context) error {
	var pruned time.Time
	for ctx.Err() == nil {
		if err := s.scheduleAll(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "read schedules", slog.Any("err", err))
		}
		if s.now().Sub(pruned) >= pruneEvery {
			pruned = s.now()
			if _, err := s.q.PruneLogs(ctx, pointerTo(pruned.Add(-keepLogs))); err != nil && ctx.Err() == nil {
				s.log.WarnContext(ctx, "prune logs", slog.Any("err", err))
			}
		}
		waitFor(ctx, scheduleEvery)
	}
	return ctx.Err()
}

// execute claims due runs and carries them out, at most s.concurrency at a time.
func (s *Server) execute(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		if err := s.settle(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "compare runs with attempts", slog.Any("err", err))
		}
		for len(s.executing()) < s.concurrency {
			id, err := s.claim(ctx)
			if err != nil && ctx.Err() == nil {
				s.log.WarnContext(ctx, "claim a run", slog.Any("err", err))
			}
			if err != nil || id == uuid.Nil {
				break
			}
			runCtx, cancel := context.WithCancelCause(ctx)
			s.mu.Lock()
			s.attempts[id] = &attempt{cancel}
			s.mu.Unlock()
			running.Go(func() {
				s.attempt(runCtx, id)
				cancel(nil)
				s.mu.Lock()
				delete(s.attempts, id)
				s.mu.Unlock()
				s.poke() // the slot is free
			})
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.wake:
		case <-ticker.C:
		}
	}
}

func (s *Server) executing() []uuid.UUID {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]uuid.UUID, 0, len(s.attempts))
	for id := range s.attempts {
		ids = append(ids, id)
	}
	return ids
}

// claim takes the next due run to PENDING; uuid.Nil if there is none.
func (s *Server) claim(ctx context.Context) (id uuid.UUID, err error) {
	err = s.tx(ctx, func(q *store.Queries) error {
		id, err = q.ClaimDue(ctx, store.ClaimDueParams{Now: pointerTo(s.now()), InProcess: InProcess, Executing: s.executing()})
		if isNoRows(err) {
			id = uuid.Nil
			return nil
		}
		if err != nil {
			return err
		}
		_, err = s.record(ctx, q, id, stateIn{Type: orchestrator.Pending}, true)
		return err
	})
	if err != nil {
		return uuid.Nil, err
	}
	return id, nil
}

// settle makes runs and attempts agree. A run in progress that has no attempt
// was cut off: by a crash of an earlier process, or of the database when its
// end was to be written. An attempt whose run was ended elsewhere is cancelled.
// Only execute calls it, between claims, so that no run is seen half-claimed.
func (s *Server) settle(ctx context.Context) error {
	executing := s.executing()
	mine := map[uuid.UUID]bool{}
	for _, id := range executing {
		mine[id] = true
	}
	if len(executing) > 0 {
		states, err := s.q.StateTypes(ctx, executing)
		if err != nil {
			return err
		}
		for _, st := range states {
			s.stopUnless(st.ID, orchestrator.StateType(st.StateType))
		}
	}
	open, err := s.q.Abandoned(ctx, InProcess)
	if err != nil {
		return err
	}
	for _, run := range open {
		if mine[run.ID] {
			continue
		}
		if err := s.tx(ctx, func(q *store.Queries) error { return s.interrupt(ctx, q, run.ID) }); err != nil {
			return err
		}
	}
	return nil
}

// interrupt ends a run that nothing carries out any more.
func (s *Server) interrupt(ctx context.Context, q *store.Queries, id uuid.UUID) error {
	run, err := q.LockRun(ctx, id)
	if err != nil {
		return err
	}
	end := stateIn{Type: orchestrator.Crashed, Message: pointerTo("The process that carried out this run stopped before the run ended.")}
	switch orchestrator.StateType(run.StateType) {
	case orchestrator.Pending, orchestrator.Running:
	case orchestrator.Cancelling:
		end = stateIn{Type: orchestrator.Cancelled}
	default: // moved since it was listed
		return nil
	}
	_, err = s.record(ctx, q, id, end, false)
	return err
}

// attempt carries out a claimed run and records how it ended.
func (s *Server) attempt(ctx context.Context, id uuid.UUID) {
	run, ok := s.start(ctx, id)
	if !ok {
		return
	}
	lines := s.newLogBuffer(id)
	flushing := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(flushing)
		lines.flushUntil(stop)
	}()
	s.log.InfoContext(ctx, "run started", slog.String("flow_run_id", id.String()))
	end := s.call(ctx, run, lines.add)
	close(stop)
	<-flushing // the log is whole when the run ends

	fctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	if err := s.finish(fctx, id, run.State.ID, end); err != nil {
		// settle will find the run without an attempt.
		s.log.ErrorContext(ctx, "record the end of a run", slog.String("flow_run_id", id.String()), slog.Any("err", err))
		return
	}
	s.log.InfoContext(ctx, "run ended", slog.String("flow_run_id", id.String()), slog.String("state", string(end.Type)))
}

// start takes the run from PENDING to RUNNING, unless it was moved meanwhile.
func (s *Server) start(ctx context.Context, id uuid.UUID) (run FlowRun, ok bool) {
	var row store.Run
	err := s.tx(ctx, func(q *store.Queries) error {
		locked, err := q.LockRun(ctx, id)
		if err != nil {
			return err
		}
		if ok = locked.StateType == string(orchestrator.Pending); !ok {
			return nil
		}
		if _, err := s.record(ctx, q, id, stateIn{Type: orchestrator.Running}, true); err != nil {
			return err
		}
		row, err = q.Run(ctx, id)
		return err
	})
	if err == nil && ok {
		run, err = s.clientRun(row)
	}
	if err != nil {
		if ctx.Err() == nil {
			s.log.ErrorContext(ctx, "start a run", slog.String("flow_run_id", id.String()), slog.Any("err", err))
		}
		return run, false
	}
	return run, ok
}

// clientRun gives a run the form that clients read.
func (s *Server) clientRun(row store.Run) (run FlowRun, err error) {
	b, err := json.Marshal(s.runOf(row))
	if err != nil {
		return run, err
	}
	return run, json.Unmarshal(b, &run)
}

// call runs the Runner and returns the run's final state.
func (s *Server) call(ctx context.Context, run FlowRun, logs func(int, string)) (end stateIn) {
	defer func() {
		if p := recover(); p != nil {
			logs(orchestrator.Err, fmt.Sprintf("panic: %v\n%s", p, debug.Stack()))
			end = stateIn{Type: orchestrator.Crashed, Message: pointerTo(cleanMessage(fmt.Sprintf("panic: %v", p)))}
		}
	}()
	err := s.runner.Run(ctx, run, logs)
	switch {
	case err == nil:
		return stateIn{Type: orchestrator.Completed}
	case errors.Is(context.Cause(ctx), errCancelled):
		return stateIn{Type: orchestrator.Cancelled}
	case ctx.Err() != nil:
		return stateIn{Type: orchestrator.Crashed, Message: pointerTo(cleanMessage(fmt.Sprintf("%v while the run was in progress.", errStopping)))}
	}
	return stateIn{Type: orchestrator.Failed, Message: pointerTo(cleanMessage(err.Error()))}
}

// finish records the end of the attempt that began with the given state. A run whose cancellation was requested ends
// CANCELLED, however the Runner returned; one that another client has moved on is left alone.
func (s *Server) finish(ctx context.Context, id, began uuid.UUID, end stateIn) error {
	return s.tx(ctx, func(q *store.Queries) error {
		run, err := q.LockRun(ctx, id)
		if isNoRows(err) { // deleted with its flow
			return nil
		}
		if err != nil {
			return err
		}
		switch {
		case run.StateType == string(orchestrator.Cancelling):
			end = stateIn{Type: orchestrator.Cancelled, Message: end.Message}
		case run.StateID != began:
			return nil
		}
		_, err = s.record(ctx, q, id, end, true)
		return err
	})
}
