package audit_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/services/control-plane/internal/audit/chain"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// write puts a chain of n entries into the tables, without the way there.
func (b *bundle) write(tenant string, n int) {
	b.T.Helper()
	ctx, now := b.T.Context(), time.Now().UTC().Truncate(time.Microsecond)
	rows := make([]store.AppendAuditEventsParams, n)
	prev := chain.Genesis
	for i := range rows {
		request := fmt.Sprintf("req-%d", i)
		e := chain.Entry{
			V: chain.Version, Tenant: tenant, Seq: int64(i + 1), EventID: uuid.Must(uuid.NewV7()), TS: chain.Time(now), Source: "control-plane",
			Actor: "alice", Action: "retrain.requested", Target: "model:JPCP", Outcome: "ok", RequestID: &request,
			Details: json.RawMessage(fmt.Sprintf(`{"backend":"local","command_id":"01930000-0000-7000-8000-%012d","dataset":"JobEmbeddings","is_dummy":false,"parameters":null}`, i)),
		}
		link, err := chain.Append(e, prev)
		if err != nil {
			b.T.Fatal(err)
		}
		prev = link.Hash
		rows[i] = store.AppendAuditEventsParams{
			Tenant: tenant, Seq: e.Seq, EventID: e.EventID, Ts: now, Source: e.Source, Actor: e.Actor, Action: e.Action, Target: e.Target,
			Outcome: e.Outcome, RequestID: e.RequestID, Details: e.Details, PrevHash: link.PrevHash, Hash: link.Hash,
		}
	}
	if err := postgres.InTx(ctx, b.pool, func(tx pgx.Tx) error {
		q := store.New(tx)
		if _, err := q.AppendAuditEvents(ctx, rows); err != nil {
			return err
		}
		return q.PutAuditHead(ctx, store.PutAuditHeadParams{Tenant: tenant, Seq: int64(n), Hash: prev, Now: now})
	}); err != nil {
		b.T.Fatal(err)
	}
}

// BenchmarkVerify verifies 100,000 entries over the wire; the design asks for 5 s.
func BenchmarkVerify(t *testing.B) {
	const entries = 100_000
	b := setup(t)
	b.write("default", entries)
	for t.Loop() {
		if v := b.Want(200, "GET", "/audit/verify", controlplanetest.Reader, nil).Object(t); v["verified"] != true || v["checked"] != float64(entries) {
			t.Fatal(v)
		}
	}
	t.ReportMetric(float64(entries)*float64(t.N)/t.Elapsed().Seconds(), "entries/s")
}

// BenchmarkAppend carries facts from the outbox through the stream to the chain;
// the design asks for 2,000 facts/s.
func BenchmarkAppend(t *testing.B) {
	const facts = 10_000
	b := setup(t)
	rounds := 0
	for t.Loop() {
		events := make([]outbox.Event, facts)
		for i := range events {
			events[i] = fact("default", i)
		}
		b.emit(events...)
		rounds++
		b.chained("default", rounds*facts)
	}
	t.ReportMetric(float64(facts)*float64(t.N)/t.Elapsed().Seconds(), "facts/s")
}
