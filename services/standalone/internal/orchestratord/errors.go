package orchestratord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mlp-platform/platform/libs/postgres"
)

// maxBody bounds a request; a batch of 1,000 log lines stays below it.
const maxBody = 1 << 20

// problem is the body of an error: detail for the server's own refusals,
// exception_message and exception_detail for what the framework in front of a
// real server refuses. The request body is not sent back: it may hold secrets.
type problem struct {
	Detail  string  `json:"detail,omitempty"`
	Message string  `json:"exception_message,omitempty"`
	Faults  []fault `json:"exception_detail,omitempty"`
}

type fault struct {
	Type string   `json:"type"`
	Loc  []string `json:"loc"`
	Msg  string   `json:"msg"`
}

// refusal is an error with a status and a body.
type refusal struct {
	status int
	body   problem
}

func (r *refusal) Error() string {
	if r.body.Detail != "" {
		return r.body.Detail
	}
	return r.body.Message
}

func refuse(status int, format string, a ...any) error {
	return &refusal{status, problem{Detail: fmt.Sprintf(format, a...)}}
}

func notFound(what string) error { return refuse(http.StatusNotFound, "%s not found", what) }

// absent turns the absence of a row into 404.
func absent(err error, what string) error {
	if isNoRows(err) {
		return notFound(what)
	}
	return err
}

// invalid refuses a member of the body, named by its path.
func invalid(loc string, format string, a ...any) error {
	path := []string{"body"}
	if loc != "" {
		path = append(path, strings.Split(loc, ".")...)
	}
	return &refusal{http.StatusUnprocessableEntity, problem{
		Message: "Invalid request received.",
		Faults:  []fault{{Type: "value_error", Loc: path, Msg: fmt.Sprintf(format, a...)}},
	}}
}

func (s *Server) writeError(w http.ResponseWriter, r *http.Request, err error) {
	var ref *refusal
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &ref):
		writeJSON(w, ref.status, ref.body)
	case errors.As(err, &pg) && (pg.Code == "22P05" || pg.Code == "22021"): // NUL in jsonb or text
		writeJSON(w, http.StatusUnprocessableEntity, problem{Detail: "The character U+0000 cannot be stored."})
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

// decode reads a body. As on a real server, unknown members at the top are let
// pass; types that must not have any say so themselves. An empty body is {}.
func decode(r *http.Request, dst any) error {
	b, err := io.ReadAll(r.Body)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return refuse(http.StatusRequestEntityTooLarge, "The body is over %d bytes.", tooLarge.Limit)
	}
	if err != nil {
		return refuse(http.StatusBadRequest, "The body ended early: %v", err)
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return nil
	}
	// A form of a web page can send other types without asking first; clients of the interface send JSON.
	if t := r.Header.Get("Content-Type"); t != "" {
		if mt, _, err := mime.ParseMediaType(t); err != nil || mt != "application/json" {
			return invalid("", "the body is not application/json but %q", t)
		}
	}
	if !utf8.Valid(b) {
		return invalid("", "the body is not UTF-8")
	}
	err = json.Unmarshal(b, dst)
	var typeErr *json.UnmarshalTypeError
	var ref *refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ref):
		return ref
	case errors.As(err, &typeErr):
		return invalid(typeErr.Field, "%s cannot be read as %s", typeErr.Value, typeErr.Type)
	}
	return invalid("", "%v", err)
}

// strict decodes a filter. A member that is not known is refused, so that no
// condition is passed over in silence; the official client also sends those it
// does not use, as null.
func strict(b []byte, loc string, dst any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	if err == nil {
		b, err = json.Marshal(withoutDefaults(v))
	}
	if err == nil {
		d = json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		err = d.Decode(dst)
	}
	var ref *refusal
	if err == nil || errors.As(err, &ref) {
		return err
	}
	return invalid(loc, "%s", strings.TrimPrefix(err.Error(), "json: "))
}

// withoutDefaults drops members that say what their absence says.
func withoutDefaults(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	for k, member := range m {
		if member == nil || k == "operator" && member == "and_" {
			delete(m, k)
			continue
		}
		m[k] = withoutDefaults(member)
	}
	return m
}

func pathID(r *http.Request) (uuid.UUID, error) {
	id, err := uuid.Parse(r.PathValue("id"))
	if err != nil || len(r.PathValue("id")) != 36 {
		return uuid.Nil, refuse(http.StatusNotFound, "Not Found")
	}
	return id, nil
}

// page is the part of a filter's body that says which piece is wanted.
type page struct {
	Limit  *int `json:"limit"`
	Offset int  `json:"offset"`
}

const maxPage = 200

func (p page) bounds() (limit, offset int, err error) {
	limit = maxPage
	if p.Limit != nil {
		limit = *p.Limit
	}
	if limit > maxPage {
		return 0, 0, refuse(http.StatusUnprocessableEntity, "Invalid limit: must be less than or equal to %d.", maxPage)
	}
	if limit < 0 {
		return 0, 0, invalid("limit", "must not be negative")
	}
	if p.Offset < 0 {
		return 0, 0, invalid("offset", "must not be negative")
	}
	return limit, p.Offset, nil
}
