// Package limit limits each caller of this process: requests per minute, and open streams.
//
// Both count in memory. A limit shared by all replicas would cost a round trip before every handshake, which has to be
// sent within 5 ms; with n replicas a caller may have up to n times as much.
package limit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxKeys limits the buckets of one generation, whatever the number of callers.
const maxKeys = 1 << 14

// Rate is a token bucket for each key. It is safe for concurrent use.
type Rate struct {
	perMinute, burst int
	now              func() time.Time

	mu sync.Mutex
	// recent and former are guarded by mu. A full generation becomes the former one, and keys not used again are dropped
	// with it: memory is bounded, and a bucket in use is never lost.
	recent, former map[string]*rate.Limiter
}

// NewRate allows each key perMinute requests a minute and burst at once. A perMinute of 0 means no limit.
func NewRate(perMinute, burst int, now func() time.Time) *Rate {
	return &Rate{perMinute: perMinute, burst: burst, now: now, recent: map[string]*rate.Limiter{}}
}

// PerMinute returns the limit.
func (r *Rate) PerMinute() int { return r.perMinute }

// Take counts one request; a wait above zero is the time before the key's next one is allowed.
func (r *Rate) Take(key string) (wait time.Duration) {
	if r.perMinute == 0 {
		return 0
	}
	now := r.now()
	b := r.bucket(key)
	if b.AllowN(now, 1) {
		return 0
	}
	missing := 1 - b.TokensAt(now)
	return max(time.Duration(missing*float64(time.Minute)/float64(r.perMinute)), time.Millisecond)
}

func (r *Rate) bucket(key string) *rate.Limiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.recent[key]; b != nil {
		return b
	}
	b := r.former[key]
	if b == nil {
		b = rate.NewLimiter(rate.Limit(float64(r.perMinute)/60), r.burst)
	}
	if len(r.recent) >= maxKeys {
		r.recent, r.former = make(map[string]*rate.Limiter), r.recent
	}
	r.recent[key] = b
	return b
}

// Slots limits how much of something each key has at once. It is safe for concurrent use.
type Slots struct {
	most int

	mu   sync.Mutex
	held map[string]int // guarded by mu
}

// NewSlots returns slots of which each key may hold at most this many at a time.
func NewSlots(most int) *Slots { return &Slots{most: most, held: map[string]int{}} }

// Most returns the limit for each key.
func (s *Slots) Most() int { return s.most }

// Full reports whether the key has reached its limit.
func (s *Slots) Full(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[key] >= s.most
}

// Take takes a slot; release must be called once. ok is false if the key has reached its limit.
func (s *Slots) Take(key string) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[key] >= s.most {
		return nil, false
	}
	s.held[key]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.held[key]--; s.held[key] == 0 {
			delete(s.held, key)
		}
	}, true
}
