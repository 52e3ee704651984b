package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"sync"
	"time"
)

// Stamp identifies a state of the store's file, down to its last byte: every write to
// the file, by SQLite or around it, changes the file's change time, which the kernel
// keeps and no program can set. As long as the stamp stays the same, the file still
// holds the bytes that were read after the stamp was taken.
type Stamp struct {
	opening uint64 // of another file, another number
	size    int64
	changed time.Time
}

// settleTime is the age of a change from which the kernel's clock, which moves in
// steps of up to 10 ms, is sure to distinguish the next change from it.
const settleTime = 50 * time.Millisecond

// Stamp takes the stamp of the file after it made sure, as every read does, that no
// writer holds the file and that no dead writer left it unfinished. If it is not
// settled, the file changed just now and nothing may be concluded from the stamp.
// Concurrent callers share one look, which began after each had called.
func (r *Reader) Stamp(ctx context.Context) (stamp Stamp, settled bool, err error) {
	var l look
	err = r.source.patiently(ctx, func() error {
		l = r.source.looks.share(r.source.look)
		return l.err
	})
	return l.stamp, l.settled, err
}

// Glance takes the stamp of the file and makes sure of nothing: it is for a caller
// that reads next, which does. It is not settled if the file cannot be read.
func (r *Reader) Glance() (stamp Stamp, settled bool) {
	h, err := r.source.acquire()
	if err != nil {
		return Stamp{}, false
	}
	s := r.source.state(h)
	return s.stamp, s.settled
}

// look is the state of the file, or the error of reading it.
type look struct {
	state
	err error
}

// look reads the file's state. It waits for nothing, so no context is watched, which
// would cost more than the look.
func (s *source) look() (l look) {
	l.err = s.attempt(context.Background(), func(h *handle) error {
		l.state = s.state(h)
		return h.probe()
	})
	return l
}

// seen is the file's information from the newest stat of the path.
func (s *source) seen(h *handle) fs.FileInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return h.info
}

// probe takes and releases the file's lock by reading the change counter. It fails as
// any read would that cannot read the file now.
func (h *handle) probe() error {
	h.probeMu.Lock()
	defer h.probeMu.Unlock()
	if h.probeStmt == nil && !h.ended {
		conn, err := h.db.Conn(context.Background())
		if err != nil {
			return err
		}
		stmt, err := conn.PrepareContext(context.Background(), "PRAGMA data_version")
		if err != nil {
			return errors.Join(err, conn.Close())
		}
		h.probeConn, h.probeStmt = conn, stmt
	}
	if h.ended {
		return sql.ErrConnDone
	}
	var version int64
	return h.probeStmt.QueryRowContext(context.Background()).Scan(&version)
}

// endProbe returns the probes' connection to the pool.
func (h *handle) endProbe() error {
	h.probeMu.Lock()
	defer h.probeMu.Unlock()
	h.ended = true
	if h.probeStmt == nil {
		return nil
	}
	err := errors.Join(h.probeStmt.Close(), h.probeConn.Close())
	h.probeConn, h.probeStmt = nil, nil
	return err
}

// looks lets concurrent callers share looks. One is under way at a time; callers that
// arrive meanwhile share the next one. If the one under way fails, they fail with it:
// the file could not be read after they had called.
type looks struct {
	mu            sync.Mutex // guards what follows
	running, next *sharedLook
}

type sharedLook struct {
	done  chan struct{} // closed when found is there
	found look
}

func (b *looks) share(take func() look) look {
	b.mu.Lock()
	if b.running != nil {
		if b.next == nil {
			b.next = &sharedLook{done: make(chan struct{})}
		}
		l := b.next
		b.mu.Unlock()
		<-l.done
		return l.found
	}
	l := &sharedLook{done: make(chan struct{})}
	b.running = l
	b.mu.Unlock()
	b.run(l, take)
	return l.found
}

func (b *looks) run(l *sharedLook, take func() look) {
	l.found = take()
	b.mu.Lock()
	defer b.mu.Unlock()
	close(l.done)
	b.running, b.next = b.next, nil
	if b.running == nil {
		return
	}
	if l.found.err != nil {
		b.running.found = l.found
		close(b.running.done)
		b.running = nil
		return
	}
	go b.run(b.running, take)
}
