package limit

import (
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
)

// Body refuses a larger request body. The server's own limit would apply before the caller is known.
func Body(c echo.Context, limit int64) error {
	r := c.Request()
	if r.ContentLength > limit {
		c.Response().Header().Set("Connection", "close") // rather than read the rest
		return problem.BodyTooLarge.New(fmt.Sprintf("The request body is larger than %d bytes.", limit))
	}
	r.Body = http.MaxBytesReader(c.Response().Writer, r.Body, limit)
	return nil
}
