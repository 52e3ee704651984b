package turn

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/session"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

// busyPoll is the interval at which a waiting request checks whether the session is free.
const busyPoll = 50 * time.Millisecond

// entry is the entry of a request into its session.
type entered struct {
	turn    store.Turn
	session store.Session
	state   entryState
}

// own reports whether the session belongs to the caller.
func (e entered) own(q Request) bool { return e.session.Owner == q.Who.Principal }

// words returns the part of the query that the turn uses and stores. In another person's session that is only the
// decision: a caller cannot add words to another person's conversation.
func (e entered) words(q Request, word chat.Word) string {
	switch {
	case e.own(q):
		return q.Chat.Query
	case word.Verdict == chat.ApproveOne:
		return "approve " + word.ActionID
	case word.Verdict == chat.DenyOne:
		return "deny " + word.ActionID
	}
	return q.Chat.Query // only the decision word
}

// page returns the page that the caller's client shows; like words, it does not enter another person's conversation.
func (e entered) page(q Request) string {
	if e.own(q) {
		return q.Chat.Page
	}
	return ""
}

type entryState int

const (
	started entryState = iota
	repeat
	busy
)

// Begin answers a request, or attaches it to the turn that it repeats. A repeat runs and
// decides nothing again. The error is a problem: 403, 409, 503.
func (s *Service) Begin(ctx context.Context, q Request) (*Reader, error) {
	if err := s.refuseDraining(); err != nil {
		return nil, err
	}
	patience := time.Now().Add(s.Busy)
	stopped := false
	for {
		e, err := s.enter(ctx, q)
		if err != nil {
			return nil, err
		}
		switch e.state {
		case started:
			return s.start(ctx, q, e)
		case repeat:
			return s.attach(e.turn, q.After), nil
		}
		switch {
		case time.Now().Before(patience):
		case stopped || q.alert() || s.occupied(e.turn): // an alert takes no answer from a person
			return nil, fault.Busy()
		default:
			if err := s.stop(ctx, e.turn); err != nil {
				return nil, err
			}
			stopped, patience = true, time.Now().Add(s.StopAfter)
		}
		t := time.NewTimer(busyPoll)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, ctx.Err()
		}
	}
}

func (s *Service) refuseDraining() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return problem.Draining.New("The server is shutting down; send the request again.").After(time.Second)
	}
	return nil
}

// occupied reports whether the active turn has a reader. The row's information on its owner's
// readers may be as old as the last renewal of the lease.
func (s *Service) occupied(t store.Turn) bool {
	now := s.Now()
	if r := s.own(t.SessionID, t.Number); r != nil {
		_, alone := r.live.alone()
		return !alone || t.FollowedUntil.After(now)
	}
	return t.AttachedUntil.After(now) || t.FollowedUntil.After(now)
}

// stop requests that a turn without readers ends.
func (s *Service) stop(ctx context.Context, t store.Turn) error {
	if r := s.own(t.SessionID, t.Number); r != nil {
		r.cancel(errSuperseded)
		return nil
	}
	return s.Store.StopTurn(ctx, store.StopTurnParams{SessionID: t.SessionID, Number: t.Number})
}

// enter determines, with the session locked, what the request is, and creates its turn.
func (s *Service) enter(ctx context.Context, q Request) (entered, error) {
	word := q.word()
	hash := sha256.Sum256([]byte(q.Chat.Query))
	var e entered
	err := s.Store.InTx(ctx, func(tx store.Tx) (err error) {
		now := s.Now()
		e = entered{}
		if q.alert() {
			return s.enterAlert(ctx, tx, q, hash[:], &e)
		}
		chosen := cmp.Or(q.Cluster, s.Clusters.Default())
		if e.session, err = session.Enter(ctx, tx, session.Entry{ID: q.Session, Who: q.Who, Cluster: chosen, Seed: q.Chat.History}, now); err != nil {
			return err
		}
		if err := s.keepCluster(q, e.session); err != nil && e.own(q) { // of others, admit tells only those who may enter
			return err
		}
		if q.RequestID != "" {
			since := now.Add(-s.Repeat)
			e.turn, err = tx.RepeatedTurn(ctx, store.RepeatedTurnParams{
				SessionID: q.Session, RequestID: q.RequestID, QueryHash: hash[:], Principal: q.Who.Principal, Since: &since,
			})
			if !store.None(err) {
				e.state = repeat
				return err
			}
		}
		if e.session, err = s.admit(ctx, tx, q, e.session, word); err != nil {
			return err
		}
		if err := s.keepCluster(q, e.session); err != nil {
			return err
		}
		e.turn, err = tx.ActiveTurn(ctx, q.Session)
		if !store.None(err) {
			e.state = busy
			return err
		}
		number, err := tx.UseSession(ctx, store.UseSessionParams{ID: q.Session, Now: now})
		if err != nil {
			return err
		}
		// The scope belongs to the session's owner: a person who only decides does not change
		// it.
		if ns := q.Chat.Context.Namespace; ns != "" && ns != e.session.Namespace && e.own(q) {
			if err := tx.SetSessionScope(ctx, store.SetSessionScopeParams{ID: q.Session, Namespace: ns}); err != nil {
				return err
			}
			e.session.Namespace = ns
		}
		kind := kindQuestion
		if word.Verdict != chat.NoVerdict {
			kind = kindDecision
		}
		if q.Program != nil {
			kind = string(q.Program.Kind)
		}
		e.turn, err = s.insertTurn(ctx, tx, q, newTurn{number, kind, e.words(q, word), hash[:], now})
		return err
	})
	return e, err
}

// keepCluster refuses a request that names another cluster than its session's, or whose cluster is not served any more:
// what was said and approved in a session is about one cluster.
func (s *Service) keepCluster(q Request, row store.Session) error {
	name := s.Clusters.Stored(row.Cluster)
	_, err := s.Clusters.Index(name)
	switch {
	case err != nil:
		err = fault.OtherCluster.New(err.Error() + " This session cannot continue; begin another one.")
	case q.Cluster != "" && q.Cluster != name:
		err = fault.OtherCluster.New(fmt.Sprintf("This session is of the cluster %s, and stays so; begin another one for %s.", name, q.Cluster)).With(map[string]any{"cluster": name})
	}
	return err
}

// newTurn holds what differs between the turns that are inserted for a request.
type newTurn struct {
	number      int32
	kind, words string
	hash        []byte
	now         time.Time
}

func (s *Service) insertTurn(ctx context.Context, tx store.Tx, q Request, n newTurn) (store.Turn, error) {
	return tx.InsertTurn(ctx, store.InsertTurnParams{
		SessionID: q.Session, Number: n.number, ID: uuid.Must(uuid.NewV7()), CompletionID: completionID(),
		Principal: q.Who.Principal, Role: string(q.Who.Role), RequestID: store.Opt(q.RequestID), Query: store.Text(redact.Typed(n.words)),
		QueryHash: n.hash, QueryKind: n.kind, IncludeUsage: q.Chat.IncludeUsage, Owner: s.me, Fence: firstFence(),
		LeaseUntil: n.now.Add(s.Lease), AttachedUntil: n.now.Add(s.Lease), Now: n.now,
	})
}

// CutShort reports whether a turn that ended for this reason was ended from outside, so that an alert is investigated again.
func CutShort(reason string) bool { return slices.Contains(cutShort, reason) }

var cutShort = []string{fault.Interrupted.Code, fault.ShuttingDown.Code, fault.Superseded.Code, orphaned}

// enterAlert is enter for an alert: its session was made when the alert arrived, and may have another owner by then; a
// deleted session is not made again. A notification has one turn besides those that were cut short.
func (s *Service) enterAlert(ctx context.Context, tx store.Tx, q Request, hash []byte, e *entered) (err error) {
	e.session, err = tx.LockSession(ctx, q.Session)
	if store.None(err) {
		return fault.SessionNotFound.New("There is no such session.")
	}
	if err == nil {
		err = s.keepCluster(q, e.session)
	}
	if err != nil {
		return err
	}
	e.turn, err = tx.RepeatedAlert(ctx, store.RepeatedAlertParams{SessionID: q.Session, RequestID: q.RequestID, CutShort: cutShort})
	if !store.None(err) {
		e.state = repeat
		return err
	}
	e.turn, err = tx.ActiveTurn(ctx, q.Session)
	if !store.None(err) {
		e.state = busy
		return err
	}
	now := s.Now()
	number, err := tx.UseSession(ctx, store.UseSessionParams{ID: q.Session, Now: now})
	if err != nil {
		return err
	}
	if ns := q.Chat.Context.Namespace; ns != "" && e.session.Namespace == "" && e.own(q) {
		if err := tx.SetSessionScope(ctx, store.SetSessionScopeParams{ID: q.Session, Namespace: ns}); err != nil {
			return err
		}
		e.session.Namespace = ns
	}
	e.turn, err = s.insertTurn(ctx, tx, q, newTurn{number, string(KindAlert), q.Chat.Query, hash, now})
	return err
}

// admit reports whether the caller may write in the session. In another person's session only a decision is accepted,
// while an action is pending. A shared session without a question so far belongs to the first caller who asks one.
func (s *Service) admit(ctx context.Context, tx store.Tx, q Request, r store.Session, word chat.Word) (store.Session, error) {
	if r.Owner == q.Who.Principal {
		return r, nil
	}
	if r.Shared && word.Verdict == chat.NoVerdict && q.Program == nil && q.Who.Role != guard.Readonly {
		n, err := tx.TakeSession(ctx, store.TakeSessionParams{ID: r.ID, Owner: q.Who.Principal})
		if err != nil || n > 0 {
			r.Owner = q.Who.Principal
			return r, err
		}
	}
	if word.Verdict != chat.NoVerdict {
		waiting, err := tx.ActionsIn(ctx, store.ActionsInParams{SessionID: r.ID, State: string(action.Pending)})
		if err != nil {
			return r, err
		}
		now := s.Now()
		for _, a := range waiting {
			if a.ExpiresAt.After(now) {
				return r, nil
			}
		}
	}
	return r, fault.NotPermitted("This session belongs to another person; only a decision on an action that waits in it may be sent.")
}

// firstFence returns the first fence of a turn. It differs from that of an earlier turn with
// the same session and number, whose session was deleted and created again.
func firstFence() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return int64(binary.BigEndian.Uint64(b[:]) >> 2) // leaves room to increment
}

// completionID is chatcmpl- and 12 hex digits.
func completionID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails, as its documentation says
	return "chatcmpl-" + hex.EncodeToString(b[:])
}

// attach reads an existing turn: from memory if this process is answering it, otherwise from
// the store.
func (s *Service) attach(t store.Turn, after Place) *Reader {
	from := Place{Turn: t.Number}
	if after.Turn == t.Number && after.Seq > 0 {
		from = after
	}
	if r := s.own(t.SessionID, t.Number); r != nil {
		return s.reader(r.live, from)
	}
	return &Reader{s: s, session: t.SessionID, after: from, last: t.Number, follow: t.State == stateActive}
}

func (s *Service) reader(l *live, after Place) *Reader {
	return &Reader{s: s, session: l.session, after: after, live: l, joined: l.join()}
}

// Replay reads all turns of a session in order, after the given place, and with follow the
// active one to its end. The caller must have checked that this is permitted.
func (s *Service) Replay(r store.Session, after Place, follow bool) *Reader {
	return &Reader{s: s, session: r.ID, after: after, last: r.LastTurn, follow: follow}
}
