package access

import (
	"compress/gzip"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// compressFrom is the size in bytes from which an answer is compressed: a smaller one fits a packet anyway.
const compressFrom = 1 << 10

// Compress compresses answers for callers that accept gzip. It is for views and lists only. The size of a compressed
// answer leaks its content (BREACH), so it is not for answers with tokens, secrets or configuration, nor for answers
// that echo request text next to text written by others; nor for streams, whose frames would be delayed.
func Compress() echo.MiddlewareFunc {
	return middleware.GzipWithConfig(middleware.GzipConfig{Level: gzip.BestSpeed, MinLength: compressFrom})
}
