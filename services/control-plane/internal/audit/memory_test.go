package audit_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/audit/chain"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// tampering is an alteration by a database administrator of one chain of 16 entries, whose twelfth is signed.
type tampering struct {
	name       string
	statements []string // $T is the tenant
	grows      int      // facts that the ledger appends afterwards, unaware of it
	reasons    string
}

// cutTail removes the entries after one, and changes the head to match.
func cutTail(last int) []string {
	return []string{
		fmt.Sprintf("delete from audit_events where tenant = $T and seq > %d", last),
		fmt.Sprintf("update audit_heads set seq = %d, hash = (select hash from audit_events where tenant = $T and seq = %d) where tenant = $T", last, last),
	}
}

const copyLast = "insert into audit_events select tenant, 17, gen_random_uuid(), ts, source, actor, action, target, outcome, request_id, details, hash, hash, mac from audit_events where tenant = $T and seq = 16"

var tamperings = []tampering{
	{"entry inserted behind the head", []string{copyLast}, 0, "hash link forged"},
	{"entry inserted with a moved head", []string{copyLast, "update audit_heads set seq = 17 where tenant = $T"}, 0, "hash link forged"},
	{"entry changed", []string{"update audit_events set actor = 'bob' where tenant = $T and seq = 6"}, 0, "hash"},
	{"entry deleted", []string{"delete from audit_events where tenant = $T and seq = 6"}, 0, "gap"},
	{"first entry deleted", []string{"delete from audit_events where tenant = $T and seq = 1"}, 0, "gap"},
	{"entries reordered", []string{"update audit_events set seq = -seq where tenant = $T and seq in (4, 5)", "update audit_events set seq = 9 + seq where tenant = $T and seq in (-4, -5)"}, 0, "link hash"},
	{"entry deleted and the others moved up", []string{"delete from audit_events where tenant = $T and seq = 14",
		"update audit_events set seq = seq - 1 where tenant = $T and seq = 15", "update audit_events set seq = seq - 1 where tenant = $T and seq = 16",
		"update audit_heads set seq = 15 where tenant = $T"}, 0, "link hash gap"},
	{"tail cut without the head", []string{"delete from audit_events where tenant = $T and seq > 13"}, 0, "gap"},
	{"tail cut with the head", cutTail(13), 0, "gap"},
	{"tail cut with head and verdict", append(cutTail(13), "update audit_verdicts set head_seq = 13, checked = 13 where tenant = $T"), 0, "gap"},
	{"tail cut with all that tells of it", append(cutTail(11), "delete from audit_checkpoints where tenant = $T", "delete from audit_verdicts where tenant = $T",
		"delete from audit_memory where tenant = $T"), 0, "gap"},
	{"tail cut and grown over", append(cutTail(13), "delete from audit_verdicts where tenant = $T", "delete from audit_memory where tenant = $T"), 5, "gap"},
	{"checkpoint removed", []string{"delete from audit_checkpoints where tenant = $T"}, 0, "checkpoint"},
	{"checkpoint changed", []string{"update audit_checkpoints set signature = decode(repeat('00', 64), 'hex') where tenant = $T"}, 0, "checkpoint"},
	{"backup of the tables restored", append(cutTail(12), "update audit_verdicts set head_seq = 12 where tenant = $T", "delete from audit_memory where tenant = $T",
		"delete from audit_checkpoints where tenant = $T and seq > 11"), 4, "gap checkpoint"},
	{"whole chain removed", []string{"delete from audit_events where tenant = $T", "delete from audit_heads where tenant = $T", "delete from audit_checkpoints where tenant = $T",
		"delete from audit_verdicts where tenant = $T", "delete from audit_memory where tenant = $T"}, 0, "gap"},
	{"MACs and epochs removed", []string{"update audit_events set mac = null where tenant = $T", "delete from audit_epochs where tenant = $T"}, 0, "forged"},
	{"trace of the stream removed", []string{"delete from inbox where event_id = (select event_id from audit_events where tenant = $T and seq = 2)"}, 0, "forged"},
	{"head changed", []string{"update audit_heads set hash = repeat('0', 64) where tenant = $T"}, 0, "link"},
	{"memory in the database changed", []string{"update audit_memory set document = replace(document, '\"seq\":16', '\"seq\":11') where tenant = $T"}, 0, "memory"},
}

// tenantsOf gives each tampering its own tenant, with two people who govern.
func tenantsOf(n int) (credentials string) {
	all := map[string]any{}
	for i := range n {
		for _, who := range []string{"alice", "bob"} {
			all[bearerOf(who, i)] = map[string]any{"principal": who, "tenant": fmt.Sprintf("t%d", i), "scopes": []string{"read", "manage", "govern"}}
		}
	}
	raw, _ := json.Marshal(all)
	return string(raw)
}

func bearerOf(who string, i int) string { return fmt.Sprintf("token-of-%s-of-tenant-%d", who, i) }

// offline verifies the export of a tenant with the key alone.
func (b *bundle) offline(bearer string, key ed25519.PublicKey) chain.Report {
	b.T.Helper()
	r, err := chain.VerifyBundle(bytes.NewReader(b.Want(200, "GET", "/audit/export", bearer, nil).Body), chain.KeysOf(key))
	if err != nil {
		b.T.Fatal(err)
	}
	return r
}

// acknowledged waits until the acknowledgement is an entry.
func (b *bundle) acknowledged(tenant string) {
	b.T.Helper()
	testenv.Eventually(b.T, 60*time.Second, func() error {
		var n int
		if err := b.pool.QueryRow(b.T.Context(), "select count(*) from audit_events where tenant = $1 and action = 'audit.failures_acknowledged'", tenant).Scan(&n); err != nil || n == 0 {
			return fmt.Errorf("got %d entries, %v", n, err)
		}
		return nil
	})
}

// backup copies the memory, beside the key and in the database; the returned function restores it, as restoring a
// backup of both and the entries does. The leader may have verified meanwhile, so it repeats this until the chain
// verifies.
func (b *bundle) backup() (restore func()) {
	b.T.Helper()
	var file string
	for _, kv := range b.Env {
		if key, ok := strings.CutPrefix(kv, "AUDIT_SIGNING_KEY_FILE="); ok {
			file = filepath.Join(filepath.Dir(key), "audit_high_water")
		}
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		b.T.Fatal(err)
	}
	b.alter("create table kept_memory as select * from audit_memory")
	return func() {
		b.T.Helper()
		testenv.Eventually(b.T, 30*time.Second, func() error {
			if err := os.WriteFile(file, raw, 0o600); err != nil {
				return err
			}
			b.alter("delete from audit_memory")
			b.alter("insert into audit_memory select * from kept_memory")
			if v := b.verify(""); v["verified"] != true {
				return fmt.Errorf("restored ledger: got %v, want it verified", v)
			}
			return nil
		})
	}
}

// acknowledge lets one person request and another approve, and runs between in between. The leader verifies too: a
// failure it finds after the request is not in it, so the approval is refused and a new request is made.
func (b *bundle) acknowledge(alice, bob string, between func()) {
	b.T.Helper()
	testenv.Eventually(b.T, 30*time.Second, func() error {
		change := b.Want(202, "POST", "/audit/acknowledgements", alice, map[string]any{"reason": "restored on purpose"}).Object(b.T)
		path := "/governance/changes/" + change["id"].(string)
		b.Refused(403, "own_request", "POST", path+"/approve", alice, nil)
		between()
		switch r := b.Call("POST", path+"/approve", bob, nil); {
		case r.Status == 200:
			return nil
		case r.Status == 409 && strings.Contains(string(r.Body), "Another verification has failed since"):
			b.Want(200, "POST", path+"/reject", bob, map[string]any{"reason": "not all of them"})
			return errors.New(string(r.Body))
		default:
			b.T.Fatalf("approval of the acknowledgement: %d %s", r.Status, r.Body)
			return nil
		}
	})
}

// checkpoint signs the head, unless the leader has already signed it: then no entry names a requester.
func (b *bundle) checkpoint(bearer string) (signed bool) {
	b.T.Helper()
	r := b.Call("POST", "/audit/checkpoints", bearer, nil)
	if r.Status != 200 && r.Status != 201 {
		b.T.Fatalf("checkpoint: got %d %s, want 201, or 200 for one that is there", r.Status, r.Body)
	}
	return r.Status == 201
}

// Any change by an administrator of the database is found, stays found even if it is undone or verified again, prevents
// signing of the chain, and ends only by two people, whose statement is kept.
func TestEveryTamperingIsRemembered(t *testing.T) {
	t.Parallel()
	keyFile := filepath.Join(t.TempDir(), "audit-signing.key")
	p := controlplanetest.Start(t, "CONTROL_PLANE_CREDENTIALS_JSON="+tenantsOf(len(tamperings)), "AUDIT_SIGNING_KEY_FILE="+keyFile)
	b := openLedger(p)
	key, err := chain.OpenKey(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	public := key.Public().(ed25519.PublicKey)
	for i, c := range tamperings {
		tenant, alice, bob := fmt.Sprintf("t%d", i), bearerOf("alice", i), bearerOf("bob", i)
		grow := func(n, to int) {
			t.Helper()
			events := make([]outbox.Event, n)
			for j := range events {
				events[j] = auditFact(tenant, j)
			}
			b.emit(events...)
			b.chained(tenant, to)
		}
		verify := func(bearer string) map[string]any {
			t.Helper()
			return b.Want(200, "GET", "/audit/verify", bearer, nil).Object(t)
		}
		grow(12, 12)
		if b.checkpoint(alice) {
			b.chained(tenant, 13)
		} else {
			grow(1, 13)
		}
		grow(3, 16)
		if v := verify(alice); v["verified"] != true || v["memory"] != "kept" || v["high_water"].(map[string]any)["seq"] != float64(16) {
			t.Fatalf("%s: got %v of the clean ledger, want it verified and remembered up to 16", c.name, v)
		}
		for _, s := range c.statements {
			b.alter(strings.ReplaceAll(s, "$T", "'"+tenant+"'"))
		}
		if c.grows > 0 {
			var have int
			if err := b.pool.QueryRow(t.Context(), "select count(*) from audit_events where tenant = $1", tenant).Scan(&have); err != nil {
				t.Fatal(err)
			}
			grow(c.grows, have+c.grows)
		}
		for _, when := range []string{"", ", verified again"} {
			if v := verify(alice); v["verified"] != false || !slices.Contains(strings.Fields(c.reasons), v["reason"].(string)) || len(v["failures"].([]any)) == 0 {
				t.Errorf("%s%s: got %v, want %s and a failure", c.name, when, v, c.reasons)
			}
		}
		b.Refused(409, "audit_unverified", "POST", "/audit/checkpoints", alice, nil)
		if r := b.offline(alice, public); r.Verified {
			t.Errorf("%s: the export verifies offline: %+v", c.name, r)
		}
		b.acknowledge(alice, bob, func() {
			if v := verify(alice); v["verified"] != false {
				t.Errorf("%s: got %v before the second person, want it to fail", c.name, v)
			}
		})
		b.acknowledged(tenant)
		v := verify(bob)
		acks := v["acknowledgements"].([]any)
		if v["verified"] != true || len(v["failures"].([]any)) != 0 || len(acks) != 1 || acks[0].(map[string]any)["acknowledged_by"] != "bob" || acks[0].(map[string]any)["requested_by"] != "alice" {
			t.Errorf("%s: got %v after the acknowledgement, want it verified, and to tell of it", c.name, v)
			continue
		}
		b.checkpoint(bob)
		if r := b.offline(bob, public); !r.Verified || len(r.Acknowledgements) != 1 || r.SignedSeq == 0 {
			t.Errorf("%s: got %+v of the export after the acknowledgement, want it verified, and to tell of it", c.name, r)
		}
		// Accepted entries may not change either.
		if c.name == "whole chain removed" {
			continue
		}
		b.alter("update audit_events set actor = 'carol' where tenant = $1 and seq = (select max(seq) from audit_events where tenant = $1 and action = 'test.done')", tenant)
		if v := verify(bob); v["verified"] != false {
			t.Errorf("%s: got %v of an accepted entry that changed, want it to fail", c.name, v)
		}
		b.Refused(409, "audit_unverified", "POST", "/audit/checkpoints", alice, nil)
	}
}

// Without the file nothing verifies, whatever the tables contain, until two people have acknowledged it; a restart does
// not recreate it.
func TestLostMemoryDoesNotVerify(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := controlplanetest.Neighbours(t, "CONTROL_PLANE_CREDENTIALS_JSON="+tenantsOf(1), "AUDIT_SIGNING_KEY_FILE="+filepath.Join(dir, "audit-signing.key"))
	stop := p.Serve()
	b := openLedger(p)
	alice, bob := bearerOf("alice", 0), bearerOf("bob", 0)
	verify := func() map[string]any { return b.Want(200, "GET", "/audit/verify", alice, nil).Object(t) }
	b.emit(auditFact("t0", 1), auditFact("t0", 2))
	b.chained("t0", 2)
	if v := verify(); v["verified"] != true {
		t.Fatalf("got %v, want a chain that holds", v)
	}
	file := filepath.Join(dir, "audit_high_water")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("got %v, %v, want a file of mode 0600", info, err)
	}
	stop()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	b.alter("delete from audit_epochs where tenant = '" + chain.MemoryTenant + "'")
	for range 2 {
		stop = p.Serve()
		if v := verify(); v["verified"] != false || v["memory"] != "lost" || v["reason"] != "memory" {
			t.Errorf("got %v, want one that says that the memory is lost", v)
		}
		b.Refused(409, "audit_unverified", "POST", "/audit/checkpoints", alice, nil)
		if _, err := os.Stat(file); err == nil {
			t.Error("the file was made anew")
		}
		stop()
	}
	p.Serve()
	change := b.Want(202, "POST", "/audit/acknowledgements", alice, map[string]any{"reason": "the disk was lost"}).Object(t)
	b.Want(200, "POST", "/governance/changes/"+change["id"].(string)+"/approve", bob, nil)
	if v := verify(); v["verified"] != true || v["memory"] != "kept" || len(v["acknowledgements"].([]any)) != 1 {
		t.Errorf("got %v, want it verified, and to tell of the loss", v)
	}
	if err := os.WriteFile(file, []byte(`{"format":"platform-audit-high-water/v1","chains":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if v := verify(); v["verified"] != true { // the database remembers, and rewrites it
		t.Errorf("got %v, want the copy in the database to count", v)
	}
}

// Only the chain's tenant can acknowledge its memory: another tenant whose memory was lost with it still has to, even
// after a restart.
func TestALossIsAcknowledgedByEachTenant(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := controlplanetest.Neighbours(t, "CONTROL_PLANE_CREDENTIALS_JSON="+tenantsOf(2), "AUDIT_SIGNING_KEY_FILE="+filepath.Join(dir, "audit-signing.key"))
	stop := p.Serve()
	b := openLedger(p)
	verify := func(i int) map[string]any {
		return b.Want(200, "GET", "/audit/verify", bearerOf("alice", i), nil).Object(t)
	}
	for i := range 2 {
		tenant := fmt.Sprintf("t%d", i)
		b.emit(auditFact(tenant, 1), auditFact(tenant, 2))
		b.chained(tenant, 2)
		if v := verify(i); v["verified"] != true {
			t.Fatalf("%s: got %v, want a chain that holds", tenant, v)
		}
	}
	stop()
	if err := os.Remove(filepath.Join(dir, "audit_high_water")); err != nil {
		t.Fatal(err)
	}
	stop = p.Serve()
	for i := range 2 {
		for j := i; j < 2; j++ {
			if v := verify(j); v["verified"] != false || v["reason"] != "memory" {
				t.Errorf("t%d after %d tenants have acknowledged: got %v, want the loss of its memory", j, i, v)
			}
		}
		change := b.Want(202, "POST", "/audit/acknowledgements", bearerOf("alice", i), map[string]any{"reason": "the disk was lost"}).Object(t)
		b.Want(200, "POST", "/governance/changes/"+change["id"].(string)+"/approve", bearerOf("bob", i), nil)
		if v := verify(i); v["verified"] != true || v["memory"] != "kept" {
			t.Errorf("t%d: got %v, want it verified", i, v)
		}
		stop()
		stop = p.Serve()
	}
}
