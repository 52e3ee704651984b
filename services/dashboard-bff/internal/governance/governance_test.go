package governance_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/governance"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/viewtest"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func setup(t *testing.T) (*viewtest.Kit, *governance.Views) {
	t.Helper()
	k := viewtest.New(t)
	v, err := governance.New(governance.Parts{Pool: k.Pool, Clients: k.Clients})
	if err != nil {
		t.Fatal(err)
	}
	return k, v
}

func TestOverviewSaysThatEvidenceIsNoCertification(t *testing.T) {
	t.Parallel()
	_, v := setup(t)
	got := viewtest.Get(t, v.Overview, "/o", "/o")
	got.WantPartial()
	got.Want(map[string]any{
		"posture.statement": "1 of 4 controls evidenced. Evidence coverage, not certification.", "posture.satisfied": 1, "posture.total": 4,
		"posture.controls.0.control": "GOVERN-1.1", "posture.controls.0.function": "GOVERN", "posture.controls.2.status": "satisfied",
	})
	if evidence, _ := got.At("posture.controls.2.evidence").([]any); len(evidence) != 5 {
		t.Errorf("evidence of MEASURE-2.1 is %v, want that of five models", evidence)
	}
}

func TestOverviewShowsRiskClassesAndCards(t *testing.T) {
	t.Parallel()
	_, v := setup(t)
	viewtest.Get(t, v.Overview, "/o", "/o").Want(map[string]any{
		"compliance": map[string]any{"count": 2, "rows": []map[string]any{
			{"model": "JPCP", "version": "1", "riskClass": "limited", "technicalFile": true, "provenance": true},
			{"model": "MACK", "version": "1", "riskClass": "minimal", "technicalFile": false, "provenance": false},
		}},
		"cards": map[string]any{"withCard": 6, "withoutCard": 0, "coverage": 1, "total": 6},
	})
}

func TestLedgerShowsItsNewestEntriesAndItsVerification(t *testing.T) {
	t.Parallel()
	_, v := setup(t)
	got := viewtest.Get(t, v.Overview, "/o", "/o")
	entries, _ := got.At("audit.entries").([]any)
	count, _ := got.At("audit.count").(float64)
	if len(entries) != 20 || count < 60 {
		t.Errorf("%d entries of %v, want the newest 20 of all", len(entries), count)
	}
	got.Want(map[string]any{"audit.verified": true, "audit.headDigest": got.At("audit.entries.0.hash"), "audit.entries.0.prevHash": got.At("audit.entries.1.hash")})
	if checked, _ := got.At("audit.checked").(float64); checked < 60 || got.At("audit.verifiedAt") == nil {
		t.Errorf("checked %v at %v, want how many entries were verified, and when", got.At("audit.checked"), got.At("audit.verifiedAt"))
	}
}

func TestLedgerThatWasAlteredIsNotVerified(t *testing.T) {
	t.Parallel()
	k, v := setup(t)
	k.ControlPlane.Edit("/audit/verify", func(body string) string {
		return strings.Replace(body, `"verified":true`, `"verified":false,"first_bad_seq":7,"reason":"hash"`, 1)
	})
	viewtest.Get(t, v.Overview, "/o", "/o").Want(map[string]any{"audit.verified": false})
}

func TestVerificationIsNeverAssumed(t *testing.T) {
	t.Parallel()
	k, v := setup(t)
	k.ControlPlane.Answer("/audit/verify", http.StatusServiceUnavailable, `{"code":"busy","status":503,"title":"Busy","detail":"Later."}`)
	got := viewtest.Get(t, v.Overview, "/o", "/o")
	got.WantPartial("audit")
	got.Want(map[string]any{"audit.verified": nil, "audit.checked": nil, "audit.verifiedAt": nil})
	if n, _ := got.At("audit.count").(float64); n < 60 {
		t.Errorf("audit.count is %v, want what is known of the ledger", n)
	}
}

func TestLongVerificationShowsWhenItEnds(t *testing.T) {
	t.Parallel()
	k, v := setup(t)
	var slow atomic.Bool
	slow.Store(true)
	ended := make(chan struct{})
	k.ControlPlane.Handle("/audit/verify", func(w http.ResponseWriter, _ *http.Request) {
		if slow.Load() {
			<-ended
		}
		_, _ = w.Write([]byte(`{"verified":true,"checked":1000000,"head":{"seq":1000000,"hash":"x"},"verified_at":"2026-11-22T23:00:00Z","signed_seq":0}`))
	})
	first := viewtest.Get(t, v.Overview, "/o", "/o")
	first.WantPartial("audit")
	first.Want(map[string]any{"audit.verified": nil, "_sources.audit.status": "timeout"})
	slow.Store(false)
	close(ended)
	testenv.Eventually(t, 20*time.Second, func() error {
		got := viewtest.Get(t, v.Overview, "/o", "/o")
		if got.At("audit.verified") != true {
			return errNotYet
		}
		return nil
	})
	if n := k.ControlPlane.Calls("/audit/verify"); n != 1 {
		t.Errorf("%d verifications, want one: its answer was awaited in the background", n)
	}
}

type notYet string

func (e notYet) Error() string { return string(e) }

const errNotYet = notYet("the verdict is not shown yet")

func TestLedgerOfAnotherTenantIsNotShown(t *testing.T) {
	t.Parallel()
	_, v := setup(t)
	stranger := caller.Caller{Subject: "idp-b:1", Tenant: "other", Role: caller.Admin}
	got := viewtest.Do(t, viewtest.Request{Who: stranger, Route: "/o", Path: "/o", Handler: v.Overview})
	got.WantPartial("audit")
	got.Want(map[string]any{"audit": nil, "compliance.count": 0})
}

func TestOverviewLeavesOutWhatGaveNoAnswer(t *testing.T) {
	t.Parallel()
	k, v := setup(t)
	k.ControlPlane.Break()
	got := viewtest.Get(t, v.Overview, "/o", "/o")
	got.WantPartial("audit", "cards", "compliance", "posture")
	got.Want(map[string]any{"audit": nil, "cards": nil, "compliance": nil, "posture": nil})
}
