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
	compress, err := access.CompressJSON()
	if err != nil {
		t.Fatal(err)
	}
	e := echo.New()
	e.Use(compress)
	e.GET("/long", func(c echo.Context) error { return c.JSONBlob(http.StatusOK, []byte(long)) })
	e.GET("/short", func(c echo.Context) error { return c.JSONBlob(http.StatusOK, []byte(`{}`)) })
	e.GET("/same", func(c echo.Context) error { return c.NoContent(http.StatusNotModified) })
	e.GET("/page", func(c echo.Context) error { return c.HTML(http.StatusOK, long) })
	e.GET("/encoded", func(c echo.Context) error {
		c.Response().Header().Set("Content-Encoding", "br")
		return c.JSONBlob(http.StatusOK, []byte(long))
	})
	e.GET("/refused", func(echo.Context) error { return echo.NewHTTPError(http.StatusTeapot, "no") })
	for _, c := range []struct {
		path, accept, encoding string
		status                 int
	}{
		{"/long", "gzip", "gzip", 200}, {"/long", "br, gzip;q=0.8", "gzip", 200}, {"/long", "", "", 200}, {"/short", "gzip", "", 200}, {"/same", "gzip", "", 304},
		{"/page", "gzip", "", 200}, {"/encoded", "gzip", "br", 200}, {"/refused", "gzip", "", 418},
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

// A stream's header and frames leave at once, whatever the caller accepts.
func TestStreamsAreNotCompressed(t *testing.T) {
	t.Parallel()
	compress, err := access.CompressJSON()
	if err != nil {
		t.Fatal(err)
	}
	e, next := echo.New(), make(chan string)
	e.Use(compress)
	e.GET("/stream", func(c echo.Context) error {
		c.Response().Header().Set("Content-Type", "text/event-stream")
		c.Response().WriteHeader(http.StatusOK)
		c.Response().Flush()
		for frame := range next {
			if _, err := io.WriteString(c.Response(), frame); err != nil {
				return err
			}
			c.Response().Flush()
		}
		return nil
	})
	srv := httptest.NewServer(e)
	defer srv.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "gzip")
	res, err := srv.Client().Do(req) // returns once the header has come, before any frame
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got := res.Header.Get("Content-Encoding"); got != "" {
		t.Errorf("encoding %q, want none", got)
	}
	for _, frame := range []string{"data: 1\n\n", "data: 2\n\n"} {
		next <- frame
		got := make([]byte, len(frame))
		if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != frame {
			t.Errorf("got %q %v, want %q before the stream ends", got, err, frame)
		}
	}
	close(next)
}
