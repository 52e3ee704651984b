package store

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"
)

// statesAge is how long a connection trusts its cached state of the file: where a
// file's times are less exact than promised, as over a network, an edit is hidden no
// longer than that.
const statesAge = time.Second

// state is a stamp of the file and whether something may be concluded from it.
type state struct {
	stamp   Stamp
	settled bool
	at      time.Time // when it was read
}

// state is that of the file at the newest stat of the path.
func (s *source) state(h *handle) state {
	info, now := s.seen(h), time.Now()
	changed, ok := changeTime(info)
	return state{
		stamp:   Stamp{opening: h.number, size: info.Size(), changed: changed},
		settled: ok && now.Sub(changed) > settleTime,
		at:      now,
	}
}

// session is one connection, the statements that it has prepared and the state of the
// file that its pages are of.
type session struct {
	conn  *sql.Conn
	kept  statements
	pages state
	seen  strays // of the same state
}

// read runs fn in a read transaction on current pages of the file. SQLite trusts its
// cached pages as long as the change counter in the file stays the same; an edit that
// bypasses SQLite does not change it, but the kernel records every edit. So pages are
// dropped unless the file's times show that it was not written since they were read.
func (s *session) read(ctx context.Context, now state, fn func(tx) error) error {
	t := tx{ctx: ctx, conn: s.conn, kept: s.kept, seen: &s.seen}
	old := s.pages
	if !now.settled || old.stamp != now.stamp || now.at.Sub(old.at) > statesAge {
		if _, err := t.exec("PRAGMA shrink_memory"); err != nil {
			return err
		}
		s.pages, s.seen = state{}, strays{}
		if now.settled {
			s.pages = now
		}
	}
	return t.run("BEGIN", func() error {
		// The first statement takes the shared lock.
		if err := t.checkVersion(); err != nil {
			return err
		}
		return fn(t)
	})
}

func (s *session) close() error { return errors.Join(s.kept.close(), s.conn.Close()) }

// sessions are the unused connections of a handle. At most as many as there are places
// are in use at once.
type sessions struct {
	places chan struct{}

	mu     sync.Mutex // guards what follows
	idle   []*session
	closed bool
}

// take returns a session, one that was used before if there is one.
func (p *sessions) take(ctx context.Context, db *sql.DB) (*session, error) {
	select {
	case p.places <- struct{}{}:
	default:
		select {
		case p.places <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		s := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return s, nil
	}
	p.mu.Unlock()
	conn, err := db.Conn(ctx)
	if err != nil {
		<-p.places
		return nil, err
	}
	return &session{conn: conn, kept: statements{}}, nil
}

// give returns a session after use, with the error of that use. A fault of the store or
// an interruption closes the session; answers such as a missing row do not.
func (p *sessions) give(s *session, err error) {
	healthy := err == nil || isBusy(err)
	if !healthy {
		code := CodeOf(err)
		healthy = code != "" && code != StoreError
	}
	p.mu.Lock()
	if healthy && !p.closed {
		p.idle = append(p.idle, s)
		s = nil
	}
	p.mu.Unlock()
	if s != nil {
		_ = s.close() // it only read
	}
	<-p.places
}

// close closes idle sessions.
func (p *sessions) close() error {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	var errs []error
	for _, s := range idle {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

// statements caches a connection's prepared statements by their text: filters make a
// few dozen different ones at most.
type statements map[string]*sql.Stmt

// of returns the statement of this text.
func (k statements) of(conn *sql.Conn, query string) (*sql.Stmt, error) {
	if stmt, ok := k[query]; ok {
		return stmt, nil
	}
	// The statement outlives the call.
	stmt, err := conn.PrepareContext(context.Background(), query)
	if err == nil {
		k[query] = stmt
	}
	return stmt, err
}

func (k statements) close() error {
	var errs []error
	for _, stmt := range k {
		errs = append(errs, stmt.Close())
	}
	return errors.Join(errs...)
}
