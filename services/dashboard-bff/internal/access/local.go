package access

import (
	"sync"
	"time"
)

// maxLocal limits the counters and locks of one process.
const maxLocal = 20_000

// localLimits counts acts in windows that begin with the first act, as the coordinator does, for this process alone.
type localLimits struct {
	now func() time.Time

	mu      sync.Mutex // guards the fields below
	windows map[string]*window
	swept   time.Time
}

type window struct {
	ends  time.Time
	count int
}

func newLocalLimits(now func() time.Time) *localLimits {
	return &localLimits{now: now, windows: map[string]*window{}}
}

func (l *localLimits) allow(key string, limit int, length time.Duration) decision {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.windows[key]
	if w == nil && len(l.windows) >= maxLocal {
		if l.sweep(now); len(l.windows) >= maxLocal {
			// Beyond the number of senders tracked separately, the rest share one count rather than have none.
			key = "all others"
			w = l.windows[key]
		}
	}
	if w == nil || !now.Before(w.ends) {
		w = &window{ends: now.Add(length)}
		l.windows[key] = w
	}
	if w.count >= limit {
		return decision{after: w.ends.Sub(now)}
	}
	w.count++
	return decision{ok: true, remaining: limit - w.count, after: w.ends.Sub(now)}
}

// sweep is called with mu held. It looks at all windows, so at most once a second.
func (l *localLimits) sweep(now time.Time) {
	if now.Sub(l.swept) < time.Second {
		return
	}
	l.swept = now
	for key, w := range l.windows {
		if !now.Before(w.ends) {
			delete(l.windows, key)
		}
	}
}

// localLocks are the locked addresses that this process knows of.
type localLocks struct {
	now func() time.Time

	mu    sync.Mutex // guards until
	until map[string]time.Time
}

func newLocalLocks(now func() time.Time) *localLocks {
	return &localLocks{now: now, until: map[string]time.Time{}}
}

func (l *localLocks) get(subscriber string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until[subscriber]
}

func (l *localLocks) set(subscriber string, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.until) >= maxLocal {
		now := l.now()
		for key, end := range l.until {
			if !now.Before(end) {
				delete(l.until, key)
			}
		}
		if len(l.until) >= maxLocal {
			return // the store has it
		}
	}
	l.until[subscriber] = until
}
