package audit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/audit"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// publish puts a message into the stream, bypassing any outbox.
func (b *bundle) publish(body string) {
	b.T.Helper()
	nc, err := nats.Connect(b.NATS)
	if err != nil {
		b.T.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		b.T.Fatal(err)
	}
	if _, err := js.Publish(b.T.Context(), "platform.default.audit.recorded", []byte(body)); err != nil {
		b.T.Fatal(err)
	}
}

func envelopeJSON(id, tenant, data string) string {
	return fmt.Sprintf(`{"specversion":"1.0","id":%q,"type":"platform.audit.recorded","tenant":%q,"data":%s}`, id, tenant, data)
}

// A fact that cannot be an entry becomes a dead letter, and the chain continues.
func TestPoisonousFacts(t *testing.T) {
	t.Parallel()
	b := startWithEntries(t, 1)
	record := func(id, tenant, more string) string {
		return fmt.Sprintf(`{"event_id":%q,"tenant":%q,"ts":"2026-01-02T03:04:05.000006Z","source":"cli","actor":"a","action":"b","target":"t","outcome":"ok","request_id":null,"details":{}%s}`, id, tenant, more)
	}
	poison := 0
	for _, f := range []func(id string) string{
		func(id string) string { return `{"event_id":"` + id + `"}` },
		func(id string) string { return record(uuid.NewString(), "default", "") },
		func(id string) string { return record(id, "other", "") },
		func(id string) string { return record(id, "default", `,"outcome":"maybe"`) },
		func(id string) string { return record(id, "default", `,"ts":"yesterday"`) },
		func(id string) string { return record(id, "default", `,"ts":"0000-01-01T00:00:00Z"`) },
		func(id string) string { return record(id, "default", `,"actor":""`) },
		func(id string) string { return record(id, "default", `,"actor":"a\u0000b"`) },
		func(id string) string { return record(id, "default", `,"details":[]`) },
		func(id string) string { return record(id, "default", `,"details":{"a":1e999}`) },
		func(id string) string { return `[]` },
	} {
		id := uuid.NewString()
		b.publish(envelopeJSON(id, "default", f(id)))
		poison++
	}
	b.publish("no envelope")
	poison++
	b.emit(auditFact("default", 2))
	b.chained("default", 2) // immediately: it does not wait for those
	good := uuid.NewString()
	b.publish(envelopeJSON(good, "default", record(good, "default", "")))
	b.publish(envelopeJSON(good, "default", record(good, "default", `,"actor":"again"`))) // as a republication
	b.chained("default", 3)
	testenv.Eventually(t, 90*time.Second, func() error {
		var dead int
		if err := b.pool.QueryRow(t.Context(), "select count(*) from dead_letter where consumer = $1", audit.Consumer).Scan(&dead); err != nil {
			return err
		}
		if dead != poison {
			return fmt.Errorf("%d of %d dead letters", dead, poison)
		}
		return nil
	})
	if v := b.verify(""); v["verified"] != true || v["checked"] != float64(3) {
		t.Errorf(`verdict %v; want v["verified"] == true && v["checked"] == float64(3)`, v)
	}
}

// Replicas share the work by lease: the chain has each fact once, in order, although the leader is killed and events
// are redelivered.
func TestReplicasWriteOneChain(t *testing.T) {
	t.Parallel()
	const each, rounds = 200, 5
	p := controlplanetest.Neighbours(t)
	kill := p.Spawn("shared")
	p.Serve()
	b := openLedger(p)
	var sent []uuid.UUID
	for round := range rounds {
		events := make([]outbox.Event, each)
		for i := range events {
			events[i] = auditFact("default", round*each+i)
			sent = append(sent, events[i].ID)
		}
		b.emit(events...)
		switch round {
		case 2:
			kill()
		case 3: // all of it again, and to a consumer without its history
			b.SQL("create table control_plane.consumed as select * from control_plane.inbox")
			b.SQL("delete from control_plane.inbox")
			b.SQL("update control_plane.outbox set published_at = null, stream_seq = null where namespace = 'audit'")
		}
	}
	b.chained("default", len(sent))
	rows, err := b.pool.Query(t.Context(), "select event_id from audit_events where tenant = 'default' order by seq")
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil || len(got) != len(sent) {
		t.Fatalf("%d of %d entries, %v; want len(got) == len(sent)", len(got), len(sent), err)
	}
	for i := range sent {
		if got[i] != sent[i] {
			t.Fatalf("entry %d is %s, not %s; want got[i] == %v", i+1, got[i], sent[i], sent[i])
		}
	}
	// Facts that it forgot count as never consumed, so that they are put back.
	b.SQL("insert into control_plane.inbox select * from control_plane.consumed on conflict do nothing")
	// The leader may have verified while they were forgotten, and a failure is remembered.
	testenv.Eventually(t, 20*time.Second, func() error {
		b.alter("delete from audit_memory")
		if v := b.verify(""); v["verified"] != true || v["checked"] != float64(len(sent)) {
			return fmt.Errorf("verdict %v; want %d entries verified", v, len(sent))
		}
		return nil
	})
}

// Each thousandth entry is signed as it is appended.
func TestCheckpointOfEachThousand(t *testing.T) {
	t.Parallel()
	b := startWithEntries(t, 2100)
	seqs := map[any]bool{}
	for _, c := range itemsOf(t, b.Want(200, "GET", "/audit/checkpoints", controlplanetest.Reader, nil)) {
		seqs[c["seq"]] = true
	}
	if !seqs[1000.0] || !seqs[2000.0] {
		t.Errorf("checkpoints %v; want seqs[1000.0] && seqs[2000.0]", seqs)
	}
	if v := b.verify(""); v["verified"] != true {
		t.Errorf(`verdict %v; want v["verified"] == true`, v)
	}
}

// The leader signs entries that have waited, after verifying them.
func TestCheckpointOfWhatWaits(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Neighbours(t)
	stop := p.Serve()
	b := openLedger(p)
	b.emit(auditFact("default", 1), auditFact("default", 2), auditFact("other", 1))
	b.chained("default", 2)
	b.chained("other", 1)
	stop()
	b.alter("update audit_events set actor = 'b' where tenant = 'other'")
	p.Serve()
	testenv.Eventually(t, 30*time.Second, func() error {
		if n := len(itemsOf(t, b.Want(200, "GET", "/audit/checkpoints", controlplanetest.Reader, nil))); n == 0 {
			return fmt.Errorf("no checkpoint")
		}
		return nil
	})
	if n := len(itemsOf(t, b.Want(200, "GET", "/audit/checkpoints", controlplanetest.Foreign, nil))); n > 1 {
		t.Errorf("%d checkpoints of an altered chain; want n <= 1", n)
	}
	if n := len(itemsOf(t, b.Want(200, "GET", "/audit/events?action=audit.checkpoint", controlplanetest.Reader, nil))); n != 0 {
		t.Error("an automatic checkpoint is a fact: there would be no end of them")
	}
}

// A tampered head stops nothing and stays visible.
func TestAMovedHeadStopsNothing(t *testing.T) {
	t.Parallel()
	b := startWithEntries(t, 4)
	b.alter("update audit_heads h set seq = 2, hash = (select e.hash from audit_events e where e.tenant = h.tenant and e.seq = 2) where tenant = 'default'")
	b.emit(auditFact("default", 5))
	b.chained("default", 5)
	b.fails("moved head", "", 5, "link")
}

// A tampered head that leaves no numbers after it is not followed: the chain would end there for ever.
func TestAHeadFarAwayIsNotFollowed(t *testing.T) {
	t.Parallel()
	b := startWithEntries(t, 4)
	b.alter("update audit_heads set seq = 9223372036854775806 where tenant = 'default'")
	for n := 5; n <= 6; n++ {
		b.emit(auditFact("default", n))
		b.chained("default", n)
	}
	var last int64
	if err := b.pool.QueryRow(t.Context(), "select max(seq) from audit_events where tenant = 'default'").Scan(&last); err != nil || last != 6 {
		t.Errorf("got the last number %d, %v, want 6", last, err)
	}
}
