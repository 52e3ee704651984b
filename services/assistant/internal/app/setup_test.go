package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
	"github.com/mlp-platform/platform/services/assistant/internal/caller"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/clustername"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/limit"
	"github.com/mlp-platform/platform/services/assistant/internal/metrics"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/runbook"
	"github.com/mlp-platform/platform/services/assistant/internal/session"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const (
	admin    = "ki-admin-0123456789abcdef"
	operator = "ki-op-0123456789abcdef"
	other    = "ki-op-fedcba9876543210"
	readonly = "ki-ro-0123456789abcdef"
)

// stubEngine answers with the query, and does what the query names.
type stubEngine struct {
	began chan struct{} // a token for each "wait"
	let   chan struct{} // ends a "wait"
}

func (e *stubEngine) Investigate(ctx context.Context, t turn.Turn, _ turn.Toolbox, sink turn.Sink) (turn.Outcome, error) {
	switch {
	case len(t.Settled) > 0:
		sink.Token("That was all.")
	case strings.HasPrefix(t.Query, "scale"):
		replicas := int32(len(t.Query) - len("scale"))
		sink.Token("I can scale it.")
		return turn.Outcome{Write: []operation.Operation{assistanttest.ScaleOperation("api", replicas)}}, nil
	case t.Query == "wait":
		sink.Token("So far.")
		e.began <- struct{}{}
		select {
		case <-e.let:
		case <-ctx.Done():
			return turn.Outcome{}, ctx.Err()
		}
		sink.Token(" Done.")
	default:
		sink.Token("You asked: " + t.Query)
	}
	return turn.Outcome{}, nil
}

// tools are never called: the engine reads nothing.
type tools struct{}

func (tools) Line(turn.Turn, operation.Operation) string { return "" }
func (tools) Run(context.Context, turn.Turn, operation.Operation) (turn.Output, error) {
	return turn.Output{}, errors.New("not called")
}
func (tools) Snapshot(context.Context, turn.Turn, string, func(operation.Operation) func(turn.Output, error)) (*engine.Snapshot, error) {
	return nil, errors.New("not called")
}

type planner struct{ *assistanttest.Cluster }

func (p planner) Plan(ctx context.Context, t turn.Turn, ops []operation.Operation) (action.Plan, error) {
	return p.Cluster.Plan(ctx, t.Who.Role, ops)
}

// names is a cluster that tells its namespaces.
type names func(context.Context) ([]string, error)

func (n names) Namespaces(ctx context.Context) ([]string, error) { return n(ctx) }

// opt holds the options that a test may set.
type opt struct {
	rate, burst, streams int
	silence, busy        time.Duration
	names                names
	demo                 service.Secret
	fourEyes             bool
	trust                service.Secret // DELEGATION_TRUST_JSON
}

type bundle struct {
	t       *testing.T
	url     string
	db      string
	clock   *assistanttest.Clock
	cluster *assistanttest.Cluster
	engine  *stubEngine
	turns   *turn.Service
	routes  handlers
	reg     *prometheus.Registry
	closed  atomic.Int64 // requests that have ended
}

func setup(t *testing.T, o opt) *bundle {
	t.Helper()
	b := &bundle{t: t, db: assistanttest.NewDatabase(t, "api"), clock: assistanttest.NewClock(), reg: prometheus.NewRegistry(),
		engine: &stubEngine{began: make(chan struct{}, 8), let: make(chan struct{})}}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	actions, target := assistanttest.NewActions(assistanttest.OpenPool(t, b.db), b.clock.Now, action.Config{FourEyes: o.fourEyes}, log)
	b.cluster = target
	var err error
	if b.turns, err = turn.New(turn.Config{Busy: o.busy}, turn.Deps{
		Store: actions.Store, Actions: actions, Engine: b.engine, Tools: tools{}, Planner: planner{target}, Now: b.clock.Now, Log: log,
	}); err != nil {
		t.Fatal(err)
	}
	sessions, err := session.New(session.Deps{Store: actions.Store, Actions: actions, Now: b.clock.Now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	cfg := caller.Config{
		AdminKeys: admin, OperatorKeys: operator + "," + other, ReadonlyKeys: readonly, Addr: "127.0.0.1:0", DemoSecret: o.demo, Now: b.clock.Now,
		DelegationTrust: o.trust, Once: unasked{},
	}
	if o.demo != "" {
		cfg.Backend = "hmac"
	}
	callers, err := caller.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if o.burst == 0 {
		o.burst = 1
	}
	if o.streams == 0 {
		o.streams = 8
	}
	if o.names == nil {
		o.names = func(context.Context) ([]string, error) { return nil, nil }
	}
	counted := metrics.New(b.reg, "playbooks")
	streams, err := turn.NewStreams(turn.StreamConfig{Model: "cluster-assistant", MaxBody: 1 << 20, Silence: o.silence}, turn.StreamDeps{
		Turns: b.turns, Actions: actions, Sessions: sessions, Slots: limit.NewSlots(o.streams), Meter: counted, Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	access, err := caller.NewAccess(caller.AccessDeps{
		Callers: callers, Store: actions.Store, Rate: limit.NewRate(o.rate, o.burst, b.clock.Now), Refused: counted.Refused,
		Now: b.clock.Now, Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	b.routes = handlers{
		access: access, streams: streams, models: chat.NewModels("cluster-assistant", b.clock.Now()),
		namespaces: cluster.NamespacesHandler(clustername.Names{}, []cluster.NamespaceLister{o.names}, guard.Policy{Hidden: []string{"vault"}}.Visible),
		demoKeys:   callers.MintHandler(actions.Store, b.clock.Now), sessions: sessions, actions: actions,
	}
	b.serve(log)
	return b
}

func (b *bundle) serve(log *slog.Logger) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	s := service.New(service.Options{Name: "assistant", Listener: ln, BodyLimit: math.MaxInt64, Drain: 5 * time.Second,
		AccessLog: func(echo.Context) bool { b.closed.Add(1); return false }})
	s.Echo.HTTPErrorHandler = fault.Handler(log)
	b.routes.mount(s.Echo)
	ctx, stop := context.WithCancel(context.Background())
	s.OnDrain(func() {
		end, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := b.turns.Drain(end); err != nil {
			b.t.Error(err)
		}
		b.routes.streams.EndStreams()
	})
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	b.url = "http://" + ln.Addr().String()
	b.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
	})
}

// send makes a request; header are names and values in turn.
func (b *bundle) send(ctx context.Context, method, path, key, body string, header ...string) *http.Response {
	b.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	if len(body) > 64<<10 { // it is refused unread, and a client in the middle of sending it would not see the answer
		req.Header.Set("Expect", "100-continue")
	}
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true, ExpectContinueTimeout: time.Minute}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// want sends a request, asserts the status and decodes the document; nil where there is none.
func (b *bundle) want(status int, method, path, key, body string, header ...string) map[string]any {
	b.t.Helper()
	resp := b.send(b.t.Context(), method, path, key, body, header...)
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	if resp.StatusCode != status {
		b.t.Fatalf("%s %s: %d %s, want %d", method, path, resp.StatusCode, raw, status)
	}
	if len(raw) == 0 {
		return nil
	}
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		b.t.Fatalf("%v: %s", err, raw)
	}
	return doc
}

// refused asserts status and code.
func (b *bundle) refused(status int, code, method, path, key, body string, header ...string) {
	b.t.Helper()
	if doc := b.want(status, method, path, key, body, header...); doc["code"] != code {
		b.t.Errorf("%s %s: code %v, want %s", method, path, doc["code"], code)
	}
}

func questionBody(text string) string {
	raw, err := json.Marshal(map[string]any{"messages": []map[string]string{{"role": "user", "content": text}}})
	if err != nil {
		panic(err) // strings can be encoded
	}
	return string(raw)
}

// ask opens a stream.
func (b *bundle) ask(key, session, text string, header ...string) *http.Response {
	b.t.Helper()
	resp := b.send(b.t.Context(), "POST", chatPath, key, questionBody(text), append([]string{"X-Session-ID", session}, header...)...)
	if resp.StatusCode != http.StatusOK {
		raw, _ := io.ReadAll(resp.Body)
		b.t.Fatalf("%d %s; want resp.StatusCode == %v", resp.StatusCode, raw, http.StatusOK)
	}
	return resp
}

// say reads the whole answer.
func (b *bundle) say(key, session, text string, header ...string) []byte {
	b.t.Helper()
	return b.rest(b.ask(key, session, text, header...))
}

func (b *bundle) rest(resp *http.Response) []byte {
	b.t.Helper()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return raw
}

func (b *bundle) chunks(raw []byte) []assistanttest.Chunk {
	b.t.Helper()
	return assistanttest.DecodeChunks(b.t, assistanttest.ReadStream(b.t, bytes.NewReader(raw)))
}

// propose makes an action that waits in the session.
func (b *bundle) propose(key, session, text string) (id string) {
	b.t.Helper()
	for _, c := range b.chunks(b.say(key, session, text)) {
		for _, choice := range c.Choices {
			if choice.HITLRequired {
				return choice.ActionID
			}
		}
	}
	b.t.Fatal("nothing was proposed")
	return ""
}

// events are the outbox rows of a name.
func (b *bundle) events(name string) []map[string]any {
	b.t.Helper()
	conn, err := pgx.Connect(b.t.Context(), b.db)
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(b.t.Context(), "select payload from assistant.outbox where name = $1 order by seq", name)
	if err != nil {
		b.t.Fatal(err)
	}
	docs, err := pgx.CollectRows(rows, pgx.RowTo[map[string]any])
	if err != nil {
		b.t.Fatal(err)
	}
	return docs
}

func (tools) Runbooks(...runbook.Subject) []runbook.Quote { return nil }

func (tools) MetricLabels(context.Context, turn.Turn, string, []types.NamespacedName, []types.NamespacedName) (turn.MetricLabels, error) {
	return turn.MetricLabels{}, errors.New("not called")
}
