package action

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

// rescueBatch is the number of abandoned actions handled in one round.
const rescueBatch = 20

// Recover settles actions whose executor died. An action whose target cannot be read now is
// left for a later round.
func (s *Service) Recover(ctx context.Context) error {
	now := s.Now()
	rows, err := s.Store.AbandonedActions(ctx, store.AbandonedActionsParams{Now: &now, MaxRows: rescueBatch})
	if err != nil {
		return err
	}
	var faults []error
	for _, r := range rows {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		a, err := fromRow(r)
		if err == nil {
			_, err = s.Rescue(ctx, a)
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// Rescue takes over one abandoned action and settles it. An action with a live executor is
// returned unchanged.
func (s *Service) Rescue(ctx context.Context, a Action) (Action, error) {
	now := s.Now()
	until := now.Add(s.Lease)
	row, err := s.Store.TakeOverAction(ctx, store.TakeOverActionParams{
		ID: a.ID, Fence: a.row.Fence, Executor: &s.me, LeaseUntil: &until, Now: &now,
	})
	if store.None(err) {
		return s.Get(ctx, a.ID)
	}
	if err != nil {
		return a, err
	}
	if a, err = fromRow(row); err != nil {
		return a, err
	}
	target, err := s.Target(a.Cluster)
	if err != nil { // the target can never be inspected
		return s.finish(ctx, a, Unknown, err.Error()+" "+unknownResult)
	}
	look, cancel := context.WithTimeout(ctx, s.Lease/2) // the call needs some of the lease, too
	effect, err := target.Probe(look, a)
	cancel()
	if err != nil {
		return a, err // the lease runs out again
	}
	s.Log.InfoContext(ctx, "took over an action whose executor died", slog.String("action", a.ID.String()), slog.Int("effect", int(effect)))
	switch effect {
	case Unmoved:
		return s.run(ctx, target, a, nil)
	case Present:
		if a, err = s.finish(ctx, a, Succeeded, observedResult); err != nil {
			return a, err
		}
		return s.verify(ctx, target, a), nil
	}
	return s.finish(ctx, a, Unknown, unknownResult)
}

// Run expires undecided actions and settles abandoned ones, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(s.Lease / 2)
	defer tick.Stop()
	for {
		if err := errors.Join(s.ExpireDue(ctx), s.Recover(ctx)); err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "looking after actions failed", slog.Any("err", err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
