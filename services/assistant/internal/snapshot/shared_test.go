package snapshot

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// rounder is a read that shows two steps and pauses between them.
type rounder struct {
	mu    sync.Mutex
	begun int
	let   chan struct{}
}

func (r *rounder) read(ctx context.Context, _ string, show Show) (*engine.Snapshot, error) {
	r.mu.Lock()
	r.begun++
	s := &engine.Snapshot{Unread: map[string]bool{}}
	r.mu.Unlock()
	show(operation.Operation{Verb: operation.List, Kind: "pods"})(turn.Output{Text: "one"}, nil)
	done := show(operation.Operation{Verb: operation.List, Kind: "events"})
	select {
	case <-r.let:
		done(turn.Output{Text: "two"}, nil)
		return s, nil
	case <-ctx.Done():
		done(turn.Output{}, ctx.Err())
		return nil, ctx.Err()
	}
}

// showing records what one caller is shown.
type showing struct{ lines []string }

func (s *showing) show(op operation.Operation) func(turn.Output, error) {
	s.lines = append(s.lines, op.Kind)
	return func(out turn.Output, _ error) { s.lines = append(s.lines, out.Text) }
}

// TestShared: the first caller reads alone; all later ones share the next round, which starts after their calls.
func TestShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &rounder{let: make(chan struct{})}
		s := newShared(r.read)
		const late = 20
		got := make([]*engine.Snapshot, late+1)
		shown := make([]showing, late+1)
		ask := func(i int) {
			go func() {
				var err error
				if got[i], err = s.Read(t.Context(), "shop", shown[i].show); err != nil {
					t.Error(err)
				}
			}()
		}
		ask(0)
		synctest.Wait()
		for i := range late {
			ask(i + 1)
		}
		synctest.Wait()
		if r.begun != 1 {
			t.Fatalf("%d rounds run at once; want 1", r.begun)
		}
		r.let <- struct{}{}
		synctest.Wait()
		if got[0] == nil || got[1] != nil || r.begun != 2 {
			t.Fatalf("the first has %v, a late one %v, %d rounds; want got[0] != nil && got[1] == nil && r.begun == 2", got[0], got[1], r.begun)
		}
		r.let <- struct{}{}
		synctest.Wait()
		for i := range late {
			if got[i+1] == nil || got[i+1] == got[0] || got[i+1] != got[1] {
				t.Errorf("%d has a snapshot of its own, or the first's; want got[i+1] != nil && got[i+1] != got[0] && got[i+1] == got[1]", i+1)
			}
		}
		for i := range shown {
			if !slices.Equal(shown[i].lines, []string{"pods", "one", "events", "two"}) {
				t.Errorf(`%d was shown %v; want slices.Equal(shown[i].lines, []string{"pods", "one", "events", "two"})`, i, shown[i].lines)
			}
		}
		if len(s.places) != 0 || r.begun != 2 {
			t.Errorf("%d places are left after %d rounds; want len(s.places) == 0 && r.begun == 2", len(s.places), r.begun)
		}
	})
}

// TestSharedLeave: a read continues while one caller waits and ends with the last; a later caller starts a new one.
func TestSharedLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &rounder{let: make(chan struct{})}
		s := newShared(r.read)
		ctx, leave := context.WithCancel(t.Context())
		var first, second showing
		ended := make(chan error, 2)
		for _, to := range []*showing{&first, &second} {
			go func() {
				_, err := s.Read(ctx, "shop", to.show)
				ended <- err
			}()
			synctest.Wait()
		}
		leave()
		synctest.Wait()
		for range 2 {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("a reader that left got %v; want errors.Is(err, context.Canceled)", err)
			}
		}
		if !slices.Equal(first.lines, []string{"pods", "one", "events", ""}) || len(second.lines) != 0 {
			t.Errorf(`shown %v and %v; want slices.Equal(first.lines, []string{"pods", "one", "events", ""}) && len(second.lines) == 0`, first.lines, second.lines)
		}
		var third showing
		go func() {
			_, err := s.Read(t.Context(), "shop", third.show)
			ended <- err
		}()
		synctest.Wait()
		r.let <- struct{}{}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestSharedPanic: waiting callers get a panic as an error.
func TestSharedPanic(t *testing.T) {
	t.Parallel()
	s := newShared(func(context.Context, string, Show) (*engine.Snapshot, error) { panic("a broken object") })
	var fail *turn.Fail
	if _, err := s.Read(t.Context(), "shop", (&showing{}).show); !errors.As(err, &fail) || fail.Failure != fault.InternalFailure {
		t.Fatalf("got %v; want errors.As(err, &fail) && fail.Failure == fault.InternalFailure", err)
	}
}
