// Package store holds all of the control plane's SQL: its migrations, the typed queries generated from queries/*.sql,
// and InTx, the only way to a transaction.
package store

import (
	"context"
	"embed"
	"errors"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
)

//go:generate sh ../../../../scripts/sqlc.sh

// Schema is the control plane's schema.
const Schema = "control_plane"

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations returns the migrations of this package.
func Migrations() postgres.Set {
	sub, err := fs.Sub(migrations, "migrations")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return postgres.Set{Name: "control_plane", FS: sub}
}

// Store reads through its embedded queries and writes through InTx.
type Store struct {
	*Queries
	pool *pgxpool.Pool
}

// Open wraps a pool that is bound to Schema.
func Open(pool *pgxpool.Pool) *Store { return &Store{Queries: New(pool), pool: pool} }

// Pool returns the pool for SQL of others: outbox and coordinator.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// Tx is an open transaction: state changes and their events.
type Tx struct {
	*Queries
	tx pgx.Tx
}

// Emit adds events to the outbox; they exist if and only if the transaction commits. An event that the service has not
// declared is refused.
func (t Tx) Emit(ctx context.Context, events ...outbox.Event) error {
	if err := event.Declared.Check(events...); err != nil {
		return err
	}
	return outbox.Insert(ctx, t.tx, events...)
}

// InTx runs fn in a transaction; fn may run again after a serialization failure, so it must not keep state of an
// aborted attempt outside it.
func (s *Store) InTx(ctx context.Context, fn func(Tx) error) error {
	return postgres.InTx(ctx, s.pool, func(tx pgx.Tx) error { return fn(Tx{New(tx), tx}) })
}

// In wraps a transaction that another component opened, such as a consumer of events, on this schema.
func In(tx pgx.Tx) Tx { return Tx{New(tx), tx} }

// None reports whether a query for one row found none.
func None(err error) bool { return errors.Is(err, pgx.ErrNoRows) }
