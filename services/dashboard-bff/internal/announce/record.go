package announce

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
)

// Fact is an act that changes nothing in this service's own tables.
type Fact struct {
	Action, Target, Outcome string
	Details                 map[string]any // never a secret
}

// Recorder keeps facts in a transaction of their own.
type Recorder struct{ pool *pgxpool.Pool }

// NewRecorder refuses a missing pool.
func NewRecorder(pool *pgxpool.Pool) (*Recorder, error) {
	if pool == nil {
		return nil, errors.New("announce: the pool is missing")
	}
	return &Recorder{pool}, nil
}

// Record stores the fact durably; it reaches the ledger once the broker is available.
func (r *Recorder) Record(ctx context.Context, who caller.Caller, f Fact) error {
	err := postgres.InTx(ctx, r.pool, func(tx pgx.Tx) error {
		return Insert(ctx, tx, Audit(ctx, who, f.Action, f.Target, f.Outcome, f.Details))
	})
	if err != nil {
		return fmt.Errorf("record %s: %w", f.Action, err)
	}
	return nil
}
