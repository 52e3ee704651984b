package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/store"
)

// Postgres is a Store in the table session_entries. Times are the server's. Run removes expired rows.
type Postgres struct{ queries *store.Queries }

var _ Store = (*Postgres)(nil)

// NewPostgres uses a pool on the dashboard's schema.
func NewPostgres(pool *pgxpool.Pool) *Postgres { return &Postgres{store.New(pool)} }

// Put implements Store.
func (p *Postgres) Put(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	if err := checkEntry(key, ttl); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return wrapRow("put", p.queries.PutSessionEntry(ctx, store.PutSessionEntryParams{Key: key, Value: value, TtlMs: ttl.Milliseconds()}))
}

// Get implements Store.
func (p *Postgres) Get(ctx context.Context, key string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	value, err := p.queries.GetSessionEntry(ctx, key)
	return value, wrapRow("get", err)
}

// Take implements Store.
func (p *Postgres) Take(ctx context.Context, key string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	value, err := p.queries.TakeSessionEntry(ctx, key)
	return value, wrapRow("take", err)
}

// Delete implements Store.
func (p *Postgres) Delete(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return wrapRow("delete", p.queries.DeleteSessionEntry(ctx, key))
}

// Sweep removes expired rows and reports how many.
func (p *Postgres) Sweep(ctx context.Context) (removed int64, err error) {
	for {
		n, err := p.queries.SweepSessionEntries(ctx)
		removed += n
		if err != nil || n == 0 {
			return removed, wrapRow("sweep", err)
		}
	}
}

// sweepEvery is the time between sweeps. Expired rows are never handed out; the sweep only frees their space.
const sweepEvery = time.Minute

// Run sweeps until ctx ends. A failure leaves the rows to the next sweep.
func (p *Postgres) Run(ctx context.Context, log *slog.Logger) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if _, err := p.Sweep(ctx); err != nil && ctx.Err() == nil {
				log.WarnContext(ctx, "expired session entries not removed", slog.Any("err", err))
			}
		}
	}
}

func wrapRow(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pgx.ErrNoRows):
		return ErrNotFound
	}
	return fmt.Errorf("session store: %s: %w", what, err)
}
