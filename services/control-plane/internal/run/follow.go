package run

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

const (
	followEvery  = 3 * time.Second
	askTimeout   = 5 * time.Second
	lostAfter    = 10 * time.Minute // for a run that the orchestrator does not know
	followerPage = orchestrator.MaxPage
)

// Follower reads the state of all runs that have not ended, every 3 s. One
// replica runs it, under a lease.
type Follower struct{ FollowerParts }

// FollowerParts are the dependencies of a Follower.
type FollowerParts struct {
	Book         *Book
	Orchestrator *orchestrator.Client
	Log          *slog.Logger
}

// NewFollower returns a Follower, or an error for a missing part.
func NewFollower(p FollowerParts) (*Follower, error) {
	if err := service.RequireParts("run follower", p); err != nil {
		return nil, err
	}
	return &Follower{p}, nil
}

// Run follows until ctx ends.
func (f *Follower) Run(ctx context.Context) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		if err := f.Look(ctx); err != nil && ctx.Err() == nil {
			f.Log.WarnContext(ctx, "following runs failed", slog.Any("err", err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Look reads the state of every open run once. If the orchestrator does not answer, all records stay unchanged.
func (f *Follower) Look(ctx context.Context) error {
	after := ""
	for {
		open, err := f.Book.Store.OpenRunsAfter(ctx, store.OpenRunsAfterParams{After: after, MaxRows: followerPage})
		if err != nil || len(open) == 0 {
			return err
		}
		if err := f.page(ctx, open); err != nil {
			return err
		}
		if len(open) < followerPage {
			return nil
		}
		after = open[len(open)-1].FlowRunID
	}
}

func (f *Follower) page(ctx context.Context, open []store.Run) error {
	ids := make([]uuid.UUID, 0, len(open))
	for _, r := range open {
		if id, err := uuid.Parse(r.FlowRunID); err == nil {
			ids = append(ids, id)
		}
	}
	known := map[string]orchestrator.FlowRun{}
	if len(ids) > 0 { // without ids the filter would match every run
		askCtx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		runs, err := f.Orchestrator.FilterFlowRuns(askCtx, orchestrator.Filter{IDs: ids})
		if err != nil {
			return err
		}
		for _, r := range runs {
			known[r.ID.String()] = r
		}
	}
	var same, unknown []string
	for _, row := range open {
		r, ok := known[row.FlowRunID]
		switch {
		case !ok && row.UnknownSince != nil && f.Book.Now().Sub(*row.UnknownSince) >= lostAfter:
			if _, err := f.Book.Apply(ctx, row.FlowRunID, lostRun()); err != nil {
				return err
			}
		case !ok:
			unknown = append(unknown, row.FlowRunID)
		case string(r.StateType) == row.StateType && r.StateName == row.StateName && (row.StartedAt != nil || !hasBegun(seenFromRun(r))):
			same = append(same, row.FlowRunID)
		default:
			if _, err := f.Book.Apply(ctx, row.FlowRunID, seenFromRun(r)); err != nil {
				return err
			}
		}
	}
	now := f.Book.Now()
	if len(same) > 0 {
		if err := f.Book.Store.TouchRuns(ctx, store.TouchRunsParams{Now: now, Ids: same}); err != nil {
			return err
		}
	}
	if len(unknown) > 0 {
		return f.Book.Store.MarkRunsUnknown(ctx, store.MarkRunsUnknownParams{Now: now, Ids: unknown})
	}
	return nil
}

func lostRun() Seen {
	return Seen{Type: orchestrator.Crashed, Name: "Lost", Message: "the run has been unknown to the orchestrator for 10 minutes", Lost: true}
}
