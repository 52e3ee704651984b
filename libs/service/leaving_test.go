package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/testenv"
)

// A dependency that hangs must not make a prober with a second of patience take the replica out.
func TestReadinessDoesNotWaitForChecksThatHang(t *testing.T) {
	t.Parallel()
	s := New(Options{Name: "t"})
	release := make(chan struct{})
	s.Check("store", func(context.Context) Check { return Check{Status: OK} })
	s.CheckOptional("cache", func(context.Context) Check { <-release; return Check{Status: OK} })
	url, stop := startServer(t, s)
	want := `{"status":"degraded","checks":{"cache":"warn: not checked yet","store":"ok"}}` + "\n"
	testenv.Eventually(t, 20*time.Second, func() error { return expectAnswer(url+"/readyz", http.StatusOK, want) })
	close(release)
	want = `{"status":"ok","checks":{"cache":"ok","store":"ok"}}` + "\n"
	testenv.Eventually(t, 20*time.Second, func() error { return expectAnswer(url+"/readyz", http.StatusOK, want) })
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestOnlyRequiredChecksMakeAReplicaUnready(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		add    func(*Server, string, func(context.Context) Check)
		result string
		ready  bool
	}{
		"required": {(*Server).Check, "fail: gone", false},
		"optional": {(*Server).CheckOptional, "warn: gone", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := New(Options{Name: "t"})
			c.add(s, "store", func(context.Context) Check { return Check{Fail, "gone"} })
			if ready, checks := s.Ready(t.Context()); ready != c.ready || checks["store"] != c.result {
				t.Errorf("got %v, %v; want %v, %s", ready, checks, c.ready, c.result)
			}
		})
	}
}

func TestALocalCheckShowsTheMoment(t *testing.T) {
	t.Parallel()
	s := New(Options{Name: "t"})
	var state atomic.Pointer[Check]
	state.Store(&Check{Fail, "still starting"})
	s.CheckLocal("startup", func() Check { return *state.Load() })
	s.up.Store(true) // as while it runs
	if ready, checks := s.Ready(t.Context()); ready || checks["startup"] != "fail: still starting" {
		t.Errorf("got %v, %v; want false, still starting", ready, checks)
	}
	state.Store(&Check{Status: OK})
	if ready, checks := s.Ready(t.Context()); !ready || checks["startup"] != OK {
		t.Errorf("got %v, %v; want true, ok", ready, checks)
	}
}

func TestAnOverdueResultCountsAsNone(t *testing.T) {
	t.Parallel()
	for optional, want := range map[bool]string{
		false: "fail: the check has not ended for 20s; it said ok", true: "warn: the check has not ended for 20s; it said ok",
	} {
		p := &probe{optional: optional}
		now := time.Now()
		p.last.Store(&checked{Check{Status: OK}, now.Add(-20 * time.Second)})
		if got := p.result(now).String(); got != want {
			t.Errorf("optional %v: got %q, want %q", optional, got, want)
		}
	}
}

// expectAnswer reports how the answer differs; an empty body is not compared.
func expectAnswer(url string, status int, body string) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != status || body != "" && string(raw) != body {
		return fmt.Errorf("got %d %s, want %d %s", resp.StatusCode, raw, status, body)
	}
	return nil
}

func TestAStoppingServerServesUntilTheDelayEnds(t *testing.T) {
	t.Parallel()
	s := New(Options{Name: "t", DrainDelay: time.Hour})
	end := make(chan time.Time)
	s.after = func(time.Duration) <-chan time.Time { return end }
	s.Echo.GET("/x", func(c echo.Context) error { return c.String(http.StatusOK, "served") })
	url, stop := startServer(t, s)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	get := func() *http.Response {
		resp, err := client.Get(url + "/x")
		if err != nil {
			t.Fatal(err)
		}
		if got := readBody(t, resp); resp.StatusCode != http.StatusOK || got != "served" {
			t.Errorf("got %d %q, want 200 served", resp.StatusCode, got)
		}
		return resp
	}
	if resp := get(); resp.Close {
		t.Error("the connection ends before the stop; want it kept")
	}
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	testenv.Eventually(t, 20*time.Second, func() error { return expectAnswer(url+"/readyz", http.StatusServiceUnavailable, "") })
	if err := expectAnswer(url+"/livez", http.StatusOK, ""); err != nil {
		t.Error(err)
	}
	if resp := get(); !resp.Close {
		t.Error("the connection is kept while the server leaves; want Connection: close")
	}
	if s.Draining() {
		t.Error("requests are refused before the delay ends")
	}
	close(end)
	if err := receiveWithin(t, stopped, "the stop"); err != nil {
		t.Error(err)
	}
}

// A failed worker leaves nothing to serve for.
func TestAFailedWorkerSkipsTheDelay(t *testing.T) {
	t.Parallel()
	s := New(Options{Name: "t", Addr: "127.0.0.1:0", DrainDelay: time.Hour})
	s.after = func(time.Duration) <-chan time.Time { return make(chan time.Time) } // never
	broken := errors.New("broken")
	s.Go("worker", func(context.Context) error { return broken })
	done := make(chan error, 1)
	go func() { done <- s.Run(t.Context()) }()
	if err := receiveWithin(t, done, "the stop"); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

// While a service waits for its database, probes can distinguish it from one that died.
func TestProbesAnswerBeforeRun(t *testing.T) {
	t.Parallel()
	s := New(Options{Name: "t", Addr: "127.0.0.1:0"})
	s.Echo.GET("/x", func(c echo.Context) error { return c.String(http.StatusOK, "served") })
	if err := s.Listen("the database does not answer yet"); err != nil {
		t.Fatal(err)
	}
	url := "http://" + s.ln.Addr().String()
	for path, want := range map[string]struct {
		status int
		body   string
	}{
		"/livez":  {http.StatusOK, `{"status":"alive"}` + "\n"},
		"/readyz": {http.StatusServiceUnavailable, `{"status":"not_ready","checks":{"startup":"fail: the database does not answer yet"}}` + "\n"},
		"/x":      {http.StatusServiceUnavailable, ""},
	} {
		if err := expectAnswer(url+path, want.status, want.body); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	testenv.Eventually(t, 20*time.Second, func() error { return expectAnswer(url+"/x", http.StatusOK, "served") })
	cancel()
	if err := receiveWithin(t, done, "the stop"); err != nil {
		t.Error(err)
	}
}

// balancer sends each request once, to the replicas whose last probe was 200.
type balancer struct {
	client *http.Client

	mu      sync.Mutex // guards those below
	ready   map[string]bool
	pending map[string]int
	next    int
}

// probe queries a replica's readiness.
func (b *balancer) probe(url string) {
	ready := expectAnswer(url+"/readyz", http.StatusOK, "") == nil
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready[url] = ready
}

// pick chooses a ready replica.
func (b *balancer) pick() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var urls []string
	for url, ready := range b.ready {
		if ready {
			urls = append(urls, url)
		}
	}
	if len(urls) == 0 {
		return ""
	}
	b.next++
	url := urls[b.next%len(urls)]
	b.pending[url]++
	return url
}

func (b *balancer) send(ctx context.Context) error {
	url := b.pick()
	if url == "" {
		return errors.New("no replica is ready")
	}
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.pending[url]--
	}()
	// A POST with a body: the client does not retry it automatically.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/work", io.NopCloser(strings.NewReader("x")))
	if err != nil {
		return err
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %d", url, resp.StatusCode)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// left reports that nothing goes to the replica any more.
func (b *balancer) left(url string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ready[url] || b.pending[url] > 0 {
		return fmt.Errorf("%s: ready %v, %d requests; want a replica that is left alone", url, b.ready[url], b.pending[url])
	}
	return nil
}

func TestRollingRestartLosesNoRequest(t *testing.T) {
	t.Parallel()
	b := &balancer{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}, ready: map[string]bool{}, pending: map[string]int{}}
	defer b.client.CloseIdleConnections()
	start := func() (url string, replace func()) {
		s := New(Options{Name: "t", DrainDelay: time.Hour})
		end := make(chan time.Time)
		s.after = func(time.Duration) <-chan time.Time { return end }
		s.Check("store", func(context.Context) Check { return Check{Status: OK} })
		s.Echo.POST("/work", func(c echo.Context) error {
			if _, err := io.Copy(io.Discard, c.Request().Body); err != nil {
				return err
			}
			return c.String(http.StatusOK, "done")
		})
		url, stop := startServer(t, s)
		endDelay := sync.OnceFunc(func() { close(end) })
		t.Cleanup(endDelay) // before the server is stopped
		awaitReady := func() error { b.probe(url); return expectAnswer(url+"/readyz", http.StatusOK, "") }
		testenv.Eventually(t, 20*time.Second, awaitReady)
		b.probe(url)
		return url, func() {
			stopped := make(chan error, 1)
			go func() { stopped <- stop() }()
			// The delay is as long as this balancer takes to notice.
			testenv.Eventually(t, 20*time.Second, func() error { b.probe(url); return b.left(url) })
			endDelay()
			if err := receiveWithin(t, stopped, "the stop"); err != nil {
				t.Error(err)
			}
		}
	}
	_, replaceFirst := start()
	_, replaceSecond := start()
	ctx, cancel := context.WithCancel(t.Context())
	var sent, failed atomic.Int64
	var first atomic.Pointer[error]
	var load sync.WaitGroup
	for range 8 {
		load.Go(func() {
			for ctx.Err() == nil {
				err := b.send(t.Context())
				sent.Add(1)
				if err != nil {
					failed.Add(1)
					first.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	for _, replace := range []func(){replaceFirst, replaceSecond} {
		before := sent.Load()
		start()
		testenv.Eventually(t, 20*time.Second, func() error {
			if n := sent.Load() - before; n < 100 {
				return fmt.Errorf("%d requests since; want 100", n)
			}
			return nil
		})
		replace()
	}
	cancel()
	load.Wait()
	if failed.Load() > 0 {
		t.Errorf("%d of %d requests failed, the first with %v; want none", failed.Load(), sent.Load(), *first.Load())
	}
}
