// Package passed remembers which artifacts have passed their trial, for all replicas and across restarts: a restart on
// a machine under load must not reject models that have served for months.
package passed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/services/inference/internal/model"
	"github.com/mlp-platform/platform/services/inference/internal/store"
)

const (
	// kept is how long an artifact that is no longer loaded is remembered.
	kept = 180 * 24 * time.Hour
	// queryTimeout limits one query. Without an answer there is a trial, as for a new artifact.
	queryTimeout = 5 * time.Second
)

// Register is safe for concurrent use.
type Register struct {
	queries *store.Queries
	log     *slog.Logger
}

// New returns a Register that keeps its rows in pool.
func New(pool *pgxpool.Pool, log *slog.Logger) *Register { return &Register{store.New(pool), log} }

// Bounds are those of the artifact's runs, if it has passed under these conditions.
func (r *Register) Bounds(ctx context.Context, digest, conditions string) (b model.Bounds, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	row, err := r.queries.UsePassedTrial(ctx, store.UsePassedTrialParams{Digest: digest, Conditions: conditions, UsedAt: time.Now()})
	if err != nil && !errors.Is(err, pgx.ErrNoRows) && ctx.Err() == nil {
		r.log.WarnContext(ctx, "passed trials not read; the model is tried again", slog.Any("err", err))
	}
	return model.Bounds{Rows: int(row.Rows), Length: int(row.Length)}, err == nil
}

// Keep remembers that the artifact has passed, in place of its earlier result.
func (r *Register) Keep(ctx context.Context, digest, conditions string, b model.Bounds) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	now := time.Now()
	err := r.queries.SetPassedTrial(ctx, store.SetPassedTrialParams{Digest: digest, Conditions: conditions, Rows: int32(b.Rows), Length: int32(b.Length), UsedAt: now})
	if err == nil {
		err = r.queries.DeleteOldTrials(ctx, now.Add(-kept))
	}
	if err != nil {
		r.log.WarnContext(ctx, "passed trial not kept; the next start tries the model again", slog.Any("err", fmt.Errorf("keep trial: %w", err)))
	}
}
