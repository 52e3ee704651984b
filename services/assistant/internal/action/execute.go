package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

const (
	// maxCall limits one execution with its re-reads: a drain may take 300 s.
	maxCall = 330 * time.Second
	// maxVerify limits the time of Verify beyond its own timeout.
	maxVerify = 90 * time.Second
	// recordTime limits the time to record an outcome, which is also written while the process
	// stops.
	recordTime = 10 * time.Second
)

// Execute runs an approved action and returns it as it is afterwards. For an action that is not
// approved, or that another executor claimed first, it returns a *problem.Error and runs
// nothing. Once claimed, the write and its record outlive ctx. verifying is called when the
// write has succeeded and is about to be verified; it may be nil.
func (s *Service) Execute(ctx context.Context, id uuid.UUID, verifying func()) (Action, error) {
	a, err := s.Get(ctx, id)
	if err != nil {
		return a, err
	}
	if a.State != Approved {
		return a, notApproved(a)
	}
	observed, why := a.Operations, ""
	target, err := s.Target(a.Cluster)
	if err != nil {
		why = err.Error() + " Nothing was written."
	} else {
		observed, why = s.observe(ctx, target, a)
	}
	a, err = s.claim(ctx, a, observed)
	if err != nil {
		return a, err
	}
	if why != "" {
		return s.finish(ctx, a, Failed, why)
	}
	return s.run(ctx, target, a, verifying)
}

func notApproved(a Action) error {
	return fault.AlreadyDecided.New(fmt.Sprintf("This action is %s.", a.State)).With(map[string]any{"action_id": a.ID, "state": a.State})
}

// observe reads the targets again. why is set when nothing may be written; the action still
// continues, so that its row records the reason.
func (s *Service) observe(ctx context.Context, target Target, a Action) (observed []operation.Expanded, why string) {
	if a.DecidedAt != nil && s.Now().Sub(*a.DecidedAt) > s.TTL {
		return a.Operations, "Approved too long ago and never carried out; nothing was written. Request it again."
	}
	plan, err := target.Plan(ctx, a.DeciderRole, a.Ops())
	plan.Verdict = plan.Verdict.Recall(a.DeciderRole, a.Confirms)
	switch {
	case err != nil:
		s.Log.WarnContext(ctx, "no look at the target before the write", slog.Any("err", err), slog.String("action", a.ID.String()))
		return a.Operations, "The target could not be looked at before the write; nothing was written."
	case plan.Verdict.Answer == guard.Refuse:
		return a.Operations, "Refused: " + plan.Verdict.Reason + " Nothing was written."
	case plan.Digest != a.Digest:
		return a.Operations, "The target has changed since the approval; nothing was written."
	}
	return plan.Operations, ""
}

// claim makes this process the executor of the action.
func (s *Service) claim(ctx context.Context, a Action, observed []operation.Expanded) (Action, error) {
	doc, err := json.Marshal(observed)
	if err != nil {
		return a, fmt.Errorf("observed operations: %w", err)
	}
	now := s.Now()
	until := now.Add(s.Lease)
	row, err := s.Store.ClaimAction(ctx, store.ClaimActionParams{ID: a.ID, Executor: &s.me, LeaseUntil: &until, Observed: doc, Now: &now})
	if store.None(err) {
		if a, err = s.Get(ctx, a.ID); err != nil {
			return a, err
		}
		return a, notApproved(a)
	}
	if err != nil {
		return a, err
	}
	if a, err = fromRow(row); err != nil {
		return a, err
	}
	s.moved(a)
	return a, nil
}

// run makes the call under the claimed lease and records the outcome.
func (s *Service) run(ctx context.Context, target Target, a Action, verifying func()) (Action, error) {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxCall)
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		s.keep(call, a, cancel)
	}()
	answer, err := target.Execute(call, a)
	cancel()
	<-kept
	switch {
	case err == nil:
		a, err = s.finish(ctx, a, Succeeded, answer)
		if err != nil {
			return a, err
		}
		if verifying != nil {
			verifying()
		}
		return s.verify(ctx, target, a), nil
	case errors.Is(err, ErrNoAnswer) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return s.unanswered(ctx, target, a, answer)
	}
	return s.finish(ctx, a, Failed, err.Error())
}

// keep renews the lease until ctx ends, and cancels the call when the lease is lost: a call
// without a lease could follow that of a rescuer.
func (s *Service) keep(ctx context.Context, a Action, lost context.CancelFunc) {
	tick := time.NewTicker(s.Lease / 3)
	defer tick.Stop()
	alive := time.Now() // of this process, which stops with it
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := s.Now()
		until := now.Add(s.Lease)
		try, cancel := context.WithTimeout(ctx, s.Lease/3)
		n, err := s.Store.KeepAction(try, store.KeepActionParams{ID: a.ID, Fence: a.row.Fence, LeaseUntil: &until, Now: &now})
		cancel()
		switch {
		case err == nil && n == 1:
			alive = time.Now()
		case err == nil || time.Since(alive) > s.Lease*2/3:
			lost()
			return
		}
	}
}

const (
	unknownResult  = "The write was sent, but its outcome is unknown. It is not repeated; look at the target."
	observedResult = "The write had its effect; its answer was lost."
)

// unanswered records the outcome of a call without an answer, from the state of the target. The
// call may still arrive, so an unchanged target proves nothing here. before is the answer to
// earlier calls of the same action.
func (s *Service) unanswered(ctx context.Context, target Target, a Action, before string) (Action, error) {
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	effect, err := target.Probe(look, a)
	if err != nil {
		s.Log.WarnContext(ctx, "no look at the target after an unanswered write", slog.Any("err", err), slog.String("action", a.ID.String()))
	}
	if err == nil && effect == Present {
		a, err = s.finish(ctx, a, Succeeded, observedResult)
		if err != nil {
			return a, err
		}
		return s.verify(ctx, target, a), nil
	}
	return s.finish(ctx, a, Unknown, strings.TrimSpace(before+" "+unknownResult))
}

// finish records the outcome. Without the lease it records nothing and returns the action as
// its new executor left it.
func (s *Service) finish(ctx context.Context, a Action, to State, result string) (Action, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	outcome := event.OK
	if to != Succeeded {
		outcome = event.Failed
	}
	var done Action
	err := s.Store.InTx(ctx, func(tx store.Tx) error {
		now := s.Now()
		row, err := tx.FinishAction(ctx, store.FinishActionParams{
			ID: a.ID, Fence: a.row.Fence, ToState: string(to), Now: &now, Result: store.Opt(result),
		})
		if err != nil {
			return err
		}
		if done, err = fromRow(row); err != nil {
			return err
		}
		if err := forgetContent(ctx, tx, done); err != nil {
			return err
		}
		who := event.Who{Principal: done.Decider, Role: done.DeciderRole, RequestID: done.row.RequestID}
		return tx.Emit(ctx, actionEvents(who, now, executedEvent, executedAct, outcome, done)...)
	})
	if store.None(err) {
		return s.Get(ctx, a.ID)
	}
	if err != nil {
		return a, fmt.Errorf("record that action %s %s: %w", a.ID, to, err)
	}
	s.moved(done)
	return done, nil
}

// verify adds what was observed after a write; a failed observation is reported in the text,
// not as an error.
func (s *Service) verify(ctx context.Context, target Target, a Action) Action {
	if a.State != Succeeded || len(a.Observed) == 0 {
		return a
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxVerify)
	defer cancel()
	seen, err := target.Verify(ctx, a)
	if err != nil {
		s.Log.WarnContext(ctx, "a write could not be verified", slog.Any("err", err), slog.String("action", a.ID.String()))
		seen = "The result could not be read back."
	}
	a.Verification = store.Text(seen)
	if err := s.Store.VerifyAction(ctx, store.VerifyActionParams{ID: a.ID, Verification: &a.Verification}); err != nil {
		s.Log.WarnContext(ctx, "a verification could not be recorded", slog.Any("err", err), slog.String("action", a.ID.String()))
	}
	return a
}
