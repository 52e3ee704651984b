package stream_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/spine"
	"github.com/mlp-platform/platform/libs/evidence/store"
	"github.com/mlp-platform/platform/libs/loopback/httpd"
	"github.com/mlp-platform/platform/services/evidence-api/internal/stream"
)

// limit is how long a test waits for what must come.
const limit = 20 * time.Second

// server is a hub behind real sockets.
type server struct {
	hub     *stream.Hub
	addr    string
	reasons chan stream.Reason // of each stream that ended
}

type options struct {
	stream.Config
	writeTimeout time.Duration
	wait         time.Duration // of the store
}

// serveStream streams the store at path. The request's target is the place to start
// after, "/" for the end of the log, and the filter: /12?run_id
func serveStream(t testing.TB, path string, o options) *server {
	t.Helper()
	if o.Heartbeat == 0 {
		o.Heartbeat = limit
	}
	if o.MaxStream == 0 {
		o.MaxStream = 10 * limit
	}
	if o.writeTimeout == 0 {
		o.writeTimeout = limit
	}
	if o.wait == 0 {
		o.wait = limit // a writer on a busy machine may hold the store for long
	}
	reader := store.NewReader(path, o.wait)
	s := &server{hub: stream.New(reader, o.Config), reasons: make(chan stream.Reason, 1000)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	h := &httpd.Server{RequestTimeout: limit, MaxConns: 64, Handler: func(w *httpd.Writer, r *httpd.Request) {
		var after *int64
		if n, err := strconv.ParseInt(r.Path[1:], 10, 64); err == nil {
			after = &n
		}
		var filter store.EventFilter
		if r.HasQuery {
			filter.RunID = &r.RawQuery
		}
		session, err := s.hub.Open(t.Context(), after, filter)
		if err != nil {
			_ = w.Answer(400, nil, []byte(err.Error()))
			return
		}
		out, err := w.Stream(200, nil, o.writeTimeout)
		if err != nil {
			return
		}
		s.reasons <- session.Run(out)
	}}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := h.Serve(ctx, l); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		s.hub.Shutdown()
		cancel()
		h.Abort()
		wg.Wait()
		s.hub.Wait()
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// lockingPeer accepts writes and locks the store with the first of them.
type lockingPeer struct {
	lock func()
	once sync.Once
	text bytes.Buffer
}

func (p *lockingPeer) Write(b []byte) (int, error) {
	p.once.Do(p.lock)
	return p.text.Write(b)
}

func (*lockingPeer) Gone() <-chan struct{} { return nil }

// TestShutdownEndsAWaitForHistory: a stream that waits for a locked store to read its history ends when the server
// shuts down, and not when the wait is over.
func TestShutdownEndsAWaitForHistory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.db")
	manyEvents(t, path, 20)
	reader := store.NewReader(path, 10*limit)
	hub := stream.New(reader, stream.Config{Heartbeat: limit, MaxStream: limit})
	from := int64(0)
	session, err := hub.Open(t.Context(), &from, store.EventFilter{})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	peer := &lockingPeer{lock: func() {
		db, err := sql.Open("sqlite", "file:"+path)
		if err != nil {
			t.Error(err)
			return
		}
		db.SetMaxOpenConns(1)
		t.Cleanup(func() { _ = db.Close() })
		if _, err := db.ExecContext(t.Context(), "PRAGMA busy_timeout = 5000; BEGIN EXCLUSIVE"); err != nil {
			t.Error(err)
		}
		time.AfterFunc(200*time.Millisecond, hub.Shutdown)
	}}
	if reason := session.Run(peer); reason != stream.Shutdown || time.Since(began) > limit/2 {
		t.Errorf("%s after %v; want reason == stream.Shutdown && time.Since(began) <= limit / 2", reason, time.Since(began))
	}
	if got := peer.text.String(); got != "retry: 3000\n\n: stream-ended reason=shutdown\n\n" {
		t.Errorf("%q; want \"retry: 3000\\n\\n: stream-ended reason=shutdown\\n\\n\"", got)
	}
	hub.Wait()
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
}

// client is one open stream.
type client struct {
	net.Conn
	t testing.TB
}

// follow opens a stream and reads its head.
func (s *server) follow(t testing.TB, target string) *client {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(10 * limit)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\n\r\n", target); err != nil {
		t.Fatal(err)
	}
	c := &client{conn, t}
	var head []byte
	for !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
		head = append(head, c.next(1)...)
	}
	if !bytes.HasPrefix(head, []byte("HTTP/1.1 200 ")) {
		rest, _ := io.ReadAll(conn)
		t.Fatalf(`%s%s; want bytes.HasPrefix(head, []byte("HTTP/1.1 200 "))`, head, rest)
	}
	return c
}

// next reads n bytes.
func (c *client) next(n int) string {
	c.t.Helper()
	b := make([]byte, n)
	if n, err := io.ReadFull(c, b); err != nil {
		c.t.Fatalf("%v after %q", err, b[:n])
	}
	return string(b)
}

// want reads exactly the text.
func (c *client) want(text string) {
	c.t.Helper()
	if got := c.next(len(text)); got != text {
		c.t.Fatalf("%q, want %q", got, text)
	}
}

// rest reads to the end.
func (c *client) rest() string {
	c.t.Helper()
	b, err := io.ReadAll(c)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(b)
}

const (
	retry     = "retry: 3000\n\n"
	keepalive = ": keepalive\n\n"
)

func endMarker(r stream.Reason) string { return ": stream-ended reason=" + string(r) + "\n\n" }

func (s *server) wantReason(t testing.TB, want stream.Reason) {
	t.Helper()
	select {
	case got := <-s.reasons:
		if got != want {
			t.Errorf("ended by %q, want %q", got, want)
		}
	case <-time.After(limit):
		t.Fatalf("no stream ended, want %q", want)
	}
}

// log is a store that a test writes to.
type log struct {
	t testing.TB
	*store.Writer
	path string
}

func newLog(t testing.TB) *log {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	if err := store.Create(t.Context(), path, store.WriterOptions{}); err != nil {
		t.Fatal(err)
	}
	w, err := store.OpenWriter(t.Context(), path, store.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return &log{t, w, path}
}

func runID(n int) string { return fmt.Sprintf("run/test:%06d", n) }

func (l *log) create(n int) {
	l.t.Helper()
	r := fixture.Run()
	r.RunID = runID(n)
	if _, err := l.CreateRun(context.Background(), store.CreateRun{Projection: r, IdempotencyKey: strconv.Itoa(n)}); err != nil {
		l.t.Fatal(err)
	}
}

func parseStamp(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := spine.ParseTime(text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// first is the first event of the fixture run, as it goes over the wire.
const firstSize, firstDigest = 682, "d13da651677c3b058e1adabded69d7db7775c29321870a5b2f53b5e2cd8eeb8e"

func TestFixtureEventsLiveAndReplayed(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	s := serveStream(t, l.path, options{})
	live := s.follow(t, "/")
	live.want(retry)

	if _, err := l.CreateRun(t.Context(), store.CreateRun{Projection: fixture.Run(), IdempotencyKey: "k", At: parseStamp(t, fixture.CreatedAt)}); err != nil {
		t.Fatal(err)
	}
	committed := time.Now()
	first := live.next(firstSize)
	took := time.Since(committed)
	if digest := sha256.Sum256([]byte(first)); hex.EncodeToString(digest[:]) != firstDigest {
		t.Errorf("%q has another digest; want hex.EncodeToString(digest[:]) == %v", first, firstDigest)
	}
	// The bound is 500 ms; a machine that runs other tests may add delay.
	if took > 12*time.Second {
		t.Errorf("%v from commit to byte; want took <= 12 * time.Second", took)
	}
	t.Logf("%v from commit to byte", took)

	if _, err := l.CancelRun(t.Context(), fixture.Run().RunID, parseStamp(t, fixture.CancelledAt)); err != nil {
		t.Fatal(err)
	}
	second := live.next(len("id: 2\nevent: run.cancelled\ndata: "))
	if second != "id: 2\nevent: run.cancelled\ndata: " {
		t.Errorf("%q; want \"id: 2\\nevent: run.cancelled\\ndata: \"", second)
	}

	replay := s.follow(t, "/0")
	replay.want(retry + first + second)
	s.follow(t, "/1").want(retry + second)
	none := s.follow(t, "/2")
	none.want(retry)
	s.hub.Shutdown()
	if rest := none.rest(); rest != endMarker(stream.Shutdown) {
		t.Errorf("%q; want rest == endMarker(stream.Shutdown)", rest)
	}
}

func TestBeyondTheLog(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.create(1)
	hub := stream.New(store.NewReader(l.path, store.ReadWait), stream.Config{})
	for after, bad := range map[int64]bool{0: false, 1: false, 2: true, 1e18 - 1: true} {
		_, err := hub.Open(t.Context(), &after, store.EventFilter{})
		beyond, ok := errors.AsType[*stream.BeyondError](err)
		if ok != bad || ok && beyond.Latest != 1 || !bad && err != nil {
			t.Errorf("after %d: %v; want ok == bad && (!ok || beyond.Latest == 1) && (bad || err == nil)", after, err)
		}
	}
	none := stream.New(store.NewReader(filepath.Join(t.TempDir(), "none.db"), 0), stream.Config{})
	if _, err := none.Open(t.Context(), nil, store.EventFilter{}); store.CodeOf(err) != store.StoreError {
		t.Errorf("%v; want store.CodeOf(err) == %v", err, store.StoreError)
	}
}

func TestHeartbeatAndLongestTime(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	s := serveStream(t, l.path, options{Config: stream.Config{Heartbeat: 200 * time.Millisecond, MaxStream: 1500 * time.Millisecond}})
	began := time.Now()
	c := s.follow(t, "/")
	c.want(retry + keepalive)
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("a heartbeat after %v; want took >= 200 * time.Millisecond", took)
	}
	text := c.rest()
	took := time.Since(began)
	if took < 1500*time.Millisecond || !strings.HasSuffix(text, endMarker(stream.MaxDuration)) || strings.ReplaceAll(strings.TrimSuffix(text, endMarker(stream.MaxDuration)), keepalive, "") != "" {
		t.Errorf("%v: %q; want took >= 1500 * time.Millisecond && strings.HasSuffix(text, endMarker(stream.MaxDuration)) && …", took, text)
	}
	if n := strings.Count(text, keepalive); n > 7 {
		t.Errorf("%d heartbeats in %v; want n <= 7", n, took)
	}
	s.wantReason(t, stream.MaxDuration)
}

// frame reads one frame and returns its first line.
func (c *client) frame() string {
	c.t.Helper()
	var b []byte
	for !bytes.HasSuffix(b, []byte("\n\n")) {
		b = append(b, c.next(1)...)
	}
	id, _, _ := strings.Cut(string(b), "\n")
	return id
}

// TestFilters reads events of one run from history and from the window.
func TestFilters(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	for n := 1; n <= 3; n++ {
		l.create(n)
	}
	s := serveStream(t, l.path, options{})
	one, all := s.follow(t, "/0?"+runID(2)), s.follow(t, "/")
	all.want(retry)
	one.want(retry)
	if id := one.frame(); id != "id: 2" {
		t.Error(id, `want "id: 2"`)
	}
	l.create(4)
	if _, err := l.CancelRun(t.Context(), runID(2), time.Time{}); err != nil {
		t.Fatal(err)
	}
	l.create(6)
	for _, want := range []string{"id: 4", "id: 5", "id: 6"} {
		if id := all.frame(); id != want {
			t.Errorf("%s, want %s", id, want)
		}
	}
	if id := one.frame(); id != "id: 5" {
		t.Error(id, `want "id: 5"`)
	}
	s.hub.Shutdown()
	if rest := one.rest(); rest != endMarker(stream.Shutdown) {
		t.Errorf("%q; want rest == endMarker(stream.Shutdown)", rest)
	}
}

// TestStoreFailsUnderStreams: all streams end with the marker, later ones find the
// store healed.
func TestStoreFailsUnderStreams(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.create(1)
	_ = l.Close()
	whole, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	other := newLog(t)
	_ = other.Close()
	s := serveStream(t, l.path, options{wait: 200 * time.Millisecond})
	put := func(content []byte) {
		t.Helper()
		if err := os.WriteFile(l.path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, harm := range map[string]func(){
		"garbage": func() { put(bytes.Repeat([]byte("garbage "), 8192)) },
		"cut":     func() { put(whole[:100]) },
		"removed": func() { _ = os.Remove(l.path) },
		"replaced by a shorter log": func() {
			b, err := os.ReadFile(other.path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(l.path+".new", b, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(l.path+".new", l.path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		a, b := s.follow(t, "/"), s.follow(t, "/")
		a.want(retry)
		b.want(retry)
		harm()
		for _, c := range []*client{a, b} {
			if text := c.rest(); text != endMarker(stream.StoreError) {
				t.Errorf("%s: %q; want text == endMarker(stream.StoreError)", name, text)
			}
			s.wantReason(t, stream.StoreError)
		}
		_ = os.Remove(l.path)
		put(whole)
	}
}

// TestNoneIsMissed: streams that come and go while a writer writes see every event
// once, in order.
func TestNoneIsMissed(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	s := serveStream(t, l.path, options{})
	const events = 150
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			at := 0
			for at < events {
				c := s.follow(t, "/"+strconv.Itoa(at))
				c.want(retry)
				for stop := min(at+1+i*7, events); at < stop; at++ {
					if id := c.frame(); id != fmt.Sprintf("id: %d", at+1) {
						t.Errorf("%s, want %d", id, at+1)
						return
					}
				}
				_ = c.Close()
			}
		})
	}
	for n := range events {
		l.create(n)
	}
	wg.Wait()
}

// TestPeerThatTakesNothing is cut without a marker; TestGone of httpd covers the rest.
func TestPeerThatTakesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.db")
	manyEvents(t, path, 30_000)
	s := serveStream(t, path, options{writeTimeout: 300 * time.Millisecond})
	c := s.follow(t, "/0")
	s.wantReason(t, stream.Gone)
	if text, _ := io.ReadAll(c); strings.Contains(string(text), "stream-ended") {
		t.Error("a marker in the middle of a frame")
	}
}

func TestPeerThatLeaves(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	s := serveStream(t, l.path, options{})
	c := s.follow(t, "/")
	c.want(retry)
	_ = c.Close()
	s.wantReason(t, stream.Gone)
}

// TestShutdownInHistory: a stream that has much history to go ends at once.
func TestShutdownInHistory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.db")
	manyEvents(t, path, 30_000)
	s := serveStream(t, path, options{})
	c := s.follow(t, "/0")
	c.want(retry + "id: 1\n")
	s.hub.Shutdown()
	text := c.rest()
	if !strings.HasSuffix(text, "\n\n"+endMarker(stream.Shutdown)) || strings.Contains(text, "id: 30000\n") {
		t.Errorf("%d bytes, the last %q; want strings.HasSuffix(text, \"\\n\\n\"+endMarker(stream.Shutdown)) && !strings.Contains(text, \"id: 30000\\n\")", len(text), text[max(0, len(text)-100):])
	}
	s.wantReason(t, stream.Shutdown)
	// One that starts later learns the same.
	if text := s.follow(t, "/").rest(); text != retry+endMarker(stream.Shutdown) {
		t.Errorf("%q; want text == retry + endMarker(stream.Shutdown)", text)
	}
}
