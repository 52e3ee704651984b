package trackerd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/services/standalone/internal/sites"
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

// MaxArtifact bounds one artifact in bytes; default 8 GiB.
func MaxArtifact(n int64) Option { return func(s *Server) { s.maxArtifact = n } }

// AllowHosts names hosts beside localhost and addresses by which the server may
// be called; a web page must not reach it through a name of its own.
func AllowHosts(names ...string) Option { return func(s *Server) { s.hosts = names } }

// Clock replaces the clock.
func Clock(now func() time.Time) Option { return func(s *Server) { s.clock = now } }

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

const (
	api     = "/api/2.0/mlflow/"
	fileAPI = "/api/2.0/mlflow-artifacts/artifacts"
)

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	get := func(path string, h http.HandlerFunc) { mux.HandleFunc("GET "+api+path, h) }
	post := func(path string, h http.HandlerFunc) { mux.HandleFunc("POST "+api+path, h) }
	patch := func(path string, h http.HandlerFunc) { mux.HandleFunc("PATCH "+api+path, h) }
	del := func(path string, h http.HandlerFunc) { mux.HandleFunc("DELETE "+api+path, h) }

	post("experiments/create", call(s, s.createExperiment))
	get("experiments/get", call(s, s.getExperiment))
	get("experiments/get-by-name", call(s, s.getExperimentByName))
	get("experiments/search", call(s, s.searchExperiments))
	post("experiments/search", call(s, s.searchExperiments))
	post("experiments/update", call(s, s.updateExperiment))
	post("experiments/delete", call(s, s.deleteExperiment))
	post("experiments/restore", call(s, s.restoreExperiment))
	post("experiments/set-experiment-tag", call(s, s.setExperimentTag))
	post("experiments/delete-experiment-tag", call(s, s.deleteExperimentTag))

	post("runs/create", call(s, s.createRun))
	post("runs/update", call(s, s.updateRun))
	get("runs/get", call(s, s.getRun))
	post("runs/search", call(s, s.searchRuns))
	post("runs/delete", call(s, s.deleteRun))
	post("runs/restore", call(s, s.restoreRun))
	post("runs/log-metric", call(s, s.logMetric))
	post("runs/log-parameter", call(s, s.logParam))
	post("runs/log-batch", call(s, s.logBatch))
	post("runs/log-inputs", call(s, s.logInputs))
	post("runs/outputs", call(s, s.logOutputs))
	post("runs/log-model", call(s, s.logModel))
	post("runs/set-tag", call(s, s.setRunTag))
	post("runs/delete-tag", call(s, s.deleteRunTag))
	get("metrics/get-history", call(s, s.metricHistory))
	get("artifacts/list", call(s, s.listRunArtifacts))

	post("logged-models", call(s, s.createLoggedModel))
	post("logged-models/search", call(s, s.searchLoggedModels))
	get("logged-models/{model_id}", call(s, s.getLoggedModel))
	patch("logged-models/{model_id}", call(s, s.finalizeLoggedModel))
	del("logged-models/{model_id}", call(s, s.deleteLoggedModel))
	patch("logged-models/{model_id}/tags", call(s, s.setLoggedModelTags))
	del("logged-models/{model_id}/tags/{tag_key}", call(s, s.deleteLoggedModelTag))
	post("logged-models/{model_id}/params", call(s, s.logLoggedModelParams))
	get("logged-models/{model_id}/artifacts/directories", call(s, s.listModelArtifacts))

	post("registered-models/create", call(s, s.createRegisteredModel))
	get("registered-models/get", call(s, s.getRegisteredModel))
	get("registered-models/search", call(s, s.searchRegisteredModels))
	patch("registered-models/update", call(s, s.updateRegisteredModel))
	post("registered-models/rename", call(s, s.renameRegisteredModel))
	del("registered-models/delete", call(s, s.deleteRegisteredModel))
	get("registered-models/get-latest-versions", call(s, s.latestVersions))
	post("registered-models/get-latest-versions", call(s, s.latestVersions))
	post("registered-models/set-tag", call(s, s.setModelTag))
	del("registered-models/delete-tag", call(s, s.deleteModelTag))
	get("registered-models/alias", call(s, s.getByAlias))
	post("registered-models/alias", call(s, s.setAlias))
	del("registered-models/alias", call(s, s.deleteAlias))

	post("model-versions/create", call(s, s.createVersion))
	get("model-versions/get", call(s, s.getVersion))
	get("model-versions/search", call(s, s.searchVersions))
	patch("model-versions/update", call(s, s.updateVersion))
	del("model-versions/delete", call(s, s.deleteVersion))
	get("model-versions/get-download-uri", call(s, s.downloadURI))
	post("model-versions/transition-stage", call(s, s.transitionStage))
	post("model-versions/set-tag", call(s, s.setVersionTag))
	del("model-versions/delete-tag", call(s, s.deleteVersionTag))

	post("webhooks", call(s, s.createWebhook))
	get("webhooks", call(s, s.listWebhooks))
	get("webhooks/{webhook_id}", call(s, s.getWebhook))
	patch("webhooks/{webhook_id}", call(s, s.updateWebhook))
	del("webhooks/{webhook_id}", call(s, s.deleteWebhook))
	post("webhooks/{webhook_id}/test", call(s, s.testWebhook))

	get("server-info", s.serverInfo)
	mux.HandleFunc("GET /api/3.0/mlflow/server-info", s.serverInfo)
	mux.HandleFunc("GET /{$}", s.overview)
	mux.HandleFunc("GET /health", text("OK"))
	mux.HandleFunc("GET /version", text(protocolVersion))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.writeError(w, r, &refusal{http.StatusNotFound, "ENDPOINT_NOT_FOUND", fmt.Sprintf("There is no %s %s here.", r.Method, r.URL.Path)})
	})
	return mux
}

func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(body)) // the caller may have gone
	}
}

func (s *Server) serverInfo(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{
		"store_type": "SqlStore", "workspaces_enabled": false, "trace_archival_enabled": false,
		"multipart_uploads_enabled": false, "multipart_downloads_enabled": false,
		"presigned_upload_run_id_supported": false, "presigned_upload_model_id_supported": false,
	})
}

// guard bounds a request, keeps other sites' pages out and separates artifact
// paths, which the multiplexer would clean, from the rest.
func (s *Server) guard(next http.Handler) http.Handler {
	inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p, ok := strings.CutPrefix(r.URL.Path, fileAPI); ok && (p == "" || p[0] == '/') {
			s.serveFiles(w, r, strings.TrimPrefix(p, "/"))
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), callTimeout)
		defer cancel()
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(callTimeout)) // not offered by every writer; net/http resets it
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r.WithContext(ctx))
	})
	guarded := sites.Guard(inner, s.hosts, func(w http.ResponseWriter, r *http.Request, reason string) {
		s.writeError(w, r, &refusal{http.StatusForbidden, "PERMISSION_DENIED", reason})
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("X-Frame-Options", "SAMEORIGIN")
		guarded.ServeHTTP(w, r)
	})
}

func (s *Server) now() int64 { return s.clock().UnixMilli() }

// tx runs fn in one transaction.
func (s *Server) tx(ctx context.Context, fn func(*store.Queries) error) error {
	return postgres.InTx(ctx, s.pool, func(tx pgx.Tx) error { return fn(s.q.WithTx(tx)) })
}

// call makes a handler of an operation: the request's parameters, from the
// query or the body, decoded into In.
func call[In any](s *Server, op func(context.Context, In) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in In
		err := decode(r, &in)
		var out any
		if err == nil {
			out, err = op(r.Context(), in)
		}
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			err = &refusal{http.StatusRequestEntityTooLarge, "INVALID_PARAMETER_VALUE", fmt.Sprintf("The request body is over %d bytes.", tooLarge.Limit)}
		}
		if err != nil {
			s.writeError(w, r, err)
			return
		}
		if out == nil {
			out = struct{}{}
		}
		writeJSON(w, http.StatusOK, out)
	}
}
