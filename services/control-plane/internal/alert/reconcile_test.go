package alert_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/services/control-plane/internal/alert"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// slow is a source that answers when it is told to.
type slow struct {
	asked  chan struct{}
	answer chan []alert.Alert
}

func (s slow) Firing(ctx context.Context) ([]alert.Alert, error) {
	s.asked <- struct{}{}
	select {
	case a := <-s.answer:
		return a, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// An event that arrives while a source is being read is not undone by that older read, in either direction.
func TestReadingDoesNotUndoWhatIsNewer(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Neighbours(t)
	pool, err := postgres.Open(t.Context(), p.Database, store.Schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	db := store.Open(pool)
	src := slow{make(chan struct{}), make(chan []alert.Alert)}
	r := alert.NewReconciler(db, map[string]alert.Source{"x": src}, time.Hour, slog.New(slog.DiscardHandler))
	a := alert.Alert{Source: "x", Key: "a", Severity: alert.Warn, Title: "A.", Tenant: "platform"}
	b := alert.Alert{Source: "x", Key: "b", Severity: alert.Warn, Title: "B.", Tenant: "platform"}
	read := func(answer []alert.Alert, meanwhile func()) {
		t.Helper()
		done := make(chan struct{})
		go func() { defer close(done); r.Reconcile(t.Context()) }()
		<-src.asked
		meanwhile()
		src.answer <- answer
		<-done
	}
	observe := func(a alert.Alert, firing bool) {
		t.Helper()
		now := time.Now()
		if err := db.InTx(t.Context(), func(tx store.Tx) error { return alert.Observe(t.Context(), tx, a, firing, now, now) }); err != nil {
			t.Fatal(err)
		}
	}
	read([]alert.Alert{a}, func() {})
	read([]alert.Alert{a}, func() { observe(a, false); observe(b, true) })
	wantTold(p, "x:a", "firing warn", "resolved warn")
	wantTold(p, "x:b", "firing warn")
	read([]alert.Alert{b}, func() {})
	read(nil, func() {})
	wantTold(p, "x:a", "firing warn", "resolved warn")
	wantTold(p, "x:b", "firing warn", "resolved warn")

	// A source that breaks its promises changes nothing.
	for _, bad := range []alert.Alert{{Source: "y", Key: "a", Severity: alert.Warn, Tenant: "t"}, {Source: "x", Key: "a", Severity: "fatal", Tenant: "t"}, {Source: "x", Severity: alert.Warn, Tenant: "t"}, {Source: "x", Key: "a", Severity: alert.Warn}} {
		read([]alert.Alert{bad}, func() {})
	}
	if n := len(p.Events("")); n != 4 {
		t.Errorf("%d events; want 4", n)
	}
}
