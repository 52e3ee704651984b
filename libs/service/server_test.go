package service

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"go.uber.org/goleak"

	"github.com/mlp-platform/platform/libs/problem"
)

// startServer runs s on a free port and returns its URL and a function that stops it
// and returns Run's error.
func startServer(t *testing.T, s *Server) (url string, stop func() error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.opt.Listener = ln
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(30 * time.Second):
			return errors.New("Run did not return")
		}
	})
	t.Cleanup(func() { _ = stop() })
	return "http://" + ln.Addr().String(), stop
}

func receiveWithin[T any](t *testing.T, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(20 * time.Second):
		t.Fatalf("waited too long for %s", what)
		panic("unreachable")
	}
}

func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	transport.CloseIdleConnections()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func serveRequest(t *testing.T, s *Server, r *http.Request) *http.Response {
	t.Helper()
	w := httptest.NewRecorder()
	s.Echo.ServeHTTP(w, r)
	return w.Result()
}

func getPath(t *testing.T, s *Server, path string) *http.Response {
	t.Helper()
	return serveRequest(t, s, httptest.NewRequest(http.MethodGet, path, nil))
}

func readBody(t *testing.T, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestPortInUseIsOneClearSentence(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	s := New(Options{Name: "inference", Addr: ln.Addr().String()})
	closed := false
	s.OnClose(func() { closed = true })
	err = s.Run(t.Context())
	if !errors.Is(err, syscall.EADDRINUSE) || strings.Contains(err.Error(), "\n") ||
		!strings.HasPrefix(err.Error(), "inference cannot listen on "+ln.Addr().String()+": another process uses this port") {
		t.Errorf("%v; want errors.Is(err, syscall.EADDRINUSE) && !strings.Contains(err.Error(), \"\\n\") && …", err)
	}
	if !closed {
		t.Error("OnClose did not run")
	}
}

func TestDrainFinishesRequestsEndsStreamsAndKeepsOrder(t *testing.T) {
	t.Parallel()
	s := New(Options{Name: "t"})
	var mu sync.Mutex
	var order []string
	note := func(step string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, step)
	}
	inside, release, endStreams, drained := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	s.Echo.GET("/slow", func(c echo.Context) error {
		close(inside)
		<-release
		note("request")
		return c.String(http.StatusOK, "whole")
	})
	s.Echo.GET("/stream", func(c echo.Context) error {
		c.Response().WriteHeader(http.StatusOK)
		c.Response().Flush()
		<-endStreams
		note("stream")
		_, err := io.WriteString(c.Response(), "bye")
		return err
	})
	s.OnDrain(func() { note("drain"); close(endStreams); close(drained) })
	s.Go("worker", func(ctx context.Context) error {
		<-ctx.Done()
		note("worker")
		return ctx.Err()
	})
	s.OnClose(func() { note("close first added") })
	s.OnClose(func() { note("close last added") })
	url, stop := startServer(t, s)

	stream, err := http.Get(url + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	type answer struct {
		body string
		err  error
	}
	slow := make(chan answer, 1)
	go func() {
		resp, err := http.Get(url + "/slow")
		if err != nil {
			slow <- answer{err: err}
			return
		}
		raw, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		slow <- answer{string(raw), err}
	}()
	receiveWithin(t, inside, "the slow request")
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	receiveWithin(t, drained, "the drain")
	if got := readBody(t, stream); got != "bye" {
		t.Errorf(`stream got %q; want "bye"`, got)
	}
	// While a request is in flight, probes still answer, with the reason.
	ready, err := http.Get(url + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	if got := readBody(t, ready); ready.StatusCode != 503 || !strings.Contains(got, `"drain":"fail: the service is shutting down"`) {
		t.Errorf("readyz: %d %s; want ready.StatusCode == 503 && strings.Contains(got, `\"drain\":\"fail: the service is shutting down\"`)", ready.StatusCode, got)
	}
	refused, err := http.Get(url + "/slow")
	if err != nil {
		t.Fatal(err)
	}
	if p := problem.Decode(refused); p.Kind.Code != "draining" || refused.StatusCode != 503 || refused.Header.Get("Retry-After") != "1" {
		t.Errorf(`%+v; want p.Kind.Code == "draining" && refused.StatusCode == 503 && refused.Header.Get("Retry-After") == "1"`, p)
	}
	refused.Body.Close()
	for method, want := range map[string]int{http.MethodPost: http.StatusMethodNotAllowed, http.MethodGet: http.StatusNotFound} {
		path := url + "/slow"
		if want == http.StatusNotFound {
			path = url + "/nothing"
		}
		req, err := http.NewRequestWithContext(t.Context(), method, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s %s while draining: %s, want %d", method, path, resp.Status, want)
		}
	}
	close(release)
	if a := receiveWithin(t, slow, "the slow answer"); a.err != nil || a.body != "whole" {
		t.Errorf(`in flight: %+v; want a.body == "whole"`, a)
	}
	if err := receiveWithin(t, stopped, "the stop"); err != nil {
		t.Error(err)
	}
	want := []string{"drain", "stream", "request", "worker", "close last added", "close first added"}
	if !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	if !s.Draining() {
		t.Error("not draining")
	}
}

func TestDrainCutsOffWhatDoesNotFinish(t *testing.T) {
	t.Parallel()
	s := New(Options{Name: "t", Drain: 50 * time.Millisecond})
	inside := make(chan struct{})
	s.Echo.GET("/stuck", func(c echo.Context) error {
		close(inside)
		<-c.Request().Context().Done() // the cut ends it
		return nil
	})
	url, stop := startServer(t, s)
	failed := make(chan error, 1)
	go func() {
		_, err := http.Get(url + "/stuck")
		failed <- err
	}()
	receiveWithin(t, inside, "the request")
	if err := stop(); err == nil || !strings.Contains(err.Error(), "1 requests did not finish within 50ms") {
		t.Errorf(`%v; want an error && strings.Contains(err.Error(), "1 requests did not finish within 50ms")`, err)
	}
	if receiveWithin(t, failed, "the client") == nil {
		t.Error("the client got an answer")
	}
}

// Browsers open connections ahead of use; they must not hold up a stop.
func TestDrainDoesNotWaitForSilentConnections(t *testing.T) {
	t.Parallel()
	s := New(Options{Name: "t", Drain: time.Minute}) // far beyond the bound below
	url, stop := startServer(t, s)
	for range 3 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	resp, err := http.Get(url + "/livez") // accepted after the others
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	began := time.Now()
	if err := stop(); err != nil || time.Since(began) > 15*time.Second {
		t.Errorf("took %s: %v; want time.Since(began) <= 15 * time.Second", time.Since(began), err)
	}
}

// Requests that end in the very moment the drain begins must not be waited for
// until the deadline.
func TestDrainRacesWithTheLastRequest(t *testing.T) {
	t.Parallel()
	for range 2000 {
		var draining atomic.Bool
		f := inFlight{zero: make(chan struct{}, 1)}
		f.n.Add(1)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		go f.done(&draining)
		draining.Store(true)
		if n := f.wait(ctx); n != 0 {
			t.Fatal("waited for a request that had ended")
		}
		cancel()
	}
}

func TestFailedWorkerStopsTheService(t *testing.T) {
	t.Parallel()
	for name, fn := range map[string]func(context.Context) error{
		"error": func(context.Context) error { return errors.New("broken") },
		"panic": func(context.Context) error { panic("broken") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := New(Options{Name: "t", Addr: "127.0.0.1:0"})
			s.Go("relay", fn)
			s.Go("finished", func(context.Context) error { return nil }) // this alone stops nothing
			done := make(chan error, 1)
			go func() { done <- s.Run(context.Background()) }()
			if err := receiveWithin(t, done, "Run"); err == nil || !strings.Contains(err.Error(), "relay: ") || !strings.Contains(err.Error(), "broken") {
				t.Errorf(`%v; want an error && strings.Contains(err.Error(), "relay: ") && strings.Contains(err.Error(), "broken")`, err)
			}
		})
	}
}

func TestWorkerAddedWhileRunning(t *testing.T) {
	t.Parallel()
	s := New(Options{Name: "t"})
	began, ended := make(chan struct{}), make(chan struct{})
	s.Echo.GET("/", func(c echo.Context) error {
		s.Go("late", func(ctx context.Context) error {
			close(began)
			<-ctx.Done()
			close(ended)
			return nil
		})
		return c.NoContent(http.StatusNoContent)
	})
	url, stop := startServer(t, s)
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	receiveWithin(t, began, "the worker")
	if err := stop(); err != nil {
		t.Error(err)
	}
	receiveWithin(t, ended, "the worker's end")
}

// Streams flush and set write deadlines through the middleware.
func TestResponseControllerReachesTheConnection(t *testing.T) {
	t.Parallel()
	s := New(Options{Name: "t"})
	next := make(chan struct{})
	s.Echo.GET("/", func(c echo.Context) error {
		ctl := http.NewResponseController(c.Response())
		if err := errors.Join(ctl.SetWriteDeadline(time.Now().Add(time.Minute)), ctl.SetReadDeadline(time.Time{})); err != nil {
			return err
		}
		_, err := io.WriteString(c.Response(), "first\n")
		if err := errors.Join(err, ctl.Flush()); err != nil {
			return err
		}
		<-next // the client has read the flushed part
		return nil
	})
	url, _ := startServer(t, s)
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	close(next)
	if err != nil || line != "first\n" {
		t.Errorf("%q %v; want line == \"first\\n\"", line, err)
	}
}

func TestPanics(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := New(Options{Name: "t", Log: NewLogger(&log, "info")})
	s.Echo.GET("/before", func(echo.Context) error { panic("secret 1") })
	s.Echo.GET("/after", func(c echo.Context) error {
		c.Response().WriteHeader(http.StatusOK)
		_, _ = io.WriteString(c.Response(), "half")
		c.Response().Flush()
		panic("secret 2")
	})
	url, stop := startServer(t, s)
	resp, err := http.Get(url + "/before")
	if err != nil {
		t.Fatal(err)
	}
	raw := readBody(t, resp)
	if resp.StatusCode != 500 || !strings.Contains(raw, `"code":"internal"`) || strings.Contains(raw, "secret") {
		t.Errorf("%d %s; want resp.StatusCode == 500 && strings.Contains(raw, `\"code\":\"internal\"`) && !strings.Contains(raw, \"secret\")", resp.StatusCode, raw)
	}
	resp, err = http.Get(url + "/after")
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	if err == nil {
		t.Error("half an answer looked whole")
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "handler panicked"); n != 2 {
		t.Errorf("%d panics logged; want 2", n)
	}
	if got := readBody(t, getPath(t, s, "/metrics")); !strings.Contains(got, `http_requests_total{method="GET",route="/before",service="t",status="500"} 1`) {
		t.Errorf("metrics:\n%s; want strings.Contains(got, `http_requests_total{method=\"GET\",route=\"/before\",service=\"t\",status=\"500\"} 1`)", got)
	}
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	s := New(Options{Name: "t"})
	s.Echo.GET("/", func(c echo.Context) error { return c.String(200, RequestID(c.Request().Context())) })
	uuid7 := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	for _, tc := range []struct {
		in   []string
		kept bool
	}{
		{[]string{"a"}, true}, {[]string{"A.b_c-9"}, true}, {[]string{strings.Repeat("x", 128)}, true},
		{nil, false}, {[]string{""}, false}, {[]string{strings.Repeat("x", 129)}, false}, {[]string{"a b"}, false},
		{[]string{"a\n"}, false}, {[]string{"é"}, false}, {[]string{"a/b"}, false}, {[]string{"a", "b"}, false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header["X-Request-Id"] = tc.in
		resp := serveRequest(t, s, r)
		id := resp.Header.Get("X-Request-ID")
		if got := readBody(t, resp); got != id {
			t.Errorf("%q: handler has %q, caller gets %q; want got == %v", tc.in, got, id, id)
		}
		if tc.kept && id != tc.in[0] || !tc.kept && !uuid7.MatchString(id) {
			t.Errorf("%q became %q; want (!tc.kept || id == tc.in[0]) && (tc.kept || uuid7.MatchString(id))", tc.in, id)
		}
	}
	for _, path := range []string{"/livez", "/absent", "/metrics"} {
		if id := getPath(t, s, path).Header.Get("X-Request-ID"); !uuid7.MatchString(id) {
			t.Errorf("%s: %q; want uuid7.MatchString(id)", path, id)
		}
	}
}

func TestHeadersOnEveryResponse(t *testing.T) {
	t.Parallel()
	s := New(Options{Name: "t"})
	s.Echo.GET("/panic", func(echo.Context) error { panic("x") })
	for _, path := range []string{"/livez", "/readyz", "/metrics", "/absent", "/panic"} {
		h := getPath(t, s, path).Header
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			"Cache-Control": "no-store", "Content-Security-Policy": "default-src 'none'",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
	// A handler that changes a header must not change it for others.
	s.Echo.GET("/own", func(c echo.Context) error {
		c.Response().Header().Set("Cache-Control", "max-age=1")
		c.Response().Header().Add("X-Frame-Options", "more")
		return nil
	})
	getPath(t, s, "/own")
	if h := getPath(t, s, "/livez").Header; h.Get("Cache-Control") != "no-store" || len(h["X-Frame-Options"]) != 1 {
		t.Errorf(`%v; want h.Get("Cache-Control") == "no-store" && len(h["X-Frame-Options"]) == 1`, h)
	}
}

func TestAllowedHosts(t *testing.T) {
	t.Parallel()
	s := New(Options{Name: "t", AllowedHosts: []string{"Api.Example.org", "::1"}})
	s.Echo.GET("/", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
	for host, want := range map[string]int{
		"api.example.org": 204, "API.example.org:8080": 204, "api.example.org.": 204, "[::1]:80": 204, "[::1]": 204,
		"evil.example.org": 421, "api.example.org.evil.org": 421, "": 421, "127.0.0.1:80": 421,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		resp := serveRequest(t, s, r)
		if resp.StatusCode != want {
			t.Errorf("%q: %d, want %d", host, resp.StatusCode, want)
		}
		if want == 421 && problem.Decode(resp).Kind.Code != "host_not_allowed" {
			t.Errorf(`%q: another code; want (want != 421 || problem.Decode(resp).Kind.Code == "host_not_allowed")`, host)
		}
		r = httptest.NewRequest(http.MethodGet, "/livez", nil)
		r.Host = host
		if got := serveRequest(t, s, r).StatusCode; got != 200 {
			t.Errorf("livez under %q: %d; want got == 200", host, got)
		}
	}
	for _, all := range [][]string{nil, {"*"}, {"a", "*"}} {
		s := New(Options{Name: "t", AllowedHosts: all})
		if got := getPath(t, s, "/absent").StatusCode; got != 404 {
			t.Errorf("%v: %d; want got == 404", all, got)
		}
	}
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	s := New(Options{Name: "t"})
	if got := readBody(t, getPath(t, s, "/livez")); got != "{\"status\":\"alive\"}\n" {
		t.Errorf("livez %q; want \"{\\\"status\\\":\\\"alive\\\"}\\n\"", got)
	}
	s.Check("db", func(context.Context) Check { return Check{Status: OK} })
	s.Check("broker", func(context.Context) Check { return Check{Warn, "no connection"} })
	resp := getPath(t, s, "/readyz")
	if got := readBody(t, resp); resp.StatusCode != 200 || got != `{"status":"degraded","checks":{"broker":"warn: no connection","db":"ok"}}`+"\n" {
		t.Errorf("%d %s; want resp.StatusCode == 200 && got == `{\"status\":\"degraded\",\"checks\":{\"broker\":\"warn: no connection\",\"db\":\"ok\"}}` + \"\\n\"", resp.StatusCode, got)
	}
	s.Check("odd", func(context.Context) Check { panic("x") })
	ready, checks := s.Ready(t.Context())
	if ready || checks["odd"] != "fail: check panicked: x" {
		t.Errorf(`%v %v; want !ready && checks["odd"] == "fail: check panicked: x"`, ready, checks)
	}
	slow := New(Options{Name: "t", ReadyBody: func(ready bool, checks map[string]string) any {
		return map[string]any{"ready": ready, "n": len(checks)}
	}})
	slow.Check("db", func(ctx context.Context) Check {
		<-ctx.Done()
		return Check{Fail, "timed out"}
	})
	resp = getPath(t, slow, "/readyz")
	if got := readBody(t, resp); resp.StatusCode != 503 || got != `{"n":1,"ready":false}`+"\n" {
		t.Errorf("%d %s; want resp.StatusCode == 503 && got == `{\"n\":1,\"ready\":false}` + \"\\n\"", resp.StatusCode, got)
	}
}

// Every resource that has GET has HEAD, without a body.
func TestHead(t *testing.T) {
	t.Parallel()
	s := New(Options{Name: "t", OpenAPI: []byte("openapi: 3.1.0\ninfo: {title: T, version: '1'}\npaths: {}\n")})
	Get(s.Echo, "/things/:id", func(c echo.Context) error { return c.String(http.StatusTeapot, c.Param("id")) })
	server := httptest.NewServer(s.Echo)
	defer server.Close()
	for path, want := range map[string]int{
		"/livez": 200, "/readyz": 200, "/metrics": 200, "/docs": 200, "/openapi.json": 200, "/redoc": 200, "/docs/swagger-ui.css": 200, "/things/a": 418, "/none": 404,
	} {
		resp, err := http.Head(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		if text := readBody(t, resp); resp.StatusCode != want || text != "" || resp.Header.Get("X-Request-Id") == "" {
			t.Errorf(`%s: %d %q; want resp.StatusCode == want && text == "" && resp.Header.Get("X-Request-Id") != ""`, path, resp.StatusCode, text)
		}
	}
}

func TestMetricsAreBounded(t *testing.T) {
	t.Parallel()
	s := New(Options{Name: "t"})
	s.Echo.GET("/things/:id", func(c echo.Context) error { return c.NoContent(204) })
	for i := range 20 {
		getPath(t, s, fmt.Sprintf("/things/%d", i))
		getPath(t, s, fmt.Sprintf("/absent/%d", i))
		serveRequest(t, s, httptest.NewRequest(fmt.Sprintf("M%d", i), "/", nil))
		serveRequest(t, s, httptest.NewRequest(fmt.Sprintf("M%d", i), "/things/1", nil))
	}
	got := readBody(t, getPath(t, s, "/metrics"))
	var series []string
	for line := range strings.Lines(got) {
		if strings.HasPrefix(line, "http_requests_total") {
			series = append(series, strings.TrimSpace(line))
		}
	}
	want := []string{
		`http_requests_total{method="GET",route="/things/:id",service="t",status="204"} 20`,
		`http_requests_total{method="GET",route="unmatched",service="t",status="404"} 20`,
		`http_requests_total{method="other",route="/things/:id",service="t",status="405"} 20`,
		`http_requests_total{method="other",route="unmatched",service="t",status="404"} 20`,
	}
	if !slices.Equal(series, want) {
		t.Errorf("series:\n%s; want slices.Equal(series, want)", strings.Join(series, "\n"))
	}
	if !strings.Contains(got, "go_goroutines") || !strings.Contains(got, `platform_build_info{service="t",version="dev"} 1`) {
		t.Error("runtime metrics are missing")
	}
	// Two servers on one registry, as in one process, do not collide.
	New(Options{Name: "u", Registry: s.Registry})
	New(Options{Name: "t", Registry: s.Registry})
}

func TestAccessLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := New(Options{Name: "t", Log: NewLogger(&log, "info")})
	s.Echo.GET("/things/:id", func(c echo.Context) error { return c.String(200, "four") })
	getPath(t, s, "/livez")
	r := httptest.NewRequest(http.MethodGet, "/things/7?token=secret", nil)
	r.Header.Set("X-Request-ID", "req-1")
	r.Header.Set("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	serveRequest(t, s, r)
	var line map[string]any
	if err := json.Unmarshal(log.Bytes(), &line); err != nil {
		t.Fatalf("not one line of JSON: %v\n%s", err, &log)
	}
	for name, want := range map[string]any{
		"msg": "request", "method": "GET", "path": "/things/7", "route": "/things/:id", "status": 200.0, "bytes": 4.0,
		"request_id": "req-1", "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
	} {
		if line[name] != want {
			t.Errorf("%s is %v, want %v", name, line[name], want)
		}
	}
	if at, _ := line["time"].(string); !strings.HasSuffix(at, "Z") {
		t.Errorf(`time %q is not UTC; want strings.HasSuffix(at, "Z")`, at)
	}
	log.Reset()
	quiet := New(Options{Name: "t", Log: NewLogger(&log, "info"), AccessLog: func(c echo.Context) bool { return c.Path() != "/predict" }})
	quiet.Echo.GET("/predict", func(c echo.Context) error { return nil })
	getPath(t, quiet, "/predict")
	if log.Len() > 0 {
		t.Errorf("logged: %s; want log.Len() <= 0", &log)
	}
}

func TestNetHTTPFaultsAreLoggedAsJSON(t *testing.T) {
	t.Parallel()
	pr, pw := io.Pipe()
	s := New(Options{Name: "t", Log: slog.New(slog.NewJSONHandler(pw, nil))})
	s.http.ErrorLog.SetFlags(0)
	go s.http.ErrorLog.Print("http: something")
	line, err := bufio.NewReader(pr).ReadString('\n')
	if err != nil || !strings.Contains(line, `"level":"WARN"`) {
		t.Errorf("%q %v; want strings.Contains(line, `\"level\":\"WARN\"`)", line, err)
	}
}
