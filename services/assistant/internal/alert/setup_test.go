package alert_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/alert"
	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
	"github.com/mlp-platform/platform/services/assistant/internal/caller"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/runbook"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// childEnv makes the test binary work on alerts instead of running tests, and stop inside of an investigation.
const childEnv = "ASSISTANT_ALERT_TEST_CHILD"

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
	b := bundleOn(pool, slog.New(slog.DiscardHandler))
	b.engine.do = func(context.Context, turn.Turn, turn.Toolbox, turn.Sink) (turn.Outcome, error) {
		fmt.Println("reached")
		select {}
	}
	return b.alerts.Run(ctx)
}

// stubEngine answers with the query, or does what a test says.
type stubEngine struct {
	do   func(ctx context.Context, t turn.Turn, tools turn.Toolbox, sink turn.Sink) (turn.Outcome, error)
	runs atomic.Int32
}

// Investigate is part of turn.Investigator.
func (e *stubEngine) Investigate(ctx context.Context, t turn.Turn, tools turn.Toolbox, sink turn.Sink) (turn.Outcome, error) {
	e.runs.Add(1)
	if e.do != nil {
		return e.do(ctx, t, tools, sink)
	}
	sink.Token("Asked: " + t.Query)
	return turn.Outcome{}, nil
}

// tools are a cluster with a namespace, a node and some objects.
type tools struct {
	fails    atomic.Pointer[error]
	runbooks *runbook.Folder // nil: none
}

func (*tools) Line(_ turn.Turn, op operation.Operation) string { return "kubectl " + string(op.Verb) }

func (*tools) Run(context.Context, turn.Turn, operation.Operation) (turn.Output, error) {
	return turn.Output{Text: "read"}, nil
}

func (w *tools) Snapshot(_ context.Context, _ turn.Turn, namespace string, _ func(operation.Operation) func(turn.Output, error)) (*engine.Snapshot, error) {
	if err := w.fails.Load(); err != nil {
		return nil, *err
	}
	if namespace != "" && namespace != "shop" {
		return nil, operation.Refuse(operation.NotFound, "namespace", "There is no namespace %q.", namespace)
	}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }
	s := &engine.Snapshot{
		Namespaces: []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}}, Nodes: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}},
		Pods: []corev1.Pod{{ObjectMeta: meta("api-1")}}, Services: []corev1.Service{{ObjectMeta: meta("api")}},
	}
	for _, name := range []string{"api", "web", "cart", "ledger"} {
		s.Deployments = append(s.Deployments, appsv1.Deployment{ObjectMeta: meta(name)})
	}
	return s, nil
}

type planner struct{ *assistanttest.Cluster }

func (p planner) Plan(ctx context.Context, t turn.Turn, ops []operation.Operation) (action.Plan, error) {
	return p.Cluster.Plan(ctx, t.Who.Role, ops)
}

type bundle struct {
	t      *testing.T
	url    string
	store  *store.Store
	turns  *turn.Service
	alerts *alert.Service
	engine *stubEngine
	tools  *tools
}

func bundleOn(pool *pgxpool.Pool, log *slog.Logger) *bundle {
	actions, cluster := assistanttest.NewActions(pool, time.Now, action.Config{}, log)
	b := &bundle{store: actions.Store, engine: &stubEngine{}, tools: &tools{}}
	var err error
	if b.turns, err = turn.New(turn.Config{Lease: time.Second}, turn.Deps{
		Store: actions.Store, Actions: actions, Engine: b.engine, Tools: b.tools, Planner: planner{cluster}, Log: log,
	}); err != nil {
		panic(err) // every part is above; a child process has no test to fail
	}
	if b.alerts, err = alert.New(alert.Config{Lease: time.Second, Poll: 20 * time.Millisecond}, alert.Deps{
		Store: actions.Store, Turns: b.turns, Engine: b.engine, Tools: b.tools, Received: func(string) {}, Now: time.Now, Log: log,
	}); err != nil {
		panic(err)
	}
	return b
}

// setup makes a service whose workers do not run yet.
func setup(t *testing.T) *bundle {
	t.Helper()
	url := assistanttest.NewDatabase(t, "api")
	b := bundleOn(assistanttest.OpenPool(t, url), slog.New(slog.NewTextHandler(t.Output(), nil)))
	b.t, b.url = t, url
	return b
}

// run starts the workers until the test ends.
func (b *bundle) run() {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	done := make(chan error, 2)
	go func() { done <- b.alerts.Run(ctx) }()
	go func() { done <- b.turns.Run(ctx) }()
	b.t.Cleanup(func() {
		drain, over := context.WithTimeout(context.Background(), time.Minute)
		defer over()
		if err := b.turns.Drain(drain); err != nil {
			b.t.Error(err)
		}
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				b.t.Error(err)
			}
		}
	})
}

// send gives a body to the handler and returns status and answer.
func (b *bundle) send(body string) (int, string) {
	b.t.Helper()
	e := echo.New()
	e.HTTPErrorHandler = fault.Handler(slog.New(slog.DiscardHandler))
	e.POST("/v1/alerts", b.alerts.Serve)
	r := httptest.NewRequestWithContext(caller.WithCaller(b.t.Context(), caller.Caller{Principal: "ops", Role: guard.Operator}), http.MethodPost, "/v1/alerts", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// body is a notification of alerts that fire, with one object of labels each.
func body(labels ...string) string {
	alerts := make([]string, len(labels))
	for i, l := range labels {
		alerts[i] = `{"status":"firing","labels":` + l + `,"annotations":{},"startsAt":"2026-11-29T08:00:00Z","endsAt":"0001-01-01T00:00:00Z"}`
	}
	return `{"version":"4","groupKey":"g","status":"firing","alerts":[` + strings.Join(alerts, ",") + `]}`
}

// count is the number that a query gives.
func (b *bundle) count(query string) (n int) {
	b.t.Helper()
	if err := b.store.Pool().QueryRow(b.t.Context(), query).Scan(&n); err != nil {
		b.t.Fatal(err)
	}
	return n
}

// idle waits until no notification is left.
func (b *bundle) idle() {
	b.t.Helper()
	testenv.Eventually(b.t, time.Minute, func() error {
		if n := b.count("select count(*) from alert_notifications"); n > 0 {
			return fmt.Errorf("%d notifications wait", n)
		}
		return nil
	})
}

// storedTurn is one turn as it is stored.
type storedTurn struct{ Query, Answer, Outcome string }

func (b *bundle) told() (all []storedTurn) {
	b.t.Helper()
	rows, err := b.store.Pool().Query(b.t.Context(), "select query, answer, outcome from turns order by session_id, number")
	if err != nil {
		b.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var t storedTurn
		if err := rows.Scan(&t.Query, &t.Answer, &t.Outcome); err != nil {
			b.t.Fatal(err)
		}
		all = append(all, t)
	}
	if err := rows.Err(); err != nil {
		b.t.Fatal(err)
	}
	return all
}

func (w *tools) Runbooks(of ...runbook.Subject) []runbook.Quote { return w.runbooks.Find(of...) }

func (*tools) MetricLabels(context.Context, turn.Turn, string, []types.NamespacedName, []types.NamespacedName) (turn.MetricLabels, error) {
	return turn.MetricLabels{}, errors.New("not called")
}
