package stream_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/stream"
)

// testdata/frames.txt holds the bytes of the wire.
func TestFramesAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	b := newBus(t, url)
	r := startReplica(t, url, func(c *stream.Config) { c.KeepAlive = 50 * time.Millisecond })
	r.awaitOpen()
	c := r.open(request{session: "one", query: "?channels=job"})
	if got, want := c.resp.Header.Get("Content-Type"), "text/event-stream"; got != want {
		t.Errorf("Content-Type %q, want %q", got, want)
	}
	if got, want := c.resp.Header.Get("Cache-Control"), "no-cache"; got != want {
		t.Errorf("Cache-Control %q, want %q", got, want)
	}
	if got, want := c.resp.Header.Get("X-Accel-Buffering"), "no"; got != want {
		t.Errorf("X-Accel-Buffering %q, want %q", got, want)
	}
	got := c.hello.text + c.next().text // nothing happens: the second is a keep-alive
	send := func(data string) {
		body, err := json.Marshal(outbox.Envelope{
			SpecVersion: "1.0", ID: uuid.MustParse("01890a5d-ac96-774b-bcce-b302099a8057"), Source: "/services/control-plane", Type: "platform.job.started",
			Time: time.Date(2026, 1, 2, 4, 4, 5, 600_000_000, time.FixedZone("", 3600)), DataContentType: "application/json",
			DataSchema: "urn:platform:event:job.started:1", Tenant: "acme", Actor: "local:admin", Data: json.RawMessage(data),
		})
		if err != nil {
			t.Fatal(err)
		}
		b.send("platform.acme.job.started", body)
	}
	send(`{"model":"JPCP","run_id":"r1"}`)
	send(`{}`)
	for seen := 0; seen < 2; {
		if f := c.next(); f.event != "" {
			got += f.text
			seen++
		}
	}
	r.sessions.channel("one") <- stream.LoggedOut
	for f := c.next(); f.text != ""; f = c.next() {
		if f.event != "" {
			got += f.text
		}
	}
	want, err := os.ReadFile("testdata/frames.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestClientsGetTheirTenantAndPlatformOnly(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	b := newBus(t, url)
	r := startReplica(t, url)
	r.awaitOpen()
	acme, other := r.open(request{}), r.open(request{tenant: "globex"})
	b.publish("acme", "job.started", 1)
	b.publish("globex", "job.started", 2)
	b.publish("platform", "drift.status_changed", 3)
	b.publish("acme", "audit.recorded", 4)
	b.publish("platform", "assistant.turn_finished", 5)
	// The body names another tenant than the subject; the broker authorizes publishers by subject.
	_, forged := envelope("acme", "job.started", 6)
	b.send("platform.globex.job.started", forged)
	_, audit := envelope("acme", "audit.recorded", 7)
	b.send("platform.acme.job.started", audit)
	b.send("platform.acme.job.started", []byte("not an event"))
	b.publish("acme", "job.completed", 8)
	b.publish("globex", "job.completed", 9)
	acme.expect("job.started 1", "drift.status_changed 3", "job.completed 8")
	other.expect("job.started 2", "drift.status_changed 3", "job.completed 9")
	// Events kept for clients that resume are filtered alike.
	r.open(request{tenant: "globex", lastID: "0"}).expect("job.started 2", "drift.status_changed 3", "job.completed 9")
}

func TestChannelsFilterAndHelloNamesThem(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	b := newBus(t, url)
	r := startReplica(t, url)
	r.awaitOpen()
	all := r.open(request{})
	some := r.open(request{query: "?channels=drift,job.sta*,deploy"})
	for c, want := range map[*client]string{
		all:  `{"channels":["job.*","drift.*","alert.*","deploy.*","approval.*","event.*"],"resumed":false,"gap":false}`,
		some: `{"channels":["drift.*","job.sta*","deploy.*"],"resumed":false,"gap":false}`,
	} {
		if c.hello.data != want {
			t.Errorf("hello %s, want %s", c.hello.data, want)
		}
	}
	for i, name := range []string{"job.started", "job.failed", "drift.reset", "alert.acked", "deploy.promoted", "approval.created", "event.mention", "job.state_changed"} {
		b.publish("acme", name, i)
	}
	all.expect("job.started 0", "job.failed 1", "drift.reset 2", "alert.acked 3", "deploy.promoted 4", "approval.created 5", "event.mention 6", "job.state_changed 7")
	some.expect("job.started 0", "drift.reset 2", "deploy.promoted 4", "job.state_changed 7")
}

func TestEventsFromBeforeTheStartAreReplayed(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	b := newBus(t, url)
	b.publishMany("acme", "job.started", 1, 30)
	r := startReplica(t, url, func(c *stream.Config) { c.History = 10 })
	r.awaitOpen()
	c := r.open(request{lastID: "20"})
	if want := `"resumed":true,"gap":false`; !strings.Contains(c.hello.data, want) {
		t.Errorf("hello %s, want %s", c.hello.data, want)
	}
	for n := 21; n <= 30; n++ {
		c.expect(fmt.Sprintf("job.started %d", n))
	}
	late := r.open(request{lastID: "19"})
	if want := `"resumed":false,"gap":true`; !strings.Contains(late.hello.data, want) {
		t.Errorf("hello behind the history %s, want %s", late.hello.data, want)
	}
	b.publish("acme", "job.started", 31)
	c.expect("job.started 31")
	late.expect("job.started 31")
}

func TestResumeBeyondItsLimitsIsAGap(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	b := newBus(t, url)
	r := startReplica(t, url, func(c *stream.Config) { c.Replay = 5 })
	r.awaitOpen()
	b.publishMany("acme", "job.started", 1, 6)
	b.publishMany("globex", "job.started", 7, 20)
	r.awaitRead(20)
	for lastID, want := range map[string]string{
		"":                     `"resumed":false,"gap":false`,
		"0":                    `"resumed":false,"gap":true`, // six events are wanted
		"1":                    `"resumed":true,"gap":false`, // five; those of others do not count
		"20":                   `"resumed":true,"gap":false`,
		"21":                   `"resumed":false,"gap":true`, // of another stream
		"18446744073709551615": `"resumed":false,"gap":true`,
		"18446744073709551616": `"resumed":false,"gap":true`,
		"x":                    `"resumed":false,"gap":true`,
		"-1":                   `"resumed":false,"gap":true`,
	} {
		if got := r.open(request{lastID: lastID}).hello.data; !strings.Contains(got, want) {
			t.Errorf("Last-Event-ID %q: hello %s, want %s", lastID, got, want)
		}
	}
}

// awaitRead waits until the replica has read up to a sequence.
func (r *replica) awaitRead(sequence uint64) {
	r.t.Helper()
	testenv.Eventually(r.t, patience, func() error {
		if got := r.stream.Newest(); got < sequence {
			return fmt.Errorf("the replica is at %d, want %d", got, sequence)
		}
		return nil
	})
}

// A client moves from replica to replica while events are published.
func TestResumeOnAnotherReplicaMissesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	b := newBus(t, url)
	roomy := func(c *stream.Config) { c.Queue, c.Replay = 5000, 5000 } // the publisher is faster than one reader
	replicas := []*replica{startReplica(t, url, roomy), startReplica(t, url, roomy)}
	for _, r := range replicas {
		r.awaitOpen()
	}
	const total = 3000
	published := make(chan struct{})
	go func() { // ends with the last event
		defer close(published)
		b.publishMany("acme", "job.started", 1, total)
	}()
	next, moves, lastID := 1, 0, "0"
	for next <= total {
		c := replicas[moves%2].open(request{lastID: lastID})
		if want := `"resumed":true,"gap":false`; !strings.Contains(c.hello.data, want) {
			t.Fatalf("move %d from id %s: hello %s, want %s", moves, lastID, c.hello.data, want)
		}
		for range 37 {
			if next > total {
				break
			}
			f := c.nextEvent()
			if f.n() != next || f.id != strconv.Itoa(next) || f.dropped() != 0 {
				t.Fatalf("move %d: frame %q, want number and id %d, nothing dropped", moves, f.text, next)
			}
			next++
		}
		lastID = c.lastID
		c.close()
		moves++
	}
	<-published
	if moves < 50 {
		t.Errorf("%d moves, want at least 50", moves)
	}
}

func TestFloodDropsTheOldestAndCounts(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	b := newBus(t, url)
	r := startReplica(t, url, func(c *stream.Config) { c.Queue = 16; c.WriteTimeout = time.Minute })
	r.awaitOpen()
	slow, fast := r.open(request{}), r.open(request{query: "?channels=alert"})
	// Large events fill the buffers of the kernel, in which any number of small ones would find room.
	const total = 250
	for n := 1; n <= total; n++ {
		subject, body := largeEvent(t, n, 100<<10)
		b.send(subject, body)
	}
	b.publish("acme", "alert.firing", total+1)
	fast.expect(fmt.Sprintf("alert.firing %d", total+1)) // the slow one delays no one
	lost, last := 0, 0
	for n := 0; n <= total; {
		f := slow.nextEvent()
		if f.dropped() < lost {
			t.Fatalf("_dropped %d after %d, want it to rise", f.dropped(), lost)
		}
		gap := f.n() - last - 1
		if gap > f.dropped()-lost {
			t.Fatalf("event %d came after %d with _dropped %d after %d; want every lost event counted", f.n(), last, f.dropped(), lost)
		}
		lost, last, n = f.dropped(), f.n(), f.n()
	}
	if lost == 0 {
		t.Error("nothing was dropped; want the queue of 16 to overflow")
	}
	// The newest are kept, and all that was lost is counted.
	if got := r.metric("dashboard_stream_drops_total"); int(got) != lost {
		t.Errorf("dashboard_stream_drops_total %v, want %d", got, lost)
	}
	if got := r.metric("dashboard_stream_deliveries_total"); int(got) != total+1-lost+1 {
		t.Errorf("dashboard_stream_deliveries_total %v, want %d", got, total+1-lost+1)
	}
}

// metric returns the value of a metric without labels.
func (r *replica) metric(name string) float64 {
	r.t.Helper()
	families, err := r.server.Registry.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			m := f.GetMetric()[0]
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	r.t.Fatalf("no metric %s", name)
	return 0
}

func TestSessionEndSaysBye(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	newBus(t, url)
	r := startReplica(t, url)
	r.awaitOpen()
	for _, reason := range []string{stream.LoggedOut, stream.TokenExpired} {
		c, others := r.open(request{session: reason}), r.open(request{session: "another"})
		r.sessions.channel(reason) <- reason
		c.expectBye(reason)
		others.close()
	}
	r.awaitClients(0)
}

func (r *replica) awaitClients(want int) {
	r.t.Helper()
	testenv.Eventually(r.t, patience, func() error {
		if got := r.metric("dashboard_stream_clients"); int(got) != want {
			return fmt.Errorf("%v clients, want %d", got, want)
		}
		return nil
	})
}

func TestDrainSaysByeAfterWhatIsQueued(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	b := newBus(t, url)
	r := startReplica(t, url)
	r.awaitOpen()
	c := r.open(request{})
	r.awaitRead(b.publish("acme", "job.started", 1))
	r.stop()
	c.expect("job.started 1")
	c.expectBye(stream.Draining)
}

func TestBrokerAwayEndsStreamsAndBackMissesNothing(t *testing.T) {
	t.Parallel()
	broker := testenv.NewBroker(t)
	b := newBus(t, broker.URL())
	r := startReplica(t, broker.URL())
	r.awaitOpen()
	c := r.open(request{})
	b.publish("acme", "job.started", 1)
	c.expect("job.started 1")
	broker.Stop()
	c.expectBye(stream.BusUnavailable)
	resp := r.do(t.Context(), request{lastID: c.lastID})
	expectProblem(t, resp, http.StatusServiceUnavailable, "stream_unavailable")
	if got, want := resp.Header.Get("Retry-After"), "10"; got != want {
		t.Errorf("Retry-After %q, want %q", got, want)
	}
	broker.Start()
	b.publishMany("acme", "job.started", 2, 5) // before the replica notices, maybe
	r.awaitOpen()
	again := r.open(request{lastID: c.lastID})
	if want := `"resumed":true,"gap":false`; !strings.Contains(again.hello.data, want) {
		t.Errorf("hello %s, want %s", again.hello.data, want)
	}
	again.expect("job.started 2", "job.started 3", "job.started 4", "job.started 5")
	b.publish("acme", "job.started", 6)
	again.expect("job.started 6")
}

func TestShortOutageKeepsStreams(t *testing.T) {
	t.Parallel()
	broker := testenv.NewBroker(t)
	b := newBus(t, broker.URL())
	r := startReplica(t, broker.URL(), func(c *stream.Config) { c.BusGrace = time.Minute })
	r.awaitOpen()
	c := r.open(request{})
	b.publish("acme", "job.started", 1)
	c.expect("job.started 1")
	broker.Stop()
	testenv.Eventually(t, patience, func() error {
		if got := r.metric("dashboard_stream_up"); got != 0 {
			return fmt.Errorf("dashboard_stream_up %v, want 0", got)
		}
		return nil
	})
	broker.Start()
	b.publishMany("acme", "job.started", 2, 4)
	c.expect("job.started 2", "job.started 3", "job.started 4")
}

// The sequences of a recreated stream refer to other events.
func TestLostStreamIsAGap(t *testing.T) {
	t.Parallel()
	broker := testenv.NewBroker(t)
	b := newBus(t, broker.URL())
	r := startReplica(t, broker.URL(), func(c *stream.Config) { c.BusGrace = time.Minute })
	r.awaitOpen()
	c := r.open(request{})
	b.publishMany("acme", "job.started", 1, 9)
	for n := 1; n <= 9; n++ {
		c.expect(fmt.Sprintf("job.started %d", n))
	}
	broker.Wipe()
	broker.Start()
	c.expectBye(stream.BusUnavailable)
	r.awaitOpen()
	again := r.open(request{lastID: c.lastID})
	if want := `"resumed":false,"gap":true`; !strings.Contains(again.hello.data, want) {
		t.Errorf("hello %s, want %s", again.hello.data, want)
	}
	b.publish("acme", "job.started", 1)
	again.expect("job.started 1")
}

func TestWithoutBrokerStreamsAreRefused(t *testing.T) {
	t.Parallel()
	r := startReplica(t, "")
	expectProblem(t, r.do(t.Context(), request{}), http.StatusServiceUnavailable, "stream_unavailable")
	if got := r.stream.Check(t.Context()).Status; got != "warn" {
		t.Errorf("check %q, want warn", got)
	}
}

func TestStreamsAreLimitedPerReplicaAndPerson(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	newBus(t, url)
	r := startReplica(t, url, func(c *stream.Config) { c.MaxClients = 4 })
	r.awaitOpen()
	// A new sign-in is the same person.
	first := r.open(request{session: "one"})
	r.open(request{session: "two"})
	resp := r.do(t.Context(), request{session: "three"})
	if detail := expectProblem(t, resp, http.StatusServiceUnavailable, "stream_unavailable"); !strings.Contains(detail, "You have 2") {
		t.Errorf("detail %q, want the person's limit", detail)
	}
	r.open(request{person: "local:admin", session: "four"})
	r.open(request{person: "local:admin", session: "four"})
	resp = r.do(t.Context(), request{person: "sso:third", session: "five"})
	if got := resp.Header.Get("Retry-After"); got == "" {
		t.Error("no Retry-After")
	}
	if detail := expectProblem(t, resp, http.StatusServiceUnavailable, "stream_unavailable"); !strings.Contains(detail, "it takes (4") {
		t.Errorf("detail %q, want the replica's limit", detail)
	}
	first.close()
	r.awaitClients(3)
	r.open(request{session: "one"})
}

// Two people with many logins do not take the place of a third, who has none yet.
func TestStreamsAreKeptForPeopleWhoHaveFew(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	newBus(t, url)
	r := startReplica(t, url, func(c *stream.Config) { c.MaxClients = 40 })
	r.awaitOpen()
	for i := range 20 {
		r.open(request{person: "local:viewer", session: fmt.Sprint(i)})
	}
	for i := range 10 {
		r.open(request{person: "sso:another", session: fmt.Sprint(i)})
	}
	for _, person := range []string{"local:viewer", "sso:another"} {
		expectProblem(t, r.do(t.Context(), request{person: person, session: "more"}), http.StatusServiceUnavailable, "stream_unavailable")
	}
	for i := range 6 {
		r.open(request{person: "local:admin", session: fmt.Sprint(i)})
	}
}

func TestWrongQueryIsRefused(t *testing.T) {
	t.Parallel()
	r := startReplica(t, "")
	for _, query := range []string{"?channels=audit", "?channels=Job", "?channels=job,,drift", "?channels=job&channels=drift", "?channel=job", "?since=1"} {
		expectProblem(t, r.do(t.Context(), request{query: query}), http.StatusUnprocessableEntity, "validation_failed")
	}
}

func expectProblem(t *testing.T, resp *http.Response, status int, code string) (detail string) {
	t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var p struct{ Code, Detail string }
	if err := json.Unmarshal(body, &p); err != nil || resp.StatusCode != status || p.Code != code {
		t.Fatalf("status %d %s, want %d %s", resp.StatusCode, body, status, code)
	}
	return p.Detail
}

func TestNewRefusesMissingParts(t *testing.T) {
	t.Parallel()
	if _, err := stream.New(stream.Config{}); err == nil || !strings.Contains(err.Error(), "Watch, Log, Registerer") {
		t.Errorf("New = %v, want the parts named", err)
	}
}
