package service

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/labstack/echo/v4"
)

// Bounds of the limit parameter of lists.
const (
	DefaultPageLimit = 50
	MaxPageLimit     = 500
)

// PageLimit reads the query parameter limit: 1 to 500, default 50, else 422.
func PageLimit(c echo.Context) (int, error) { return PageLimitUpTo(c, DefaultPageLimit, MaxPageLimit) }

// PageLimitUpTo is PageLimit for lists with bounds of their own.
func PageLimitUpTo(c echo.Context, standard, most int) (int, error) {
	v := c.QueryParam("limit")
	if v == "" {
		return standard, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > most {
		return 0, invalid([]string{"query", "limit"}, fmt.Sprintf("must be a whole number from 1 to %d", most))
	}
	return n, nil
}

// EncodeCursor makes the opaque text of a position in a list. It panics on a
// value that is no JSON, which is a fault of the program.
func EncodeCursor(position any) string {
	raw, err := json.Marshal(position)
	if err != nil {
		panic(fmt.Sprintf("service: cursor of %T: %v", position, err))
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// maxCursor bounds a cursor's text, in bytes.
const maxCursor = 4096

// Cursor reads the query parameter cursor into position. ok is false when there
// is none; a cursor that EncodeCursor did not make of such a position is 422.
func Cursor(c echo.Context, position any) (ok bool, err error) {
	v := c.QueryParam("cursor")
	if v == "" {
		return false, nil
	}
	return true, DecodeCursor(v, position)
}

// DecodeCursor is Cursor on a text.
func DecodeCursor(cursor string, position any) error {
	bad := invalid([]string{"query", "cursor"}, "is not a cursor of this list; begin again without it")
	if len(cursor) > maxCursor {
		return bad
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return bad
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if d.Decode(position) != nil || int(d.InputOffset()) != len(raw) {
		return bad
	}
	// What EncodeCursor makes has every member: {} would be a position nowhere.
	if same, err := json.Marshal(position); err != nil || !bytes.Equal(same, raw) {
		return bad
	}
	// Nor is U+0000 in any position: no store holds it, and Postgres fails on it.
	if bytes.Contains(bytes.ReplaceAll(raw, []byte(`\\`), nil), []byte(`\u0000`)) {
		return bad
	}
	return nil
}
