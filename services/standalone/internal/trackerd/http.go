package trackerd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/standalone/internal/sites"
	"github.com/mlp-platform/platform/services/standalone/internal/trackerd/filter"
)

const (
	api     = "/api/2.0/mlflow/"
	fileAPI = "/api/2.0/mlflow-artifacts/artifacts"
)

// router registers the operations below the path of the API.
type router struct{ mux *http.ServeMux }

func (r router) get(path string, h http.HandlerFunc)   { r.mux.HandleFunc("GET "+api+path, h) }
func (r router) post(path string, h http.HandlerFunc)  { r.mux.HandleFunc("POST "+api+path, h) }
func (r router) patch(path string, h http.HandlerFunc) { r.mux.HandleFunc("PATCH "+api+path, h) }
func (r router) del(path string, h http.HandlerFunc)   { r.mux.HandleFunc("DELETE "+api+path, h) }

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	r := router{mux}
	s.routeTracking(r)
	s.routeRegistry(r)
	r.get("server-info", s.serverInfo)
	mux.HandleFunc("GET /api/3.0/mlflow/server-info", s.serverInfo)
	mux.HandleFunc("GET /{$}", s.overview)
	mux.HandleFunc("GET /health", serveText("OK"))
	mux.HandleFunc("GET /version", serveText(protocolVersion))
	// Clients learn from these refusals to send the file whole.
	for pattern, what := range map[string]string{
		"POST /api/2.0/mlflow-artifacts/mpu/":            "Multipart upload",
		"GET /api/2.0/mlflow-artifacts/presigned/":       "Multipart download",
		"POST " + api + "artifacts/presigned-upload-url": "Presigned upload",
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			s.writeError(w, r, &refusal{http.StatusNotImplemented, "NOT_IMPLEMENTED", what + " is not supported for the current artifact repository"})
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.writeError(w, r, &refusal{http.StatusNotFound, "ENDPOINT_NOT_FOUND", fmt.Sprintf("There is no %s %s here.", r.Method, r.URL.Path)})
	})
	return mux
}

// routeTracking registers experiments, runs and logged models.
func (s *Server) routeTracking(r router) {
	r.post("experiments/create", handleOp(s, s.createExperiment))
	r.get("experiments/get", handleOp(s, s.getExperiment))
	r.get("experiments/get-by-name", handleOp(s, s.getExperimentByName))
	r.get("experiments/search", handleOp(s, s.searchExperiments))
	r.post("experiments/search", handleOp(s, s.searchExperiments))
	r.post("experiments/update", handleOp(s, s.updateExperiment))
	r.post("experiments/delete", handleOp(s, s.deleteExperiment))
	r.post("experiments/restore", handleOp(s, s.restoreExperiment))
	r.post("experiments/set-experiment-tag", handleOp(s, s.setExperimentTag))
	r.post("experiments/delete-experiment-tag", handleOp(s, s.deleteExperimentTag))

	r.post("runs/create", handleOp(s, s.createRun))
	r.post("runs/update", handleOp(s, s.updateRun))
	r.get("runs/get", handleOp(s, s.getRun))
	r.post("runs/search", handleOp(s, s.searchRuns))
	r.post("runs/delete", handleOp(s, s.deleteRun))
	r.post("runs/restore", handleOp(s, s.restoreRun))
	r.post("runs/log-metric", handleOp(s, s.logMetric))
	r.post("runs/log-parameter", handleOp(s, s.logParam))
	r.post("runs/log-batch", handleOp(s, s.logBatch))
	r.post("runs/log-inputs", handleOp(s, s.logInputs))
	r.post("runs/outputs", handleOp(s, s.logOutputs))
	r.post("runs/log-model", handleOp(s, s.logModel))
	r.post("runs/set-tag", handleOp(s, s.setRunTag))
	r.post("runs/delete-tag", handleOp(s, s.deleteRunTag))
	r.get("metrics/get-history", handleOp(s, s.metricHistory))
	r.get("artifacts/list", handleOp(s, s.listRunArtifacts))

	r.post("logged-models", handleOp(s, s.createLoggedModel))
	r.post("logged-models/search", handleOp(s, s.searchLoggedModels))
	r.get("logged-models/{model_id}", handleOp(s, s.getLoggedModel))
	r.patch("logged-models/{model_id}", handleOp(s, s.finalizeLoggedModel))
	r.del("logged-models/{model_id}", handleOp(s, s.deleteLoggedModel))
	r.patch("logged-models/{model_id}/tags", handleOp(s, s.setLoggedModelTags))
	r.del("logged-models/{model_id}/tags/{tag_key}", handleOp(s, s.deleteLoggedModelTag))
	r.post("logged-models/{model_id}/params", handleOp(s, s.logLoggedModelParams))
	r.get("logged-models/{model_id}/artifacts/directories", handleOp(s, s.listModelArtifacts))
}

// routeRegistry registers models, their versions and webhooks.
func (s *Server) routeRegistry(r router) {
	r.post("registered-models/create", handleOp(s, s.createRegisteredModel))
	r.get("registered-models/get", handleOp(s, s.getRegisteredModel))
	r.get("registered-models/search", handleOp(s, s.searchRegisteredModels))
	r.patch("registered-models/update", handleOp(s, s.updateRegisteredModel))
	r.post("registered-models/rename", handleOp(s, s.renameRegisteredModel))
	r.del("registered-models/delete", handleOp(s, s.deleteRegisteredModel))
	r.get("registered-models/get-latest-versions", handleOp(s, s.latestVersions))
	r.post("registered-models/get-latest-versions", handleOp(s, s.latestVersions))
	r.post("registered-models/set-tag", handleOp(s, s.setModelTag))
	r.del("registered-models/delete-tag", handleOp(s, s.deleteModelTag))
	r.get("registered-models/alias", handleOp(s, s.getByAlias))
	r.post("registered-models/alias", handleOp(s, s.setAlias))
	r.del("registered-models/alias", handleOp(s, s.deleteAlias))

	r.post("model-versions/create", handleOp(s, s.createVersion))
	r.get("model-versions/get", handleOp(s, s.getVersion))
	r.get("model-versions/search", handleOp(s, s.searchVersions))
	r.patch("model-versions/update", handleOp(s, s.updateVersion))
	r.del("model-versions/delete", handleOp(s, s.deleteVersion))
	r.get("model-versions/get-download-uri", handleOp(s, s.downloadURI))
	r.post("model-versions/transition-stage", handleOp(s, s.transitionStage))
	r.post("model-versions/set-tag", handleOp(s, s.setVersionTag))
	r.del("model-versions/delete-tag", handleOp(s, s.deleteVersionTag))

	r.post("webhooks", handleOp(s, s.createWebhook))
	r.get("webhooks", handleOp(s, s.listWebhooks))
	r.get("webhooks/{webhook_id}", handleOp(s, s.getWebhook))
	r.patch("webhooks/{webhook_id}", handleOp(s, s.updateWebhook))
	r.del("webhooks/{webhook_id}", handleOp(s, s.deleteWebhook))
	r.post("webhooks/{webhook_id}/test", handleOp(s, s.testWebhook))
}

func serveText(body string) http.HandlerFunc {
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

// guard limits a request, keeps other sites' pages out and separates artifact
// paths, which the multiplexer would clean, from the rest.
func (s *Server) guard(next http.Handler) http.Handler {
	inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p, ok := strings.CutPrefix(r.URL.Path, fileAPI); ok && (p == "" || p[0] == '/') {
			s.serveFiles(w, r, strings.TrimPrefix(p, "/"))
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), callTimeout)
		defer cancel()
		service.LimitBody(w, r, maxBody)
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

// handleOp makes a handler of an operation: the request's parameters, from the
// query or the body, decoded into In.
func handleOp[In any](s *Server, op func(context.Context, In) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in In
		err := decodeRequest(r, &in)
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

func (s *Server) writeError(w http.ResponseWriter, r *http.Request, err error) {
	var ref *refusal
	var pg *pgconn.PgError
	var bad *filter.Error
	fullDisk, full := problem.DescribeFullDisk(err)
	switch {
	case errors.As(err, &ref):
	case errors.As(err, &bad):
		ref = &refusal{http.StatusBadRequest, "INVALID_PARAMETER_VALUE", bad.Error()}
	case errors.As(err, &pg) && (pg.Code == "22P05" || pg.Code == "22021"): // NUL in jsonb or text
		ref = &refusal{http.StatusBadRequest, "INVALID_PARAMETER_VALUE", "The character U+0000 cannot be stored."}
	case full:
		s.log.ErrorContext(r.Context(), "tracker disk full", slog.String("path", r.URL.Path), slog.Any("err", err))
		w.Header().Set("Retry-After", "5")
		ref = &refusal{http.StatusServiceUnavailable, "TEMPORARILY_UNAVAILABLE", fullDisk}
	case r.Context().Err() != nil: // the caller has gone
		ref = &refusal{499, "CANCELLED", "The client closed the request."}
	case postgres.Unavailable(err) || errors.Is(err, context.DeadlineExceeded):
		s.log.ErrorContext(r.Context(), "tracker database unavailable", slog.String("path", r.URL.Path), slog.Any("err", err))
		w.Header().Set("Retry-After", "1")
		ref = &refusal{http.StatusServiceUnavailable, "TEMPORARILY_UNAVAILABLE", "The database cannot be reached; try again."}
	default:
		s.log.ErrorContext(r.Context(), "tracker request failed", slog.String("path", r.URL.Path), slog.Any("err", err))
		ref = &refusal{http.StatusInternalServerError, "INTERNAL_ERROR", "The request failed; see the log of the platform for the cause."}
	}
	writeJSON(w, ref.status, ref)
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		panic(err) // the bodies are our own types
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.Copy(w, &buf) // the caller may have gone
}
