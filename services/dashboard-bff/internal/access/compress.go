package access

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzhttp"
	"github.com/labstack/echo/v4"
)

const (
	// compressFrom is the size in bytes from which an answer is compressed: a smaller one fits a packet anyway.
	compressFrom = 1 << 10
	// sizeJitter is how many bytes at most are added to a compressed answer, depending on its content.
	sizeJitter = 32
)

// CompressJSON compresses the JSON of every route for callers that accept gzip. Whether an answer is JSON is known when
// its header is written; any other answer, such as a stream or a hijacked connection, keeps its own writer.
//
// The size of a compressed answer can reveal its content to someone who controls part of it and can make the victim's
// browser request it repeatedly (BREACH). Sessions are safe from that by their cookie, which SameSite=Strict keeps out
// of requests from other sites; the jitter makes the size useless to those who only listen.
func CompressJSON() (echo.MiddlewareFunc, error) {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(compressFrom), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.RandomJitter(sizeJitter, 0, false),
		gzhttp.ContentTypeFilter(isJSONType))
	if err != nil {
		return nil, fmt.Errorf("configure compression: %w", err)
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) (err error) {
			res := c.Response()
			plain, done := res.Writer, false
			wrap(http.HandlerFunc(func(compressing http.ResponseWriter, _ *http.Request) {
				res.Before(func() {
					if !done && isJSONType(res.Header().Get(echo.HeaderContentType)) {
						res.Writer = compressing
					}
				})
				err = next(c)
				res.Writer, done = plain, true // an error is answered after this, by the server
			})).ServeHTTP(plain, c.Request())
			return err
		}
	}, nil
}

func isJSONType(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	return kind == "application/json" || strings.HasSuffix(kind, "+json")
}
