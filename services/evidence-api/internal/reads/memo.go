package reads

import (
	"sync"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/store"
)

// Limits of the memo.
const (
	memoBytes = 4 << 20
	// memoAge limits how long an answer is kept. Where file times are less exact than
	// promised, as on a network drive, an edit is hidden no longer than this.
	memoAge = time.Second
)

// memo keeps answers while the store's file is known to be unchanged since they were read, so that many readers of one
// state read it once. The file is still checked for each answer: taking its stamp also finds a store that is locked,
// unfinished or gone.
type memo struct {
	mu      sync.Mutex // guards the fields below
	stamp   store.Stamp
	answers map[string]remembered
	bytes   int
}

type remembered struct {
	body []byte
	at   time.Time
}

// has reports whether there is an answer, which is valid only for its stamp.
func (m *memo) has(key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.answers[key]
	return ok
}

// get returns the answer that was read when the file had this stamp.
func (m *memo) get(stamp store.Stamp, key string) ([]byte, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, ok := m.answers[key]
	if !ok || m.stamp != stamp || time.Since(a.at) > memoAge {
		return nil, false
	}
	return a.body, true
}

// put stores an answer that was read after the stamp was taken.
func (m *memo) put(stamp store.Stamp, key string, body []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stamp != stamp || m.answers == nil || m.bytes+len(body) > memoBytes {
		m.stamp, m.answers, m.bytes = stamp, map[string]remembered{}, 0
	}
	if len(body) > memoBytes/4 {
		return
	}
	m.bytes += len(body) + len(key) - len(m.answers[key].body)
	m.answers[key] = remembered{body, time.Now()}
}
