package coord

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/libs/postgres"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations makes the tables coord_* in a service's schema.
func Migrations() postgres.Set {
	sub, err := fs.Sub(migrations, "migrations")
	if err != nil {
		panic(err) // the name is a constant
	}
	return postgres.Set{Name: "coord", FS: sub}
}

// Postgres keeps everything in tables of the pool's schema. All times are the
// server's.
type Postgres struct {
	pool  *pgxpool.Pool
	calls atomic.Uint64
}

var _ Coordinator = (*Postgres)(nil)

// NewPostgres uses the pool, whose schema has the tables of Migrations.
func NewPostgres(pool *pgxpool.Pool) *Postgres { return &Postgres{pool: pool} }

// Kind is postgres.
func (*Postgres) Kind() string { return "postgres" }

// Close does nothing: the pool is the caller's.
func (*Postgres) Close() error { return nil }

// Ping reports whether the database answers.
func (p *Postgres) Ping(ctx context.Context) error { return wrapUnavailable("ping", p.pool.Ping(ctx)) }

// sweepEvery is the number of calls that add rows between removals of expired ones.
const sweepEvery = 256

// leaseKeep is how long the row of an expired lease stays. Replicas of the version
// before number fences by that row, and are gone by then.
const leaseKeep = 24 * time.Hour

// sweep removes expired rows from time to time; after a failure, the next sweep
// removes them. The sequence of fences continues above those of the removed leases.
func (p *Postgres) sweep(ctx context.Context) {
	if p.calls.Add(1)%sweepEvery != 0 {
		return
	}
	_, _ = p.pool.Exec(ctx, `with o as (
			delete from coord_once where key in (select key from coord_once where expires_at < now() order by expires_at limit 1000 for update skip locked)
		), r as (
			delete from coord_rate where key in (select key from coord_rate where ends_at < now() order by ends_at limit 1000 for update skip locked)
		), l as (
			delete from coord_lease where name in (select name from coord_lease where expires_at < now() - $1::interval order by expires_at limit 1000 for update skip locked)
			returning fence
		) select setval('coord_fence', greatest(nextval('coord_fence'), max(fence))) from l having count(*) > 0`, leaseKeep)
}

// ExpireLeases ends all leases of every holder. It is for the start of a process
// that has the store to itself: the holders are dead, and their leases may have long
// to run.
func (p *Postgres) ExpireLeases(ctx context.Context) error {
	_, err := p.pool.Exec(ctx, "update coord_lease set expires_at = now() where expires_at > now()")
	return wrapUnavailable("expire leases", err)
}

// TryLease is part of Coordinator.
func (p *Postgres) TryLease(ctx context.Context, name string, ttl time.Duration) (*Lease, bool, error) {
	p.sweep(ctx)
	owner := uuid.New()
	begin := time.Now()
	var fence int64
	err := p.pool.QueryRow(ctx, `
		insert into coord_lease as l (name, owner, fence, expires_at) values ($1, $2, nextval('coord_fence'), now() + $3::interval)
		on conflict (name) do update set owner = excluded.owner, fence = greatest(excluded.fence, l.fence + 1), expires_at = excluded.expires_at
		where l.expires_at <= now()
		returning fence`, name, owner, ttl).Scan(&fence)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, wrapUnavailable("take lease "+name, err)
	}
	return &Lease{
		Name: name, Fence: fence, ttl: ttl, expires: begin.Add(ttl),
		renew: func(ctx context.Context) (bool, error) {
			tag, err := p.pool.Exec(ctx, `update coord_lease set expires_at = now() + $3::interval
				where name = $1 and owner = $2 and expires_at > now()`, name, owner, ttl)
			return tag.RowsAffected() == 1, wrapUnavailable("renew lease "+name, err)
		},
		release: func(ctx context.Context) error {
			_, err := p.pool.Exec(ctx, "update coord_lease set expires_at = now() where name = $1 and owner = $2 and expires_at > now()", name, owner)
			return wrapUnavailable("release lease "+name, err)
		},
	}, true, nil
}

// Once is part of Coordinator.
func (p *Postgres) Once(ctx context.Context, key string, ttl time.Duration) (bool, error) {
	p.sweep(ctx)
	tag, err := p.pool.Exec(ctx, `
		insert into coord_once as o (key, expires_at) values ($1, now() + $2::interval)
		on conflict (key) do update set expires_at = excluded.expires_at where o.expires_at <= now()`, key, ttl)
	return tag.RowsAffected() == 1, wrapUnavailable("once-key", err)
}

// Allow is part of Coordinator.
func (p *Postgres) Allow(ctx context.Context, key string, limit int, window time.Duration) (Decision, error) {
	if limit <= 0 {
		return Decision{OK: true}, nil
	}
	p.sweep(ctx)
	var count int64
	var left time.Duration
	err := p.pool.QueryRow(ctx, `
		insert into coord_rate as r (key, acts, ends_at) values ($1, 1, now() + $3::interval)
		on conflict (key) do update set
			acts = case when r.ends_at <= now() then 1 else least(r.acts, $2) + 1 end,
			ends_at = case when r.ends_at <= now() then excluded.ends_at else r.ends_at end
		returning acts, ends_at - now()`, key, int64(limit), window).Scan(&count, &left)
	if err != nil {
		return Decision{}, wrapUnavailable("rate limit", err)
	}
	return decideRate(count, limit, left), nil
}

// BreakerAllow is part of Coordinator.
func (p *Postgres) BreakerAllow(ctx context.Context, name string, reset time.Duration) (BreakerDecision, error) {
	s, err := p.BreakerState(ctx, name, reset)
	if err != nil || s.State == Closed {
		return BreakerDecision{OK: err == nil}, err
	}
	if s.RetryAfter > 0 {
		return BreakerDecision{RetryAfter: s.RetryAfter}, nil
	}
	tag, err := p.pool.Exec(ctx, `update coord_breaker set trial_until = now() + $2::interval
		where name = $1 and opened_at + $2::interval <= now() and coalesce(trial_until <= now(), true)`, name, reset)
	if err != nil {
		return BreakerDecision{}, wrapUnavailable("breaker "+name, err)
	}
	if tag.RowsAffected() == 1 {
		return BreakerDecision{OK: true, Trial: true}, nil
	}
	// Another replica was quicker to try, or its trial has ended meanwhile.
	s, err = p.BreakerState(ctx, name, reset)
	return BreakerDecision{OK: err == nil && s.State == Closed, RetryAfter: s.RetryAfter}, err
}

// BreakerReport is part of Coordinator.
func (p *Postgres) BreakerReport(ctx context.Context, name string, r BreakerReport) (bool, error) {
	if !r.Failed {
		_, err := p.pool.Exec(ctx, "delete from coord_breaker where name = $1 and (opened_at is null or $2)", name, r.Trial)
		return false, wrapUnavailable("breaker "+name, err)
	}
	var opened bool
	err := p.pool.QueryRow(ctx, `
		insert into coord_breaker as b (name, failures, opened_at) values ($1, 1, case when $2 <= 1 then now() end)
		on conflict (name) do update set failures = b.failures + 1, trial_until = null,
			opened_at = case when $3 or b.failures + 1 >= $2 then now() end
		where b.opened_at is null or $3
		returning opened_at is not null`, name, r.FailMax, r.Trial).Scan(&opened)
	if errors.Is(err, pgx.ErrNoRows) { // it is open already, and this call began before
		return false, nil
	}
	return opened, wrapUnavailable("breaker "+name, err)
}

// BreakerState is part of Coordinator.
func (p *Postgres) BreakerState(ctx context.Context, name string, reset time.Duration) (BreakerState, error) {
	s := BreakerState{State: Closed}
	var open, half bool
	err := p.pool.QueryRow(ctx, `
		select failures, opened_at is not null, coalesce(opened_at + $2::interval <= now(), false),
		       greatest(opened_at + $2::interval - now(), trial_until - now(), interval '0')
		from coord_breaker where name = $1`, name, reset).Scan(&s.Failures, &open, &half, &s.RetryAfter)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return s, nil
	case err != nil:
		return BreakerState{}, wrapUnavailable("breaker "+name, err)
	case half:
		s.State = HalfOpen
	case open:
		s.State = Open
	}
	return s, nil
}

// SetConfig is part of Coordinator.
func (p *Postgres) SetConfig(ctx context.Context, key string, value []byte) error {
	if value == nil {
		_, err := p.pool.Exec(ctx, "delete from coord_config where key = $1", key)
		return wrapUnavailable("remove setting "+key, err)
	}
	_, err := p.pool.Exec(ctx, `insert into coord_config (key, value) values ($1, $2)
		on conflict (key) do update set value = excluded.value, updated_at = now()`, key, value)
	return wrapUnavailable("set "+key, err)
}

// GetConfig is part of Coordinator.
func (p *Postgres) GetConfig(ctx context.Context, key string) ([]byte, bool, error) {
	var v []byte
	err := p.pool.QueryRow(ctx, "select value from coord_config where key = $1", key).Scan(&v)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	return v, err == nil, wrapUnavailable("get "+key, err)
}

// WatchConfig is part of Coordinator.
func (p *Postgres) WatchConfig(ctx context.Context, fn func(string, []byte)) error {
	return watchConfig(ctx, func(ctx context.Context) (map[string][]byte, error) {
		rows, err := p.pool.Query(ctx, "select key, value from coord_config")
		if err != nil {
			return nil, wrapUnavailable("settings", err)
		}
		out := map[string][]byte{}
		var k string
		var v []byte
		_, err = pgx.ForEachRow(rows, []any{&k, &v}, func() error {
			out[k] = v
			v = nil // Scan would write into the same bytes
			return nil
		})
		return out, wrapUnavailable("settings", err)
	}, fn)
}
