package orchestratord

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord/store"
)

// Schema is the Postgres schema that the pool given to [New] must be bound to.
const Schema = "orchestrator"

// InProcess is the type of the work pools whose runs this process carries out.
const InProcess = "in-process"

// protocolVersion is the Prefect release whose interface this follows; clients
// compare its first number with their own.
const protocolVersion = "3.8.8+platform"

// FlowRun is a run as the [Runner] sees it.
type FlowRun = orchestrator.FlowRun

// Runner carries out runs. Run returns soon after ctx ends: on a cancellation
// or when the process stops. A nil error completes the run. logs may be called
// from any goroutine until Run returns; level as in orchestrator.Info.
type Runner interface {
	Run(ctx context.Context, run FlowRun, logs func(level int, msg string)) error
}

// Migrations of the schema.
func Migrations() postgres.Set { return postgres.Set{Name: "orchestratord", FS: store.Migrations()} }

// Option changes a default of [New].
type Option func(*Server)

// Concurrency is how many runs are carried out at once; default 1.
func Concurrency(n int) Option { return func(s *Server) { s.concurrency = max(1, n) } }

// Server answers the API and, in [Server.Run], carries out runs.
type Server struct {
	pool        *pgxpool.Pool
	q           *store.Queries
	runner      Runner
	log         *slog.Logger
	clock       func() time.Time
	concurrency int

	events eventHub
	ending context.Context // of the server; event streams end with it
	end    context.CancelFunc

	wake chan struct{} // holds a token when something may be due

	mu       sync.Mutex
	attempts map[uuid.UUID]*attempt // guarded by mu; written by the executor alone
}

// New returns a server on a pool bound to [Schema] with [Migrations] applied.
func New(ctx context.Context, pool *pgxpool.Pool, runner Runner, log *slog.Logger, opts ...Option) (*Server, error) {
	if err := postgres.Check(ctx, pool, Migrations()); err != nil {
		return nil, fmt.Errorf("orchestrator: %w", err)
	}
	s := &Server{
		pool: pool, q: store.New(pool), runner: runner, log: log, clock: time.Now, concurrency: 1,
		wake: make(chan struct{}, 1), attempts: map[uuid.UUID]*attempt{},
	}
	s.ending, s.end = context.WithCancel(context.WithoutCancel(ctx))
	for _, o := range opts {
		o(s)
	}
	return s, nil
}

// now is truncated to Postgres' precision, so that a value written compares equal to the value read.
func (s *Server) now() time.Time { return s.clock().UTC().Truncate(time.Microsecond) }

func (s *Server) tx(ctx context.Context, fn func(*store.Queries) error) error {
	return postgres.InTx(ctx, s.pool, func(tx pgx.Tx) error { return fn(s.q.WithTx(tx)) })
}

// poke makes the executor look for work now.
func (s *Server) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) } // fails only without a source of randomness

func isNoRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }
