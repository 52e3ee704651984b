package loopback

import (
	"crypto/sha256"
	"sync"
	"time"
)

const (
	launchTime  = 10 * time.Minute
	maxLaunches = 64 // unspent codes; the oldest goes first
)

// Launches issues codes that open a page once, so that the token itself is in no
// address, no history and no process list. The zero value is ready.
type Launches struct {
	Now func() time.Time // nil: the clock

	mu   sync.Mutex // guards what follows
	open []launch   // oldest first
}

// launch keeps a code's digest: comparing digests reveals nothing about the
// code.
type launch struct {
	digest [sha256.Size]byte
	until  time.Time
}

// New makes a code of 32 URL-safe characters that is good once, for 10 minutes.
func (l *Launches) New() string {
	code := newSecret()
	until := l.now().Add(launchTime)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) == maxLaunches {
		l.open = append(l.open[:0], l.open[1:]...)
	}
	l.open = append(l.open, launch{sha256.Sum256([]byte(code)), until})
	return code
}

// Redeem reports whether the code is good, and spends it.
func (l *Launches) Redeem(code string) bool {
	digest, now := sha256.Sum256([]byte(code)), l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.open {
		if l.open[i].digest == digest {
			good := now.Before(l.open[i].until)
			l.open = append(l.open[:i], l.open[i+1:]...)
			return good
		}
	}
	return false
}

func (l *Launches) now() time.Time {
	if l.Now != nil {
		return l.Now()
	}
	return time.Now()
}
