package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"
)

// readConns limits a reader's open connections: 16 requests and the tailer share
// them; each costs a page cache of about 2 MiB at most.
const readConns = 8

// handle is one opened file. It keeps the file's identity: if the path is replaced,
// old connections keep reading a file that no other process sees.
type handle struct {
	db     *sql.DB
	image  *image      // the copy that is read instead of the file; nil: the file itself
	info   fs.FileInfo // from the last stat; guarded by the source's lock
	number uint64      // counts the openings, so that changes of two files never look alike
	idle   sessions

	probeMu   sync.Mutex // guards what follows: a connection that only looks
	probeConn *sql.Conn
	probeStmt *sql.Stmt
	ended     bool // the handle is closed
}

// close closes idle connections; those in use are closed when they are given back.
func (h *handle) close() error {
	return errors.Join(h.endProbe(), h.idle.close(), h.db.Close(), h.image.remove())
}

// source is the file that a [Reader] reads, through all that happens to it.
type source struct {
	path      string
	wait      time.Duration // for a lock
	copyLimit int64         // bytes that may be copied to read a store that was left unfinished; 0: any

	mu     sync.Mutex // guards what follows
	open   *handle
	opened uint64
	left   journalKind // of the newest opening
	closed bool

	looks looks // shared reads of the file's state

	watchMu sync.Mutex // guards what follows: one connection for the change counter
	watch   *sql.Conn
	watched uint64
}

// acquire returns the handle of the file that is at the path now.
func (s *source) acquire() (*handle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, brokenFault(fs.ErrClosed, "The store was closed.")
	}
	info, err := os.Stat(s.path)
	if err == nil && !info.Mode().IsRegular() {
		err = brokenFault(nil, "The store path is not a regular file.")
	}
	// A store never shrinks: one that did was truncated or overwritten, and its
	// cached pages hold data that is gone.
	if s.open != nil && (err != nil || !os.SameFile(info, s.open.info) || info.Size() < s.open.info.Size() || s.open.image.outdated(s.path)) {
		_ = s.open.close()
		s.open = nil
	}
	if err != nil {
		return nil, err
	}
	if s.open != nil {
		s.open.info = info
		return s.open, nil
	}
	var copied *image
	if peekHeader(context.Background(), s.path).writeAhead() {
		if copied, err = copyStore(context.Background(), s.path, s.copyLimit); err != nil {
			return nil, err
		}
	}
	return s.openHandle(info, copied)
}

// openHandle opens the handle that later calls share. The caller holds the lock.
func (s *source) openHandle(info fs.FileInfo, copied *image) (*handle, error) {
	path := s.path
	s.left = noJournal
	if copied != nil {
		path, s.left = copied.path, copied.journal
	}
	// SQLite does not wait for locks here: see patiently.
	db, err := openDB(path, modeReadOnly, 0)
	if err != nil {
		return nil, errors.Join(err, copied.remove())
	}
	// Two beside the sessions: one watches the change counter, one probes. An idle
	// connection keeps the file's inode from being given to another file.
	db.SetMaxOpenConns(readConns + 2)
	db.SetMaxIdleConns(readConns + 2)
	s.opened++
	s.open = &handle{db: db, image: copied, info: info, number: s.opened, idle: sessions{places: make(chan struct{}, readConns)}}
	return s.open, nil
}

// openImage lets the next calls read a copy of the store, which SQLite recovers: no
// reader changes the file or its companions. The copy is made under the lock, since
// concurrent readers need it too.
func (s *source) openImage(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.open != nil { // another call was faster
		return nil
	}
	copied, err := copyStore(ctx, s.path, s.copyLimit)
	if err != nil {
		return err
	}
	_, err = s.openHandle(copied.of[0], copied)
	return err
}

// journalLeft reports which journal lay beside the file when it was last opened.
func (s *source) journalLeft() journalKind {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

// drop forgets h, so that the next call reopens the file.
func (s *source) drop(h *handle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h != nil && s.open == h {
		_ = h.close()
		s.open = nil
	}
}

// ended reports whether h is no longer the file at the path.
func (s *source) ended(h *handle) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open != h && !s.closed
}

// on runs fn on the file's handle and waits for a lock that is in its way. fn takes
// the lock before it does anything that it could not do again.
func (s *source) on(ctx context.Context, fn func(*handle) error) error {
	return s.patiently(ctx, func() error { return s.attempt(ctx, fn) })
}

// maxCopies limits how often one read copies a store that changes meanwhile.
const maxCopies = 3

// attempt runs fn on the file's handle. If a dead writer left its journal, fn runs
// again on a copy; a faulty file is reopened next time.
func (s *source) attempt(ctx context.Context, fn func(*handle) error) error {
	copies := 0
	for first := true; ; first = false {
		h, err := s.acquire()
		if err == nil {
			err = fn(h)
		}
		switch {
		case err == nil:
			return nil
		case (needsRecovery(err) || errors.Is(err, errUnsettled)) && copies < maxCopies:
			copies++
			s.drop(h)
			if errors.Is(err, errUnsettled) {
				continue
			}
			if err := s.openImage(ctx); err != nil && !errors.Is(err, errUnsettled) {
				return storeFault(ctx, err)
			}
			continue
		case h == nil:
			return storeFault(ctx, err)
		case isBusy(err):
			return err
		case first && s.ended(h) && !isKnown(err) && ctx.Err() == nil:
			continue // another file took its place meanwhile, and its connections were ended
		}
		err = storeFault(ctx, err)
		if CodeOf(err) == StoreError {
			s.drop(h)
		}
		return err
	}
}

// read runs fn in a read transaction on a file of this build's version.
func (s *source) read(ctx context.Context, fn func(tx) error) error {
	return s.on(ctx, func(h *handle) error {
		state := s.state(h)
		one, err := h.idle.take(ctx, h.db)
		if err != nil {
			return err
		}
		err = one.read(ctx, state, fn)
		h.idle.give(one, err)
		return err
	})
}

// Mark identifies a state of the store; if two marks differ, a transaction was
// committed, or the file replaced, in between.
type Mark struct {
	opening uint64
	version int64
}

// mark reads SQLite's change counter of the file through one connection kept for
// it: the counter compares only within a connection.
func (s *source) mark(ctx context.Context) (Mark, error) {
	s.watchMu.Lock()
	defer s.watchMu.Unlock()
	var m Mark
	err := s.on(ctx, func(h *handle) error {
		if s.watch == nil || s.watched != h.number {
			s.unwatch()
			conn, err := h.db.Conn(ctx)
			if err != nil {
				return err
			}
			s.watch, s.watched = conn, h.number
		}
		m.opening = h.number
		if err := s.watch.QueryRowContext(ctx, "PRAGMA data_version").Scan(&m.version); err != nil {
			return err
		}
		// An emptied file has a counter too, but no version.
		return tx{ctx: ctx, conn: s.watch}.checkVersion()
	})
	if err != nil {
		s.unwatch()
		return Mark{}, err
	}
	return m, nil
}

func (s *source) unwatch() {
	if s.watch != nil {
		_ = s.watch.Close()
		s.watch = nil
	}
}

// close ends all connections. It is safe to call twice.
func (s *source) close() error {
	s.watchMu.Lock()
	defer s.watchMu.Unlock()
	s.unwatch()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.open == nil {
		return nil
	}
	err := s.open.close()
	s.open = nil
	return err
}

// opening is the number of the newest opening; another number may be another file.
func (s *source) opening() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}
