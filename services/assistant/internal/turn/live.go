package turn

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

// entry is a frame of an active turn. A durable one is shown only after it is stored.
type entry struct {
	seq     int32
	data    []byte
	durable bool
}

// live is the log of a turn that this process owns.
type live struct {
	store   *store.Store
	session string
	id      Place         // Seq is 0
	turn    uuid.UUID     // distinguishes it from a turn of a later session with the same name
	frames  *chat.Encoder // nil if there are no readers
	fence   int64
	burst   int           // frames added, guarded by one
	burstAt time.Time     // when the last of burstFrames was written and its pause over, guarded by one
	one     chan struct{} // held while a frame is added, so that all readers see one order
	writer  chan struct{} // held while frames are written to the store

	mu      sync.Mutex
	entries []entry       // guarded by mu, like all fields below
	bytes   int           // of entries
	stored  int           // number of stored entries
	visible int           // number of entries that readers may get
	readers int           // attached to this process
	idle    time.Time     // when the last one left
	ended   bool          // no more entries will be added
	err     error         // why it ended before its completion
	changed chan struct{} // closed at the next change of visible or ended
	dirty   chan struct{} // has one element while entries are unstored
}

func newLive(s *store.Store, t store.Turn) *live {
	return &live{
		store: s, session: t.SessionID, id: Place{Turn: t.Number}, turn: t.ID, fence: t.Fence, one: make(chan struct{}, 1), writer: make(chan struct{}, 1),
		idle: time.Now(), changed: make(chan struct{}), dirty: make(chan struct{}, 1),
	}
}

func acquireSlot(ctx context.Context, sem chan struct{}) error {
	select {
	case sem <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// add appends a frame and returns when readers may get it.
func (l *live) add(ctx context.Context, data []byte, durable bool) error {
	if err := acquireSlot(ctx, l.one); err != nil {
		return err
	}
	defer func() { <-l.one }()
	l.mu.Lock()
	if l.ended {
		err := l.err
		l.mu.Unlock()
		if err == nil {
			err = errEnded
		}
		return err
	}
	l.put(data, durable)
	wait := durable || len(l.entries)-l.stored >= maxUnstored
	l.mu.Unlock()
	if wait {
		return l.flush(ctx)
	}
	select {
	case l.dirty <- struct{}{}:
	default:
	}
	return l.spread(ctx)
}

// spread pauses a writer that adds many frames at once: readers get time to take them, and are not taken for slow because of a
// burst. It is called with one held.
func (l *live) spread(ctx context.Context) error {
	if l.burst++; l.burst%burstFrames != 0 {
		return nil
	}
	quick := time.Since(l.burstAt) < burstPause
	defer func() { l.burstAt = time.Now() }() // after the pause, else the next frames would get none
	if !quick {
		return nil
	}
	t := time.NewTimer(burstPause)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// put adds an entry. The caller holds mu.
func (l *live) put(data []byte, durable bool) {
	l.entries = append(l.entries, entry{int32(len(l.entries)) + 1, data, durable})
	l.bytes += len(data)
	l.show()
}

// show advances visible as far as permitted and wakes readers. The caller holds mu.
func (l *live) show() {
	for l.visible < len(l.entries) && (l.visible < l.stored || !l.entries[l.visible].durable) {
		l.visible++
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// unstored returns the entries to write. The caller does not hold mu.
func (l *live) unstored() []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[l.stored:len(l.entries):len(l.entries)]
}

// write stores entries under the fence.
func (l *live) write(ctx context.Context, q *store.Queries, entries []entry) error {
	if len(entries) == 0 {
		return nil
	}
	p := store.AppendFramesParams{SessionID: l.session, Number: l.id.Turn, Fence: l.fence}
	for _, e := range entries {
		p.Seqs, p.Data = append(p.Seqs, e.seq), append(p.Data, e.data)
	}
	n, err := q.AppendFrames(ctx, p)
	if err == nil && n == 0 {
		return errLost
	}
	return err
}

// flush stores the entries that are not stored yet.
func (l *live) flush(ctx context.Context) error {
	if err := acquireSlot(ctx, l.writer); err != nil {
		return err
	}
	defer func() { <-l.writer }()
	entries := l.unstored()
	if err := l.write(ctx, l.store.Queries, entries); err != nil {
		return err
	}
	l.mark(len(entries))
	return nil
}

// mark counts n more entries as stored.
func (l *live) mark(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stored += n
	l.show()
}

// end ends the log; err is nil after the completion.
func (l *live) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended, l.err = true, err
	close(l.changed)
	l.changed = make(chan struct{})
}

// join adds a reader and returns what is visible now.
func (l *live) join() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readers++
	return l.visible
}

// leave removes a reader; last reports that none is left.
func (l *live) leave() (last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readers--
	l.idle = time.Now()
	return l.readers == 0 && !l.ended
}

// full reports whether the engine has reached the size limit of a turn.
func (l *live) full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes >= maxFrames
}

// alone returns for how long there has been no reader here; false while there is one.
func (l *live) alone() (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.idle), l.readers == 0
}

// at returns the visible entries from index i on, a channel that signals more, and whether the
// log has ended.
func (l *live) at(i int) (entries []entry, changed <-chan struct{}, ended bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i < l.visible {
		entries = l.entries[i:l.visible:l.visible]
	}
	return entries, l.changed, l.ended, l.err
}
