package service

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/labstack/echo/v4"
)

// Limits of the limit parameter of lists.
const (
	DefaultPageLimit = 50
	MaxPageLimit     = 500
)

// PageLimit reads the query parameter limit: 1 to 500, default 50, else 422.
func PageLimit(c echo.Context) (int, error) { return PageLimitUpTo(c, DefaultPageLimit, MaxPageLimit) }

// PageLimitUpTo is PageLimit for lists with other limits.
func PageLimitUpTo(c echo.Context, standard, most int) (int, error) {
	if !c.QueryParams().Has("limit") {
		return standard, nil
	}
	n, err := strconv.Atoi(c.QueryParam("limit")) // an empty one is no number
	if err != nil || n < 1 || n > most {
		return 0, invalidField([]string{"query", "limit"}, fmt.Sprintf("must be a whole number from 1 to %d", most))
	}
	return n, nil
}

// cursor is a position and the list it is in: positions of two lists may look
// alike, and one of another list would give some page of this one.
type cursor struct {
	List string `json:"list"`
	At   any    `json:"at"`
}

// EncodeCursor encodes a position in the list that the route serves, which is c.Path() of its
// requests, as opaque text. It panics on a value that cannot be JSON, which is a bug in the
// program.
func EncodeCursor(route string, position any) string {
	raw, err := json.Marshal(cursor{route, position})
	if err != nil {
		panic(fmt.Sprintf("service: cursor of %T: %v", position, err))
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// maxCursor limits a cursor's text, in bytes.
const maxCursor = 4096

// Cursor reads the query parameter cursor into position, a pointer. ok is false
// when there is none; a cursor that EncodeCursor did not make of such a position
// for this route is 422.
func Cursor(c echo.Context, position any) (ok bool, err error) {
	v := c.QueryParam("cursor")
	if v == "" {
		return false, nil
	}
	return true, decodeCursor(v, c.Path(), position)
}

func decodeCursor(text, route string, position any) error {
	bad := invalidField([]string{"query", "cursor"}, "is not a cursor of this list; begin again without it")
	if len(text) > maxCursor {
		return bad
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	// The decoder skips line breaks and the last character's unused bits; a position has one text.
	if err != nil || base64.RawURLEncoding.EncodeToString(raw) != text {
		return bad
	}
	at := cursor{At: position}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if d.Decode(&at) != nil || int(d.InputOffset()) != len(raw) || at.List != route || at.At == nil {
		return bad
	}
	// What EncodeCursor makes has every member: {} would be a position nowhere.
	if same, err := json.Marshal(at); err != nil || !bytes.Equal(same, raw) {
		return bad
	}
	// Nor is U+0000 in any position: no store holds it, and Postgres fails on it.
	if bytes.Contains(bytes.ReplaceAll(raw, []byte(`\\`), nil), []byte(`\u0000`)) {
		return bad
	}
	return nil
}
