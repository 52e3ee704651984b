package audit_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// startBroken creates n entries in the chain of each tenant t0, t1 and so on, the second of which was altered.
func startBroken(t *testing.T, tenants, n int) *bundle {
	t.Helper()
	b := openLedger(controlplanetest.Start(t, "CONTROL_PLANE_CREDENTIALS_JSON="+tenantsOf(tenants)))
	for i := range tenants {
		tenant := fmt.Sprintf("t%d", i)
		events := make([]outbox.Event, n)
		for j := range events {
			events[j] = auditFact(tenant, j)
		}
		b.emit(events...)
		b.chained(tenant, n)
		b.Want(200, "GET", "/audit/verify", bearerOf("alice", i), nil)
		b.alter("update audit_events set actor = 'bob' where tenant = $1 and seq = 2", tenant)
	}
	return b
}

// ask requests an acknowledgement, and waits until the request is an entry.
func (b *bundle) ask(i int) (path string) {
	b.T.Helper()
	change := b.Want(202, "POST", "/audit/acknowledgements", bearerOf("alice", i), map[string]any{"reason": "known"}).Object(b.T)
	id := change["id"].(string)
	testenv.Eventually(b.T, 60*time.Second, func() error {
		var n int
		if err := b.pool.QueryRow(b.T.Context(), "select count(*) from audit_events where action = 'guarded_change.proposed' and details->>'change_id' = $1", id).Scan(&n); err != nil || n == 0 {
			return fmt.Errorf("got %d entries, %v", n, err)
		}
		return nil
	})
	return "/governance/changes/" + id
}

// Approval accepts only what the request showed: an alteration made between request and approval is refused, whatever
// the ledger itself has appended since.
func TestApprovalOfAnotherChainIsRefused(t *testing.T) {
	t.Parallel()
	alterations := []string{
		"update audit_events set actor = 'carol' where tenant = $1 and seq = 4",
		"delete from audit_events where tenant = $1 and seq = 5",
		"update audit_events set actor = 'carol' where tenant = $1 and action = 'guarded_change.proposed'",
		"insert into audit_events select tenant, seq + 1, gen_random_uuid(), ts, source, actor, action, target, outcome, request_id, details, hash, hash, mac from audit_events where tenant = $1 order by seq desc limit 1",
	}
	b := startBroken(t, len(alterations), 6)
	for i, alteration := range alterations {
		tenant, bob := fmt.Sprintf("t%d", i), bearerOf("bob", i)
		path := b.ask(i)
		b.alter(alteration, tenant)
		if r := b.Refused(409, "audit_unverified", "POST", path+"/approve", bob, nil); !strings.Contains(string(r.Body), "Reject this change") {
			t.Errorf("%s: got %s, want it to say what to do", alteration, r.Body)
		}
		b.Want(200, "POST", path+"/reject", bob, map[string]any{"reason": "another chain"})
		b.acknowledge(bearerOf("alice", i), bob, func() {})
	}
}

// The requester and content of a request count only as the ledger has signed them: otherwise a database administrator
// would need only one other person, or none.
func TestARequestThatTheLedgerDidNotSignIsRefused(t *testing.T) {
	t.Parallel()
	const other = "018f0000-0000-7000-8000-000000000001"
	cases := []struct{ statement, approver string }{
		{"update guarded_changes set requested_by = 'bob' where target = $1 and state = 'pending'", "alice"},
		{"update guarded_changes set new = jsonb_set(new, '{reason}', '\"harmless\"') where target = $1 and state = 'pending'", "bob"},
		{"update guarded_changes set new = new - 'signature' where target = $1 and state = 'pending'", "bob"},
		{"update guarded_changes set id = '" + other + "' where target = $1 and state = 'pending'", "bob"},
	}
	b := startBroken(t, len(cases), 3)
	for i, c := range cases {
		path := b.ask(i)
		b.alter(c.statement, fmt.Sprintf("t%d", i))
		if strings.Contains(c.statement, other) {
			path = "/governance/changes/" + other
		}
		if r := b.Refused(409, "audit_unverified", "POST", path+"/approve", bearerOf(c.approver, i), nil); !strings.Contains(string(r.Body), "Reject this change") {
			t.Errorf("%s: got %s, want it to say what to do", c.statement, r.Body)
		}
		b.Want(200, "POST", path+"/reject", bearerOf("bob", i), map[string]any{"reason": "nobody asked for it"})
		b.acknowledge(bearerOf("alice", i), bearerOf("bob", i), func() {})
	}
}

// No table alone can move the next number to one without a successor.
func TestAnEndFarAwayIsNotAccepted(t *testing.T) {
	t.Parallel()
	const last = math.MaxInt64
	cases := []struct{ alteration, repair string }{
		{fmt.Sprintf("update audit_heads set seq = %d where tenant = $1", last),
			"update audit_heads set seq = (select max(seq) from audit_events where tenant = $1) where tenant = $1"},
		{fmt.Sprintf("insert into audit_verdicts (tenant, verified, checked, head_seq, head_hash, verified_at) values ($1, true, 1, %d, '', now())", last),
			"delete from audit_verdicts where tenant = $1"},
		{fmt.Sprintf("insert into audit_checkpoints (tenant, seq, hash, ts, key_id, signature) values ($1, %d, repeat('0', 64), now(), '0', '0')", last),
			"delete from audit_checkpoints where tenant = $1"},
		{fmt.Sprintf("insert into audit_events select tenant, %d, gen_random_uuid(), ts, source, actor, action, target, outcome, request_id, details, hash, hash, mac from audit_events where tenant = $1 and seq = 1", last),
			fmt.Sprintf("delete from audit_events where tenant = $1 and seq = %d", last)},
	}
	b := startBroken(t, len(cases), 3)
	for i, c := range cases {
		tenant, alice, bob := fmt.Sprintf("t%d", i), bearerOf("alice", i), bearerOf("bob", i)
		path := b.ask(i)
		b.alter("delete from audit_verdicts where tenant = $1", tenant)
		b.alter(c.alteration, tenant)
		b.Refused(409, "audit_unverified", "POST", path+"/approve", bob, nil)
		if r := b.Refused(409, "audit_unverified", "POST", "/audit/acknowledgements", alice, map[string]any{"reason": "known"}); !strings.Contains(string(r.Body), "far beyond") {
			t.Errorf("%s: got %s, want it to say what is wrong", c.alteration, r.Body)
		}
		b.alter(c.repair, tenant)
		b.Want(200, "POST", path+"/reject", bob, map[string]any{"reason": "another chain"})
		b.acknowledge(alice, bob, func() {})
		b.acknowledged(tenant)
		var seq int64
		if err := b.pool.QueryRow(t.Context(), "select max(seq) from audit_events where tenant = $1", tenant).Scan(&seq); err != nil || seq > 1000 {
			t.Errorf("%s: got the number %d after the acknowledgement, %v, want one near those before", c.alteration, seq, err)
		}
	}
}

// The platform's chain, which belongs to no tenant, is acknowledged by platform operators only, not by others who can
// read it.
func TestThePlatformsChainIsItsOperators(t *testing.T) {
	t.Parallel()
	credentials := map[string]any{}
	for _, tenant := range []string{"other", "default"} {
		for _, who := range []string{"alice", "bob"} {
			credentials["token-of-"+who+"-of-tenant-"+tenant] = map[string]any{"principal": who + "-" + tenant, "tenant": tenant, "scopes": []string{"read", "govern"}}
		}
	}
	b := openLedger(controlplanetest.Start(t, "CONTROL_PLANE_CREDENTIALS_JSON="+controlplanetest.MustJSON(credentials)))
	b.emit(auditFact("platform", 1), auditFact("platform", 2), auditFact("platform", 3))
	b.chained("platform", 3)
	b.alter("update audit_events set actor = 'bob' where tenant = 'platform' and seq = 2")
	const route = "/audit/acknowledgements?tenant=platform"
	body := map[string]any{"reason": "known"}
	b.Refused(404, "tenant_not_found", "POST", route, "token-of-alice-of-tenant-other", body)
	change := b.Want(202, "POST", route, "token-of-alice-of-tenant-default", body).Object(t)
	path := "/governance/changes/" + change["id"].(string)
	var tenant string
	if err := b.pool.QueryRow(t.Context(), "select tenant from guarded_changes where id = $1", change["id"]).Scan(&tenant); err != nil || tenant != "platform" {
		t.Errorf("got a change of the tenant %q, %v, want it to be the chain's", tenant, err)
	}
	b.Refused(404, "change_not_found", "POST", path+"/approve", "token-of-bob-of-tenant-other", nil)
	b.Refused(404, "change_not_found", "POST", path+"/reject", "token-of-bob-of-tenant-other", map[string]any{"reason": "no"})
	b.Want(200, "POST", path+"/reject", "token-of-bob-of-tenant-default", map[string]any{"reason": "again"})
	testenv.Eventually(t, 30*time.Second, func() error { // the leader may find another failure between request and approval
		change := b.Want(202, "POST", route, "token-of-alice-of-tenant-default", body).Object(t)
		if r := b.Call("POST", "/governance/changes/"+change["id"].(string)+"/approve", "token-of-bob-of-tenant-default", nil); r.Status != 200 {
			return fmt.Errorf("approval: %d %s", r.Status, r.Body)
		}
		return nil
	})
	b.acknowledged("platform")
}
