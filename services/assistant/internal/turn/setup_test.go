package turn_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/runbook"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// childEnv makes the test binary answer one decision instead of running tests, and stop
// inside of the write.
const childEnv = "ASSISTANT_TURN_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		fmt.Fprintln(os.Stderr, runChild())
		os.Exit(1)
	}
	testenv.Main(m)
}

func runChild() error {
	ctx := context.Background()
	pool, err := postgres.Open(ctx, os.Getenv("CHILD_DATABASE"), store.Schema)
	if err != nil {
		return err
	}
	b := bundleOn(pool, time.Now, turn.Config{}, slog.New(slog.DiscardHandler))
	b.cluster.After = func(context.Context) error {
		fmt.Println("reached")
		select {}
	}
	r, err := b.Begin(ctx, newRequest(ann, "yes", "r-yes"))
	for err == nil {
		_, err = r.Next(ctx)
	}
	return err
}

var (
	ann = event.Who{Principal: "ann", Role: guard.Admin, RequestID: "r-1"}
	bob = event.Who{Principal: "bob", Role: guard.Operator, RequestID: "r-2"}
)

// stubEngine is the Investigator of a test: what do does; nil answers with the query.
type stubEngine struct {
	do   func(ctx context.Context, t turn.Turn, tools turn.Toolbox, sink turn.Sink) (turn.Outcome, error)
	runs atomic.Int32
}

func (e *stubEngine) Investigate(ctx context.Context, t turn.Turn, tools turn.Toolbox, sink turn.Sink) (turn.Outcome, error) {
	e.runs.Add(1)
	if e.do != nil {
		return e.do(ctx, t, tools, sink)
	}
	sink.Token("You asked: " + t.Query)
	return turn.Outcome{}, nil
}

// cluster serves the turn's tools and plans.
type tools struct{ *assistanttest.Cluster }

func (c tools) Line(_ turn.Turn, op operation.Operation) string { return "kubectl " + string(op.Verb) }

func (c tools) Run(ctx context.Context, _ turn.Turn, op operation.Operation) (turn.Output, error) {
	if op.Kind == "unicorn" {
		return turn.Output{}, operation.Refuse(operation.InvalidArgument, "kind", "There is no kind unicorn.")
	}
	if op.Kind == "glaciers" {
		<-ctx.Done()
	}
	return turn.Output{Text: "NAME READY\napi 1/1"}, ctx.Err()
}

func (c tools) Snapshot(ctx context.Context, _ turn.Turn, namespace string, show func(operation.Operation) func(turn.Output, error)) (*engine.Snapshot, error) {
	show(operation.Operation{Verb: operation.List, Kind: "pods", Namespace: namespace})(turn.Output{Text: "1 pod", Untrusted: []string{"a log line"}}, nil)
	return &engine.Snapshot{}, ctx.Err()
}

// planner plans on the cluster whatever the turn.
type planner struct{ *assistanttest.Cluster }

func (p planner) Plan(ctx context.Context, t turn.Turn, ops []operation.Operation) (action.Plan, error) {
	return p.Cluster.Plan(ctx, t.Who.Role, ops)
}

type bundle struct {
	*turn.Service
	t       *testing.T
	url     string
	clock   *assistanttest.Clock
	cluster *assistanttest.Cluster
	engine  *stubEngine
}

func setup(t *testing.T, c turn.Config) *bundle {
	t.Helper()
	b := &bundle{t: t, url: assistanttest.NewDatabase(t, "api", "web"), clock: assistanttest.NewClock()}
	return b.replica(c)
}

// replica is another process on the same database and clock.
func (b *bundle) replica(c turn.Config) *bundle {
	b.t.Helper()
	r := bundleOn(assistanttest.OpenPool(b.t, b.url), b.clock.Now, c, slog.New(slog.NewTextHandler(b.t.Output(), nil)))
	r.t, r.url, r.clock = b.t, b.url, b.clock
	b.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := r.Drain(ctx); err != nil {
			b.t.Error(err)
		}
	})
	return r
}

func bundleOn(pool *pgxpool.Pool, now func() time.Time, c turn.Config, log *slog.Logger) *bundle {
	actions, cluster := assistanttest.NewActions(pool, now, action.Config{}, log)
	e := &stubEngine{}
	s, err := turn.New(c, turn.Deps{
		Store: actions.Store, Actions: actions, Engine: e, Tools: tools{cluster}, Planner: planner{cluster}, Now: now, Log: log,
	})
	if err != nil {
		panic(err) // every part is above; a child process has no test to fail
	}
	return &bundle{cluster: cluster, engine: e, Service: s}
}

func newRequest(w event.Who, query, requestID string) turn.Request {
	return turn.Request{Session: "s-1", Who: w, RequestID: requestID, Chat: chat.Request{Query: query}}
}

func (b *bundle) begin(q turn.Request) *turn.Reader {
	b.t.Helper()
	r, err := b.Begin(b.t.Context(), q)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// rest reads a stream to its end.
func (b *bundle) rest(r *turn.Reader) []turn.Frame {
	b.t.Helper()
	defer r.Close()
	var all []turn.Frame
	for {
		frames, err := r.Next(b.t.Context())
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			b.t.Fatal(err)
		}
		all = append(all, frames...)
	}
}

// say sends a request and reads all of its stream.
func (b *bundle) say(w event.Who, query string) string {
	b.t.Helper()
	return frameText(b.rest(b.begin(newRequest(w, query, ""))))
}

// replay returns the session's frames from the store.
func (b *bundle) replay() []turn.Frame {
	b.t.Helper()
	s, err := b.Store.GetSession(b.t.Context(), "s-1")
	if err != nil {
		b.t.Fatal(err)
	}
	return b.rest(b.Replay(s, turn.Place{}, false))
}

func frameText(frames []turn.Frame) string {
	var b bytes.Buffer
	for _, f := range frames {
		b.Write(f.Data)
	}
	return b.String()
}

// wantIn checks that the pieces are there in this order.
func wantIn(t *testing.T, stream string, pieces ...string) {
	t.Helper()
	rest := stream
	for _, p := range pieces {
		_, after, ok := strings.Cut(rest, p)
		if !ok {
			t.Fatalf("no %q (in this place) in\n%s; want ok", p, stream)
		}
		rest = after
	}
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	var p *problem.Error
	if !errors.As(err, &p) || p.Kind.Code != code {
		t.Fatalf("error %v, want %s", err, code)
	}
}

// proposeReplicas makes the engine propose these replicas for api when asked, until it was decided.
func proposeReplicas(replicas int32) func(context.Context, turn.Turn, turn.Toolbox, turn.Sink) (turn.Outcome, error) {
	return func(_ context.Context, t turn.Turn, _ turn.Toolbox, sink turn.Sink) (turn.Outcome, error) {
		if len(t.Settled) > 0 {
			sink.Token("That was all.")
			return turn.Outcome{}, nil
		}
		sink.Token("I can scale it.")
		return turn.Outcome{Write: []operation.Operation{assistanttest.ScaleOperation("api", replicas)}}, nil
	}
}

// waitForEnd makes the engine report that it has begun and wait for its end.
func waitForEnd(began chan<- struct{}) func(context.Context, turn.Turn, turn.Toolbox, turn.Sink) (turn.Outcome, error) {
	return func(ctx context.Context, _ turn.Turn, _ turn.Toolbox, sink turn.Sink) (turn.Outcome, error) {
		sink.Token("So far.")
		close(began)
		<-ctx.Done()
		return turn.Outcome{}, ctx.Err()
	}
}

func (tools) Runbooks(...runbook.Subject) []runbook.Quote { return nil }

func (tools) MetricLabels(context.Context, turn.Turn, string, []types.NamespacedName, []types.NamespacedName) (turn.MetricLabels, error) {
	return turn.MetricLabels{}, errors.New("not called")
}
