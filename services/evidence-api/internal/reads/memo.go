package reads

import (
	"sync"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/store"
)

// Bounds of the memo.
const (
	memoBytes = 4 << 20
	// memoAge is how long an answer is kept: where a file's times are less exact than
	// promised, as over a network, an edit is hidden no longer than that.
	memoAge = time.Second
)

// memo keeps answers while the store's file is known not to have changed in a byte
// since they were read, so that many readers of one state read it once. It never spares
// the look at the file: each answer takes the file's stamp anew, which also finds a
// store that is locked, unfinished or gone.
type memo struct {
	mu      sync.Mutex // guards what follows
	stamp   store.Stamp
	answers map[string]remembered
	bytes   int
}

type remembered struct {
	body []byte
	at   time.Time
}

// has says that there may be an answer, if the stamp is still the same.
func (m *memo) has(key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.answers[key]
	return ok
}

// get gives the answer that was read when the file had this stamp.
func (m *memo) get(stamp store.Stamp, key string) ([]byte, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, ok := m.answers[key]
	if !ok || m.stamp != stamp || time.Since(a.at) > memoAge {
		return nil, false
	}
	return a.body, true
}

// put keeps an answer that was read after the stamp was taken.
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
