package audit_test

import (
	"crypto/ed25519"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/audit/chain"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// forge rewrites the chain of the tenant default from an entry on, as the owner of the database can: hashes, links,
// head, and checkpoints by the forger's key.
func (b *bundle) forge(from int64, key ed25519.PrivateKey) {
	b.T.Helper()
	b.alter("update audit_events set actor = 'bob' where tenant = 'default' and seq = $1", from)
	rows, err := b.pool.Query(b.T.Context(), `select seq, event_id, ts, source, actor, action, target, outcome, request_id, details::text, prev_hash
		from audit_events where tenant = 'default' and seq >= $1 order by seq`, from)
	if err != nil {
		b.T.Fatal(err)
	}
	var all []chain.Link
	var l chain.Link
	var ts time.Time
	var details string
	if _, err := pgx.ForEachRow(rows, []any{&l.Seq, &l.EventID, &ts, &l.Source, &l.Actor, &l.Action, &l.Target, &l.Outcome, &l.RequestID, &details, &l.PrevHash}, func() error {
		l.V, l.Tenant, l.TS, l.Details = chain.Version, "default", chain.Time(ts), []byte(details)
		if len(all) > 0 {
			l.PrevHash = all[len(all)-1].Hash
		}
		next, err := chain.Append(l.Entry, l.PrevHash)
		all = append(all, next)
		return err
	}); err != nil {
		b.T.Fatal(err)
	}
	for _, l := range all {
		b.alter("update audit_events set prev_hash = $1, hash = $2 where tenant = 'default' and seq = $3", l.PrevHash, l.Hash, l.Seq)
		now := time.Now().UTC().Truncate(time.Microsecond)
		c := chain.Sign(key, "default", l.Seq, l.Hash, now)
		b.alter("update audit_checkpoints set hash = $1, ts = $2, key_id = $3, signature = $4 where tenant = 'default' and seq = $5", c.Hash, now, c.KeyID, c.Signature, l.Seq)
	}
	last := all[len(all)-1]
	b.alter("update audit_heads set hash = $1 where tenant = 'default'", last.Hash)
	b.alter("delete from audit_verdicts")
}

// The rest of row 18: careful tampering by the owner of the database.
func TestRow18TamperingByTheOwner(t *testing.T) {
	t.Parallel()
	_, forger, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	public := forger.Public().(ed25519.PublicKey)
	signed := func(t *testing.T) *bundle {
		b := startWithEntries(t, 12)
		b.Want(201, "POST", "/audit/checkpoints", controlplanetest.Operator, nil)
		b.chained("default", 13)
		if v := b.verify(""); v["verified"] != true || v["signed_seq"] != float64(12) {
			t.Fatalf(`clean ledger: %v; want v["verified"] == true && v["signed_seq"] == float64(12)`, v)
		}
		return b
	}

	t.Run("rewritten and signed with an inserted key", func(t *testing.T) {
		t.Parallel()
		b := signed(t)
		now := time.Now().UTC().Truncate(time.Microsecond)
		b.forge(5, forger)
		b.alter("insert into audit_keys values ($1, $2, $3)", chain.KeyID(public), []byte(public), now)
		// It vouches for itself, and claims to be vouched for by the genuine one.
		v := chain.VouchFor(forger, public, chain.Time(now))
		b.alter("insert into audit_vouches values ($1, $1, $2)", v.By, v.Signature)
		b.alter("insert into audit_vouches select $1, key_id, $2 from audit_keys where key_id <> $1", v.By, v.Signature)
		b.fails("forged", "", 5, "forged")
		for _, k := range itemsOf(t, b.Want(200, "GET", "/audit/keys", controlplanetest.Reader, nil)) {
			if k["vouched"] != k["active"] {
				t.Errorf(`key %v; want k["vouched"] == %v`, k, k["active"])
			}
		}
		b.Refused(409, "audit_unverified", "POST", "/audit/checkpoints", controlplanetest.Operator, nil)
		// Missing checkpoints are noticed even without the key.
		b.alter("delete from audit_checkpoints")
		b.fails("forged, checkpoints gone", "", 5, "forged")
	})
	t.Run("removed with all that tells of it", func(t *testing.T) {
		t.Parallel()
		b := signed(t)
		b.alter("delete from audit_events where tenant = 'default' and seq > 11")
		b.alter("update audit_heads set seq = 11, hash = (select hash from audit_events where tenant = 'default' and seq = 11) where tenant = 'default'")
		b.alter("delete from audit_checkpoints")
		b.alter("delete from audit_verdicts")
		b.fails("tail", "", 12, "gap")
		b.alter("delete from audit_events")
		b.alter("delete from audit_heads")
		b.alter("delete from audit_verdicts")
		b.fails("all", "", 1, "gap")
		// A new chain in its place does not hide it, whatever its length.
		events := make([]outbox.Event, 12)
		for i := range events {
			events[i] = auditFact("default", i)
		}
		b.emit(events[:3]...)
		b.chained("default", 3)
		b.fails("begun anew", "", 4, "gap")
		b.emit(events[3:]...)
		b.chained("default", 12)
		b.fails("as long as before", "", 12, "checkpoint")
	})
	t.Run("found by the hourly verification", func(t *testing.T) {
		t.Parallel()
		p := controlplanetest.Neighbours(t)
		stop := p.Serve()
		b := openLedger(p)
		b.emit(auditFact("default", 1))
		b.chained("default", 1)
		b.Want(201, "POST", "/audit/checkpoints", controlplanetest.Operator, nil)
		b.chained("default", 2)
		stop()
		for _, table := range []string{"audit_events", "audit_heads", "audit_checkpoints", "audit_verdicts", "audit_rounds", "audit_keys"} {
			b.alter("delete from " + table)
		}
		p.Serve()
		testenv.Eventually(t, 30*time.Second, func() error {
			if body := string(b.Want(200, "GET", "/metrics", "", nil).Body); !strings.Contains(body, "\nplatform_audit_verified 0\n") {
				return fmt.Errorf("not found")
			}
			return nil
		})
	})
}

// Checkpoints of each thousandth entry must exist, even if a later one covers the same entries.
func TestRow18RemovedCheckpoint(t *testing.T) {
	t.Parallel()
	b := startWithEntries(t, 3100)
	if v := b.verify(""); v["verified"] != true || v["signed_seq"].(float64) < 3000 {
		t.Fatalf(`clean ledger: %v; want v["verified"] == true && v["signed_seq"].(float64) >= 3000`, v)
	}
	b.alter("create table marks as select * from audit_checkpoints")
	restore := b.backup()
	for gone, want := range map[string]int{"seq = 1000": 1000, "seq = 2000": 2000, "seq <= 2000": 1000} {
		b.alter("delete from audit_checkpoints where " + gone)
		b.fails(gone, "", want, "checkpoint")
		b.fails(gone+", a range", "?from=900&to=2100", want, "checkpoint")
		b.alter("insert into audit_checkpoints select * from marks on conflict do nothing")
		restore()
	}
	if v := b.verify("?from=1&to=1500"); v["verified"] != true || v["signed_seq"] != float64(1000) {
		t.Errorf(`verdict %v; want v["verified"] == true && v["signed_seq"] == float64(1000)`, v)
	}
}

// A time without a key leaves no gap: entries appended meanwhile are verified and signed.
func TestATimeWithoutAKey(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	p := controlplanetest.Neighbours(t, "AUDIT_SIGNING_KEY_FILE=")
	stop := p.Serve()
	b := openLedger(p)
	grow := func(to int) {
		t.Helper()
		var have int
		if err := b.pool.QueryRow(t.Context(), "select count(*) from audit_events where tenant = 'default'").Scan(&have); err != nil {
			t.Fatal(err)
		}
		events := make([]outbox.Event, to-have)
		for i := range events {
			events[i] = auditFact("default", have+i)
		}
		b.emit(events...)
		b.chained("default", to)
	}
	grow(1500)
	if v := b.verify(""); v["verified"] != true || v["signed_seq"] != float64(0) {
		t.Errorf(`verdict %v; want v["verified"] == true && v["signed_seq"] == float64(0)`, v)
	}
	stop()
	p.Setenv("AUDIT_SIGNING_KEY_FILE=" + key)
	stop = p.Serve()
	testenv.Eventually(t, 30*time.Second, func() error {
		if v := b.verify(""); v["verified"] != true || v["signed_seq"] != float64(1500) {
			return fmt.Errorf("verdict %v", v)
		}
		return nil
	})
	stop()
	// Without the key again: facts wait, since an entry without a MAC after entries with one would be indistinguishable
	// from a forged one.
	p.Setenv("AUDIT_SIGNING_KEY_FILE=")
	stop = p.Serve()
	b.emit(auditFact("default", 1501))
	testenv.Eventually(t, 30*time.Second, func() error {
		check := b.Health()["startup_checks"].(map[string]any)["audit"].(string)
		body := string(b.Want(http.StatusOK, "GET", "/metrics", "", nil).Body)
		if want := "warn: AUDIT_SIGNING_KEY_FILE is not set, and the audit ledger is keyed"; !strings.HasPrefix(check, want) || !strings.Contains(body, "\nplatform_audit_lag_events 1\n") {
			return fmt.Errorf("got health %q, want %q and a lag of 1", check, want)
		}
		return nil
	})
	stop()
	p.Setenv("AUDIT_SIGNING_KEY_FILE=" + key)
	p.Serve()
	b.chained("default", 1501)
	grow(3100)
	b.Want(201, "POST", "/audit/checkpoints", controlplanetest.Operator, nil)
	b.chained("default", 3101)
	if v := b.verify(""); v["verified"] != true || v["signed_seq"] != float64(3100) {
		t.Errorf(`verdict %v; want v["verified"] == true && v["signed_seq"] == float64(3100)`, v)
	}
	var n int
	if err := b.pool.QueryRow(t.Context(), "select count(*) from audit_checkpoints where tenant = 'default' and seq % 1000 = 0").Scan(&n); err != nil || n != 3 {
		t.Errorf("%d of 3 checkpoints, %v; want n == 3", n, err)
	}
}

// A replica with a separate file, or an old one, never gives a false alarm.
func TestAnOldAnchorIsTrue(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	p := controlplanetest.Neighbours(t, "AUDIT_SIGNING_KEY_FILE="+key)
	stop := p.Serve()
	b := openLedger(p)
	b.emit(auditFact("default", 1))
	b.chained("default", 1)
	b.Want(201, "POST", "/audit/checkpoints", controlplanetest.Operator, nil)
	old, err := os.ReadFile(key + ".anchors")
	if err != nil {
		t.Fatal(err)
	}
	b.chained("default", 2)
	b.Want(201, "POST", "/audit/checkpoints", controlplanetest.Operator, nil)
	b.chained("default", 3)
	if err := os.WriteFile(key+".anchors", old, 0o600); err != nil {
		t.Fatal(err)
	}
	if v := b.verify(""); v["verified"] != true || v["signed_seq"] != float64(2) {
		t.Errorf(`verdict %v; want v["verified"] == true && v["signed_seq"] == float64(2)`, v)
	}
	stop()
	p.Serve()
	testenv.Eventually(t, 30*time.Second, func() error { // the leader raises it
		have, err := chain.ReadAnchors(key + ".anchors")
		if err != nil || have["default"].Seq != 2 {
			return fmt.Errorf("anchors %v, %v", have, err)
		}
		return nil
	})
	if v := b.verify(""); v["verified"] != true {
		t.Errorf(`verdict %v; want v["verified"] == true`, v)
	}
}
