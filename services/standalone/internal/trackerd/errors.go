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

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/services/standalone/internal/trackerd/filter"
)

// refusal is an error as the interface knows it.
type refusal struct {
	status  int
	Code    string `json:"error_code"`
	Message string `json:"message"`
}

func (r *refusal) Error() string { return r.Code + ": " + r.Message }

func invalid(format string, a ...any) error {
	return &refusal{http.StatusBadRequest, "INVALID_PARAMETER_VALUE", fmt.Sprintf(format, a...)}
}

func notFound(format string, a ...any) error {
	return &refusal{http.StatusNotFound, "RESOURCE_DOES_NOT_EXIST", fmt.Sprintf(format, a...)}
}

func exists(format string, a ...any) error {
	return &refusal{http.StatusBadRequest, "RESOURCE_ALREADY_EXISTS", fmt.Sprintf(format, a...)}
}

func missing(param string) error {
	return invalid("Missing value for required parameter '%s'. See the API docs for more information about request parameters.", param)
}

// orNotFound makes a refusal of a row that is not there.
func orNotFound(err error, format string, a ...any) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return notFound(format, a...)
	}
	return err
}

func (s *Server) writeError(w http.ResponseWriter, r *http.Request, err error) {
	var ref *refusal
	var pg *pgconn.PgError
	var bad *filter.Error
	switch {
	case errors.As(err, &ref):
	case errors.As(err, &bad):
		ref = &refusal{http.StatusBadRequest, "INVALID_PARAMETER_VALUE", bad.Error()}
	case errors.As(err, &pg) && (pg.Code == "22P05" || pg.Code == "22021"): // NUL in jsonb or text
		ref = &refusal{http.StatusBadRequest, "INVALID_PARAMETER_VALUE", "The character U+0000 cannot be stored."}
	case r.Context().Err() != nil: // the caller has gone
		ref = &refusal{499, "CANCELLED", "The client closed the request."}
	case postgres.Unavailable(err) || errors.Is(err, context.DeadlineExceeded):
		s.log.ErrorContext(r.Context(), "tracker database unavailable", slog.String("path", r.URL.Path), slog.Any("err", err))
		w.Header().Set("Retry-After", "1")
		ref = &refusal{http.StatusServiceUnavailable, "TEMPORARILY_UNAVAILABLE", "The database cannot be reached; try again."}
	default:
		s.log.ErrorContext(r.Context(), "tracker request failed", slog.String("path", r.URL.Path), slog.Any("err", err))
		ref = &refusal{http.StatusInternalServerError, "INTERNAL_ERROR", "The request failed; the log of the platform says why."}
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
