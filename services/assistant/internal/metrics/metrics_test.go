package metrics_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/metrics"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/session"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestMoved(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	m := metrics.New(reg, "playbooks")
	for _, a := range []action.Action{
		{State: action.Pending}, {State: action.Approved, Basis: action.Person}, {State: action.Executing}, {State: action.Succeeded},
		{State: action.Denied, Basis: action.SessionDeleted}, {State: action.Expired}, {State: action.Stale}, {State: action.Unknown},
	} {
		m.Moved(a)
	}
	want := `
# HELP assistant_decisions_total Actions that left the state pending, by decision and its basis.
# TYPE assistant_decisions_total counter
assistant_decisions_total{basis="none",decision="expired"} 1
assistant_decisions_total{basis="none",decision="stale"} 1
assistant_decisions_total{basis="person",decision="approved"} 1
assistant_decisions_total{basis="session_deleted",decision="denied"} 1
# HELP assistant_executions_total Approved actions that were carried out, by result.
# TYPE assistant_executions_total counter
assistant_executions_total{result="succeeded"} 1
assistant_executions_total{result="unknown"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "assistant_decisions_total", "assistant_executions_total"); err != nil {
		t.Error(err)
	}
}

// What waits is read at each scrape; a store that is gone costs the scrape nothing but its news.
func TestStored(t *testing.T) {
	t.Parallel()
	clock, url := assistanttest.NewClock(), assistanttest.NewDatabase(t, "api")
	actions, cluster := assistanttest.NewReplica(t, url, clock.Now, action.Config{})
	ann := event.Who{Principal: "ann", Role: guard.Operator}
	if err := actions.Store.InTx(t.Context(), func(tx store.Tx) error {
		_, err := session.Enter(t.Context(), tx, session.Entry{ID: "s-1", Who: ann}, clock.Now())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	plan, err := cluster.Plan(t.Context(), ann.Role, []operation.Operation{assistanttest.ScaleOperation("api", 2)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := actions.Propose(context.WithoutCancel(t.Context()), action.Proposal{Session: "s-1", Turn: 1, Who: ann, Plan: plan}); err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	pool := assistanttest.OpenPool(t, url)
	metrics.NewStored(reg, store.Open(pool), clock.Now, slog.New(slog.NewTextHandler(io.Discard, nil)))
	scrape := func(pending, faults string) {
		t.Helper()
		want := "# HELP assistant_pending_actions Actions waiting for a decision, across all replicas.\n# TYPE assistant_pending_actions gauge\nassistant_pending_actions " + pending +
			"\n# HELP assistant_scrape_errors_total Scrapes that returned the previous values because the store could not be read.\n# TYPE assistant_scrape_errors_total counter\nassistant_scrape_errors_total " + faults +
			"\n# HELP assistant_waiting_alerts Notifications of alert managers that wait or are being investigated, across all replicas.\n# TYPE assistant_waiting_alerts gauge\nassistant_waiting_alerts 0\n"
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
	}
	scrape("1", "0")
	clock.Forward(2 * time.Hour)
	scrape("0", "0")
	pool.Close()
	scrape("0", "1")
}
