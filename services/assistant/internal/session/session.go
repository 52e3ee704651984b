// Package session keeps conversations: who owns one, what was said in it, who may read
// it, and when it goes.
package session

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

const (
	// maxShown limits the turns whose messages a document includes, newest first.
	maxShown = 200
	// MaxSeed and maxSeedBytes limit what a new session keeps of its first request, newest
	// first: an engine reads 20 messages.
	MaxSeed      = 20
	maxSeedBytes = 128 << 10
	// reserved is how long only its owner may take the id of a deleted session: longer than a turn with its last write and
	// its readers.
	reserved = time.Hour
)

// Deps holds what the service depends on.
type Deps struct {
	Store   *store.Store
	Actions *action.Service
	TTL     time.Duration // since the last use; 0 means 30 days
	Now     func() time.Time
	Log     *slog.Logger
}

// Service reads and deletes sessions. A session begins with its first turn.
type Service struct{ Deps }

// New returns a service, or an error that names the missing parts.
func New(d Deps) (*Service, error) {
	if err := service.RequireParts("session", d); err != nil {
		return nil, err
	}
	return &Service{d}, nil
}

// Message is one message of the conversation.
type Message struct {
	Role    string     `json:"role"`
	Content string     `json:"content"`
	Turn    int32      `json:"turn,omitempty"` // 0 for messages that came with the first request
	At      *time.Time `json:"at,omitempty"`
	By      string     `json:"by,omitempty"` // who decided, if not the owner
}

// Head is the list entry of a session.
type Head struct {
	ID        string    `json:"session_id"`
	Owner     string    `json:"owner"`
	Cluster   string    `json:"cluster,omitempty"` // empty: clusters are not configured by name
	Namespace string    `json:"namespace"`
	Turns     int32     `json:"turns"`
	CreatedAt time.Time `json:"created_at"`
	UsedAt    time.Time `json:"used_at"`
}

// Document is a session with its messages and pending actions.
type Document struct {
	Head
	Messages []Message       `json:"messages"`
	Earlier  bool            `json:"messages_omitted"` // there are older ones
	Pending  []action.Action `json:"pending_actions"`
	AutoAll  bool            `json:"session_wide_approval"` // of the caller
}

func headOf(r store.Session) Head {
	return Head{r.ID, r.Owner, r.Cluster, r.Namespace, r.LastTurn, r.CreatedAt, r.UsedAt}
}

func notFoundError() error { return fault.SessionNotFound.New("There is no such session.") }

// Readable returns the session if w may read it; for others it does not exist.
func (s *Service) Readable(ctx context.Context, w event.Who, id string) (store.Session, error) {
	r, err := s.Store.GetSession(ctx, id)
	switch {
	case store.None(err):
		return r, notFoundError()
	case err != nil:
		return r, err
	case r.Owner != w.Principal && w.Role != guard.Admin && !r.Shared:
		return store.Session{}, notFoundError()
	}
	return r, nil
}

// Get reads one session.
func (s *Service) Get(ctx context.Context, w event.Who, id string) (Document, error) {
	r, err := s.Readable(ctx, w, id)
	if err != nil {
		return Document{}, err
	}
	d := Document{Head: headOf(r)}
	turns, err := s.Store.LastTurns(ctx, store.LastTurnsParams{SessionID: id, MaxRows: maxShown + 1})
	if err != nil {
		return d, err
	}
	if d.Earlier = len(turns) > maxShown; d.Earlier {
		turns = turns[:maxShown]
	} else {
		seed, err := Seeded(r)
		if err != nil {
			return d, err
		}
		for _, m := range seed {
			d.Messages = append(d.Messages, Message{Role: m.Role, Content: m.Text})
		}
	}
	slices.Reverse(turns)
	for _, t := range turns {
		by := ""
		if t.Principal != r.Owner {
			by = t.Principal
		}
		d.Messages = append(d.Messages,
			Message{chat.RoleUser, t.Query, t.Number, &t.StartedAt, by}, Message{chat.RoleAssistant, t.Answer, t.Number, t.FinishedAt, ""})
	}
	if d.Pending, err = s.Actions.In(ctx, id, action.Pending); err != nil {
		return d, err
	}
	d.AutoAll, err = s.Actions.Stands(ctx, id, w.Principal)
	return d, err
}

// After is a position in the list of sessions, which is sorted newest first.
type After struct {
	UsedAt time.Time
	ID     string
}

// List reads the caller's sessions, or all of them for an admin, after a position; nil starts
// at the beginning.
func (s *Service) List(ctx context.Context, w event.Who, after *After, limit int32) ([]Head, error) {
	p := store.ListSessionsParams{Every: w.Role == guard.Admin, Owner: w.Principal, MaxRows: limit}
	if after != nil {
		p.Later, p.BeforeUsed, p.BeforeID = true, after.UsedAt, after.ID
	}
	rows, err := s.Store.ListSessions(ctx, p)
	if err != nil {
		return nil, err
	}
	out := make([]Head, len(rows))
	for i, r := range rows {
		out[i] = headOf(r)
	}
	return out, nil
}

// Delete deletes a session of the caller: pending actions are denied, messages are removed,
// audit records stay, and an approved action that has not started never runs. While an action
// is executing, the session cannot be deleted.
func (s *Service) Delete(ctx context.Context, w event.Who, id string) error {
	if r, err := s.Readable(ctx, w, id); err != nil {
		return err
	} else if r.Owner != w.Principal {
		return fault.NotPermitted("Only its owner may delete a session.")
	}
	var closed []action.Action
	err := s.Store.InTx(ctx, func(tx store.Tx) (err error) {
		if _, err := tx.LockSession(ctx, id); store.None(err) {
			return notFoundError()
		} else if err != nil {
			return err
		}
		if closed, err = s.Actions.CloseIn(ctx, tx, w, id); err != nil {
			return err
		}
		states, err := tx.LockUnfinished(ctx, id)
		if err != nil {
			return err
		}
		if slices.Contains(states, string(action.Executing)) {
			return fault.ActionExecuting.New("An approved action of this session is being executed; delete the session when it is done.")
		}
		if _, err = tx.DeleteSession(ctx, id); err != nil {
			return err
		}
		return tx.ReserveSession(ctx, store.ReserveSessionParams{ID: id, Owner: w.Principal, Until: s.Now().Add(reserved)})
	})
	if err != nil {
		return err
	}
	for _, a := range closed {
		s.Actions.Moved(a)
	}
	return nil
}

// Forget deletes the sessions that were not used for the TTL.
func (s *Service) Forget(ctx context.Context) error {
	if err := s.Store.DropReserved(ctx, s.Now()); err != nil {
		return err
	}
	const batch = 100
	ttl := s.TTL
	if ttl <= 0 {
		ttl = 30 * 24 * time.Hour
	}
	for {
		var n int
		err := s.Store.InTx(ctx, func(tx store.Tx) error {
			ids, err := tx.UnusedSessions(ctx, store.UnusedSessionsParams{Before: s.Now().Add(-ttl), MaxRows: batch})
			if err != nil {
				return err
			}
			n = len(ids)
			_, err = tx.DeleteSessions(ctx, ids)
			return err
		})
		if err != nil || n < batch {
			return err
		}
	}
}

// Run deletes unused sessions every hour until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		if err := s.Forget(ctx); err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "old sessions could not be forgotten", slog.Any("err", err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Entry is a request's part in its session. Seed and Cluster are used only for a new session.
type Entry struct {
	ID      string
	Who     event.Who
	Cluster string
	Seed    []chat.Message
}

// Enter locks the session in the transaction of a new turn, and creates it if there is none.
func Enter(ctx context.Context, tx store.Tx, e Entry, now time.Time) (store.Session, error) {
	id, w := e.ID, e.Who
	doc, err := json.Marshal(newestMessages(e.Seed))
	if err != nil {
		return store.Session{}, fmt.Errorf("first messages: %w", err)
	}
	if _, err := tx.InsertSession(ctx, store.InsertSessionParams{ID: id, Owner: w.Principal, Cluster: e.Cluster, Seed: doc, Now: now}); err != nil {
		return store.Session{}, err
	}
	r, err := tx.LockSession(ctx, id)
	if err != nil || r.LastTurn > 0 || r.Owner != w.Principal {
		return r, err
	}
	// Checked with the lock held: a delete that was in progress has ended.
	taken, err := tx.SessionReserved(ctx, store.SessionReservedParams{ID: id, Owner: w.Principal, Now: now})
	if err == nil && taken {
		err = fault.NotPermitted("This session belonged to another person and has just been deleted; use another id.")
	}
	return r, err
}

// newestMessages returns the messages that a session keeps.
func newestMessages(seed []chat.Message) []chat.Message {
	if len(seed) > MaxSeed {
		seed = seed[len(seed)-MaxSeed:]
	}
	size, from := 0, len(seed)
	for from > 0 && size+len(seed[from-1].Text) <= maxSeedBytes {
		from--
		size += len(seed[from].Text)
	}
	kept := make([]chat.Message, 0, len(seed)-from)
	for _, m := range seed[from:] {
		kept = append(kept, chat.Message{Role: store.Text(m.Role), Text: store.Text(redact.Typed(m.Text))})
	}
	return kept
}

// Seeded returns the messages that came with the first request.
func Seeded(r store.Session) ([]chat.Message, error) {
	var m []chat.Message
	if err := json.Unmarshal(r.Seed, &m); err != nil {
		return nil, fmt.Errorf("first messages of session %s: %w", r.ID, err)
	}
	return m, nil
}
