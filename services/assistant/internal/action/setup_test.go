package action_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/session"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

// childEnv makes the test binary execute an action instead of running tests, and stop
// before or after the write.
const childEnv = "ASSISTANT_ACTION_TEST_CHILD"

func TestMain(m *testing.M) {
	if stage := os.Getenv(childEnv); stage != "" {
		fmt.Fprintln(os.Stderr, runChild(stage))
		os.Exit(1)
	}
	testenv.Main(m)
}

// runChild executes one action and never gets past the stage.
func runChild(stage string) error {
	ctx := context.Background()
	pool, err := postgres.Open(ctx, os.Getenv("CHILD_DATABASE"), store.Schema)
	if err != nil {
		return err
	}
	s, cluster := assistanttest.NewActions(pool, time.Now, action.Config{}, slog.New(slog.DiscardHandler))
	reached := func(context.Context) error {
		fmt.Println("reached")
		select {}
	}
	if stage == "before" {
		cluster.Before = reached
	} else {
		cluster.After = reached
	}
	_, err = s.Execute(ctx, uuid.MustParse(os.Getenv("CHILD_ACTION")), nil)
	return err
}

var (
	ann   = event.Who{Principal: "ann", Role: guard.Admin, RequestID: "r-1"}
	bob   = event.Who{Principal: "bob", Role: guard.Operator, RequestID: "r-2"}
	eve   = event.Who{Principal: "eve", Role: guard.Readonly, RequestID: "r-3"}
	yes   = action.Decision{Approve: true}
	no    = action.Decision{Reason: "not now"}
	names = []string{"api", "web"}
)

// bundle is one replica on its database.
type bundle struct {
	*action.Service
	t       *testing.T
	url     string
	clock   *assistanttest.Clock
	cluster *assistanttest.Cluster
}

func setup(t *testing.T, c action.Config) *bundle {
	t.Helper()
	url, clock := assistanttest.NewDatabase(t, names...), assistanttest.NewClock()
	s, cluster := assistanttest.NewReplica(t, url, clock.Now, c)
	b := &bundle{s, t, url, clock, cluster}
	b.session("s-1")
	return b
}

// replica is another one on the same database and clock.
func (b *bundle) replica(c action.Config) *bundle {
	s, cluster := assistanttest.NewReplica(b.t, b.url, b.clock.Now, c)
	return &bundle{s, b.t, b.url, b.clock, cluster}
}

func (b *bundle) session(id string) {
	b.t.Helper()
	if err := b.Store.InTx(b.t.Context(), func(tx store.Tx) error {
		_, err := session.Enter(b.t.Context(), tx, session.Entry{ID: id, Who: ann}, b.clock.Now())
		return err
	}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) proposal(w event.Who, name string, replicas int32) action.Proposal {
	b.t.Helper()
	plan, err := b.cluster.Plan(b.t.Context(), w.Role, scaleOperations(name, replicas))
	if err != nil {
		b.t.Fatal(err)
	}
	return action.Proposal{Session: "s-1", Turn: 1, Who: w, Plan: plan}
}

func (b *bundle) propose(w event.Who, name string, replicas int32) action.Action {
	b.t.Helper()
	a, err := b.Propose(b.t.Context(), b.proposal(w, name, replicas))
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

func (b *bundle) approved(name string, replicas int32) action.Action {
	b.t.Helper()
	a, err := b.Decide(b.t.Context(), bob, b.propose(ann, name, replicas).ID, yes)
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

func (b *bundle) wantState(id uuid.UUID, want action.State) action.Action {
	b.t.Helper()
	a, err := b.Get(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	if a.State != want {
		b.t.Fatalf("state %s (%s), want %s", a.State, a.Result, want)
	}
	return a
}

func (b *bundle) wantWrites(name string, want int) {
	b.t.Helper()
	if n, _ := b.cluster.Writes(b.t, name); n != want {
		b.t.Fatalf("%d writes to %s, want %d", n, name, want)
	}
}

// events counts outbox rows of one type about an action, and the acts in the ledger.
func (b *bundle) wantEvents(id uuid.UUID, name, act string, want int) {
	b.t.Helper()
	var events, acts int
	if err := b.Store.Pool().QueryRow(b.t.Context(), `select count(*) filter (where namespace = 'assistant' and name = $2 and subject_id = $1),
		count(*) filter (where namespace = 'audit' and payload->>'action' = $3 and payload->>'target' = 'action:' || $1)
		from outbox`, id.String(), name, act).Scan(&events, &acts); err != nil {
		b.t.Fatal(err)
	}
	if events != want || acts != want {
		b.t.Fatalf("%d events %s and %d acts %s, want %d", events, name, acts, act, want)
	}
}

func wantCode(t *testing.T, err error, code string) *problem.Error {
	t.Helper()
	var p *problem.Error
	if !errors.As(err, &p) || p.Kind.Code != code {
		t.Fatalf("error %v, want %s", err, code)
	}
	return p
}
