package problem_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
)

var update = flag.Bool("update", false, "rewrite golden files")

var denied = problem.Kind{Code: "promotion_denied", Status: 409, Title: "Promotion denied"}

var cases = map[string]error{
	"detail": problem.NotFound.New("There is no approval 7."),
	"fields": problem.Validation.New("body.power: must be a number.").WithErrors(
		problem.Field{Loc: []string{"body", "power"}, Msg: "must be a number"}),
	"extra": denied.New("2 checks failed").With(map[string]any{
		"allowed": false, "reasons": []string{"no enabled promotion policy", "metric rmse is not <finite>"},
		"status": 200, "code": "forged"}),
	"unencodable_extra": denied.New("odd").With(map[string]any{"f": func() {}, "kept": 1}),
	"retry":             problem.Unavailable.New("The tracker is down.").After(1500 * time.Millisecond),
	"retry_at_least_1":  problem.RateLimited.New("Too fast.").After(time.Millisecond),
	"header":            problem.Unauthorized.New("Who?").WithHeader("WWW-Authenticate", "Bearer"),
	"title_as_detail":   problem.Forbidden.New(""),
	"unknown":           errors.New("password=hunter2 at 10.0.0.1"),
	"wrapped":           fmt.Errorf("outer: %w", problem.Conflict.New("Taken.")),
	"cause":             problem.BadGateway.New("The tracker failed.").WithCause(errors.New("dial tcp 10.0.0.1: secret")),
	"echo_404":          echo.ErrNotFound,
	"echo_405":          echo.ErrMethodNotAllowed,
	"echo_415":          echo.ErrUnsupportedMediaType,
	"echo_teapot":       echo.NewHTTPError(418, "short and stout"),
	"echo_500":          echo.NewHTTPError(500, "inner text").SetInternal(errors.New("hidden")),
	"echo_wrapping":     echo.NewHTTPError(400, "x").SetInternal(problem.Conflict.New("Inner wins.")),
	"deadline":          fmt.Errorf("query: %w", context.DeadlineExceeded),
	"canceled":          context.Canceled,
	"body_too_large":    fmt.Errorf("read: %w", &http.MaxBytesError{Limit: 1024}),
	"no_status":         (problem.Kind{Code: "odd"}).New("A kind without status."),
}

func serveError(t *testing.T, method string, err error, log io.Writer) *http.Response {
	t.Helper()
	e := echo.New()
	e.HTTPErrorHandler = problem.Handler(slog.New(slog.NewTextHandler(log, nil)))
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			c.Response().Header().Set("X-Request-ID", "req-1")
			return next(c)
		}
	})
	e.Any("/a/*", func(echo.Context) error { return err })
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(method, "/a/b%2Fc?token=secret", nil))
	return w.Result()
}

// dumpResponse is status, headers and body: the bytes a client sees.
func dumpResponse(t *testing.T, resp *http.Response) []byte {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d\n", resp.StatusCode)
	if err := resp.Header.Write(&b); err != nil {
		t.Fatal(err)
	}
	b.WriteString("\n")
	b.Write(body)
	b.WriteString("\n")
	return bytes.ReplaceAll(b.Bytes(), []byte("\r\n"), []byte("\n"))
}

func TestGoldenDocuments(t *testing.T) {
	t.Parallel()
	for name, err := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := dumpResponse(t, serveError(t, http.MethodGet, err, io.Discard))
			file := filepath.Join("testdata", name+".http")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, rerr := os.ReadFile(file)
			if rerr != nil {
				t.Fatal(rerr, "want nil")
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if bytes.Contains(got, []byte("hunter2")) || bytes.Contains(got, []byte("secret")) {
				t.Error("the cause or the query leaks")
			}
		})
	}
}

func TestDecodeReadsBackWhatHandlerWrote(t *testing.T) {
	t.Parallel()
	for name, err := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := problem.From(err)
			got := problem.Decode(serveError(t, http.MethodGet, err, io.Discard))
			if got.Kind.Code != want.Kind.Code || got.Status() != want.Status() || !errors.Is(got, want) {
				t.Errorf("kind %+v, want %+v", got.Kind, want.Kind)
			}
			if want.Detail != "" && got.Detail != want.Detail {
				t.Errorf("detail %q, want %q", got.Detail, want.Detail)
			}
			if !reflect.DeepEqual(got.Errors, want.Errors) {
				t.Errorf("errors %v, want %v", got.Errors, want.Errors)
			}
			if got.RequestID != "req-1" {
				t.Errorf(`request id %q; want "req-1"`, got.RequestID)
			}
			if (got.RetryAfter > 0) != (want.RetryAfter > 0) {
				t.Errorf("retry after %s, want %s", got.RetryAfter, want.RetryAfter)
			}
		})
	}
}

func TestHeadHasNoBody(t *testing.T) {
	t.Parallel()
	resp := serveError(t, http.MethodHead, problem.NotFound.New("x"), io.Discard)
	if body, _ := io.ReadAll(resp.Body); len(body) > 0 || resp.StatusCode != 404 {
		t.Errorf("%d %q; want len(body) <= 0 && resp.StatusCode == 404", resp.StatusCode, body)
	}
}

func TestCausesAreLoggedOnceAndOnlyThere(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err  error
		want string
	}{
		{errors.New("the cause"), "level=ERROR"},
		{problem.BadGateway.New("Down.").WithCause(errors.New("the cause")), "level=WARN"},
	} {
		var log bytes.Buffer
		serveError(t, http.MethodGet, tc.err, &log)
		if s := log.String(); strings.Count(s, "the cause") != 1 || !strings.Contains(s, tc.want) {
			t.Errorf("log %q, want once, %s", s, tc.want)
		}
	}
	var log bytes.Buffer
	serveError(t, http.MethodGet, problem.NotFound.New("x"), &log)
	if log.Len() > 0 {
		t.Errorf("a caller's fault was logged: %s; want log.Len() <= 0", &log)
	}
}

func TestErrorAfterFirstByte(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	e := echo.New()
	e.HTTPErrorHandler = problem.Handler(slog.New(slog.NewTextHandler(&log, nil)))
	e.GET("/", func(c echo.Context) error {
		c.Response().WriteHeader(200)
		_, _ = c.Response().Write([]byte("half"))
		return errors.New("broke")
	})
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Body.String() != "half" || !strings.Contains(log.String(), "broke") {
		t.Errorf(`body %q, log %q; want w.Body.String() == "half" && strings.Contains(log.String(), "broke")`, w.Body, &log)
	}
}

func TestDecodeForeignBodies(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 1000)
	for _, tc := range []struct{ body, code, detail string }{
		{"<html>\n502\tBad Gateway</html>", "bad_gateway", "<html> 502 Bad Gateway</html>"},
		{"", "bad_gateway", ""},
		{"\xff\xfe\x00", "bad_gateway", ""},
		{"[1]", "bad_gateway", "[1]"},
		{`{"message":"said otherwise"}`, "bad_gateway", "said otherwise"},
		{`{"code":7,"detail":["a"],"errors":"x","retry":true}`, "bad_gateway", `{"code":7,"detail":["a"],"errors":"x","retry":true}`},
		{`{"code":"own_code","detail":"D"}`, "own_code", "D"},
		{long, "bad_gateway", long[:300] + "…"},
	} {
		got := problem.Decode(&http.Response{StatusCode: 502, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(tc.body))})
		if got.Kind.Code != tc.code || got.Detail != tc.detail || got.Status() != 502 {
			t.Errorf("%.40q: %+v %q; want got.Kind.Code == tc.code && got.Detail == tc.detail && got.Status() == 502", tc.body, got.Kind, got.Detail)
		}
	}
	if got := problem.Decode(&http.Response{StatusCode: 418}); got.Kind.Code != "im_a_teapot" {
		t.Errorf(`no body: %+v; want got.Kind.Code == "im_a_teapot"`, got.Kind)
	}
}

func TestDecodeReadsABoundedBody(t *testing.T) {
	t.Parallel()
	body := &countingReader{}
	got := problem.Decode(&http.Response{StatusCode: 500, Body: io.NopCloser(body)})
	if body.n > 128<<10 {
		t.Errorf("read %d bytes of an endless body; want body.n <= 128 << 10", body.n)
	}
	if got.Kind.Code != "internal" {
		t.Errorf(`%+v; want got.Kind.Code == "internal"`, got.Kind)
	}
}

type countingReader struct{ n int }

func (r *countingReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	r.n += len(p)
	return len(p), nil
}

func TestRetryAfterForms(t *testing.T) {
	t.Parallel()
	for value, want := range map[string][2]time.Duration{
		"":        {0, 0},
		"7":       {7 * time.Second, 7 * time.Second},
		"-7":      {0, 0},
		"nonsens": {0, 0},
		"9999999": {24 * time.Hour, 24 * time.Hour},
		time.Now().Add(time.Minute).UTC().Format(http.TimeFormat): {55 * time.Second, time.Minute},
		time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat):  {0, 0},
	} {
		resp := &http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {value}}, Body: http.NoBody}
		if got := problem.Decode(resp).RetryAfter; got < want[0] || got > want[1] {
			t.Errorf("%q: %s; want got >= want[0] && got <= want[1]", value, got)
		}
	}
}

func TestCopiesLeaveTheOriginal(t *testing.T) {
	t.Parallel()
	base := problem.Conflict.New("x").With(map[string]any{"a": 1}).WithErrors(problem.Field{Msg: "1"})
	_ = base.With(map[string]any{"b": 2}).WithErrors(problem.Field{Msg: "2"}).WithHeader("A", "b").After(time.Second).WithCause(io.EOF)
	if len(base.Extra) != 1 || len(base.Errors) != 1 || base.Header != nil || base.RetryAfter != 0 || base.Cause != nil {
		t.Errorf("changed: %+v; want len(base.Extra) == 1 && len(base.Errors) == 1 && base.Header == nil && base.RetryAfter == 0 && base.Cause == nil", base)
	}
}

func TestErrorfKeepsTheCause(t *testing.T) {
	t.Parallel()
	err := problem.BadGateway.Errorf("tracker: %w", io.ErrUnexpectedEOF)
	if !errors.Is(err, io.ErrUnexpectedEOF) || !problem.BadGateway.Has(fmt.Errorf("x: %w", err)) || problem.Conflict.Has(err) {
		t.Errorf(`%v; want errors.Is(err, io.ErrUnexpectedEOF) && problem.BadGateway.Has(fmt.Errorf("x: %%w", err)) && !problem.Conflict.Has(err)`, err)
	}
	if two := problem.BadGateway.Errorf("%w, %w", io.EOF, io.ErrClosedPipe); !errors.Is(two, io.EOF) || !errors.Is(two, io.ErrClosedPipe) {
		t.Errorf("%v; want errors.Is(two, io.EOF) && errors.Is(two, io.ErrClosedPipe)", two)
	}
	if err.Error() != "bad_gateway: tracker: unexpected EOF" {
		t.Errorf(`%q; want err.Error() == "bad_gateway: tracker: unexpected EOF"`, err)
	}
}

// Whatever a server sends, Decode returns a usable error of its status, and its
// result can be written again.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "{}", `{"code":"a","status":1,"detail":"b","errors":[{"loc":["x"],"msg":"y"}],"z":[1,{}]}`, "<p>", "\xff", `{"a":1}{`} {
		f.Add(404, []byte(s))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 100 || status > 599 {
			return
		}
		e := problem.Decode(&http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))})
		if e.Status() != status || e.Kind.Code == "" {
			t.Fatalf(`%+v; want e.Status() == status && e.Kind.Code != ""`, e.Kind)
		}
		if out := e.JSON("/x", "r"); !json.Valid(out) {
			t.Fatalf("not JSON: %q; want json.Valid(out)", out)
		}
	})
}

// A place that quotes a request whole must not send it back.
func TestLongTextsAreCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 30<<10)
	doc := problem.Validation.New(long).WithErrors(problem.Field{Loc: []string{"body", "kept"}, Msg: "kept"}, problem.Field{Loc: []string{"body", long}, Msg: long}).
		JSON("/"+strings.Repeat("x", 60<<10), "req-1")
	var got struct {
		Detail   string
		Instance *string
		Errors   []problem.Field
	}
	if err := json.Unmarshal(doc, &got); err != nil {
		t.Fatalf("%v: %.200s", err, doc)
	}
	if len(doc) > 4<<10 || !strings.HasSuffix(got.Detail, "é…") || got.Instance != nil {
		t.Errorf("got %d bytes, detail ending %q, instance %v; want at most 4 KiB, an ellipsis after a whole character, none",
			len(doc), got.Detail[max(0, len(got.Detail)-8):], got.Instance)
	}
	if want := (problem.Field{Loc: []string{"body", "kept"}, Msg: "kept"}); len(got.Errors) != 2 || got.Errors[0].Msg != want.Msg || !slices.Equal(got.Errors[0].Loc, want.Loc) {
		t.Errorf("got errors %.200v, want two, the first %v", got.Errors, want)
	}
	deep := problem.Validation.New("deep").WithErrors(problem.Field{Loc: strings.Split(strings.Repeat("a.", 10_000), "."), Msg: "x"}).JSON("/", "req-1")
	if len(deep) > 4<<10 {
		t.Errorf("a place 10,000 names deep takes %d bytes, want at most 4 KiB", len(deep))
	}
	if got := problem.Shorten("runtime"); got != "runtime" {
		t.Errorf("Shorten(runtime) = %q, want it whole", got)
	}
	if got := len(problem.Shorten(long)); got > 140 {
		t.Errorf("Shorten gives %d bytes of a long text, want at most 140", got)
	}
}
