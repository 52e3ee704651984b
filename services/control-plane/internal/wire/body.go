package wire

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
)

// MaxBody limits a request body, in bytes.
const MaxBody = 1 << 20

// BoundBody refuses a body over MaxBody. It runs after credentials and rate limit, so that a stranger gets those
// refusals first.
func BoundBody(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if r.ContentLength > MaxBody {
			c.Response().Header().Set("Connection", "close") // rather than read the rest
			return problem.BodyTooLarge.New(fmt.Sprintf("The request body is larger than %d bytes.", MaxBody))
		}
		if r.ContentLength < 0 {
			r.Body = http.MaxBytesReader(c.Response().Writer, r.Body, MaxBody)
		}
		return next(c)
	}
}

// Decode reads a JSON body into dst; unknown fields are refused. The error is a problem.
func Decode(c echo.Context, dst any) error { return decodeKeepingBody(c, dst, service.DecodeJSON) }

// DecodeOptional is Decode for routes whose body may be absent.
func DecodeOptional(c echo.Context, dst any) error {
	return decodeKeepingBody(c, dst, service.DecodeOptionalJSON)
}

// DecodeOpen is Decode for routes that ignore unknown fields.
func DecodeOpen(c echo.Context, dst any) error {
	return decodeKeepingBody(c, dst, func(c echo.Context, dst any, _ bool) error { return service.DecodeJSON(c, dst, false) })
}

func decodeKeepingBody(c echo.Context, dst any, into func(echo.Context, any, bool) error) error {
	raw, err := service.ReadBody(c)
	if err != nil {
		return err
	}
	c.Request().Body = io.NopCloser(bytes.NewReader(raw))
	if err := into(c, dst, true); err != nil {
		return err
	}
	if hasNUL(raw) {
		return fault.Invalid("text contains the character U+0000, which cannot be stored", "body")
	}
	return nil
}

// hasNUL finds the escape \u0000 in valid JSON. Postgres stores it in neither
// text nor jsonb.
func hasNUL(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if bytes.HasPrefix(raw[i:], []byte(`\u0000`)) {
			return true
		}
		i++ // the escaped character, which may be another backslash
	}
	return false
}
