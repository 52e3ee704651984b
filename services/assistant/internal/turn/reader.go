package turn

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

const (
	readBatch  = 256
	readBytes  = 256 << 10 // a batch may be smaller
	followPoll = 200 * time.Millisecond
)

// Reader returns the frames of a stream in order. Use it from one goroutine and close it.
type Reader struct {
	s       *Service
	session string
	after   Place // the last frame returned, or seen by the reader before

	live   *live // nil when reading from the store
	next   int   // entry of live
	over   bool  // the end of a deleted turn was returned
	joined int   // number of entries when it was attached; the reader does not lag on those

	last   int32 // the last turn to read from the store
	follow bool  // wait for the end of an active turn
	told   time.Time
}

// Session returns the id of the session.
func (r *Reader) Session() string { return r.session }

// Next waits for frames and returns all available ones, up to a limit. The error is io.EOF
// after the last one, ErrSlow, ErrGone, that of ctx, or one of the store.
func (r *Reader) Next(ctx context.Context) ([]Frame, error) {
	for r.live != nil {
		entries, changed, ended, err := r.live.at(r.next)
		if r.next+len(entries)-max(r.next, r.joined) >= maxLag {
			return nil, ErrSlow
		}
		if frames := r.take(entries); len(frames) > 0 {
			return frames, nil
		}
		switch {
		case len(entries) > 0: // the reader has seen them
			continue
		case r.over:
			return nil, io.EOF
		case errors.Is(err, errLost):
			t, err := r.s.Store.GetTurn(ctx, store.GetTurnParams{SessionID: r.session, Number: r.live.id.Turn})
			switch {
			case store.None(err), err == nil && t.ID != r.live.turn:
				return r.farewell(), nil
			case err != nil:
				return nil, err
			}
			r.leave() // the new owner closes the turn, and the store has all frames
			continue
		case err != nil:
			return nil, ErrGone
		case ended:
			return nil, io.EOF
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return r.stored(ctx)
}

// take returns the frames of entries, without those that the reader has seen.
func (r *Reader) take(entries []entry) []Frame {
	if len(entries) > readBatch {
		entries = entries[:readBatch]
	}
	r.next += len(entries)
	frames := make([]Frame, 0, len(entries))
	for _, e := range entries {
		f := Frame{Place{r.live.id.Turn, e.seq}, e.data}
		if r.after.before(f) {
			frames = append(frames, f)
			r.after = f.Place
		}
	}
	return frames
}

// farewell returns the closing frames of a turn that was deleted with its session.
func (r *Reader) farewell() []Frame {
	r.over = true
	e, at := r.live.frames, r.after
	var frames []Frame
	for _, data := range [][]byte{
		e.Error(nil, fault.SessionDeleted, true), e.Token(nil, "\n\n"+fault.SessionDeleted.Message), e.Completion(nil, nil, nil),
	} {
		at.Seq++
		frames = append(frames, Frame{at, data})
	}
	return frames
}

// stored reads from the store, and waits while the last turn is active.
func (r *Reader) stored(ctx context.Context) ([]Frame, error) {
	for {
		// Checked first: frames written after this check are read in the next round.
		active, err := r.active(ctx)
		if err != nil {
			return nil, err
		}
		rows, err := r.s.Store.FramesAfter(ctx, store.FramesAfterParams{
			SessionID: r.session, Turn: r.after.Turn, Seq: r.after.Seq, LastTurn: r.last, MaxRows: readBatch,
		})
		if err != nil {
			return nil, err
		}
		if len(rows) > 0 {
			frames, size := make([]Frame, 0, len(rows)), 0
			for _, f := range rows {
				frames = append(frames, Frame{Place{f.Turn, f.Seq}, f.Data})
				if size += len(f.Data); size > readBytes {
					break
				}
			}
			r.after = frames[len(frames)-1].Place
			return frames, nil
		}
		if !active {
			return nil, io.EOF
		}
		t := time.NewTimer(followPoll)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, ctx.Err()
		}
	}
}

// active reports whether the last turn is active, and tells its owner that it has a reader.
func (r *Reader) active(ctx context.Context) (bool, error) {
	if !r.follow {
		return false, nil
	}
	t, err := r.s.Store.GetTurn(ctx, store.GetTurnParams{SessionID: r.session, Number: r.last})
	if store.None(err) { // the session was deleted
		return false, nil
	}
	if err != nil || t.State != stateActive {
		return false, err
	}
	now := r.s.Now()
	if time.Since(r.told) > followed/3 {
		r.told = time.Now()
		err = r.s.Store.FollowTurn(ctx, store.FollowTurnParams{SessionID: r.session, Number: r.last, FollowedUntil: now.Add(followed)})
	}
	return true, err
}

// leave continues from the store.
func (r *Reader) leave() {
	l := r.live
	r.live, r.last, r.follow = nil, l.id.Turn, true
	if r.after.Turn < l.id.Turn {
		r.after = l.id
	}
	l.leave()
}

// Close ends the reader. The turn continues for the orphan timeout.
func (r *Reader) Close() {
	l := r.live
	if l == nil {
		return
	}
	r.live = nil
	if l.leave() {
		r.s.left(r.session, l)
	}
}
