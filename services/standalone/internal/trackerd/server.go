package trackerd

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/services/standalone/internal/trackerd/artifact"
	"github.com/mlp-platform/platform/services/standalone/internal/trackerd/store"
)

// Schema is the Postgres schema that the pool given to [New] must be bound to.
const Schema = "tracker"

// protocolVersion is the MLflow release whose interface this follows.
const protocolVersion = "3.17.2+platform"

const (
	maxBody     = 8 << 20 // of a request other than an artifact
	callTimeout = 30 * time.Second
)

// Migrations of the schema.
func Migrations() postgres.Set { return postgres.Set{Name: "trackerd", FS: store.Migrations()} }

// Option changes a default of [New].
type Option func(*Server)

// Server answers the interface.
type Server struct {
	pool        *pgxpool.Pool
	q           *store.Queries
	files       *artifact.Store
	log         *slog.Logger
	clock       func() time.Time
	hosts       []string
	maxArtifact int64
	handler     http.Handler
	hooks       *dispatcher
}

// New returns a server on a pool bound to [Schema] with [Migrations] applied.
// [Server.Close] it after the last request.
func New(ctx context.Context, pool *pgxpool.Pool, artifactDir string, log *slog.Logger, opts ...Option) (*Server, error) {
	if err := postgres.Check(ctx, pool, Migrations()); err != nil {
		return nil, fmt.Errorf("tracker: %w", err)
	}
	s := &Server{pool: pool, q: store.New(pool), log: log, clock: time.Now, maxArtifact: 8 << 30}
	for _, o := range opts {
		o(s)
	}
	files, err := artifact.Open(artifactDir, s.maxArtifact)
	if err != nil {
		return nil, fmt.Errorf("tracker: %w", err)
	}
	s.files = files
	s.hooks = newDispatcher(s)
	s.handler = s.guard(s.routes())
	return s, nil
}

// Handler answers all requests.
func (s *Server) Handler() http.Handler { return s.handler }

// Close ends the delivery of webhooks and gives the artifact folder back; the
// pool stays the caller's, who closes it afterwards.
func (s *Server) Close() error {
	s.hooks.close()
	return s.files.Close()
}

func (s *Server) now() int64 { return s.clock().UnixMilli() }

// tx runs fn in one transaction.
func (s *Server) tx(ctx context.Context, fn func(*store.Queries) error) error {
	return postgres.InTx(ctx, s.pool, func(tx pgx.Tx) error { return fn(s.q.WithTx(tx)) })
}
