package audit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

// bundle is a control plane with access to its database.
type bundle struct {
	*controlplanetest.Plane
	pool *pgxpool.Pool
}

func startLedger(t testing.TB, env ...string) *bundle {
	t.Helper()
	return openLedger(controlplanetest.Start(t, env...))
}

func openLedger(p *controlplanetest.Plane) *bundle {
	p.T.Helper()
	pool, err := postgres.Open(p.T.Context(), p.Database, store.Schema)
	if err != nil {
		p.T.Fatal(err)
	}
	p.T.Cleanup(pool.Close)
	return &bundle{p, pool}
}

func auditFact(tenant string, n int) outbox.Event {
	return outbox.Audit(outbox.AuditFact{
		Tenant: tenant, Actor: "alice", Action: "test.done", Target: "model:JPCP", Outcome: "ok", Source: "control-plane",
		RequestID: fmt.Sprintf("req-%d", n), Details: map[string]any{"n": n, "ratio": 0.1, "name": "Zoë <&>", "big": int64(1)<<60 + 1},
	})
}

// emit inserts events into the outbox.
func (b *bundle) emit(events ...outbox.Event) {
	b.T.Helper()
	if err := postgres.InTx(b.T.Context(), b.pool, func(tx pgx.Tx) error { return outbox.Insert(b.T.Context(), tx, events...) }); err != nil {
		b.T.Fatal(err)
	}
}

// chained waits until a tenant's chain has n entries.
func (b *bundle) chained(tenant string, n int) {
	b.T.Helper()
	testenv.Eventually(b.T, 60*time.Second, func() error {
		var have int
		if err := b.pool.QueryRow(b.T.Context(), "select count(*) from audit_events where tenant = $1", tenant).Scan(&have); err != nil {
			return err
		}
		if have < n {
			return fmt.Errorf("%d of %d entries", have, n)
		}
		return nil
	})
}

// startWithEntries starts a control plane with n entries in the chain of the tenant default.
func startWithEntries(t testing.TB, n int, env ...string) *bundle {
	b := startLedger(t, env...)
	events := make([]outbox.Event, n)
	for i := range events {
		events[i] = auditFact("default", i+1)
	}
	b.emit(events...)
	b.chained("default", n)
	return b
}

// guarded tables refuse everything but inserts.
var guarded = []string{"audit_events", "audit_checkpoints", "audit_keys", "audit_vouches", "audit_epochs"}

// alter makes changes that the triggers refuse, as the owner of the tables can.
func (b *bundle) alter(statement string, args ...any) {
	b.T.Helper()
	ctx := context.WithoutCancel(b.T.Context())
	if err := postgres.InTx(ctx, b.pool, func(tx pgx.Tx) error {
		for _, table := range guarded {
			if _, err := tx.Exec(ctx, "alter table "+table+" disable trigger user"); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, statement, args...); err != nil {
			return err
		}
		for _, table := range guarded {
			if _, err := tx.Exec(ctx, "alter table "+table+" enable always trigger "+table+"_append_only"); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		b.T.Fatalf("%s: %v", statement, err)
	}
}

func (b *bundle) verify(query string) map[string]any {
	b.T.Helper()
	return b.Want(200, "GET", "/audit/verify"+query, controlplanetest.Reader, nil).Object(b.T)
}

// fails verifies and expects the fault at a sequence, with one of the reasons.
func (b *bundle) fails(what, query string, seq int, reasons ...string) {
	b.T.Helper()
	v := b.verify(query)
	if v["verified"] != false || v["first_bad_seq"] != float64(seq) || !strings.Contains(" "+strings.Join(reasons, " ")+" ", fmt.Sprintf(" %v ", v["reason"])) {
		b.T.Errorf("%s: %v, want entry %d and %v", what, v, seq, reasons)
	}
}

func TestFactsBecomeEntries(t *testing.T) {
	t.Parallel()
	b := startWithEntries(t, 3)
	out := b.Want(200, "GET", "/audit/events", controlplanetest.Reader, nil).Object(t)
	items := out["items"].([]any)
	if out["count"] != float64(3) || len(items) != 3 || out["next_cursor"] != nil {
		t.Fatalf(`list %v; want out["count"] == float64(3) && len(items) == 3 && out["next_cursor"] == nil`, out)
	}
	first, second := items[2].(map[string]any), items[1].(map[string]any)
	if first["seq"] != float64(1) || first["prev_hash"] != strings.Repeat("0", 64) || second["prev_hash"] != first["hash"] {
		t.Errorf(`links %v, %v; want first["seq"] == float64(1) && first["prev_hash"] == strings.Repeat("0", 64) && second["prev_hash"] == first["hash"]`, first, second)
	}
	if first["actor"] != "alice" || first["request_id"] != "req-1" || first["outcome"] != "ok" || first["target"] != "model:JPCP" || first["v"] != float64(1) {
		t.Errorf(`entry %v; want first["actor"] == "alice" && first["request_id"] == "req-1" && first["outcome"] == "ok" && first["target"] == "model:JPCP" && first["v"] == float64(1)`, first)
	}
	if d := first["details"].(map[string]any); d["n"] != float64(1) || d["big"] != "1152921504606846977" || d["name"] != "Zoë <&>" {
		t.Errorf(`details %v; want d["n"] == float64(1) && d["big"] == "1152921504606846977" && d["name"] == "Zoë <&>"`, d)
	}
	if v := b.verify(""); v["verified"] != true || v["checked"] != float64(3) || v["head"].(map[string]any)["seq"] != float64(3) || v["first_bad_seq"] != nil {
		t.Errorf(`verdict %v; want v["verified"] == true && v["checked"] == float64(3) && v["head"].(map[string]any)["seq"] == float64(3) && v["first_bad_seq"] == nil`, v)
	}
}

// shiftHexDigits returns a different text of hex digits for any column.
func shiftHexDigits(column string) string {
	return "translate(" + column + ", '0123456789abcdef', '123456789abcdef0')"
}

// Row 18 of the acceptance table.
func TestRow18LedgerTampering(t *testing.T) {
	t.Parallel()
	b := startWithEntries(t, 12)
	b.Want(201, "POST", "/audit/checkpoints", controlplanetest.Operator, nil)
	b.chained("default", 13) // the checkpoint's own fact
	if v := b.verify(""); v["verified"] != true {
		t.Fatalf(`clean ledger: %v; want v["verified"] == true`, v)
	}

	// Every column of an entry, including future ones.
	other := map[string]string{
		"tenant": "'ghost'", "seq": "1000", "event_id": "'" + uuid.NewString() + "'", "ts": "ts + interval '1 microsecond'",
		"source": "'agent'", "actor": "'bob'", "action": "'test.undone'", "target": "'model:MACK'", "outcome": "'denied'",
		"request_id": "null", "details": `'{"n":6}'`, "prev_hash": shiftHexDigits("prev_hash"), "hash": shiftHexDigits("hash"),
		"mac": shiftHexDigits("mac"),
	}
	rows, err := b.pool.Query(t.Context(), "select column_name::text from information_schema.columns where table_schema = 'control_plane' and table_name = 'audit_events'")
	if err != nil {
		t.Fatal(err)
	}
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(columns) != len(other) {
		t.Fatalf("columns %v, %v; want len(columns) == len(other)", columns, err)
	}
	b.alter("create table kept as select * from audit_events where tenant = 'default'")
	restoreMemory := b.backup()
	restore := func() {
		t.Helper()
		b.alter("with gone as (delete from audit_events) select 1")
		b.alter("insert into audit_events select * from kept")
		restoreMemory()
	}
	for _, seq := range []int{1, 6, 13} {
		for _, column := range columns {
			b.alter(fmt.Sprintf("update audit_events set %s = %s where tenant = 'default' and seq = %d", column, other[column], seq))
			want := []string{"hash"}
			switch column {
			case "tenant", "seq":
				want = []string{"gap"}
			case "mac":
				want = []string{"forged"}
			case "prev_hash":
				want = []string{"link", "hash"}
			}
			b.fails(fmt.Sprintf("%s of entry %d", column, seq), "", seq, want...)
			restore()
		}
		// The same members in another encoding are another text.
		b.alter("update audit_events set details = replace(details::text, ',', ', ')::json where seq = $1", seq)
		if seq < 13 {
			b.fails("details spelt otherwise", "", seq, "hash")
		}
		restore()
		b.alter("delete from audit_events where seq = $1", seq)
		b.fails(fmt.Sprintf("entry %d deleted", seq), "", seq, "gap")
		restore()
	}

	b.alter("delete from audit_events where seq > 12")
	b.alter("update audit_heads set seq = 12, hash = (select hash from audit_events where seq = 12)")
	b.alter("delete from audit_verdicts")
	b.fails("unsigned tail deleted with its head", "", 13, "gap")
	b.alter("delete from audit_events where seq > 11")
	b.alter("update audit_heads set seq = 11, hash = (select hash from audit_events where seq = 11)")
	b.alter("delete from audit_verdicts")
	b.fails("signed tail deleted with its head", "", 12, "gap")
	b.alter("update audit_heads set seq = 13, hash = (select hash from kept where seq = 13)")
	restore()

	b.alter("update audit_events a set details = k.details, event_id = gen_random_uuid() from kept k where k.seq = 9 - a.seq and a.seq in (4, 5)")
	b.fails("details of two swapped", "", 4, "hash")
	restore()
	b.alter(`update audit_events set seq = -seq where seq in (4, 5)`)
	b.alter(`update audit_events set seq = 9 + seq where seq in (-4, -5)`)
	b.fails("two entries swapped", "", 4, "link", "hash")
	restore()
	b.alter("update audit_heads set hash = " + shiftHexDigits("hash"))
	b.fails("head", "", 13, "link")
	b.alter("update audit_heads set hash = (select hash from kept where seq = 13)")
	restore()
	b.alter("insert into audit_events select tenant, 14, gen_random_uuid(), ts, source, actor, action, target, outcome, request_id, details, hash, hash, mac from kept where seq = 13")
	b.fails("entry beyond the head", "", 14, "hash", "link")
	restore()

	for column, value := range map[string]string{
		"hash": shiftHexDigits("hash"), "ts": "ts + interval '1 second'", "key_id": "'0000000000000000'", "signature": `decode(repeat('00', 64), 'hex')`,
	} {
		b.alter("create table marks as select * from audit_checkpoints")
		b.alter("update audit_checkpoints set " + column + " = " + value)
		b.fails("checkpoint's "+column, "", 12, "checkpoint")
		b.alter("delete from audit_checkpoints")
		b.alter("insert into audit_checkpoints select * from marks")
		b.alter("drop table marks")
		restoreMemory()
	}

	// A range covers only its entries.
	b.alter("update audit_events set actor = 'bob' where seq = 6")
	b.fails("range", "?from=3&to=8", 6, "hash")
	if v := b.verify("?from=7&to=9"); v["verified"] != false || v["checked"] != float64(3) { // the failure is open
		t.Errorf(`range after the fault: %v; want v["verified"] == false && v["checked"] == float64(3)`, v)
	}
	restore()
	if v := b.verify("?from=7&to=9"); v["verified"] != true || v["checked"] != float64(3) {
		t.Errorf(`range: %v; want v["verified"] == true && v["checked"] == float64(3)`, v)
	}

	// A chain that does not verify is not signed.
	b.alter("update audit_events set actor = 'bob' where seq = 13")
	b.Refused(409, "audit_unverified", "POST", "/audit/checkpoints", controlplanetest.Operator, nil)
}

// A role that does not own the tables cannot alter the ledger at all.
func TestTheLedgerIsAppendOnly(t *testing.T) {
	t.Parallel()
	b := startWithEntries(t, 1)
	b.Want(201, "POST", "/audit/checkpoints", controlplanetest.Operator, nil)
	b.SQL("insert into control_plane.audit_vouches values ('a', 'b', '')")
	for _, table := range guarded {
		for _, statement := range []string{"update " + table + " set %s = %s", "delete from " + table, "truncate " + table} {
			if strings.HasPrefix(statement, "update") {
				column := map[string]string{"audit_events": "actor", "audit_checkpoints": "hash", "audit_keys": "key_id", "audit_vouches": "key_id", "audit_epochs": "key_id"}[table]
				statement = fmt.Sprintf(statement, column, column)
			}
			for _, role := range []string{"origin", "replica"} {
				err := postgres.InTx(t.Context(), b.pool, func(tx pgx.Tx) error {
					if _, err := tx.Exec(t.Context(), "set local session_replication_role = "+role); err != nil {
						return err
					}
					_, err := tx.Exec(t.Context(), statement)
					return err
				})
				if err == nil || !strings.Contains(err.Error(), "append-only") {
					t.Errorf(`%s as %s: %v; want an error && strings.Contains(err.Error(), "append-only")`, statement, role, err)
				}
			}
		}
	}
}
