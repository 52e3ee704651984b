// Package input reads path and query parameters by the rules that all routes of the dashboard share.
package input

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
)

// Invalid returns a 422 for one fault; loc leads to it, such as body, url.
func Invalid(msg string, loc ...string) error {
	return InvalidFields(problem.Field{Loc: loc, Msg: msg})
}

// InvalidFields returns a 422 that names every fault; nil without any.
func InvalidFields(faults ...problem.Field) error {
	if len(faults) == 0 {
		return nil
	}
	parts := make([]string, len(faults))
	for i, f := range faults {
		parts[i] = strings.Join(f.Loc, ".") + ": " + f.Msg
	}
	return fault.ValidationFailed.New(strings.Join(parts, "; ") + ".").WithErrors(faults...)
}

// CheckQuery refuses query parameters that the route does not have, that are repeated, or that Postgres cannot store:
// a misspelt filter would otherwise be ignored and the whole list be mistaken for the filtered one.
func CheckQuery(c echo.Context, known ...string) error {
	query, err := url.ParseQuery(c.Request().URL.RawQuery)
	if err != nil {
		return Invalid("must be pairs name=value joined by &, with % and ; escaped", "query")
	}
	var faults []problem.Field
	for _, name := range slices.Sorted(maps.Keys(query)) {
		msg := ""
		switch {
		case !slices.Contains(known, name) && len(known) == 0:
			msg = "unknown parameter; this route has none"
		case !slices.Contains(known, name):
			msg = "unknown parameter; this route has " + strings.Join(known, ", ")
		case len(query[name]) > 1:
			msg = "is given more than once"
		case !Storable(query[name][0]):
			msg = "must be UTF-8 without the character U+0000"
		}
		if msg != "" {
			faults = append(faults, problem.Field{Loc: []string{"query", strings.ToValidUTF8(name, "\uFFFD")}, Msg: msg})
		}
	}
	return InvalidFields(faults...)
}

// PathParam returns a path parameter without its escapes: the router passes those of a path with unusual escapes, such
// as %2F, unchanged. Characters that Postgres cannot store become U+FFFD, which no name contains, so that the route
// answers as for any other unknown name.
func PathParam(c echo.Context, name string) (string, error) {
	v := c.Param(name)
	if c.Request().URL.RawPath != "" {
		var err error
		if v, err = url.PathUnescape(v); err != nil {
			return "", problem.BadRequest.New("The path holds an escape that is none; write % as %25.").WithCause(err)
		}
	}
	return strings.ReplaceAll(strings.ToValidUTF8(v, "\uFFFD"), "\x00", "\uFFFD"), nil
}

// Storable reports whether Postgres can store s as it is: it takes neither invalid UTF-8 nor U+0000.
func Storable(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }
