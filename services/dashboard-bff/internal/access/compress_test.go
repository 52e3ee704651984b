package access_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access"
)

func TestLargeAnswersAreCompressedForThoseWhoAcceptIt(t *testing.T) {
	t.Parallel()
	long := `{"rows":"` + strings.Repeat("JPCP ", 1000) + `"}`
	e := echo.New()
	e.GET("/long", func(c echo.Context) error { return c.JSONBlob(http.StatusOK, []byte(long)) }, access.Compress())
	e.GET("/short", func(c echo.Context) error { return c.JSONBlob(http.StatusOK, []byte(`{}`)) }, access.Compress())
	e.GET("/same", func(c echo.Context) error { return c.NoContent(http.StatusNotModified) }, access.Compress())
	for _, c := range []struct {
		path, accept, encoding string
		status                 int
	}{
		{"/long", "gzip", "gzip", 200}, {"/long", "br, gzip;q=0.8", "gzip", 200}, {"/long", "", "", 200}, {"/short", "gzip", "", 200}, {"/same", "gzip", "", 304},
	} {
		rec := httptest.NewRecorder()
		req := httptest.NewRequest(http.MethodGet, c.path, nil)
		if c.accept != "" {
			req.Header.Set("Accept-Encoding", c.accept)
		}
		e.ServeHTTP(rec, req)
		if got := rec.Header().Get("Content-Encoding"); got != c.encoding || rec.Code != c.status {
			t.Errorf("%s with Accept-Encoding %q: %d, encoding %q; want %d, %q", c.path, c.accept, rec.Code, got, c.status, c.encoding)
		}
		if !strings.Contains(rec.Header().Get("Vary"), "Accept-Encoding") {
			t.Errorf("%s: Vary %q; a cache must not mix the two", c.path, rec.Header().Get("Vary"))
		}
		if c.encoding != "gzip" {
			continue
		}
		size := rec.Body.Len()
		r, err := gzip.NewReader(rec.Body)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(r); err != nil || string(body) != long || size*4 > len(long) {
			t.Errorf("%s: %d bytes of %d, %v; want the answer, smaller", c.path, size, len(long), err)
		}
	}
}
