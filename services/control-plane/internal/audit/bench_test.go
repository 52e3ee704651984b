package audit_test

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/services/control-plane/internal/audit"
	"github.com/mlp-platform/platform/services/control-plane/internal/audit/chain"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// write inserts a chain of n entries directly into the tables, as the holder of the signing key can.
func (b *bundle) write(tenant string, n int, key ed25519.PrivateKey) {
	b.T.Helper()
	macKey, err := chain.DeriveMACKey(key)
	if err != nil {
		b.T.Fatal(err)
	}
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
		link, err := chain.AppendKeyed(e, prev, macKey)
		if err != nil {
			b.T.Fatal(err)
		}
		prev = link.Hash
		rows[i] = store.AppendAuditEventsParams{
			Tenant: tenant, Seq: e.Seq, EventID: e.EventID, Ts: now, Source: e.Source, Actor: e.Actor, Action: e.Action, Target: e.Target,
			Outcome: e.Outcome, RequestID: e.RequestID, Details: e.Details, PrevHash: link.PrevHash, Hash: link.Hash, Mac: &link.MAC,
		}
	}
	if err := postgres.InTx(ctx, b.pool, func(tx pgx.Tx) error {
		q := store.New(tx)
		if _, err := q.AppendAuditEvents(ctx, rows); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "insert into inbox (consumer, event_id) select $1, event_id from audit_events where tenant = $2", audit.Consumer, tenant); err != nil {
			return err
		}
		e := chain.SignEpoch(key, tenant, 1, now)
		if err := q.PutAuditEpoch(ctx, store.PutAuditEpochParams{Tenant: tenant, FromSeq: 1, Ts: now, KeyID: e.KeyID, Signature: e.Signature}); err != nil {
			return err
		}
		return q.PutAuditHead(ctx, store.PutAuditHeadParams{Tenant: tenant, Seq: int64(n), Hash: prev, Now: now})
	}); err != nil {
		b.T.Fatal(err)
	}
}

// BenchmarkVerify verifies 100,000 entries over the wire; the design requires 5 s.
func BenchmarkVerify(t *testing.B) {
	const entries = 100_000
	path := filepath.Join(t.TempDir(), "key")
	b := startLedger(t, "AUDIT_SIGNING_KEY_FILE="+path)
	key, err := chain.OpenKey(path)
	if err != nil {
		t.Fatal(err)
	}
	b.write("default", entries, key)
	for t.Loop() {
		if v := b.Want(200, "GET", "/audit/verify", controlplanetest.Reader, nil).Object(t); v["verified"] != true || v["checked"] != float64(entries) {
			t.Fatal(v, `want v["verified"] == true && v["checked"] == float64(entries)`)
		}
	}
	t.ReportMetric(float64(entries)*float64(t.N)/t.Elapsed().Seconds(), "entries/s")
}

// BenchmarkAppend carries facts from the outbox through the stream to the chain; the design requires 2,000 facts/s.
func BenchmarkAppend(t *testing.B) {
	const facts = 10_000
	b := startLedger(t)
	rounds := 0
	for t.Loop() {
		events := make([]outbox.Event, facts)
		for i := range events {
			events[i] = auditFact("default", i)
		}
		b.emit(events...)
		rounds++
		b.chained("default", rounds*facts)
	}
	t.ReportMetric(float64(facts)*float64(t.N)/t.Elapsed().Seconds(), "facts/s")
}

// BenchmarkPages reads pages of 200 from 100,000 entries over the wire, each with the number of matches.
func BenchmarkPages(t *testing.B) {
	const entries = 100_000
	path := filepath.Join(t.TempDir(), "key")
	b := startLedger(t, "AUDIT_SIGNING_KEY_FILE="+path)
	key, err := chain.OpenKey(path)
	if err != nil {
		t.Fatal(err)
	}
	b.write("default", entries, key)
	if _, err := b.pool.Exec(t.Context(), "analyze audit_events"); err != nil { // as autovacuum does a minute later
		t.Fatal(err)
	}
	next := b.Want(200, "GET", "/audit/events?limit=200", controlplanetest.Reader, nil).Object(t)["next_cursor"].(string)
	for _, c := range []struct {
		name, query string
		count       float64
	}{
		{"first", "", entries}, {"next", "&cursor=" + url.QueryEscape(next), entries}, {"filter", "&action=retrain.requested", entries}, {"no-match", "&actor=nobody", 0},
		{"search-rare", "&q=req+99999", 2}, {"search-common", "&q=jobembeddings+retrain", entries}, {"search-none", "&q=nothing", 0},
	} {
		t.Run(c.name, func(t *testing.B) {
			for t.Loop() {
				if page := b.Want(200, "GET", "/audit/events?limit=200"+c.query, controlplanetest.Reader, nil).Object(t); page["count"] != c.count {
					t.Fatalf("%s: got %v matches, want %v", c.query, page["count"], c.count)
				}
			}
		})
	}
}
