//go:build e2e

package dashboard_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mlp-platform/platform/e2e/harness"
	"github.com/mlp-platform/platform/libs/outbox"
)

// publisher sends events to the broker as a relay does.
type publisher struct{ js jetstream.JetStream }

func (w *world) publisher(t *testing.T) publisher {
	t.Helper()
	conn, err := nats.Connect(w.natsURL(t, w.Setting("NATS_ADDR")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return publisher{js}
}

// publish sends the event of a tenant and returns its id on the stream.
func (p publisher) publish(t *testing.T, tenant, name string, data any) uint64 {
	t.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	id := uuid.Must(uuid.NewV7())
	body, err := json.Marshal(outbox.Envelope{
		SpecVersion: "1.0", ID: id, Source: "/services/control-plane", Type: "platform." + name, Time: time.Now().UTC(), DataContentType: "application/json",
		DataSchema: "urn:platform:event:" + name + ":1", Tenant: tenant, Actor: "e2e", Data: raw,
	})
	if err != nil {
		t.Fatal(err)
	}
	namespace, short, _ := strings.Cut(name, ".")
	ack, err := p.js.Publish(t.Context(), outbox.Subject(tenant, namespace, short), body, jetstream.WithMsgID(id.String()))
	if err != nil {
		t.Fatal(err)
	}
	return ack.Sequence
}

// residentBytes returns the resident memory of a process.
func residentBytes(t *testing.T, pid int) int64 {
	t.Helper()
	for line := range strings.Lines(readFile(t, fmt.Sprintf("/proc/%d/status", pid))) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// stuckLimit is how long a write may be stuck before the stream is closed, plus some time to notice.
const stuckLimit = 45 * time.Second

// openIdleStream opens a stream with a small window, and reads no further than the hello.
func openIdleStream(t *testing.T, dashboard string, c who) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(dashboard, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /api/v1/stream?channels=job HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", strings.TrimPrefix(dashboard, "http://"), c.bearer)
	head := bufio.NewReaderSize(conn, 1<<10)
	for { // to the hello, which confirms that the client is connected
		line, err := head.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, "event: hello") {
			return conn, head
		}
	}
}

func TestRow25ASlowClientIsClosedAndResumesElsewhere(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	a, b := w.startReplica(t), w.startReplica(t)
	viewer := w.passwordLogin(t, "viewer")
	bus := w.publisher(t)

	conn, head := openIdleStream(t, a.url, viewer)
	const events, size = 900, 16 << 10 // more than any socket buffers, less than a replay holds
	before := residentBytes(t, a.cmd.Process.Pid)
	padding := strings.Repeat("x", size)
	first, last := uint64(0), uint64(0)
	for n := range events {
		last = bus.publish(t, "default", "job.started", map[string]any{"model": "ROW25", "run_id": fmt.Sprint(n), "padding": padding})
		if n == 0 {
			first = last
		}
	}
	flood := time.Now()
	harness.Eventually(t, stuckLimit, func() error {
		text := string(w.call(t, http.MethodGet, a.url+"/metrics", who{}, nil).Body)
		if !strings.Contains(text, `dashboard_stream_ended_total{reason="stuck"} 1`) {
			return fmt.Errorf("the stuck client was not closed within %s", time.Since(flood))
		}
		return nil
	})
	grown := residentBytes(t, a.cmd.Process.Pid) - before
	t.Logf("the stuck client was closed %s after %d events; the replica grew by %d MB", time.Since(flood).Round(100*time.Millisecond), events, grown>>20)
	const flat = 96 << 20 // the ring of events that all clients share is 14 MB of it
	if grown > flat {
		t.Errorf("the replica grew by %d MB, want at most %d", grown>>20, flat>>20)
	}

	// The data it had read, to the last whole frame.
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	rest, err := io.ReadAll(head)
	if err != nil && !os.IsTimeout(err) && !strings.Contains(err.Error(), "reset") {
		t.Fatal(err)
	}
	got, lastID := map[uint64]int{}, ""
	for block := range strings.SplitSeq(string(rest), "\n\n") {
		if id, after, ok := strings.Cut(block[max(strings.Index(block, "id: "), 0):], "\n"); ok && strings.HasPrefix(id, "id: ") && strings.Contains(after, "ROW25") && strings.HasSuffix(strings.TrimSpace(after), "}") {
			lastID = strings.TrimSpace(strings.TrimPrefix(id, "id: "))
			n, _ := strconv.ParseUint(lastID, 10, 64)
			got[n]++
		}
	}
	if lastID == "" {
		lastID = strconv.FormatUint(first-1, 10) // it read only the hello
	}
	read := len(got)
	resumed := w.openStream(t, b.url, viewer, lastID)
	if hello := resumed.next(t, "hello"); hello.data["resumed"] != true || hello.data["gap"] != false {
		t.Errorf("hello on the other replica: got %v, want it resumed without a gap", hello.data)
	}
	resumed.nextThat(t, "the last event", func(f frame) bool {
		n, _ := strconv.ParseUint(f.id, 10, 64)
		if f.data["model"] == "ROW25" {
			got[n]++
		}
		return n >= last
	})
	for id, n := range got {
		if n != 1 {
			t.Errorf("event %d came %d times, want once", id, n)
		}
	}
	if len(got) != events {
		t.Errorf("%d events came, %d of them before the stream was closed; want %d", len(got), read, events)
	}
}

// cable is a TCP connection to the broker that can be cut.
type cable struct {
	addr string
	mu   sync.Mutex // guards the fields below
	cut  bool
	open map[net.Conn]bool
}

func newCable(t *testing.T, target string) *cable {
	t.Helper()
	c := &cable{addr: harness.FreePorts(t, 1)[0], open: map[net.Conn]bool{}}
	l, err := net.Listen("tcp", c.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); c.pull() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", target)
			if err != nil || !c.admit(near, far) {
				near.Close()
				continue
			}
			go func() { _, _ = io.Copy(far, near); far.Close() }()
			go func() { _, _ = io.Copy(near, far); near.Close() }()
		}
	}()
	return c
}

func (c *cable) admit(conns ...net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range conns {
		if c.cut {
			conn.Close()
		} else {
			c.open[conn] = true
		}
	}
	return !c.cut
}

// pull cuts current connections and new attempts.
func (c *cable) pull() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
	for conn := range c.open {
		conn.Close()
	}
	clear(c.open)
}

func (c *cable) plug() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = false
}

// awaitStream waits until a new replica reads from the broker: it is ready before that, since everything but the stream
// works without one.
func awaitStream(t *testing.T, dashboard string) {
	t.Helper()
	harness.Eventually(t, 20*time.Second, func() error {
		a, err := harness.TryCall("GET", dashboard+"/readyz", "", nil)
		if err != nil {
			return err
		}
		if !strings.Contains(string(a.Body), `"stream":"ok"`) {
			return fmt.Errorf("readiness: %s", a.Body)
		}
		return nil
	})
}

func TestRow27TheBrokerGoesAndComesBack(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	line := newCable(t, w.Setting("NATS_ADDR"))
	r := w.startReplica(t, "NATS_URL="+w.natsURL(t, line.addr))
	viewer := w.passwordLogin(t, "viewer")
	bus := w.publisher(t)
	awaitStream(t, r.url)
	events := w.openStream(t, r.url, viewer, "")
	events.next(t, "hello")
	bus.publish(t, "default", "job.started", map[string]any{"model": "ROW27", "run_id": "before"})
	isOf := func(run string) func(frame) bool {
		return func(f frame) bool { return f.data["model"] == "ROW27" && f.data["run_id"] == run }
	}
	seen := events.nextThat(t, "the event before", isOf("before"))

	line.pull()
	bye := events.next(t, "bye")
	if bye.data["reason"] != "bus_unavailable" {
		t.Errorf("bye: got %v, want the reason bus_unavailable", bye.data)
	}
	if s, status := w.tryStream(t, r.url, viewer, seen.id); s != nil || status != http.StatusServiceUnavailable {
		t.Errorf("a stream without the broker: got %d, want 503", status)
	}
	missed := []uint64{
		bus.publish(t, "default", "job.started", map[string]any{"model": "ROW27", "run_id": "away-1"}),
		bus.publish(t, "default", "job.started", map[string]any{"model": "ROW27", "run_id": "away-2"}),
	}
	// Polling finds the changes made meanwhile.
	w.want(t, http.StatusOK, http.MethodPost, r.url+"/api/v1/collab/model/ROW27/comments", viewer, map[string]string{"body": "written without a broker"})
	if text := string(w.want(t, http.StatusOK, http.MethodGet, r.url+"/api/v1/collab/model/ROW27/comments", viewer, nil).Body); !strings.Contains(text, "without a broker") {
		t.Errorf("comments: got %s, want the one written meanwhile", text)
	}
	for path := range views {
		if a := w.call(t, http.MethodGet, r.url+path, viewer, nil); a.Status != http.StatusOK || len(partialOf(a)) > 0 {
			t.Errorf("%s without the broker: got %d with _partial %v, want all of it", path, a.Status, partialOf(a))
		}
	}

	line.plug()
	back := time.Now()
	var again *eventStream
	harness.Eventually(t, patience, func() error {
		s, status := w.tryStream(t, r.url, viewer, seen.id)
		if s == nil {
			return fmt.Errorf("the event stream answers %d", status)
		}
		again = s
		return nil
	})
	if hello := again.next(t, "hello"); hello.data["resumed"] != true || hello.data["gap"] != false {
		t.Errorf("hello: got %v, want it resumed without a gap", hello.data)
	}
	for n, id := range missed {
		if f := again.nextThat(t, "a missed event", isOf(fmt.Sprint("away-", n+1))); f.id != strconv.FormatUint(id, 10) {
			t.Errorf("missed event %d: got the id %s, want %d", n+1, f.id, id)
		}
	}
	bus.publish(t, "default", "job.started", map[string]any{"model": "ROW27", "run_id": "after"})
	again.nextThat(t, "the event after", isOf("after"))
	t.Logf("live again %s after the broker came back, with both missed events", time.Since(back).Round(time.Millisecond))
}
