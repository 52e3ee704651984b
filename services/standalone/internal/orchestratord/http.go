package orchestratord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mlp-platform/platform/libs/postgres"
	sharedproblem "github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/standalone/internal/sites"
)

// maxBody limits a request. The official client sends log lines in batches of up to 4 MB.
const maxBody = 5 << 20

// Handler serves the API below /api. It starts training without any approval, so it answers no web page of another
// site; the code that wraps it must require a credential.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /api/events/in", s.stream(dropEvents))
	mux.Handle("GET /api/events/out", s.stream(s.tellEvents))
	for _, routes := range []map[string]endpoint{s.ownRoutes(), s.flowRoutes(), s.runRoutes(), s.poolRoutes(), absentRoutes()} {
		for pattern, fn := range routes {
			mux.Handle(pattern, s.handle(fn))
		}
	}
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The interface has a slash at the end of collections; both are taken.
		if p := r.URL.Path; len(p) > 1 && strings.HasSuffix(p, "/") {
			r = r.Clone(r.Context())
			r.URL.Path = strings.TrimSuffix(p, "/")
			r.URL.RawPath = strings.TrimSuffix(r.URL.RawPath, "/")
		}
		if h, pattern := mux.Handler(r); pattern == "" {
			serveUnmatched(w, r, h)
			return
		}
		mux.ServeHTTP(w, r)
	})
	guarded := sites.Guard(api, nil, func(w http.ResponseWriter, r *http.Request, reason string) {
		s.writeError(w, r, refuseRequest(http.StatusForbidden, "%s", reason))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		guarded.ServeHTTP(w, r)
	})
}

// serveUnmatched gives the mux's 404 and 405 the body clients of the interface expect.
func serveUnmatched(w http.ResponseWriter, r *http.Request, h http.Handler) {
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
		service.LimitBody(w, r, maxBody)
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

func (s *Server) writeError(w http.ResponseWriter, r *http.Request, err error) {
	var ref *refusal
	var pg *pgconn.PgError
	fullDisk, full := sharedproblem.DescribeFullDisk(err)
	switch {
	case errors.As(err, &ref):
		writeJSON(w, ref.status, ref.body)
	case errors.As(err, &pg) && (pg.Code == "22P05" || pg.Code == "22021"): // NUL in jsonb or text
		writeJSON(w, http.StatusUnprocessableEntity, problem{Detail: "The character U+0000 cannot be stored."})
	case full:
		s.log.ErrorContext(r.Context(), "disk full", slog.String("path", r.URL.Path), slog.Any("err", err))
		w.Header().Set("Retry-After", "5")
		writeJSON(w, http.StatusServiceUnavailable, problem{Message: fullDisk})
	case errors.Is(err, context.Canceled) && r.Context().Err() != nil: // the caller has gone
		writeJSON(w, 499, problem{Message: "Client closed the request."})
	case postgres.Unavailable(err) || errors.Is(err, context.DeadlineExceeded):
		s.log.ErrorContext(r.Context(), "database unavailable", slog.String("path", r.URL.Path), slog.Any("err", err))
		w.Header().Set("Retry-After", "1")
		writeJSON(w, http.StatusServiceUnavailable, problem{Message: "Service Unavailable"})
	default:
		s.log.ErrorContext(r.Context(), "request failed", slog.String("path", r.URL.Path), slog.Any("err", err))
		writeJSON(w, http.StatusInternalServerError, problem{Message: "Internal Server Error"})
	}
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	if status == http.StatusNoContent {
		w.WriteHeader(status)
		return
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		panic(err) // the bodies are our own types
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(bytes.TrimSuffix(buf.Bytes(), []byte("\n"))) // the caller may have gone
}
