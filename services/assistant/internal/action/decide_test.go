package action_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

func scaleOperations(name string, replicas int32) []operation.Operation {
	return []operation.Operation{assistanttest.ScaleOperation(name, replicas)}
}

func TestApproveAndExecute(t *testing.T) {
	t.Parallel()
	b := setup(t, action.Config{})
	a := b.propose(ann, "api", 3)
	if a.State != action.Pending || a.Requester != "ann" || !a.ExpiresAt.Equal(b.clock.Now().Add(time.Hour)) || a.Diff == "" {
		t.Fatalf(`proposed %+v; want a.State == action.Pending && a.Requester == "ann" && a.ExpiresAt.Equal(b.clock.Now().Add(time.Hour)) && a.Diff != ""`, a)
	}
	b.wantWrites("api", 0)
	a, err := b.Decide(t.Context(), bob, a.ID, action.Decision{Approve: true, Reason: "go"})
	if err != nil || a.State != action.Approved || a.Decider != "bob" || a.Basis != action.Person || a.Reason != "go" {
		t.Fatalf(`decided %+v, %v; want a.State == action.Approved && a.Decider == "bob" && a.Basis == action.Person && a.Reason == "go"`, a, err)
	}
	a, err = b.Execute(t.Context(), a.ID, nil)
	if err != nil || a.State != action.Succeeded || a.Result != "Scaled." || a.Verification != "3 replicas, as observed." {
		t.Fatalf(`executed %+v, %v; want a.State == action.Succeeded && a.Result == "Scaled." && a.Verification == "3 replicas, as observed."`, a, err)
	}
	if kept := b.wantState(a.ID, action.Succeeded); kept.Verification != a.Verification {
		t.Errorf("kept verification %q; want %v", kept.Verification, a.Verification)
	}
	_, err = b.Execute(t.Context(), a.ID, nil)
	wantCode(t, err, "already_decided")
	b.wantWrites("api", 1)
	b.wantEvents(a.ID, "action_proposed", "assistant.action.proposed", 1)
	b.wantEvents(a.ID, "action_decided", "assistant.action.decided", 1)
	b.wantEvents(a.ID, "action_executed", "assistant.action.executed", 1)
}

func TestDeniedNeverRuns(t *testing.T) {
	t.Parallel()
	b := setup(t, action.Config{})
	a := b.propose(ann, "api", 3)
	if _, err := b.Decide(t.Context(), ann, a.ID, no); err != nil {
		t.Fatal(err)
	}
	_, err := b.Decide(t.Context(), bob, a.ID, yes)
	if p := wantCode(t, err, "already_decided"); !strings.Contains(p.Detail, "denied by ann") {
		t.Errorf(`detail %q; want strings.Contains(p.Detail, "denied by ann")`, p.Detail)
	}
	_, err = b.Execute(t.Context(), a.ID, nil)
	wantCode(t, err, "already_decided")
	b.wantWrites("api", 0)
	_, err = b.Decide(t.Context(), bob, uuid.New(), yes)
	wantCode(t, err, "action_not_found")
}

// Of two replicas that decide at once one wins, and the other names it; of two that
// execute at once one does.
func TestTwoReplicasAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, action.Config{})
	other := b.replica(action.Config{})
	writes := 0
	for i := range 12 {
		a := b.propose(ann, "api", int32(i+2))
		var errs [2]error
		var wg sync.WaitGroup
		for n, c := range []struct {
			b *bundle
			w event.Who
			d action.Decision
		}{{b, ann, no}, {other, bob, yes}} {
			wg.Go(func() { _, errs[n] = c.b.Decide(t.Context(), c.w, a.ID, c.d) })
		}
		wg.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("errors %v; want (errs[0] == nil) != (errs[1] == nil)", errs)
		}
		first, loser := "ann", errs[1]
		if errs[1] == nil {
			first, loser = "bob", errs[0]
		}
		if p := wantCode(t, loser, "already_decided"); !strings.Contains(p.Detail, "by "+first) {
			t.Errorf(`detail %q, first was %s; want strings.Contains(p.Detail, "by "+first)`, p.Detail, first)
		}
		for n, r := range []*bundle{b, other} {
			wg.Go(func() { _, errs[n] = r.Execute(t.Context(), a.ID, nil) })
		}
		wg.Wait()
		if first == "bob" {
			writes++
			if (errs[0] == nil) == (errs[1] == nil) {
				t.Fatalf("executions %v; want (errs[0] == nil) != (errs[1] == nil)", errs)
			}
		} else if errs[0] == nil || errs[1] == nil {
			t.Fatalf("denied and executed: %v; want an error && an error", errs)
		}
		b.wantWrites("api", writes)
		b.wantEvents(a.ID, "action_decided", "assistant.action.decided", 1)
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	b := setup(t, action.Config{TTL: 10 * time.Minute})
	late, swept := b.propose(ann, "api", 3), b.propose(ann, "web", 3)
	b.clock.Forward(10 * time.Minute)
	for range 2 {
		_, err := b.Decide(t.Context(), bob, late.ID, yes)
		wantCode(t, err, "action_expired")
	}
	if waiting, err := b.In(t.Context(), "s-1", action.Pending); err != nil || len(waiting) != 0 {
		t.Fatalf("waiting %v, %v; want len(waiting) == 0", waiting, err)
	}
	if err := b.ExpireDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.wantState(swept.ID, action.Expired)
	b.wantEvents(late.ID, "action_decided", "assistant.action.decided", 1)
	b.wantEvents(swept.ID, "action_decided", "assistant.action.decided", 1)
	if again := b.propose(ann, "api", 3); again.ID == late.ID {
		t.Error("an expired action was reused")
	}
}

func TestStale(t *testing.T) {
	t.Parallel()
	b := setup(t, action.Config{})
	a := b.propose(ann, "api", 3)
	b.cluster.Edit(t, "api", 2)
	fresh, err := b.Decide(t.Context(), bob, a.ID, yes)
	wantCode(t, err, "action_stale")
	if fresh.State != action.Pending || fresh.ID == a.ID || fresh.Digest == a.Digest || fresh.Requester != "ann" || !strings.Contains(fresh.Diff, "replicas: 2") {
		t.Fatalf(`fresh %+v; want fresh.State == action.Pending && fresh.ID != a.ID && fresh.Digest != a.Digest && fresh.Requester == "ann" && strings.Contains(fresh.Diff, "replicas: 2")`, fresh)
	}
	if old := b.wantState(a.ID, action.Stale); old.ReplacedBy == nil || *old.ReplacedBy != fresh.ID {
		t.Errorf("replaced by %v; want old.ReplacedBy != nil && *old.ReplacedBy == fresh.ID", old.ReplacedBy)
	}
	_, err = b.Decide(t.Context(), bob, a.ID, yes)
	wantCode(t, err, "action_stale")
	if _, err := b.Decide(t.Context(), bob, fresh.ID, yes); err != nil {
		t.Fatal(err)
	}
	// And once more, between the decision and the write.
	b.cluster.Edit(t, "api", 5)
	if _, err := b.Execute(t.Context(), fresh.ID, nil); err != nil {
		t.Fatal(err)
	}
	if a := b.wantState(fresh.ID, action.Failed); !strings.Contains(a.Result, "changed since the approval") {
		t.Errorf(`result %q; want strings.Contains(a.Result, "changed since the approval")`, a.Result)
	}
	b.wantWrites("api", 0)
}

func TestEqualDigestAndBound(t *testing.T) {
	t.Parallel()
	b := setup(t, action.Config{})
	first := b.propose(ann, "api", 2)
	if again := b.propose(ann, "api", 2); again.ID != first.ID {
		t.Error("an equal digest made a second action")
	}
	for i := range action.MaxPending - 1 {
		b.propose(ann, "api", int32(i+3))
	}
	if _, err := b.Propose(t.Context(), b.proposal(ann, "web", 2)); !errors.Is(err, action.ErrTooMany) {
		t.Errorf("the eleventh: %v; want errors.Is(err, action.ErrTooMany)", err)
	}
	if again := b.propose(ann, "api", 2); again.ID != first.ID {
		t.Error("with ten waiting, an equal digest was not found")
	}
	settled, err := b.DecideAll(t.Context(), ann, "s-1", no)
	if err != nil || len(settled) != action.MaxPending {
		t.Fatalf("%d settled, %v; want len(settled) == action.MaxPending", len(settled), err)
	}
}

func TestRolesAndFourEyes(t *testing.T) {
	t.Parallel()
	b := setup(t, action.Config{FourEyes: true})
	var refused *action.Refused
	if _, err := b.Propose(t.Context(), b.proposal(eve, "api", 3)); !errors.As(err, &refused) {
		t.Fatalf("readonly proposes: %v; want errors.As(err, &refused)", err)
	}
	a := b.propose(ann, "api", 3)
	for _, d := range []action.Decision{yes, no} {
		_, err := b.Decide(t.Context(), eve, a.ID, d)
		wantCode(t, err, "forbidden")
	}
	_, err := b.Decide(t.Context(), ann, a.ID, yes)
	wantCode(t, err, "forbidden")
	b.wantEvents(a.ID, "action_refused", "assistant.action.refused", 3)
	b.wantState(a.ID, action.Pending)
	if held, err := b.Stand(t.Context(), ann, "s-1", true); held || err != nil {
		t.Errorf("standing approval with four eyes: %v, %v; want !held", held, err)
	}
	p := b.proposal(ann, "web", 3)
	p.AutoApprove = true
	if a, err := b.Propose(t.Context(), p); err != nil || a.State != action.Pending {
		t.Errorf("auto_approve with four eyes: %s, %v; want a.State == action.Pending", a.State, err)
	}
	if a, err := b.Decide(t.Context(), bob, a.ID, yes); err != nil || a.State != action.Approved {
		t.Errorf("another approves: %s, %v; want a.State == action.Approved", a.State, err)
	}
	if a, err := b.Decide(t.Context(), ann, b.propose(ann, "web", 4).ID, no); err != nil || a.State != action.Denied {
		t.Errorf("the requester denies: %s, %v; want a.State == action.Denied", a.State, err)
	}
}

func TestApprovedBeforehand(t *testing.T) {
	t.Parallel()
	b := setup(t, action.Config{})
	propose := func(w event.Who, name string, n int32, auto bool) action.Action {
		t.Helper()
		p := b.proposal(w, name, n)
		p.AutoApprove = auto
		a, err := b.Propose(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	want := func(a action.Action, state action.State, basis action.Basis) {
		t.Helper()
		if a.State != state || a.Basis != basis {
			t.Errorf("%s: %s by %q, want %s by %q", a.Command, a.State, a.Basis, state, basis)
		}
	}
	want(propose(ann, "api", 2, true), action.Approved, action.AutoApprove)
	want(propose(ann, "api", 0, true), action.Pending, "")
	want(propose(ann, "api", 3, false), action.Pending, "")
	if held, err := b.Stand(t.Context(), eve, "s-1", true); held || err != nil {
		t.Errorf("readonly: %v, %v; want !held", held, err)
	}
	if held, err := b.Stand(t.Context(), ann, "s-1", true); !held || err != nil {
		t.Fatalf("%v, %v; want held", held, err)
	}
	settled, err := b.DecideAll(t.Context(), ann, "s-1", yes)
	if err != nil || len(settled) != 1 || settled[0].Action.State != action.Approved {
		t.Fatalf("approve all: %+v, %v; want len(settled) == 1 && settled[0].Action.State == action.Approved", settled, err)
	}
	standing := propose(ann, "api", 4, false)
	want(standing, action.Approved, action.Standing)
	b.wantEvents(standing.ID, "action_decided", "assistant.action.decided", 1)
	want(propose(bob, "api", 5, false), action.Pending, "")
	want(propose(ann, "api", 5, false), action.Approved, action.Standing) // bob's, which waits
	want(propose(ann, "web", 0, false), action.Pending, "")
	b.session("s-2")
	p := b.proposal(ann, "api", 9)
	p.Session = "s-2"
	if a, err := b.Propose(t.Context(), p); err != nil || a.State != action.Pending {
		t.Errorf("another session: %s, %v; want a.State == action.Pending", a.State, err)
	}
	if _, err := b.Stand(t.Context(), ann, "s-1", false); err != nil {
		t.Fatal(err)
	}
	want(propose(ann, "api", 6, false), action.Pending, "")
}

func TestQuoted(t *testing.T) {
	t.Parallel()
	b := setup(t, action.Config{})
	one, two := b.propose(ann, "api", 3), b.propose(ann, "web", 3)
	for _, c := range []struct {
		who  string
		ids  []uuid.UUID
		want string
	}{
		{"ann", nil, ""}, {"ann", []uuid.UUID{one.ID, uuid.New()}, "s-1"}, {"bob", []uuid.UUID{one.ID}, ""}, {"ann", []uuid.UUID{one.ID, two.ID}, ""},
	} {
		if got, err := b.Quoted(t.Context(), c.who, c.ids); err != nil || got != c.want {
			t.Errorf("%s, %v: %q, %v; want got == c.want", c.who, c.ids, got, err)
		}
	}
}

func TestSessionMustExist(t *testing.T) {
	t.Parallel()
	b := setup(t, action.Config{})
	p := b.proposal(ann, "api", 3)
	p.Session = "nowhere"
	_, err := b.Propose(t.Context(), p)
	wantCode(t, err, "session_not_found")
	if l, err := b.Page(t.Context(), "s-1", nil, 100); err != nil || len(l) != 0 {
		t.Error(fmt.Sprint(l, err), "want len(l) == 0")
	}
}
