package audit_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/audit"
	"github.com/mlp-platform/platform/services/control-plane/internal/audit/chain"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// insert appends a correctly linked row to the chain, as any writer to the database can.
func (b *bundle) insert(tenant string, mac *string) chain.Link {
	b.T.Helper()
	var seq int64
	prev := chain.Genesis
	if err := b.pool.QueryRow(b.T.Context(), "select coalesce(max(seq), 0), coalesce((array_agg(hash order by seq desc))[1], $2) from audit_events where tenant = $1",
		tenant, chain.Genesis).Scan(&seq, &prev); err != nil {
		b.T.Fatal(err)
	}
	now := time.Now().UTC().Truncate(time.Microsecond)
	l, err := chain.Append(chain.Entry{
		V: chain.Version, Tenant: tenant, Seq: seq + 1, EventID: uuid.New(), TS: chain.Time(now), Source: "control-plane", Actor: "mallory",
		Action: "approval.approved", Target: "model:JPCP", Outcome: "ok", Details: json.RawMessage("{}"),
	}, prev)
	if err != nil {
		b.T.Fatal(err)
	}
	b.alter(`insert into audit_events (tenant, seq, event_id, ts, source, actor, action, target, outcome, details, prev_hash, hash, mac)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
		l.Tenant, l.Seq, l.EventID, now, l.Source, l.Actor, l.Action, l.Target, l.Outcome, l.Details, l.PrevHash, l.Hash, mac)
	return l
}

func (b *bundle) moveHead(l chain.Link) {
	b.T.Helper()
	b.alter(`insert into audit_heads (tenant, seq, hash, updated_at) values ($1, $2, $3, now())
		on conflict (tenant) do update set seq = excluded.seq, hash = excluded.hash`, l.Tenant, l.Seq, l.Hash)
}

func TestInsertedEntryIsFoundAndNeverSigned(t *testing.T) {
	t.Parallel()
	junk := fmt.Sprintf("%064x", 7)
	for name, c := range map[string]struct {
		mac   *string
		moved bool
	}{
		"without a MAC":                     {nil, false},
		"without a MAC, with a moved head":  {nil, true},
		"with a made-up MAC and moved head": {&junk, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := startWithEntries(t, 3)
			l := b.insert("default", c.mac)
			if c.moved {
				b.moveHead(l)
			}
			b.fails(name, "", 4, "forged")
			b.Refused(409, "audit_unverified", "POST", "/audit/checkpoints", controlplanetest.Operator, nil)
			// It is still found after the ledger has appended more.
			b.emit(auditFact("default", 5))
			b.chained("default", 5)
			b.fails(name+", appended to", "", 4, "forged")
			r, err := chain.VerifyBundle(bytes.NewReader(b.Want(200, "GET", "/audit/export", controlplanetest.Reader, nil).Body), nil)
			if err != nil || r.Verified || r.FirstBadSeq == nil || *r.FirstBadSeq > 5 {
				t.Errorf("export: got %+v, %v, want one that fails", r, err)
			}
		})
	}
}

// A whole chain of a tenant for which the ledger has never appended.
func TestInsertedChainIsFound(t *testing.T) {
	t.Parallel()
	b := startWithEntries(t, 1)
	b.moveHead(b.insert("other", nil))
	v := b.Want(200, "GET", "/audit/verify", controlplanetest.Foreign, nil).Object(t)
	if v["verified"] != false || v["reason"] != "forged" || v["first_bad_seq"] != float64(1) {
		t.Errorf("got %v, want forged at 1", v)
	}
}

// An entry whose event the ledger never took from the stream, although its MAC is valid.
func TestUnconsumedEntryIsFound(t *testing.T) {
	t.Parallel()
	b := startWithEntries(t, 3)
	b.SQL("delete from control_plane.inbox where event_id = (select event_id from control_plane.audit_events where tenant = 'default' and seq = 2)")
	b.fails("not in the inbox", "", 2, "forged")
}

// The thousandth entry is signed as it is appended, but not above a forged entry.
func TestThousandthAboveInsertedEntryIsNotSigned(t *testing.T) {
	t.Parallel()
	b := startWithEntries(t, 990)
	b.moveHead(b.insert("default", nil))
	events := make([]outbox.Event, 20)
	for i := range events {
		events[i] = auditFact("default", i)
	}
	b.emit(events...)
	b.chained("default", 1011)
	b.fails("inserted", "", 991, "forged")
	var signed int
	if err := b.pool.QueryRow(t.Context(), "select count(*) from audit_checkpoints where tenant = 'default' and seq > 990").Scan(&signed); err != nil || signed != 0 {
		t.Errorf("got %d checkpoints above the inserted entry, %v, want none", signed, err)
	}
}

// Rows from before MACs verify; after them no other row without one does, even if the database has lost the record of
// when MACs began.
func TestEntriesFromBeforeMACs(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	p := controlplanetest.Neighbours(t, "AUDIT_SIGNING_KEY_FILE=")
	stop := p.Serve()
	b := openLedger(p)
	b.emit(auditFact("default", 1), auditFact("default", 2))
	b.chained("default", 2)
	stop()
	p.Setenv("AUDIT_SIGNING_KEY_FILE=" + key)
	stop = p.Serve()
	testenv.Eventually(t, 30*time.Second, func() error {
		epochs, err := chain.ReadEpochs(key + ".epochs")
		if err != nil || len(epochs) < 2 { // of default, and the seal
			return fmt.Errorf("epochs %v, %v", epochs, err)
		}
		return nil
	})
	b.emit(auditFact("default", 3))
	b.chained("default", 3)
	if v := b.verify(""); v["verified"] != true {
		t.Fatalf("got %v, want a chain that holds", v)
	}
	stop()
	b.alter("update audit_events set mac = null")
	b.alter("delete from audit_epochs")
	b.moveHead(b.insert("default", nil))
	stop = p.Serve()
	b.fails("MACs removed", "", 3, "forged")
	stop()
	if err := os.WriteFile(key+".epochs", []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	parts := audit.Parts{Store: store.Open(b.pool), Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	if _, err := audit.New(parts, key, ""); err == nil || !strings.Contains(err.Error(), "epochs") {
		t.Error("got no error of a file that holds no epochs")
	}
}
