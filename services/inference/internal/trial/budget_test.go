package trial

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// Trials of new models that never end leave room for one of a model that has served before, which also goes before
// those already waiting.
func TestBudgetIsKeptForKnownModels(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(3 * baseMemory)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		type grant struct {
			name string
			err  error
		}
		grants := make(chan grant, 10)
		claimMemory := func(name string, bytes int64, known bool) {
			go func() { grants <- grant{name, b.acquire(ctx, bytes, known)} }()
			synctest.Wait()
		}
		next := func(want string) {
			t.Helper()
			select {
			case g := <-grants:
				if g.name != want || g.err != nil {
					t.Errorf("got %s, %v; want %s", g.name, g.err, want)
				}
			default:
				t.Errorf("nothing was granted; want %s", want)
			}
		}
		nothing := func() {
			t.Helper()
			select {
			case g := <-grants:
				t.Errorf("%s was granted, %v; want nothing", g.name, g.err)
			default:
			}
		}
		claimMemory("new 1", baseMemory, false)
		next("new 1")
		claimMemory("new 2", baseMemory, false)
		next("new 2")
		claimMemory("new 3", baseMemory, false)
		nothing()
		claimMemory("known 1", baseMemory, true)
		next("known 1")
		claimMemory("known 2", baseMemory, true)
		nothing()
		b.release(baseMemory) // of new 1
		synctest.Wait()
		next("known 2")
		nothing()
		claimMemory("large", 3*baseMemory, false)
		b.release(baseMemory) // of known 1
		b.release(baseMemory) // of known 2
		synctest.Wait()
		next("new 3")
		nothing()
		b.release(baseMemory) // of new 2
		b.release(baseMemory) // of new 3
		synctest.Wait()
		next("large")
		claimMemory("given up", baseMemory, true)
		cancel()
		synctest.Wait()
		if g := <-grants; !errors.Is(g.err, context.Canceled) {
			t.Errorf("given up: got %v, want %v", g.err, context.Canceled)
		}
		b.release(3 * baseMemory)
		if b.used != 0 || len(b.waiting) != 0 {
			t.Errorf("at the end %d bytes are in use and %d wait; want none", b.used, len(b.waiting))
		}
	})
}
