package turn

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

// close stores the remaining frames, the completion and the end of the turn in one transaction;
// then readers get the completion.
func (r *running) close(outcome, why string) error {
	if r.said() == "" {
		r.say("There is nothing to add.")
	}
	if n := r.notice; n != "" && !strings.HasSuffix(r.said(), n) { // a prompt, which comes last, contains it
		r.say(r.apart() + n)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), storeTime)
	defer cancel()
	delay := 100 * time.Millisecond
	for {
		err := r.closeOnce(ctx, outcome, why)
		if err == nil || errors.Is(err, errLost) {
			return err
		}
		t := time.NewTimer(delay)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return err
		}
		delay = min(2*delay, time.Second)
	}
}

func (r *running) closeOnce(ctx context.Context, outcome, why string) error {
	_, pending, err := r.s.waiting(ctx, r.turn.Session, r.turn.Who, r.own)
	if err != nil {
		return err
	}
	completion := completionOf(r.frames, pending, r.usage, r.spent)
	l := r.live
	if err := acquireSlot(ctx, l.one); err != nil {
		return err
	}
	defer func() { <-l.one }()
	if err := acquireSlot(ctx, l.writer); err != nil {
		return err
	}
	defer func() { <-l.writer }()
	entries := l.unstored()
	l.mu.Lock()
	last := entry{seq: int32(len(l.entries)) + 1, data: completion}
	l.mu.Unlock()
	entries = append(entries[:len(entries):len(entries)], last)
	err = r.s.Store.InTx(ctx, func(tx store.Tx) error {
		if err := l.write(ctx, tx.Queries, entries); err != nil {
			return err
		}
		return r.s.finish(ctx, tx, ended{r.row, r.turn.Cluster, outcome, why, r.said()}, r.turn.Who)
	})
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.entries = append(l.entries, last)
	l.stored = len(l.entries)
	l.show()
	l.mu.Unlock()
	return nil
}

func completionOf(e *chat.Encoder, pending []action.Action, include bool, spent chat.Usage) []byte {
	var first *chat.Approval
	if len(pending) > 0 {
		a := approvalOf(pending[0])
		first = &a
	}
	if !include {
		return e.Completion(nil, first, nil)
	}
	return e.Completion(nil, first, &spent)
}

// ended is a turn with how it ended.
type ended struct {
	row                           store.Turn
	cluster, outcome, why, answer string
}

// finish closes the row under its fence and reports the outcome.
func (s *Service) finish(ctx context.Context, tx store.Tx, e ended, w event.Who) error {
	now, t, outcome, why := s.Now(), e.row, e.outcome, e.why
	n, err := tx.FinishTurn(ctx, store.FinishTurnParams{
		SessionID: t.SessionID, Number: t.Number, Fence: t.Fence, Outcome: &outcome, Reason: store.Opt(why),
		Answer: store.Text(e.answer), Now: &now,
	})
	if err != nil {
		return err
	}
	if n == 0 {
		return errLost
	}
	took := now.Sub(t.StartedAt)
	told := event.OK
	if outcome == failed || outcome == interrupted {
		told = event.Failed
	}
	details := map[string]any{"turn": t.Number, "outcome": outcome, "reason": why, "status": 200, "duration_ms": took.Milliseconds()}
	if e.cluster != "" {
		details["cluster"] = e.cluster
	}
	return tx.Emit(ctx, event.Facts(w, now, "turn_finished", "turn.finished", t.SessionID, "session:"+t.SessionID, told, event.Turn{
		Session: t.SessionID, Cluster: e.cluster, Turn: t.Number, ID: t.ID, Role: t.Role, Outcome: outcome, Reason: why, DurationMS: took.Milliseconds(),
	}, details)...)
}

// writeDelay is how long frames wait to be stored together with others.
const writeDelay = 250 * time.Millisecond

// keep stores frames, renews the lease, and detects a turn without readers, until ctx ends.
func (r *running) keep(ctx context.Context) {
	every := min(r.s.Lease/5, r.s.Orphan/4)
	tick := time.NewTicker(every)
	defer tick.Stop()
	flush := time.NewTimer(0)
	defer flush.Stop()
	<-flush.C
	alive := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.live.dirty:
			flush.Reset(writeDelay)
		case <-flush.C:
			if err := r.live.flush(ctx); errors.Is(err, errLost) {
				r.lose()
				return
			} else if err != nil && ctx.Err() == nil {
				r.s.Log.WarnContext(ctx, "frames could not be stored", slog.Any("err", err))
				flush.Reset(writeDelay)
			}
		case <-tick.C:
			if !r.renew(ctx, every, &alive) {
				return
			}
		}
	}
}

// renew renews the lease; it returns false if the turn is lost.
func (r *running) renew(ctx context.Context, every time.Duration, alive *time.Time) bool {
	try, cancel := context.WithTimeout(ctx, max(every, time.Second))
	defer cancel()
	now := r.s.Now()
	idle, alone := r.live.alone()
	p := store.KeepTurnParams{
		SessionID: r.row.SessionID, Number: r.row.Number, Fence: r.row.Fence, LeaseUntil: now.Add(r.s.Lease), AttachedUntil: now,
	}
	if !alone {
		p.AttachedUntil = now.Add(r.s.Lease)
	}
	row, err := r.s.Store.KeepTurn(try, p)
	switch {
	case store.None(err):
		r.lose()
		return false
	case err != nil:
		if time.Since(*alive) > r.s.Lease && ctx.Err() == nil {
			r.cancel(err) // another replica may have taken over
		}
		return true
	}
	*alive = time.Now()
	switch {
	case row.StopRequested:
		r.cancel(errSuperseded)
	case alone && idle >= r.s.Orphan && !row.FollowedUntil.After(now):
		r.cancel(errOrphaned)
	}
	return true
}

// lose stops a turn that another replica has taken over, or that was deleted with its session.
// Its readers continue from the store.
func (r *running) lose() {
	r.live.end(errLost)
	r.cancel(errLost)
}
