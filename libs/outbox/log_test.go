package outbox_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/outbox/internal/store"
	"github.com/mlp-platform/platform/libs/testenv"
)

func TestLogOnlyRelayTellsOfEventsInOrderAndKeepsPayloadsOut(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	b.broker.Stop() // none is needed
	events := numberedEvents(1200)
	for i := range events {
		events[i].Payload = map[string]string{"token": "hunter2"}
	}
	b.insert(t, events[:1000]...)
	var out bytes.Buffer
	r := outbox.NewRelay(outbox.RelayConfig{Service: "test-service", Pool: b.pool, LogOnly: true}, slog.New(slog.NewTextHandler(&out, nil)), nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	b.insert(t, events[1000:]...)
	testenv.Eventually(t, 20*time.Second, func() error {
		if s, err := r.Stats(t.Context()); err != nil || s.Published != 1200 || s.Pending != 0 || s.LastError != "" {
			return fmt.Errorf("%+v, %v", s, err)
		}
		return nil
	})
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(events) {
		t.Fatalf("%d lines, the last: %s; want len(lines) == len(events)", len(lines), lines[len(lines)-1])
	}
	for i, line := range lines {
		want := fmt.Sprintf("msg=event event_id=%s tenant=default type=platform.job.started subject=JPCP", events[i].ID)
		if !strings.HasSuffix(line, want) {
			t.Fatalf("line %d is %s; want strings.HasSuffix(line, want)", i, line)
		}
	}

	// A relay that publishes leaves them alone; a sweep takes them when they are old.
	if _, err := b.pool.Exec(t.Context(), "update outbox set published_at = now() - interval '8 days' where seq <= (select min(seq) + 699 from outbox)"); err != nil {
		t.Fatal(err)
	}
	b.broker.Start()
	nats, _ := b.relay(t, nil)
	later := numberedEvents(3)
	b.insert(t, later...)
	b.published(t, later)
	testenv.Eventually(t, 20*time.Second, func() error {
		if s, err := nats.Stats(t.Context()); err != nil || s.Published != 503 || s.Pending != 0 {
			return fmt.Errorf("%+v, %v", s, err)
		}
		return nil
	})
}

func TestStatsDoNotReadPublishedRows(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	// With so few rows the planner would not care for an index.
	if _, err := tx.Exec(t.Context(), "set local enable_seqscan = off"); err != nil {
		t.Fatal(err)
	}
	recorder := &statementRecorder{Tx: tx}
	if _, err := store.New(recorder).CountUnpublished(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows, err := tx.Query(t.Context(), "explain "+recorder.statement)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	plan := strings.Join(lines, "\n")
	if strings.Contains(plan, "Seq Scan") || !strings.Contains(plan, "outbox_poison") || strings.Count(plan, "outbox_pending") != 2 {
		t.Errorf("the plan is\n%s; want !strings.Contains(plan, \"Seq Scan\") && strings.Contains(plan, \"outbox_poison\") && strings.Count(plan, \"outbox_pending\") == 2", plan)
	}
}

// statementRecorder keeps the last statement for one row.
type statementRecorder struct {
	pgx.Tx
	statement string
}

func (r *statementRecorder) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	r.statement = sql
	return r.Tx.QueryRow(ctx, sql, args...)
}

// spy is a stream that lost everything but one message; it reads the database
// whenever it is queried.
type spy struct {
	jetstream.Stream
	has  uint64
	id   string
	asks int
	look func()
}

func (s *spy) GetMsg(_ context.Context, seq uint64, _ ...jetstream.GetMsgOpt) (*jetstream.RawStreamMsg, error) {
	s.asks++
	s.look()
	if seq != s.has {
		return nil, jetstream.ErrMsgNotFound
	}
	return &jetstream.RawStreamMsg{Header: nats.Header{jetstream.MsgIDHeader: []string{s.id}}}, nil
}

func TestNoTransactionIsOpenWhileTheBrokerIsAsked(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	events := numberedEvents(150)
	r, stop := b.relay(t, nil)
	b.insert(t, events...)
	b.published(t, events)
	testenv.Eventually(t, 20*time.Second, func() error {
		if s, err := r.Stats(t.Context()); err != nil || s.Pending != 0 {
			return fmt.Errorf("%+v, %v", s, err)
		}
		return nil
	})
	stop()
	look := func() {
		var open int
		if err := b.pool.QueryRow(t.Context(), "select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'").Scan(&open); err != nil || open != 0 {
			t.Errorf("%d open transactions, %v; want open == 0", open, err)
		}
	}
	s := &spy{has: 20, id: events[19].ID.String(), look: look}
	if err := outbox.LostTail(r, t.Context(), s, jetstream.StreamState{FirstSeq: 1, LastSeq: 140}); err != nil || s.asks != 121 {
		t.Fatalf("%v after %d questions; want s.asks == 121", err, s.asks)
	}
	if st, err := r.Stats(t.Context()); err != nil || st.Pending != 130 {
		t.Errorf("%+v, %v; want st.Pending == 130", st, err)
	}
}
