package coord_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/libs/coord"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/testenv"
)

func openPool(t *testing.T) *pgxpool.Pool {
	t.Helper()
	url := testenv.Migrated(t, "coord", func(ctx context.Context, url string) error {
		return postgres.Migrate(ctx, url, "svc", coord.Migrations())
	})
	pool, err := postgres.Open(t.Context(), url, "svc", postgres.MaxConns(4))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func takeLease(t *testing.T, c *coord.Postgres, name string) *coord.Lease {
	t.Helper()
	l, ok, err := c.TryLease(t.Context(), name, time.Hour)
	if err != nil || !ok {
		t.Fatalf("lease %s: got %v, %v, want it", name, ok, err)
	}
	return l
}

// Leases that ran out a day ago leave no rows, and the fence of one taken again is
// still higher than before.
func TestExpiredLeasesAreSwept(t *testing.T) {
	t.Parallel()
	pool := openPool(t)
	c := coord.NewPostgres(pool)
	for range 5 { // each holder of the same lease has a higher fence
		if err := takeLease(t, c, "old").Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	before := takeLease(t, c, "old").Fence
	takeLease(t, c, "young")
	if _, err := pool.Exec(t.Context(), "update coord_lease set expires_at = now() - interval '25 hours' where name = 'old'"); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), "update coord_lease set fence = 1000 where name = 'old'"); err != nil {
		t.Fatal(err)
	}
	for range 300 {
		if _, err := c.Once(t.Context(), "key", time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	var left []string
	if err := pool.QueryRow(t.Context(), "select array_agg(name) from coord_lease").Scan(&left); err != nil || len(left) != 1 || left[0] != "young" {
		t.Errorf("got leases %v, %v, want young alone", left, err)
	}
	if after := takeLease(t, c, "old").Fence; after <= max(before, 1000) {
		t.Errorf("got fence %d after the sweep, want more than 1000", after)
	}
}

// A process that has the store to itself takes over the leases of a dead one.
func TestExpireLeases(t *testing.T) {
	t.Parallel()
	pool := openPool(t)
	dead := takeLease(t, coord.NewPostgres(pool), "poller")
	c := coord.NewPostgres(pool)
	if err := c.ExpireLeases(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := takeLease(t, c, "poller").Fence; got <= dead.Fence {
		t.Errorf("got fence %d, want more than %d", got, dead.Fence)
	}
}
