package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// withTimeouts returns a bench whose services have shorter timeouts.
func withTimeouts(b *bench, limits timeouts) *bench {
	b.proxy.timeouts = limits
	b.proxy.connect(net.DefaultResolver)
	return b
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestLargeBodiesStreamInConstantMemory(t *testing.T) { // not parallel: it measures the heap
	b := newBench(t)
	const size = int64(largeBody)
	b.behind(upstream.Tracker, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", fmt.Sprint(size))
		_, _ = io.CopyN(w, zeros{}, size)
	})
	res, err := (&http.Client{Transport: &http.Transport{}, Timeout: 5 * time.Minute}).Get(b.dashboard.URL + "/api/proxy/tracker/model")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var got, peak int64
	buffer := make([]byte, 1<<20)
	for next := int64(0); ; {
		n, err := res.Body.Read(buffer)
		if got += int64(n); got > next {
			runtime.ReadMemStats(&now)
			peak = max(peak, int64(now.HeapInuse)-int64(before.HeapInuse))
			next += 64 << 20
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got != size || peak > 16<<20 {
		t.Errorf("%d bytes with the heap up by %d MiB; want %d and at most 16 MiB", got, peak>>20, size)
	}
}

func TestHangingServiceIsATimeout(t *testing.T) {
	t.Parallel()
	b := withTimeouts(newBench(t), timeouts{connect: 2 * time.Second, header: 100 * time.Millisecond, idle: time.Minute})
	release := make(chan struct{})
	defer close(release)
	b.behind(upstream.Tracker, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	wantProblem(t, b.send(http.MethodGet, "/api/proxy/tracker/", ""), 504, "upstream_timeout")
	wantProblem(t, b.send(http.MethodPost, "/api/proxy/tracker/", "{}"), 504, "upstream_timeout")
}

func TestConnectionThatIsNeverAcceptedIsATimeout(t *testing.T) {
	t.Parallel()
	b := withTimeouts(newBench(t), timeouts{connect: 100 * time.Millisecond, header: time.Minute, idle: time.Minute})
	b.settings.set("tracker_url", "http://tracker.example")
	b.proxy.connect(slowNames{})
	wantProblem(t, b.send(http.MethodGet, "/api/proxy/tracker/", ""), 504, "upstream_timeout")
}

// slowNames never answers.
type slowNames struct{}

func (slowNames) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestServiceThatStopsInTheMiddleIsCutOff(t *testing.T) {
	t.Parallel()
	b := withTimeouts(newBench(t), timeouts{connect: 2 * time.Second, header: 10 * time.Second, idle: 200 * time.Millisecond})
	ended := make(chan struct{}, 2)
	stall := func(media string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", media)
			_, _ = io.WriteString(w, "<p>half")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			ended <- struct{}{}
		}
	}
	b.behind(upstream.Tracker, stall("text/plain"))
	res, err := client.Get(b.dashboard.URL + "/api/proxy/tracker/")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err == nil || string(body) != "<p>half" {
		t.Errorf("%q %v; want half a body and an error, so that nobody takes it for whole", body, err)
	}
	b.behind(upstream.Tracker, stall("text/html")) // waits to be rewritten: nothing was sent yet
	wantProblem(t, b.send(http.MethodGet, "/api/proxy/tracker/", ""), 504, "upstream_timeout")
	for range 2 {
		<-ended
	}
}

func TestServiceThatBreaksOffIsBadGateway(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.behind(upstream.Tracker, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/half" {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"a":`)
		}
		panic(http.ErrAbortHandler)
	})
	wantProblem(t, b.send(http.MethodGet, "/api/proxy/tracker/", ""), 502, "upstream_unavailable")
	wantProblem(t, b.send(http.MethodGet, "/api/proxy/tracker/half", ""), 502, "upstream_unavailable")
}

func TestRequestBodiesAreLimitedAndStreamed(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(_ *bench, c *Config) { c.MaxBody = 1 << 20 })
	b.behind(upstream.Tracker, func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err == nil {
			_, _ = fmt.Fprint(w, n)
		}
	})
	for _, chunked := range []bool{false, true} {
		for size, want := range map[int64]int{1 << 20: 200, 1<<20 + 1: 413} {
			body := io.LimitReader(zeros{}, size)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.dashboard.URL+"/api/proxy/tracker/x", body)
			if err != nil {
				t.Fatal(err)
			}
			if !chunked {
				r.ContentLength = size
				r.Header.Set("Expect", "100-continue") // else the refusal arrives while the caller is still sending
			}
			res, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode != want || want == 200 && string(got) != fmt.Sprint(size) {
				t.Errorf("%d bytes, chunked %v: %d %s; want %d", size, chunked, res.StatusCode, got, want)
			}
		}
	}
}

func TestEventStreamMayBeSilentAndEndsWithTheSession(t *testing.T) {
	t.Parallel()
	b := withTimeouts(newBench(t), timeouts{connect: 2 * time.Second, header: 10 * time.Second, idle: 50 * time.Millisecond})
	next := make(chan string)
	left := make(chan struct{})
	b.behind(upstream.Orchestrator, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			_ = http.NewResponseController(w).Flush()
			select {
			case text := <-next:
				_, _ = io.WriteString(w, text+"\n")
			case <-r.Context().Done():
				close(left)
				return
			}
		}
	})
	res, err := client.Get(b.dashboard.URL + "/api/proxy/orchestrator/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for i := range 3 {
		if i > 0 { // longer than a body may be silent
			timer := time.NewTimer(3 * 50 * time.Millisecond)
			<-timer.C
		}
		next <- fmt.Sprint("data: ", i)
		if !lines.Scan() || lines.Text() != fmt.Sprint("data: ", i) {
			t.Fatalf("%q %v; want event %d at once", lines.Text(), lines.Err(), i)
		}
	}
	b.mu.Lock()
	b.alive = fault.InvalidToken.New("Signed out.")
	b.mu.Unlock()
	select {
	case <-left:
	case <-time.After(5 * time.Second):
		t.Error("the stream outlived its session by 5 s")
	}
}

// echoSocket serves a socket that sends back what it gets, and records the Origin it saw.
func echoSocket(origins chan<- string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if origins != nil {
			origins <- r.Header.Get("Origin")
		}
		if r.Header.Get("Cookie") != "" || r.Header.Get("Authorization") != "" {
			http.Error(w, "credentials arrived", http.StatusInternalServerError)
			return
		}
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"prefect"}})
		if err != nil {
			return
		}
		defer func() { _ = c.CloseNow() }()
		c.SetReadLimit(1 << 20)
		for {
			kind, message, err := c.Read(r.Context())
			if err != nil {
				return
			}
			if c.Write(r.Context(), kind, message) != nil {
				return
			}
		}
	}
}

func dialSocket(ctx context.Context, url, origin string, header http.Header) (*websocket.Conn, *http.Response, error) {
	header = header.Clone()
	if header == nil {
		header = http.Header{}
	}
	if origin != "" {
		header.Set("Origin", origin)
	}
	c, res, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPHeader: header, HTTPClient: client, Subprotocols: []string{"prefect"}})
	if res != nil && res.Body != nil && err != nil {
		res.Body.Close()
	}
	return c, res, err
}

func wantEcho(t *testing.T, c *websocket.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c.SetReadLimit(1 << 20)
	for _, size := range []int{3, 100_000} {
		message := strings.Repeat("x", size)
		if err := c.Write(ctx, websocket.MessageText, []byte(message)); err != nil {
			t.Fatal(err)
		}
		if _, got, err := c.Read(ctx); err != nil || string(got) != message {
			t.Fatalf("%d bytes, %v; want %d back", len(got), err, size)
		}
	}
}

func TestWebSocketsEchoOnBothOrigins(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	origins := make(chan string, 2)
	srv := b.behind(upstream.Orchestrator, echoSocket(origins))
	v := b.enter(upstream.Orchestrator)
	for url, header := range map[string]http.Header{b.dashboard.URL: nil, b.tools.URL: {"Cookie": {v.cookie.Name + "=" + v.cookie.Value}}} {
		c, res, err := dialSocket(t.Context(), url+"/api/proxy/orchestrator/api/events/in", url, header)
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		if c.Subprotocol() != "prefect" || res.Header.Get("X-Request-Id") == "" {
			t.Errorf("protocol %q, headers %v; want prefect and a request id", c.Subprotocol(), res.Header)
		}
		wantEcho(t, c)
		if got := <-origins; got != srv.URL {
			t.Errorf("the service saw Origin %q; want its own, %q", got, srv.URL)
		}
		_ = c.CloseNow()
	}
}

func TestWebSocketsNeedTheirRoleAndOwnOrigin(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, s := range proxied {
		b.behind(s, echoSocket(nil))
	}
	bearer := viewer
	bearer.Method = caller.Password
	for _, tc := range []struct {
		who     caller.Caller
		path    string
		origin  string
		header  http.Header
		refused string
	}{
		{viewer, "orchestrator/api/events/out", b.dashboard.URL, nil, ""}, {viewer, "orchestrator/api/logs/out", b.dashboard.URL, nil, ""}, {viewer, "dashboards/api/live/ws", b.dashboard.URL, nil, ""},
		{viewer, "orchestrator/api/events/in", b.dashboard.URL, nil, "role_required"}, {viewer, "tracker/api/events/out", b.dashboard.URL, nil, "role_required"}, {viewer, "orchestrator/api/events/out/", b.dashboard.URL, nil, "role_required"},
		{admin, "tracker/x", b.dashboard.URL, nil, ""},
		{admin, "tracker/x", "https://evil.example", nil, "csrf_refused"}, {admin, "tracker/x", "null", nil, "csrf_refused"}, {admin, "tracker/x", b.tools.URL, nil, "csrf_refused"}, {admin, "tracker/x", "", nil, "csrf_refused"},
		{bearer, "orchestrator/api/events/out", "", http.Header{"Authorization": {"Bearer x"}}, ""}, {bearer, "orchestrator/api/events/out", "https://evil.example", http.Header{"Authorization": {"Bearer x"}}, "csrf_refused"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.as(tc.who).dashboard.URL+"/api/proxy/"+tc.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if tc.refused == "" {
			c, _, err := dialSocket(t.Context(), r.URL.String(), tc.origin, tc.header)
			if err != nil {
				t.Errorf("%s %s: %v; want a socket", tc.who.Role, tc.path, err)
				continue
			}
			wantEcho(t, c)
			_ = c.CloseNow()
			continue
		}
		pairs := []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}
		if tc.origin != "" {
			pairs = append(pairs, "Origin", tc.origin)
		}
		for name := range tc.header {
			pairs = append(pairs, name, tc.header.Get(name))
		}
		wantProblem(t, b.send(http.MethodGet, "/api/proxy/"+tc.path, "", pairs...), 403, tc.refused)
	}
}

func TestWebSocketEndsWithItsSessionAndAtDrain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.behind(upstream.Orchestrator, echoSocket(nil))
	wantEnd := func(c *websocket.Conn, why string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, _, err := c.Read(ctx); err == nil || ctx.Err() != nil {
			t.Errorf("after %s: %v; want the socket closed within 5 s", why, err)
		}
		_ = c.CloseNow()
	}
	open := func() *websocket.Conn {
		t.Helper()
		c, _, err := dialSocket(t.Context(), b.dashboard.URL+"/api/proxy/orchestrator/api/events/out", b.dashboard.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		wantEcho(t, c)
		return c
	}
	c := open()
	b.mu.Lock()
	b.alive = fault.InvalidToken.New("Signed out.")
	b.mu.Unlock()
	wantEnd(c, "the sign-out")
	b.mu.Lock()
	b.alive = nil
	b.mu.Unlock()
	short := admin
	short.ExpiresAt = time.Now().Add(1500 * time.Millisecond)
	b.as(short)
	wantEnd(open(), "the session's expiry")
	b.as(admin)
	c = open()
	b.proxy.Drain()
	wantEnd(c, "the drain")
}

func TestOtherUpgradesAreForwardedAsPlainRequests(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.behind(upstream.Tracker, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Upgrade")+r.Header.Get("Connection")+r.Header.Get("Http2-Settings"))
	})
	if a := b.send(http.MethodGet, "/api/proxy/tracker/", "", "Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c", "HTTP2-Settings", "AAMAAABkAAQCAAAAAAIAAAAA"); a.status != 200 || a.body != "" {
		t.Errorf("%d %q; want 200 and no upgrade upstream", a.status, a.body)
	}
}

func TestCallerWhoLeavesEndsTheCall(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var running atomic.Int32
	arrived := make(chan struct{})
	b.behind(upstream.Tracker, func(_ http.ResponseWriter, r *http.Request) {
		running.Add(1)
		close(arrived)
		<-r.Context().Done()
		running.Add(-1)
	})
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.dashboard.URL+"/api/proxy/tracker/", nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		res, err := client.Do(r)
		if err == nil {
			res.Body.Close()
		}
		done <- err
	}()
	<-arrived
	cancel()
	<-done
	testenv.Eventually(t, 20*time.Second, func() error {
		if n := running.Load(); n != 0 {
			return fmt.Errorf("%d calls still run", n)
		}
		return nil
	})
}
