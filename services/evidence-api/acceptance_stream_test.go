package evidenceapi_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/evidencetest"
	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/spine"
	"github.com/mlp-platform/platform/libs/evidence/store"
	evidenceapi "github.com/mlp-platform/platform/services/evidence-api"
	"github.com/mlp-platform/platform/services/evidence-api/internal/evidenceapitest"
)

const stream = "/api/v1/events/stream"

// openStream opens a stream and reads its head and its first line.
func openStream(t *testing.T, tw *evidenceapitest.Tower, target string, fields ...string) *evidenceapitest.Conn {
	t.Helper()
	c := tw.Send(evidenceapitest.Request{Target: target, Fields: fields})
	t.Cleanup(c.Close)
	head := c.Head()
	if head.Status != 200 || head.Header.Get("Content-Type") != "text/event-stream; charset=utf-8" || head.Header.Get("X-Accel-Buffering") != "no" ||
		head.Header.Get("Content-Length")+head.Header.Get("ETag")+head.Header.Get("X-SVC-Content-Digest") != "" {
		t.Fatalf(`%s %v; want head.Status == 200 && head.Header.Get("Content-Type") == "text/event-stream; charset=utf-8" && head.Header.Get("X-Accel-Buffering") == "no" && …`, head.StatusLine, head.Header)
	}
	evidenceapitest.CheckFields(t, head)
	if first := c.Next(); first != "retry: 3000\n\n" {
		t.Fatalf("the stream begins with %q; want \"retry: 3000\\n\\n\"", first)
	}
	return c
}

// createRun creates the fixture run under another id.
func createRun(t *testing.T, path, id string) {
	t.Helper()
	run := fixture.Run()
	run.RunID = id
	writeStore(t, path, func(ctx context.Context, w *store.Writer) error {
		_, err := w.CreateRun(ctx, store.CreateRun{Projection: run, IdempotencyKey: id})
		return err
	})
}

// twoEvents creates a store of the fixture run, created and cancelled.
func twoEvents(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f1.sqlite")
	created, err := spine.ParseTime(fixture.CreatedAt)
	if err != nil {
		t.Fatal(err)
	}
	writeStore(t, path, func(ctx context.Context, w *store.Writer) error {
		if _, err := w.CreateRun(ctx, store.CreateRun{Projection: fixture.Run(), IdempotencyKey: "one", At: created}); err != nil {
			return err
		}
		_, err := w.CancelRun(ctx, fixture.Run().RunID, created.Add(time.Minute))
		return err
	})
	return path
}

// TestRow43LiveEvent creates each event right after the server polled the store, so that each waits for a whole
// polling interval. The fastest counts: the rest of the others' delay is the machine's.
func TestRow43LiveEvent(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	c := openStream(t, tw, stream)
	best := evidenceapitest.Patience
	for i := range 4 {
		id := fmt.Sprintf("run/demo:%04d", i+9)
		createRun(t, tw.Store, id)
		began := time.Now()
		frame := c.Next()
		best = min(best, time.Since(began))
		if !strings.HasPrefix(frame, fmt.Sprintf("id: %d\nevent: run.created\ndata: {", i+5)) || !strings.Contains(frame, `"run_id":"`+id+`"`) || strings.Count(frame, "\n\n") != 1 {
			t.Errorf("%q; want strings.HasPrefix(frame, fmt.Sprintf(\"id: %%d\\nevent: run.created\\ndata: {\", i+5)) && strings.Contains(frame, `\"run_id\":\"`+id+`\"`) && strings.Count(frame, \"\\n\\n\") == 1", frame)
		}
	}
	if best > 5*time.Second {
		t.Errorf("after %v at best; want best <= 5 * time.Second", best)
	}
}

func TestRow44Replay(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t, evidenceapitest.At(twoEvents(t)))
	c := openStream(t, tw, stream, "Last-Event-ID: 0")
	first, second := c.Next(), c.Next()
	sum := sha256.Sum256([]byte(first))
	if len(first) != 682 || hex.EncodeToString(sum[:]) != "d13da651677c3b058e1adabded69d7db7775c29321870a5b2f53b5e2cd8eeb8e" {
		t.Errorf(`%d bytes: %q; want len(first) == 682 && hex.EncodeToString(sum[:]) == "d13da651677c3b058e1adabded69d7db7775c29321870a5b2f53b5e2cd8eeb8e"`, len(first), first)
	}
	if second != string(evidencetest.RunEvents()[1].Frame()) {
		t.Errorf("%q; want second == string(evidencetest.RunEvents()[1].Frame())", second)
	}
	again := openStream(t, tw, stream, "Last-Event-ID:  \t1 ")
	if got := again.Next(); got != second {
		t.Errorf("%q; want %v", got, second)
	}
	// Filters also apply to replayed events.
	only := openStream(t, tw, stream+"?event_type=run.cancelled&run_id=run/demo:0001&project_id=project/demo&work_unit_id=work/demo-0001", "Last-Event-ID: 0")
	if got := only.Next(); got != second {
		t.Errorf("%q; want %v", got, second)
	}
}

func TestRow45LastEventID(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t, evidenceapitest.At(twoEvents(t)))
	for _, bad := range [][]string{{"-1"}, {"x"}, {""}, {" "}, {"+1"}, {"1.0"}, {strings.Repeat("1", 19)}, {"1", "1"}, {"٣"}} {
		var f []string
		for _, v := range bad {
			f = append(f, "Last-Event-ID: "+v)
		}
		if r := tw.Get(stream, f...).Want(400, "invalid_last_event_id"); r.At("error", "details") != "" {
			t.Errorf(`%q: %s; want r.At("error", "details") == ""`, bad, r.Body)
		}
	}
	if got := tw.Get(stream, "Last-Event-ID: 999").Want(400, "invalid_last_event_id").At("error", "details"); got != `{"latest_sequence":2}` {
		t.Error(got, "want `{\"latest_sequence\":2}`")
	}
	empty := filepath.Join(t.TempDir(), "empty.sqlite")
	if err := store.Create(t.Context(), empty, store.WriterOptions{}); err != nil {
		t.Fatal(err)
	}
	none := evidenceapitest.Start(t, evidenceapitest.At(empty))
	openStream(t, none, stream, "Last-Event-ID: 0")
	if got := none.Get(stream, "Last-Event-ID: 1").Want(400, "invalid_last_event_id").At("error", "details"); got != `{"latest_sequence":0}` {
		t.Error(got, "want `{\"latest_sequence\":0}`")
	}
}

func TestRow46StreamChecks(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	if got := tw.Get(stream+"?limit=1").Want(400, "unexpected_query_parameters").At("error", "details", "allowed"); got != `["event_type","project_id","run_id","work_unit_id"]` {
		t.Error(got, "want `[\"event_type\",\"project_id\",\"run_id\",\"work_unit_id\"]`")
	}
	tw.Get(stream, "Accept: text/html").Want(406, "not_acceptable")
	tw.Get(stream+"?run_id=%20").Want(400, "invalid_filter")
	tw.Get(stream+"?run_id=", "Last-Event-ID: x").Want(400, "invalid_filter")
	for _, accept := range []string{"text/event-stream", "text/*", "*/*", "application/json"} {
		openStream(t, tw, stream, "Accept: "+accept).Close()
	}
}

func TestRow47HeartbeatAndLength(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t, func(c *evidenceapi.Config) {
		c.Heartbeat, c.MaxStream = 100*time.Millisecond, 450*time.Millisecond
	})
	c := openStream(t, tw, stream)
	if got := c.Next(); got != ": keepalive\n\n" {
		t.Errorf("%q; want \": keepalive\\n\\n\"", got)
	}
	rest := c.Rest()
	if !strings.HasSuffix(rest, ": stream-ended reason=max-duration\n\n") || strings.Trim(strings.ReplaceAll(rest, ": keepalive\n\n", ""), "\n") != ": stream-ended reason=max-duration" {
		t.Errorf("%q; want strings.HasSuffix(rest, \": stream-ended reason=max-duration\\n\\n\") && …", rest)
	}
}

func TestRow48Drain(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t, func(c *evidenceapi.Config) { c.DrainTimeout = time.Minute }) // far beyond the bound below
	c := openStream(t, tw, stream)
	held := holdSlot(t, tw)
	tw.Drain()
	if rest := c.Rest(); rest != ": stream-ended reason=shutdown\n\n" {
		t.Errorf("%q; want \": stream-ended reason=shutdown\\n\\n\"", rest)
	}
	r := tw.Get("/api/v1/status").Want(503, "shutting_down")
	if r.Header.Get("Retry-After") != "1" || r.At("error", "details") != `{"retry_after_seconds":1}` {
		t.Errorf("%v %s; want r.Header.Get(\"Retry-After\") == \"1\" && r.At(\"error\", \"details\") == `{\"retry_after_seconds\":1}`", r.Header, r.Body)
	}
	tw.Do(evidenceapitest.Request{Target: "/readyz", NoToken: true}).Want(503, "shutting_down")
	tw.Do(evidenceapitest.Request{Target: "/healthz", NoToken: true}).Want(200, "")
	began := time.Now()
	held.finish(t)
	if err := tw.Wait(); err != nil || time.Since(began) > 15*time.Second {
		t.Errorf("%v after %v; want time.Since(began) <= 15 * time.Second", err, time.Since(began))
	}
}

func TestDrainEndsAfterItsTime(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t, func(c *evidenceapi.Config) {
		c.DrainTimeout, c.RequestTimeout = 200*time.Millisecond, time.Minute // the latter far beyond the bound below
	})
	holdSlot(t, tw)
	began := time.Now()
	tw.Drain()
	if err := tw.Wait(); err != nil || time.Since(began) > 15*time.Second {
		t.Errorf("%v after %v; want time.Since(began) <= 15 * time.Second", err, time.Since(began))
	}
}

// lockStore locks a store as a writer does, until the end of the test.
func lockStore(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)") // a stream may be reading
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.ExecContext(t.Context(), "BEGIN EXCLUSIVE"); err != nil {
		t.Fatal(err)
	}
}

// awaitWaiting sends requests that need the locked store, in addition to those already in flight, and returns when the
// server waits for it.
func awaitWaiting(t *testing.T, tw *evidenceapitest.Tower, already int) {
	t.Helper()
	for _, target := range []string{"/api/v1/runs", run2, run2 + "/evidence", "/api/v1/events/evt-000000000001/proof", stream} {
		t.Cleanup(tw.Send(evidenceapitest.Request{Target: target}).Close)
	}
	pollUntil(t, func() bool {
		n, err := strconv.Atoi(tw.Get("/api/v1/metrics").At("concurrency", "in_flight_requests"))
		return err == nil && n >= already+1+3 // the question itself, and three of those
	})
}

// TestDrainDoesNotWaitForTheStore: requests that wait for a locked store end with the
// drain, streams too.
func TestDrainDoesNotWaitForTheStore(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*evidenceapitest.Tower){
		"at its end":        (*evidenceapitest.Tower).Drain,
		"the second signal": func(tw *evidenceapitest.Tower) { tw.Drain(); tw.Abort() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The wait for the lock takes 2 s. One drain that is quicker shows that it is not waited for; a slow one
			// may be a busy machine's.
			var took time.Duration
			for try := 0; try == 0 || try < 5 && took > 1500*time.Millisecond; try++ {
				tw := evidenceapitest.Start(t, func(c *evidenceapi.Config) {
					if name == "at its end" {
						c.DrainTimeout = 100 * time.Millisecond
					}
				})
				openStream(t, tw, stream)
				lockStore(t, tw.Store)
				awaitWaiting(t, tw, 0)
				began := time.Now()
				end(tw)
				if err := tw.Wait(); err != nil {
					t.Fatal(err)
				}
				took = time.Since(began)
			}
			if took > 1500*time.Millisecond {
				t.Errorf("every drain of five waited, the last %v; want at most 1.5 s", took)
			}
		})
	}
}

// TestRow48DrainOfALockedStore: the process ends in its time while a writer holds the
// store.
func TestRow48DrainOfALockedStore(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t, func(c *evidenceapi.Config) { c.RequestTimeout = time.Minute }) // far beyond the bound below
	c := openStream(t, tw, stream)
	holdSlot(t, tw) // until the end of the drain
	lockStore(t, tw.Store)
	awaitWaiting(t, tw, 1)
	began := time.Now()
	tw.Drain()
	if rest := c.Rest(); rest != ": stream-ended reason=shutdown\n\n" {
		t.Errorf("%q; want \": stream-ended reason=shutdown\\n\\n\"", rest)
	}
	if err := tw.Wait(); err != nil || time.Since(began) > 15*time.Second {
		t.Errorf("%v after %v; want time.Since(began) <= 15 * time.Second", err, time.Since(began))
	}
}

func TestSecondSignalEndsTheDrain(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t, func(c *evidenceapi.Config) { c.DrainTimeout = time.Hour; c.RequestTimeout = 300 * time.Second })
	holdSlot(t, tw)
	tw.Drain()
	tw.Abort()
	if err := tw.Wait(); err != nil {
		t.Error(err)
	}
}

func TestRow49StoreTurnsToGarbage(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	c := openStream(t, tw, stream)
	if err := os.WriteFile(tw.Store, []byte(strings.Repeat("garbage ", 4096)), 0o600); err != nil {
		t.Fatal(err)
	}
	if rest := c.Rest(); rest != ": stream-ended reason=store-error\n\n" {
		t.Errorf("%q; want \": stream-ended reason=store-error\\n\\n\"", rest)
	}
}

func TestRow50StreamSlots(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	var open []*evidenceapitest.Conn
	for range 8 {
		open = append(open, openStream(t, tw, stream))
	}
	if r := tw.Get(stream).Want(503, "too_many_streams"); r.Header.Get("Retry-After") != "1" {
		t.Errorf(`%v; want r.Header.Get("Retry-After") == "1"`, r.Header)
	}
	if got := tw.Get("/api/v1/metrics").At("concurrency"); got != `{"event_stream_clients":8,"in_flight_requests":1,"max_concurrent_requests":16,"max_event_stream_clients":8}` {
		t.Error(got, "want `{\"event_stream_clients\":8,\"in_flight_requests\":1,\"max_concurrent_requests\":16,\"max_event_stream_clients\":8}`")
	}
	open[3].Close()
	pollUntil(t, func() bool { return tw.Get("/api/v1/metrics").At("concurrency", "event_stream_clients") == "7" })
	openStream(t, tw, stream)

	// The most that may be chosen.
	wide := evidenceapitest.Start(t, func(c *evidenceapi.Config) { c.MaxStreams = 64 })
	for range 64 {
		openStream(t, wide, stream)
	}
	wide.Get(stream).Want(503, "too_many_streams")
}

// pollUntil asks again until the answer is yes.
func pollUntil(t *testing.T, yes func() bool) {
	t.Helper()
	for deadline := time.Now().Add(evidenceapitest.Patience); !yes(); {
		if time.Now().After(deadline) {
			t.Fatal("it never came")
		}
	}
}

// held is an inspection whose body is not there yet.
type held struct {
	*evidenceapitest.Conn
	report []byte
}

// holdSlot sends a report's head with Expect: 100-continue and returns at the 100: then the request has its slot.
func holdSlot(t *testing.T, tw *evidenceapitest.Tower) held {
	t.Helper()
	report := fixtureReport(t)
	c := tw.Send(evidenceapitest.Request{Method: "POST", Target: inspect,
		Fields: []string{asJSON, fmt.Sprintf("Content-Length: %d", len(report)), "Expect: 100-continue"}})
	t.Cleanup(c.Close)
	if head := c.Head(); head.Status != 100 {
		t.Fatal(head.StatusLine, "want head.Status == 100")
	}
	return held{c, report}
}

func (h held) finish(t *testing.T) {
	t.Helper()
	if _, err := h.Write(h.report); err != nil {
		t.Fatal(err)
	}
	h.Answer().Want(200, "")
}

func TestRow51RequestSlots(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	var all []held
	for range 16 {
		all = append(all, holdSlot(t, tw))
	}
	for _, target := range []string{"/api/v1/status", "/readyz", "/", "/nope"} {
		if r := tw.Get(target).Want(503, "overloaded"); r.Header.Get("Retry-After") != "1" {
			t.Errorf(`%v; want r.Header.Get("Retry-After") == "1"`, r.Header)
		}
	}
	tw.Do(evidenceapitest.Request{Target: "/healthz", NoToken: true}).Want(200, "")
	tw.Do(evidenceapitest.Request{Method: "HEAD", Target: "/healthz", NoToken: true}).Want(200, "")
	tw.Inspect(fixtureReport(t)).Want(503, "overloaded")
	for _, h := range all {
		h.finish(t)
	}
	if got := tw.Get("/api/v1/metrics").At("admission", "overload_rejections_total"); got != "5" {
		t.Error(got, `want "5"`)
	}
}

func TestRow52StreamsTakeNothingFromRequests(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	for range 8 {
		openStream(t, tw, stream)
	}
	for range 8 {
		tw.Do(evidenceapitest.Request{Target: stream, NoToken: true}).Want(403, "invalid_session_token")
	}
	var all []held
	for range 16 {
		all = append(all, holdSlot(t, tw))
	}
	for _, h := range all {
		h.finish(t)
	}
}
