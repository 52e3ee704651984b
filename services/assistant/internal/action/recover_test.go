package action_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

const lease = time.Minute

// executeAsleep executes an action on a replica that stops at a stage until it is woken.
func executeAsleep(t *testing.T, b *bundle, a action.Action, after bool) (wake func() (action.Action, error)) {
	t.Helper()
	reached, woken := make(chan struct{}), make(chan struct{})
	sleep := func(context.Context) error {
		close(reached)
		<-woken
		return nil
	}
	if after {
		b.cluster.After = sleep
	} else {
		b.cluster.Before = sleep
	}
	type result struct {
		a   action.Action
		err error
	}
	done := make(chan result, 1)
	go func() {
		got, err := b.Execute(context.WithoutCancel(t.Context()), a.ID, nil)
		done <- result{got, err}
	}()
	<-reached
	return func() (action.Action, error) {
		close(woken)
		r := <-done
		return r.a, r.err
	}
}

// An executor that sleeps past its lease, whichever side of the write it is on, does
// not write a second time and records nothing over its rescuer.
func TestAbandonedLease(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after  bool
		result string
	}{
		"before the write": {false, "Scaled."},
		"after the write":  {true, "answer was lost"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, action.Config{Lease: lease})
			a := b.approved("api", 3)
			wake := executeAsleep(t, b.replica(action.Config{Lease: lease}), a, c.after)
			if err := b.Recover(t.Context()); err != nil { // the lease holds
				t.Fatal(err)
			}
			b.wantState(a.ID, action.Executing)
			b.clock.Forward(lease)
			if err := b.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			saved := b.wantState(a.ID, action.Succeeded)
			if !strings.Contains(saved.Result, c.result) || saved.Verification == "" {
				t.Errorf(`result %q, verification %q; want strings.Contains(saved.Result, c.result) && saved.Verification != ""`, saved.Result, saved.Verification)
			}
			late, err := wake()
			if err != nil || late.State != action.Succeeded || late.Result != saved.Result {
				t.Errorf("the sleeper sees %s (%s), %v; want late.State == action.Succeeded && late.Result == saved.Result", late.State, late.Result, err)
			}
			b.wantWrites("api", 1)
			b.wantEvents(a.ID, "action_executed", "assistant.action.executed", 1)
		})
	}
}

// A change that another actor made meanwhile is reported and left alone.
func TestUnclearIsUnknown(t *testing.T) {
	t.Parallel()
	b := setup(t, action.Config{Lease: lease})
	a := b.approved("api", 3)
	wake := executeAsleep(t, b.replica(action.Config{Lease: lease}), a, false)
	b.cluster.Edit(t, "api", 7)
	b.clock.Forward(lease)
	if err := b.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.wantState(a.ID, action.Unknown)
	if got, err := wake(); err != nil || got.State != action.Unknown {
		t.Errorf("%s, %v; want got.State == action.Unknown", got.State, err)
	}
	b.wantWrites("api", 0)
}

// Two rescuers do not both call.
func TestTwoRescuers(t *testing.T) {
	t.Parallel()
	b := setup(t, action.Config{Lease: lease})
	a := b.approved("api", 3)
	wake := executeAsleep(t, b.replica(action.Config{Lease: lease}), a, false)
	b.clock.Forward(lease)
	other := b.replica(action.Config{Lease: lease})
	errs := make(chan error, 2)
	for _, r := range []*bundle{b, other} {
		go func() { errs <- r.Recover(t.Context()) }()
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	b.wantState(a.ID, action.Succeeded)
	if _, err := wake(); err != nil {
		t.Error(err)
	}
	b.wantWrites("api", 1)
	b.wantEvents(a.ID, "action_executed", "assistant.action.executed", 1)
}

func TestNoAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after bool
		want  action.State
		n     int
	}{"effect seen": {true, action.Succeeded, 1}, "nothing seen": {false, action.Unknown, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, action.Config{})
			a := b.approved("api", 3)
			lost := func(context.Context) error { return errors.Join(errors.New("connection reset"), action.ErrNoAnswer) }
			if c.after {
				b.cluster.After = lost
			} else {
				b.cluster.Before = lost
			}
			if _, err := b.Execute(t.Context(), a.ID, nil); err != nil {
				t.Fatal(err)
			}
			b.wantState(a.ID, c.want)
			b.wantWrites("api", c.n)
		})
	}
}

func TestRejectedWriteFails(t *testing.T) {
	t.Parallel()
	b := setup(t, action.Config{})
	a := b.approved("api", 3)
	b.cluster.Before = func(context.Context) error { return errors.New("admission webhook denied it") }
	if got, err := b.Execute(t.Context(), a.ID, nil); err != nil || got.State != action.Failed || !strings.Contains(got.Result, "webhook") {
		t.Fatalf(`%s (%s), %v; want got.State == action.Failed && strings.Contains(got.Result, "webhook")`, got.State, got.Result, err)
	}
	b.wantWrites("api", 0)
}

// An approval that was not carried out in time is not carried out later.
func TestOldApprovalDoesNotRun(t *testing.T) {
	t.Parallel()
	b := setup(t, action.Config{TTL: time.Hour})
	a := b.approved("api", 3)
	b.clock.Forward(time.Hour + time.Second)
	if got, err := b.Execute(t.Context(), a.ID, nil); err != nil || got.State != action.Failed {
		t.Fatalf("%s, %v; want got.State == action.Failed", got.State, err)
	}
	b.wantWrites("api", 0)
}

// A write that has begun is finished and recorded though its request has gone.
func TestStartedWriteFinishes(t *testing.T) {
	t.Parallel()
	b := setup(t, action.Config{})
	a := b.approved("api", 3)
	ctx, cancel := context.WithCancel(t.Context())
	b.cluster.Before = func(context.Context) error { cancel(); return nil }
	if got, err := b.Execute(ctx, a.ID, nil); err != nil || got.State != action.Succeeded || got.Verification == "" {
		t.Fatalf(`%s, %v; want got.State == action.Succeeded && got.Verification != ""`, got.State, err)
	}
	b.wantWrites("api", 1)
}

// A real process is killed with SIGKILL inside of the execution, before and after its write.
func TestKilledProcess(t *testing.T) {
	t.Parallel()
	for _, stage := range []string{"before", "after"} {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			b := setup(t, action.Config{})
			a := b.approved("api", 3)
			assistanttest.KillWhenReached(t, childEnv+"="+stage, "CHILD_DATABASE="+b.url, "CHILD_ACTION="+a.ID.String())
			b.wantState(a.ID, action.Executing)
			b.clock.Forward(time.Minute) // beyond the dead one's lease of 30 s of the real time
			for range 2 {
				if err := b.Recover(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			b.wantState(a.ID, action.Succeeded)
			b.wantWrites("api", 1)
			b.wantEvents(a.ID, "action_executed", "assistant.action.executed", 1)
		})
	}
}

// twoClusters lets the service of b change a second cluster, west, beside its own.
func twoClusters(t *testing.T, b *bundle) (west *bundle, target func(string) (action.Target, error)) {
	t.Helper()
	there := *b
	there.cluster = &assistanttest.Cluster{Pool: assistanttest.OpenPool(t, assistanttest.NewDatabase(t, names...))}
	target = func(name string) (action.Target, error) {
		if name == "west" {
			return there.cluster, nil
		}
		return b.cluster, nil
	}
	b.Target = target
	return &there, target
}

// An action whose executor dies is settled in its own cluster, by a replica whose default is another.
func TestAbandonedInItsOwnCluster(t *testing.T) {
	t.Parallel()
	b := setup(t, action.Config{Lease: lease})
	west, target := twoClusters(t, b)
	p := west.proposal(ann, "api", 3)
	p.Cluster = "west"
	a, err := b.Propose(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if a, err = b.Decide(t.Context(), bob, a.ID, yes); err != nil {
		t.Fatal(err)
	}
	wake := executeAsleep(t, west, a, false)
	rescuer := b.replica(action.Config{Lease: lease})
	west.cluster.Before = nil // of the replica that lives
	rescuer.Target = target
	b.clock.Forward(lease + time.Second)
	if err := rescuer.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := b.wantState(a.ID, action.Succeeded); got.Cluster != "west" {
		t.Errorf("got an action of %q, want west", got.Cluster)
	}
	if _, err := wake(); err != nil {
		t.Fatal(err)
	}
	west.wantWrites("api", 1)
	b.wantWrites("api", 0)
}

// What is of a cluster that is not configured any more is carried out nowhere, and its row says so.
func TestClusterThatIsNotConfigured(t *testing.T) {
	t.Parallel()
	b := setup(t, action.Config{Lease: lease})
	west, target := twoClusters(t, b)
	propose := func(name string) action.Action {
		t.Helper()
		p := west.proposal(ann, name, 3)
		p.Cluster = "west"
		a, err := b.Propose(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	approve := func(a action.Action) action.Action {
		t.Helper()
		a, err := b.Decide(t.Context(), bob, a.ID, yes)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	abandoned, approved := approve(propose("api")), approve(propose("web"))
	wake := executeAsleep(t, west, abandoned, false)
	b.Target = func(name string) (action.Target, error) {
		if name == "west" {
			return nil, operation.Refuse(operation.Unavailable, "cluster", "The cluster west is not configured any more.")
		}
		return target(name)
	}
	const says = "The cluster west is not configured any more."
	if got, err := b.Execute(t.Context(), approved.ID, nil); err != nil || got.State != action.Failed || !strings.Contains(got.Result, says) {
		t.Errorf("got %s, %q, %v; want it failed for its cluster", got.State, got.Result, err)
	}
	b.clock.Forward(lease + time.Second)
	if err := b.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := b.wantState(abandoned.ID, action.Unknown); !strings.Contains(got.Result, says) {
		t.Errorf("got the result %q, want that its cluster is not configured", got.Result)
	}
	if _, err := wake(); err != nil {
		t.Fatal(err)
	}
	waiting := west.proposal(ann, "web", 4)
	waiting.Cluster = "west"
	a, err := b.Propose(t.Context(), waiting)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Decide(t.Context(), bob, a.ID, yes); err == nil || err.Error() != says {
		t.Errorf("got %v; want a refusal for its cluster", err)
	}
	if a, err = b.Decide(t.Context(), bob, a.ID, no); err != nil || a.State != action.Denied {
		t.Errorf("got %s, %v; want it denied", a.State, err)
	}
	b.wantWrites("api", 0)
	b.wantWrites("web", 0)
	west.wantWrites("web", 0)
}
