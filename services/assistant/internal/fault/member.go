package fault

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/problem"
)

// member is the error object that clients of the chat-completions format read. All four members are always present, as
// in that format; param is null when no field is at fault.
type member struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Code    string  `json:"code"`
	Param   *string `json:"param"`
}

// Limits of a document in bytes: a fault names its location, which may be a member's name as long as the request.
const (
	maxDetail = 2000
	maxPlace  = 200
)

// Document converts any error to the problem in the assistant's response.
func Document(err error) *problem.Error {
	p := problem.From(err).WithErrors() // a copy
	p.Detail = shortenText(p.Detail, maxDetail)
	for i, f := range p.Errors {
		f.Loc = slices.Clone(f.Loc)
		for j, name := range f.Loc {
			f.Loc[j] = shortenText(name, maxPlace)
		}
		f.Msg = shortenText(f.Msg, maxPlace)
		p.Errors[i] = f
	}
	m := member{Message: p.Detail, Type: errorType(p.Status()), Code: p.Kind.Code}
	if m.Message == "" {
		m.Message = p.Kind.Title
	}
	if len(p.Errors) > 0 {
		name := paramPath(p.Errors[0].Loc)
		m.Param = &name
	}
	return p.With(map[string]any{"error": m})
}

// Handler writes and logs errors like problem.Handler, with the error member. It answers 503 when the database cannot
// be reached.
func Handler(log *slog.Logger) echo.HTTPErrorHandler {
	write := problem.Handler(log)
	return func(err error, c echo.Context) {
		var known *problem.Error
		if !errors.As(err, &known) && postgres.Unavailable(err) {
			err = StoreUnavailable.New("The assistant's own store does not answer; try again later.").WithCause(err).After(5 * time.Second)
		}
		write(Document(err), c)
	}
}

func shortenText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}

func errorType(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}

// paramPath formats a location as chat-completions servers do: messages[3].content. It omits the part of the request
// unless that is the whole location.
func paramPath(loc []string) string {
	if len(loc) > 1 {
		loc = loc[1:]
	}
	var b strings.Builder
	for i, name := range loc {
		if _, err := strconv.ParseUint(name, 10, 32); err == nil && i > 0 {
			b.WriteString("[" + name + "]")
			continue
		}
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(name)
	}
	return b.String()
}
