package session

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
)

const (
	// freshFor is how long an answer of the store is used without asking again. A page makes ten requests at once.
	freshFor = time.Second
	// usableFor is how long it is used while the store does not answer: logout holds everywhere within 2 s.
	usableFor = 2 * time.Second
	// maxVerdicts limits the cache; a verdict on a session is its sealed state, some KiB. Expired ones are dropped
	// every dropEvery, so that it holds the sessions of the last seconds only.
	maxVerdicts = 4096
	dropEvery   = 10 * time.Second
)

// Verdicts caches a Store's answers briefly, so that requests need no round trip each. Parts that share one see each
// other's writes at once.
type Verdicts struct {
	store Store
	now   func() time.Time
	calls singleflight.Group

	mu      sync.Mutex // guards the fields below; never held during I/O
	writes  uint64     // counts this process's writes
	dropped time.Time  // when old entries were last dropped
	entries map[string]verdict
}

type verdict struct {
	value []byte // nil: the store has no such entry
	at    time.Time
	write uint64 // the value of writes when this was written here
}

// NewVerdicts reads through store; now is time.Now outside of tests.
func NewVerdicts(store Store, now func() time.Time) *Verdicts {
	return &Verdicts{store: store, now: now, entries: map[string]verdict{}}
}

// Get is Store.Get with a cache of at most 2 s: ErrNotFound, or 503 when the store has not answered for longer.
func (v *Verdicts) Get(ctx context.Context, key string) ([]byte, error) {
	v.mu.Lock()
	known, have := v.entries[key]
	v.mu.Unlock()
	if have && v.now().Sub(known.at) < freshFor {
		return known.result()
	}
	// One call for all concurrent callers; if one of them gives up, the others must not fail.
	shared := v.calls.DoChan(key, func() (any, error) { return v.ask(context.WithoutCancel(ctx), key) })
	var err error
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case answer := <-shared:
		if err = answer.Err; err == nil {
			return answer.Val.(verdict).result()
		}
	}
	if have && v.now().Sub(known.at) < usableFor {
		return known.result()
	}
	return nil, unavailable(err)
}

func (v verdict) result() ([]byte, error) {
	if v.value == nil {
		return nil, ErrNotFound
	}
	return v.value, nil
}

func (v *Verdicts) ask(ctx context.Context, key string) (verdict, error) {
	v.mu.Lock()
	began := v.writes
	v.mu.Unlock()
	at := v.now() // the age counts from the question
	value, err := v.store.Get(ctx, key)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return verdict{}, err
	}
	if err == nil && value == nil {
		value = []byte{}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if known, have := v.entries[key]; have && known.write > began {
		return known, nil // written here during the read of the store: its answer may be older
	}
	return v.remember(key, verdict{value: value, at: at}), nil
}

// Put stores the value and remembers it.
func (v *Verdicts) Put(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	if err := v.store.Put(ctx, key, value, ttl); err != nil {
		return unavailable(err)
	}
	v.note(key, append([]byte{}, value...)) // nil would mean that there is none
	return nil
}

// Delete removes the entry and remembers that.
func (v *Verdicts) Delete(ctx context.Context, key string) error {
	if err := v.store.Delete(ctx, key); err != nil {
		return unavailable(err)
	}
	v.note(key, nil)
	return nil
}

func (v *Verdicts) note(key string, value []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.writes++
	v.remember(key, verdict{value: value, at: v.now(), write: v.writes})
}

// remember is called with mu held.
func (v *Verdicts) remember(key string, one verdict) verdict {
	if one.at.Sub(v.dropped) >= dropEvery {
		v.dropped = one.at
		for k, old := range v.entries {
			if one.at.Sub(old.at) >= usableFor {
				delete(v.entries, k)
			}
		}
	}
	if _, have := v.entries[key]; !have && len(v.entries) >= maxVerdicts {
		for k := range v.entries { // any one: it costs one question
			delete(v.entries, k)
			break
		}
	}
	v.entries[key] = one
	return one
}

// unavailable returns the 503 for a store that does not answer.
func unavailable(err error) error {
	return fault.SessionStoreUnavailable.New("The session store does not answer, so this session cannot be checked; try again shortly.").
		WithCause(err).After(2 * time.Second)
}
