// Package reference serves interactive references of an API: Swagger UI at
// /docs, Redoc at /redoc, the description at /openapi.json. Everything comes
// from the binary, and the pages may load nothing from elsewhere.
package reference

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/labstack/echo/v4"
	swagger "github.com/swaggest/swgui/v5/static"
)

//go:embed docs.html docs.js redoc.html redoc.js page.css redoc/redoc.standalone.js.gz
var files embed.FS

// policy allows the page's own host only, and no inline script. The hashes are
// those of the two style elements that Redoc makes: an empty one, filled through
// the object model afterwards, and a constant one; the icons of both libraries
// are data URLs. Redoc's own logo, at another host, stays blocked.
const policy = "default-src 'self'; img-src 'self' data:; " +
	"style-src 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' 'sha256-QMIg+bpjm3JdElJ388KYke01izlUW0UoNOeKjpMxdgc='; " +
	"object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const (
	html       = "text/html; charset=utf-8"
	javascript = "text/javascript; charset=utf-8"
	css        = "text/css; charset=utf-8"
	png        = "image/png"
)

// assets are served as they lie in their file system; names that end in .gz are
// compressed there.
var assets = []struct {
	path, contentType string
	fsys              fs.FS
	name              string
}{
	{"/docs", html, files, "docs.html"},
	{"/docs/init.js", javascript, files, "docs.js"},
	{"/docs/swagger-ui-bundle.js", javascript, swagger.FS, "swagger-ui-bundle.js.gz"},
	{"/docs/swagger-ui.css", css, swagger.FS, "swagger-ui.css.gz"},
	{"/docs/favicon-32x32.png", png, swagger.FS, "favicon-32x32.png"},
	{"/redoc", html, files, "redoc.html"},
	{"/redoc/init.js", javascript, files, "redoc.js"},
	{"/redoc/page.css", css, files, "page.css"},
	{"/redoc/redoc.standalone.js", javascript, files, "redoc/redoc.standalone.js.gz"},
}

// Add adds the routes. openapi is the description in YAML.
func Add(e *echo.Echo, openapi []byte) error {
	description, err := yaml.YAMLToJSON(openapi)
	if err != nil {
		return fmt.Errorf("openapi description: %w", err)
	}
	read := []string{http.MethodGet, http.MethodHead}
	e.Match(read, "/openapi.json", func(c echo.Context) error {
		return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, description)
	})
	for _, a := range assets {
		raw, err := fs.ReadFile(a.fsys, a.name)
		if err != nil {
			return err
		}
		e.Match(read, a.path, serveBlob(a.contentType, raw, strings.HasSuffix(a.name, ".gz")))
	}
	return nil
}

func serveBlob(contentType string, raw []byte, compressed bool) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("Cache-Control", "no-cache")
		if !compressed {
			return c.Blob(http.StatusOK, contentType, raw)
		}
		h.Set("Cache-Control", "max-age=3600")
		h.Set("Vary", "Accept-Encoding")
		if strings.Contains(c.Request().Header.Get("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
			return c.Blob(http.StatusOK, contentType, raw)
		}
		z, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			return err
		}
		h.Set("Content-Type", contentType)
		c.Response().WriteHeader(http.StatusOK)
		_, err = io.Copy(c.Response(), z)
		return err
	}
}
