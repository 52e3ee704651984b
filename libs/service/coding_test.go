package service

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
)

func packGzip(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return b.String()
}

func packZlib(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A body is decoded before any handler sees it, and its limit applies to the decoded size.
func TestBodiesInAContentCoding(t *testing.T) {
	t.Parallel()
	s := New(Options{Name: "t", BodyLimit: 1000, PassCodings: map[string]bool{"/pass": true}})
	s.Echo.POST("/", func(c echo.Context) error {
		var in struct {
			Text string `json:"text"`
		}
		if err := DecodeJSON(c, &in, true); err != nil {
			return err
		}
		return c.String(http.StatusOK, in.Text)
	})
	s.Echo.POST("/pass", func(c echo.Context) error {
		raw, err := ReadBody(c)
		if err != nil {
			return err
		}
		return c.String(http.StatusOK, c.Request().Header.Get("Content-Encoding")+" "+string(raw))
	})
	s.Echo.POST("/unread", func(echo.Context) error { return problem.Unauthorized.New("who are you?") })
	url, _ := startServer(t, s)
	const doc = `{"text":"power"}`
	zipped := packGzip(t, doc)
	for _, tc := range []struct {
		name, path, coding, body string
		status                   int
		says                     string
	}{
		{"gzip", "/", "gzip", zipped, 200, "power"},
		{"the old name", "/", "X-GZIP", zipped, 200, "power"},
		{"deflate", "/", "deflate", packZlib(t, doc), 200, "power"},
		{"identity", "/", "identity", doc, 200, "power"},
		{"a bomb", "/", "gzip", packGzip(t, `{"text":"`+strings.Repeat(" ", 500_000)+`"}`), 413, "1000 bytes"},
		{"cut off", "/", "gzip", zipped[:len(zipped)-4], 400, "Content-Encoding is gzip"},
		{"not gzip", "/", "gzip", doc, 400, "Content-Encoding is gzip"},
		{"not zlib", "/", "deflate", doc, 400, "Content-Encoding is deflate"},
		{"brotli", "/", "br", doc, 415, `\"br\" is not read here`},
		{"two codings", "/", "gzip, gzip", zipped, 415, "gzip, deflate, identity"},
		{"refused for another reason", "/unread", "br", doc, 401, "who are you?"},
		{"passed on", "/pass", "br", doc, 200, "br " + doc},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for _, length := range []int64{int64(len(tc.body)), -1} {
				r, err := http.NewRequest("POST", url+tc.path, struct{ io.Reader }{strings.NewReader(tc.body)})
				if err != nil {
					t.Fatal(err)
				}
				r.ContentLength = length
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Content-Encoding", tc.coding)
				res, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(res.Body)
				res.Body.Close()
				if res.StatusCode != tc.status || !strings.Contains(string(body), tc.says) {
					t.Errorf("length %d: got %d %s, want %d and %q", length, res.StatusCode, body, tc.status, tc.says)
				}
				if got := res.Header.Get("Accept-Encoding"); (got != "") != (tc.status == 415) {
					t.Errorf("Accept-Encoding of the %d is %q", res.StatusCode, got)
				}
			}
		})
	}
}

// A handler without a Server gets the same from LimitBody.
func TestLimitBodyDecodes(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{packGzip(t, "power"): "power", packGzip(t, strings.Repeat("x", 2000)): "too large"} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		r.Header.Set("Content-Encoding", "gzip")
		w := httptest.NewRecorder()
		LimitBody(w, r, 1000)
		got, err := io.ReadAll(r.Body)
		if err != nil {
			got = []byte(err.Error())
		}
		if !strings.Contains(string(got), want) {
			t.Errorf("got %.40q, want %q", got, want)
		}
	}
}
