package stream_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/stream"
)

// largeEvent returns an event of about size bytes.
func largeEvent(t testing.TB, n, size int) (subject string, body []byte) {
	t.Helper()
	subject, body = envelope("acme", "job.started", n)
	var e outbox.Envelope
	if err := json.Unmarshal(body, &e); err != nil {
		t.Fatal(err)
	}
	e.Data = json.RawMessage(fmt.Sprintf(`{"n":%d,"pad":%q}`, n, strings.Repeat("x", size)))
	body, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return subject, body
}

// startOffline serves a stream that takes its events from Inject.
func startOffline(t testing.TB, change ...func(*stream.Config)) *replica {
	t.Helper()
	r := startReplica(t, "", change...)
	r.stream.Admit()
	return r
}

// openSilent connects and reads nothing. Few bytes in the kernel make it stuck soon, and slow to read on.
func (r *replica) openSilent(session string, readBuffer int) net.Conn {
	r.t.Helper()
	host := strings.TrimPrefix(strings.TrimSuffix(r.url, "/api/v1/stream"), "http://")
	conn, err := net.Dial("tcp", host)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.(*net.TCPConn).SetReadBuffer(readBuffer); err != nil {
		r.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "GET /api/v1/stream HTTP/1.1\r\nHost: %s\r\nTenant: acme\r\nSession: %s\r\n\r\n", host, session); err != nil {
		r.t.Fatal(err)
	}
	return conn
}

// heap returns the bytes in use after a collection.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // the second collection frees the contents of pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Clients that read nothing are closed after the write timeout; until then each holds its queue, whose
// events are shared, and one write.
func TestClientsThatReadNothingAreClosedWithFlatMemory(t *testing.T) {
	const silent, events, size = 60, 6_000, 8 << 10
	r := startOffline(t, func(c *stream.Config) { c.WriteTimeout, c.History = 3*time.Second, 50 })
	for range silent {
		r.openSilent("silent", 4<<10)
	}
	r.awaitClients(silent)
	before := heap()
	for n := 1; n <= events; n++ { // 48 MB in all
		subject, body := largeEvent(t, n, size)
		if err := r.stream.Inject(subject, body, uint64(n)); err != nil {
			t.Fatal(err)
		}
	}
	if grown := int64(heap()) - int64(before); grown > 24<<20 {
		t.Errorf("%d MB more are in use for %d clients that do not read, want at most 24", grown>>20, silent)
	}
	r.awaitClients(0)
	if got := r.labelled("dashboard_stream_ended_total", "stuck"); got != silent {
		t.Errorf("%v streams ended as stuck, want %d", got, silent)
	}
	if grown := int64(heap()) - int64(before); grown > 8<<20 {
		t.Errorf("%d MB more are in use after all clients are gone, want at most 8", grown>>20)
	}
	// A resuming client learns that it missed more events than are kept.
	if got, want := r.open(request{lastID: "1"}).hello.data, `"gap":true`; !strings.Contains(got, want) {
		t.Errorf("hello %s, want %s", got, want)
	}
}

// labelled returns the value of a counter with one label.
func (r *replica) labelled(name, label string) float64 {
	r.t.Helper()
	families, err := r.server.Registry.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && m.GetLabel()[0].GetValue() == label {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// A write that waits for such a client does not keep its session's end, or the service's stop, waiting.
func TestEndDoesNotWaitForAClientThatReadsNothing(t *testing.T) {
	t.Parallel()
	r := startOffline(t, func(c *stream.Config) { c.WriteTimeout = time.Hour })
	r.openSilent("one", 4<<10)
	r.openSilent("two", 4<<10)
	r.awaitClients(2)
	for n := 1; n <= 2000; n++ {
		subject, body := largeEvent(t, n, 8<<10)
		if err := r.stream.Inject(subject, body, uint64(n)); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, patience, func() error {
		if got := r.metric("dashboard_stream_drops_total"); got == 0 {
			return fmt.Errorf("nothing dropped yet")
		}
		return nil
	})
	r.sessions.channel("one") <- stream.LoggedOut
	r.awaitClients(1)
	r.stop()
	r.awaitClients(0)
}

func TestKeepAliveComesOnlyWhenNothingHappens(t *testing.T) {
	t.Parallel()
	r := startOffline(t, func(c *stream.Config) { c.KeepAlive = 300 * time.Millisecond })
	c := r.open(request{})
	began := time.Now()
	for range 2 {
		if got, want := c.next().text, ": keep-alive\n\n"; got != want {
			t.Fatalf("frame %q, want %q", got, want)
		}
	}
	if took := time.Since(began); took < 500*time.Millisecond {
		t.Errorf("two keep-alives within %s, want one each 300 ms", took)
	}
	busy := time.Now()
	for n := 1; time.Since(busy) < 900*time.Millisecond; n++ {
		subject, body := envelope("acme", "job.started", n)
		if err := r.stream.Inject(subject, body, uint64(n)); err != nil {
			t.Fatal(err)
		}
		if f := c.next(); f.n() != n {
			t.Fatalf("frame %q, want event %d", f.text, n)
		}
	}
}

func TestHeadEndsWithTheHeader(t *testing.T) {
	t.Parallel()
	r := startOffline(t)
	req, err := http.NewRequest(http.MethodHead, r.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Tenant", "acme")
	resp, err := clients.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, want := resp.Header.Get("Content-Type"), "text/event-stream"; resp.StatusCode != http.StatusOK || got != want {
		t.Errorf("HEAD: status %d, Content-Type %q; want 200, %q", resp.StatusCode, got, want)
	}
	r.awaitClients(0)
	r.awaitIdle()
}

// awaitIdle waits until no request is being answered.
func (r *replica) awaitIdle() {
	r.t.Helper()
	testenv.Eventually(r.t, patience, func() error {
		if got := r.metric("http_requests_in_flight"); got != 0 {
			return fmt.Errorf("%v requests in flight, want 0", got)
		}
		return nil
	})
}

// A client that was closed because it did not read continues on another replica where it left off.
func TestStuckClientResumesElsewhereWithNothingMissingOrDouble(t *testing.T) {
	t.Parallel()
	const total = 900
	url := testenv.NATS(t)
	b := newBus(t, url)
	first, second := startReplica(t, url, func(c *stream.Config) { c.WriteTimeout = 500 * time.Millisecond }), startReplica(t, url)
	first.awaitOpen()
	second.awaitOpen()
	conn := first.openSilent("one", 256<<10)
	first.awaitClients(1)
	for n := 1; n <= total; n++ { // more than the kernel and the queue hold
		b.send(largeEvent(t, n, 20<<10))
	}
	first.awaitClients(0)
	if got := first.labelled("dashboard_stream_ended_total", "stuck"); got != 1 {
		t.Fatalf("%v streams ended as stuck, want 1", got)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	received, err := io.ReadAll(resp.Body)
	if err == nil {
		t.Error("the stream ended in order, want it cut")
	}
	frames := strings.SplitAfter(string(received), "\n\n")
	frames = frames[1 : len(frames)-1] // hello, and a part
	for i, text := range frames {
		if want := fmt.Sprintf("id: %d\n", i+1); !strings.HasPrefix(text, want) {
			t.Fatalf("frame %.60q, want %q", text, want)
		}
	}
	if len(frames) == 0 || len(frames) > total-256 {
		t.Fatalf("%d of %d events arrived; want some, and more missing than the queue holds", len(frames), total)
	}
	c := second.open(request{session: "one", lastID: fmt.Sprint(len(frames))})
	if got, want := c.hello.data, `"resumed":true,"gap":false`; !strings.Contains(got, want) {
		t.Errorf("hello %s, want %s", got, want)
	}
	for n := len(frames) + 1; n <= total; n++ {
		c.expect(fmt.Sprintf("job.started %d", n))
	}
}
