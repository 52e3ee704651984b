package trial

import (
	"context"
	"slices"
	"sync"
)

// budget is the memory of all trials that run at once. Part of it is kept for models that have served before, which also
// go first: versions of others that hang would otherwise hold it all until their deadlines.
type budget struct {
	total, kept int64 // bytes

	mu      sync.Mutex // guards all below
	used    int64
	waiting []*claim // in the order in which they came
}

type claim struct {
	bytes   int64
	known   bool
	granted chan struct{} // closed when the claim may use its memory; guarded by the budget's mu until then
}

// newBudget keeps baseMemory, unless little more would be left for others.
func newBudget(total int64) *budget {
	b := &budget{total: total}
	if total >= 2*baseMemory {
		b.kept = baseMemory
	}
	return b
}

// acquire waits for bytes, at most the total. Unless it fails, which it does only with ctx, the caller releases them.
func (b *budget) acquire(ctx context.Context, bytes int64, known bool) error {
	c := &claim{bytes: bytes, known: known, granted: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, c)
	b.grantDue()
	b.mu.Unlock()
	select {
	case <-c.granted:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.waiting, c); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	} else { // granted between the two
		b.used -= bytes
	}
	b.grantDue()
	return ctx.Err()
}

func (b *budget) release(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= bytes
	b.grantDue()
}

// grantDue is called with mu held. The first claim of those that come first waits until it fits, with all behind it, so
// that small claims do not starve a large one.
func (b *budget) grantDue() {
	for _, known := range []bool{true, false} {
		for {
			i := slices.IndexFunc(b.waiting, func(c *claim) bool { return c.known == known })
			if i < 0 {
				break
			}
			c := b.waiting[i]
			if !b.fits(c) {
				return
			}
			b.used += c.bytes
			b.waiting = slices.Delete(b.waiting, i, i+1)
			close(c.granted)
		}
	}
}

// fits reports whether a claim may be granted now. One that needs the reserved part gets it when nothing else runs.
func (b *budget) fits(c *claim) bool {
	if c.known || b.used == 0 {
		return b.used+c.bytes <= b.total
	}
	return b.used+c.bytes <= b.total-b.kept
}
