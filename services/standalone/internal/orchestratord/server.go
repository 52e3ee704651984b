package orchestratord

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord/store"
	"github.com/mlp-platform/platform/services/standalone/internal/sites"
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

// Clock replaces the clock.
func Clock(now func() time.Time) Option { return func(s *Server) { s.clock = now } }

// Server answers the API and, in [Server.Run], carries out runs.
type Server struct {
	pool        *pgxpool.Pool
	q           *store.Queries
	runner      Runner
	log         *slog.Logger
	clock       func() time.Time
	concurrency int

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
	for _, o := range opts {
		o(s)
	}
	return s, nil
}

// now is cut to what Postgres keeps, so that what was written compares equal to
// what is read.
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

// Handler serves the API below /api. It has no login and starts training past every approval, so it
// answers no web page of another site.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, fn := range map[string]endpoint{
		"GET /api/health":        func(*http.Request) (any, error) { return true, nil },
		"GET /api/admin/version": func(*http.Request) (any, error) { return protocolVersion, nil },

		"POST /api/flows":            s.createFlow,
		"GET /api/flows/{id}":        s.readFlow,
		"GET /api/flows/name/{name}": s.readFlowByName,
		"POST /api/flows/filter":     s.filterFlows,

		"POST /api/deployments":                         s.createDeployment,
		"GET /api/deployments/{id}":                     s.readDeployment,
		"GET /api/deployments/name/{flow}/{deployment}": s.readDeploymentByName,
		"PATCH /api/deployments/{id}":                   s.updateDeployment,
		"DELETE /api/deployments/{id}":                  s.deleteDeployment,
		"POST /api/deployments/filter":                  s.filterDeployments,
		"POST /api/deployments/{id}/pause_deployment":   s.pauseDeployment(true),
		"POST /api/deployments/{id}/resume_deployment":  s.pauseDeployment(false),
		"POST /api/deployments/{id}/create_flow_run":    s.createFlowRun,

		"GET /api/flow_runs/{id}":            s.readFlowRun,
		"POST /api/flow_runs/filter":         s.filterFlowRuns,
		"POST /api/flow_runs/count":          s.countFlowRuns,
		"POST /api/flow_runs/{id}/set_state": s.setState,
		"GET /api/flow_run_states":           s.listStates,
		"GET /api/flow_run_states/{id}":      s.readState,

		"POST /api/logs":        s.createLogs,
		"POST /api/logs/filter": s.filterLogs,

		"POST /api/work_pools":                                s.createWorkPool,
		"GET /api/work_pools/{name}":                          s.readWorkPool,
		"POST /api/work_pools/{name}/workers/heartbeat":       s.heartbeat,
		"POST /api/work_pools/{name}/get_scheduled_flow_runs": s.scheduledFlowRuns,
	} {
		mux.Handle(pattern, s.handle(fn))
	}
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The interface has a slash at the end of collections; both are taken.
		if p := r.URL.Path; len(p) > 1 && strings.HasSuffix(p, "/") {
			r = r.Clone(r.Context())
			r.URL.Path = strings.TrimSuffix(p, "/")
			r.URL.RawPath = strings.TrimSuffix(r.URL.RawPath, "/")
		}
		if h, pattern := mux.Handler(r); pattern == "" {
			unmatched(w, r, h)
			return
		}
		mux.ServeHTTP(w, r)
	})
	guarded := sites.Guard(api, nil, func(w http.ResponseWriter, r *http.Request, reason string) {
		s.writeError(w, r, refuse(http.StatusForbidden, "%s", reason))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		guarded.ServeHTTP(w, r)
	})
}

// unmatched gives the mux's 404 and 405 the body clients of the interface expect.
func unmatched(w http.ResponseWriter, r *http.Request, h http.Handler) {
	rec := statusRecorder{header: http.Header{}}
	h.ServeHTTP(&rec, r)
	switch {
	case rec.status == http.StatusMethodNotAllowed:
		w.Header().Set("Allow", rec.header.Get("Allow"))
		writeJSON(w, rec.status, problem{Detail: "Method Not Allowed"})
	default:
		writeJSON(w, http.StatusNotFound, problem{Detail: "Not Found"})
	}
}

type statusRecorder struct {
	header http.Header
	status int
}

func (s *statusRecorder) Header() http.Header { return s.header }
func (s *statusRecorder) WriteHeader(status int) {
	if s.status == 0 {
		s.status = status
	}
}
func (s *statusRecorder) Write(b []byte) (int, error) { return len(b), nil }

// endpoint answers one call: with the body, or with a status and body in an
// answer, or with an error.
type endpoint func(*http.Request) (any, error)

// answer is a body with a status other than 200.
type answer struct {
	status int
	body   any
}

func (s *Server) handle(fn endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				s.log.ErrorContext(r.Context(), "panic in a handler", slog.Any("panic", p), slog.String("path", r.URL.Path))
				writeJSON(w, http.StatusInternalServerError, problem{Message: "Internal Server Error"})
			}
		}()
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		body, err := fn(r)
		if err != nil {
			s.writeError(w, r, err)
			return
		}
		if a, ok := body.(answer); ok {
			writeJSON(w, a.status, a.body)
			return
		}
		writeJSON(w, http.StatusOK, body)
	})
}

func isNoRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }
