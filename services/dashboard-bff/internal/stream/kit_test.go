package stream_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/stream"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// patience limits every wait of these tests.
const patience = 20 * time.Second

// bus publishes events as relays do.
type bus struct {
	t  testing.TB
	js jetstream.JetStream
}

func newBus(t testing.TB, url string) *bus {
	t.Helper()
	js, err := jetstream.New(connect(t, url))
	if err != nil {
		t.Fatal(err)
	}
	if err := outbox.EnsureStream(t.Context(), js, outbox.StreamConfig{}); err != nil {
		t.Fatal(err)
	}
	return &bus{t, js}
}

func connect(t testing.TB, url string) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.RetryOnFailedConnect(true))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// envelope returns an event with the data {"n": n}.
func envelope(tenant, name string, n int) (subject string, body []byte) {
	namespace, short, _ := strings.Cut(name, ".")
	body, err := json.Marshal(outbox.Envelope{
		SpecVersion: "1.0", ID: uuid.Must(uuid.NewV7()), Source: "/services/test", Type: "platform." + name,
		Time: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), DataContentType: "application/json",
		DataSchema: "urn:platform:event:" + name + ":1", Tenant: tenant, Actor: "local:admin",
		Data: json.RawMessage(`{"n":` + strconv.Itoa(n) + `}`),
	})
	if err != nil {
		panic(err)
	}
	return outbox.Subject(tenant, namespace, short), body
}

// publish sends an event and returns its sequence.
func (b *bus) publish(tenant, name string, n int) uint64 {
	b.t.Helper()
	subject, body := envelope(tenant, name, n)
	return b.send(subject, body)
}

func (b *bus) send(subject string, body []byte) uint64 {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	ack, err := b.js.Publish(ctx, subject, body)
	if err != nil {
		b.t.Fatalf("publish %s: %v", subject, err)
	}
	return ack.Sequence
}

// publishMany sends events numbered from first to last without waiting for each.
func (b *bus) publishMany(tenant, name string, first, last int) {
	b.t.Helper()
	var acks []jetstream.PubAckFuture
	for n := first; n <= last; n++ {
		subject, body := envelope(tenant, name, n)
		ack, err := b.js.PublishAsync(subject, body)
		if err != nil {
			b.t.Fatal(err)
		}
		acks = append(acks, ack)
	}
	for _, ack := range acks {
		select {
		case <-ack.Ok():
		case err := <-ack.Err():
			b.t.Fatal(err)
		case <-time.After(patience):
			b.t.Fatal("publish: no acknowledgement")
		}
	}
}

// sessions is a fake of access: streams of a session that was ended get the reason.
type sessions struct {
	mu    sync.Mutex // guards ended
	ended map[string]chan string
}

func (s *sessions) channel(id string) chan string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended[id] == nil {
		s.ended[id] = make(chan string, 1)
	}
	return s.ended[id]
}

func (s *sessions) watch(ctx context.Context, who caller.Caller) (context.Context, func() string) {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := s.channel(who.SessionID)
	go func() { // ends with the session or the request
		select {
		case reason := <-ended:
			cancel(errors.New(reason))
		case <-ctx.Done():
		}
	}()
	return ctx, func() string {
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			return cause.Error()
		}
		return ""
	}
}

// replica is one running instance of the route.
type replica struct {
	t        testing.TB
	url      string
	server   *service.Server
	stream   *stream.Stream
	sessions *sessions
	stop     context.CancelFunc
	done     chan error
}

// startReplica serves the stream of the broker; no broker for an empty URL.
func startReplica(t testing.TB, brokerURL string, change ...func(*stream.Config)) *replica {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{t: t, url: "http://" + ln.Addr().String() + "/api/v1/stream", sessions: &sessions{ended: map[string]chan string{}}, done: make(chan error, 1)}
	r.server = service.New(service.Options{Name: "dashboard", Listener: ln, MaxConns: 5000, Drain: patience})
	cfg := stream.Config{
		Watch: r.sessions.watch, Log: slog.New(slog.DiscardHandler), Registerer: r.server.Registry,
		BusGrace: 200 * time.Millisecond,
	}
	if brokerURL != "" {
		cfg.Conn = connect(t, brokerURL)
	}
	for _, fn := range change {
		fn(&cfg)
	}
	if r.stream, err = stream.New(cfg); err != nil {
		t.Fatal(err)
	}
	service.Get(r.server.Echo, "/api/v1/stream", func(c echo.Context) error {
		h := c.Request().Header
		caller.Set(c, caller.Caller{Subject: cmp.Or(h.Get("Person"), "local:viewer"), Tenant: h.Get("Tenant"), SessionID: h.Get("Session"), Role: caller.Viewer})
		return r.stream.Serve(c)
	})
	r.server.OnDrain(r.stream.Close)
	r.server.Go("event stream", r.stream.Run)
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() { r.done <- r.server.Run(ctx) }() // ends with the cleanup
	t.Cleanup(func() {
		stop()
		select {
		case err := <-r.done:
			if err != nil {
				t.Errorf("Run = %v, want nil", err)
			}
		case <-time.After(patience):
			t.Error("the server does not stop")
		}
	})
	return r
}

// awaitOpen waits until clients are admitted.
func (r *replica) awaitOpen() {
	r.t.Helper()
	testenv.Eventually(r.t, patience, func() error {
		if c := r.stream.Check(r.t.Context()); c.Status != service.OK {
			return errors.New(c.String())
		}
		return nil
	})
}

// request is a test's request to the route.
type request struct{ tenant, person, session, query, lastID string }

func (r *replica) do(ctx context.Context, q request) *http.Response {
	r.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+q.query, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if q.tenant == "" {
		q.tenant = "acme"
	}
	req.Header.Set("Tenant", q.tenant)
	if q.person == "" {
		q.person = "local:viewer"
	}
	req.Header.Set("Person", q.person)
	req.Header.Set("Session", q.session)
	if q.lastID != "" {
		req.Header.Set("Last-Event-ID", q.lastID)
	}
	resp, err := clients.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp
}

var clients = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// frame is one server-sent event.
type frame struct {
	text, id, event, data string
}

// n returns the member n of the data.
func (f frame) n() int { return int(f.number("n")) }

func (f frame) dropped() int { return int(f.number("_dropped")) }

func (f frame) number(member string) float64 {
	var data map[string]any
	if json.Unmarshal([]byte(f.data), &data) != nil {
		return -1
	}
	n, ok := data[member].(float64)
	if !ok {
		return -1
	}
	return n
}

// client reads one stream.
type client struct {
	t      testing.TB
	resp   *http.Response
	body   *bufio.Reader
	cancel context.CancelFunc
	hello  frame
	lastID string
}

// open connects and reads hello.
func (r *replica) open(q request) *client {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r.t.Cleanup(cancel)
	resp := r.do(ctx, q)
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		r.t.Fatalf("status %d %s, want 200", resp.StatusCode, body)
	}
	c := &client{t: r.t, resp: resp, body: bufio.NewReader(resp.Body), cancel: cancel, lastID: q.lastID}
	r.t.Cleanup(c.close)
	c.hello = c.next()
	if c.hello.event != "hello" {
		r.t.Fatalf("first frame %q, want hello", c.hello.text)
	}
	return c
}

func (c *client) close() {
	c.cancel()
	_ = c.resp.Body.Close()
}

// next returns the next frame, comments included; its text is empty at the end of the stream.
func (c *client) next() frame {
	c.t.Helper()
	late := time.AfterFunc(patience, c.cancel)
	defer late.Stop()
	var f frame
	for {
		line, err := c.body.ReadString('\n')
		f.text += line
		if err != nil {
			if errors.Is(err, io.EOF) && f.text == "" {
				return frame{}
			}
			c.t.Fatalf("the stream broke off after %q: %v", f.text, err)
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "":
			if f.id != "" {
				c.lastID = f.id
			}
			if line == "\n" {
				return f
			}
		case "id":
			f.id = value
		case "event":
			f.event = value
		case "data":
			f.data = value
		}
	}
}

// nextEvent is next without comments, which appear where a test's machine is slow.
func (c *client) nextEvent() frame {
	c.t.Helper()
	for {
		if f := c.next(); f.event != "" || f.text == "" {
			return f
		}
	}
}

// expect reads frames and compares event and n of each, as "job.started 1".
func (c *client) expect(want ...string) {
	c.t.Helper()
	for _, w := range want {
		f := c.nextEvent()
		if got := f.event + " " + strconv.Itoa(f.n()); got != w {
			c.t.Fatalf("frame %q is %q, want %q", f.text, got, w)
		}
	}
}

// expectBye reads the last frame and the end.
func (c *client) expectBye(reason string) {
	c.t.Helper()
	if got, want := c.nextEvent().text, "event: bye\ndata: {\"reason\":\""+reason+"\"}\n\n"; got != want {
		c.t.Fatalf("last frame %q, want %q", got, want)
	}
	if got := c.next().text; got != "" {
		c.t.Fatalf("after bye came %q, want the end", got)
	}
}
