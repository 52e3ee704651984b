package session_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/session"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

func TestMain(m *testing.M) { testenv.Main(m) }

var (
	ann  = event.Who{Principal: "ann", Role: guard.Operator}
	bob  = event.Who{Principal: "bob", Role: guard.Operator}
	root = event.Who{Principal: "root", Role: guard.Admin}
)

type bundle struct {
	*session.Service
	t       *testing.T
	clock   *assistanttest.Clock
	cluster *assistanttest.Cluster
}

func setup(t *testing.T) *bundle {
	t.Helper()
	url, clock := assistanttest.NewDatabase(t, "api"), assistanttest.NewClock()
	actions, cluster := assistanttest.NewReplica(t, url, clock.Now, action.Config{})
	s, err := session.New(session.Deps{
		Store: actions.Store, Actions: actions, TTL: time.Hour, Now: clock.Now, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return &bundle{s, t, clock, cluster}
}

func (b *bundle) enter(w event.Who, id string, seed ...chat.Message) {
	b.t.Helper()
	if err := b.Store.InTx(b.t.Context(), func(tx store.Tx) error {
		_, err := session.Enter(b.t.Context(), tx, session.Entry{ID: id, Who: w, Seed: seed}, b.clock.Now())
		return err
	}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) propose(w event.Who, id string, replicas int32) action.Action {
	b.t.Helper()
	plan, err := b.cluster.Plan(b.t.Context(), w.Role, []operation.Operation{assistanttest.ScaleOperation("api", replicas)})
	if err != nil {
		b.t.Fatal(err)
	}
	a, err := b.Actions.Propose(b.t.Context(), action.Proposal{Session: id, Turn: 1, Who: w, Plan: plan})
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	var p *problem.Error
	if !errors.As(err, &p) || p.Kind.Code != code {
		t.Fatalf("error %v, want %s", err, code)
	}
}

func TestGet(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.enter(ann, "s-1", chat.Message{Role: chat.RoleUser, Text: "before\x00"})
	b.enter(bob, "s-1", chat.Message{Role: chat.RoleUser, Text: "not mine"}) // it is ann's already
	b.propose(ann, "s-1", 3)
	if _, err := b.Actions.Stand(t.Context(), ann, "s-1", true); err != nil {
		t.Fatal(err)
	}
	d, err := b.Get(t.Context(), ann, "s-1")
	if err != nil || d.Owner != "ann" || len(d.Messages) != 1 || d.Messages[0].Content != "before\ufffd" || len(d.Pending) != 1 || !d.AutoAll || d.Earlier {
		t.Fatalf("%+v, %v; want d.Owner == \"ann\" && len(d.Messages) == 1 && d.Messages[0].Content == \"before\\ufffd\" && len(d.Pending) == 1 && d.AutoAll && !d.Earlier", d, err)
	}
	if d, err = b.Get(t.Context(), root, "s-1"); err != nil || d.AutoAll {
		t.Errorf("for an admin: %+v, %v; want !d.AutoAll", d, err)
	}
	for id, w := range map[string]event.Who{"s-1": bob, "s-2": ann} {
		_, err = b.Get(t.Context(), w, id)
		wantCode(t, err, "session_not_found")
	}
}

func TestSeedIsBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var many []chat.Message
	for range 50 {
		many = append(many, chat.Message{Role: chat.RoleUser, Text: "old"})
	}
	b.enter(ann, "many", append(many, chat.Message{Role: chat.RoleAssistant, Text: "last"})...)
	b.enter(ann, "large", chat.Message{Role: chat.RoleUser, Text: strings.Repeat("x", 1<<20)}, chat.Message{Role: chat.RoleUser, Text: "last"})
	for id, want := range map[string]int{"many": session.MaxSeed, "large": 1} {
		r, err := b.Readable(t.Context(), ann, id)
		if err != nil {
			t.Fatal(err)
		}
		seed, err := session.Seeded(r)
		if err != nil || len(seed) != want || seed[want-1].Text != "last" {
			t.Errorf(`%s: %d messages, %v; want len(seed) == want && seed[want-1].Text == "last"`, id, len(seed), err)
		}
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, id := range []string{"a", "b", "c"} {
		b.enter(ann, id)
		b.clock.Forward(time.Second)
	}
	b.enter(bob, "d")
	ids := func(w event.Who, after *session.After) string {
		t.Helper()
		heads, err := b.List(t.Context(), w, after, 2)
		if err != nil {
			t.Fatal(err)
		}
		var s []string
		for _, h := range heads {
			s = append(s, h.ID)
		}
		return strings.Join(s, " ")
	}
	if got := ids(ann, nil); got != "c b" {
		t.Errorf(`first page %q; want "c b"`, got)
	}
	at, err := b.Readable(t.Context(), ann, "b")
	if err != nil {
		t.Fatal(err)
	}
	if got := ids(ann, &session.After{UsedAt: at.UsedAt, ID: "b"}); got != "a" {
		t.Errorf(`second page %q; want "a"`, got)
	}
	if got := ids(root, nil); got != "d c" {
		t.Errorf(`an admin's %q; want "d c"`, got)
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.enter(ann, "s-1")
	waits := b.propose(ann, "s-1", 3)
	wantCode(t, b.Delete(t.Context(), bob, "s-1"), "session_not_found")
	wantCode(t, b.Delete(t.Context(), root, "s-1"), "forbidden")
	running := b.propose(ann, "s-1", 4)
	if _, err := b.Actions.Decide(t.Context(), ann, running.ID, action.Decision{Approve: true}); err != nil {
		t.Fatal(err)
	}
	reached, woken, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	b.cluster.Before = func(context.Context) error {
		close(reached)
		<-woken
		return nil
	}
	go func() {
		_, err := b.Actions.Execute(context.WithoutCancel(t.Context()), running.ID, nil)
		done <- err
	}()
	<-reached
	wantCode(t, b.Delete(t.Context(), ann, "s-1"), "action_executing")
	if a, err := b.Actions.Get(t.Context(), waits.ID); err != nil || a.State != action.Pending {
		t.Errorf("after a refused delete: %s, %v; want a.State == action.Pending", a.State, err)
	}
	close(woken)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), ann, "s-1"); err != nil {
		t.Fatal(err)
	}
	_, err := b.Get(t.Context(), ann, "s-1")
	wantCode(t, err, "session_not_found")
	var basis string
	if err := b.Store.Pool().QueryRow(t.Context(), `select payload->>'basis' from outbox where name = 'action_decided' and subject_id = $1`, waits.ID.String()).Scan(&basis); err != nil || basis != "session_deleted" {
		t.Errorf(`the denial's basis %q, %v; want basis == "session_deleted"`, basis, err)
	}
}

func TestForget(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.enter(ann, "old")
	b.enter(ann, "waits")
	b.propose(ann, "waits", 3)
	b.clock.Forward(time.Hour + time.Second)
	b.enter(ann, "new")
	if err := b.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	for id, kept := range map[string]bool{"old": false, "waits": true, "new": true} {
		if _, err := b.Readable(t.Context(), ann, id); (err == nil) != kept {
			t.Errorf("%s: %v; want (err == nil) == %v", id, err, kept)
		}
	}
}

// Readers and turns of a deleted session know it by its id, so no other caller gets that id while they may still be
// running.
func TestDeletedIDStaysItsOwners(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.enter(ann, "s-1")
	if err := b.Delete(t.Context(), ann, "s-1"); err != nil {
		t.Fatal(err)
	}
	enter := func(w event.Who) error {
		return b.Store.InTx(t.Context(), func(tx store.Tx) error {
			_, err := session.Enter(t.Context(), tx, session.Entry{ID: "s-1", Who: w}, b.clock.Now())
			return err
		})
	}
	wantCode(t, enter(bob), "forbidden")
	_, err := b.Get(t.Context(), bob, "s-1")
	wantCode(t, err, "session_not_found")
	if err := enter(ann); err != nil {
		t.Errorf("its owner: %v", err)
	}
	if err := b.Delete(t.Context(), ann, "s-1"); err != nil {
		t.Fatal(err)
	}
	b.clock.Forward(2 * time.Hour)
	if err := b.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := enter(bob); err != nil {
		t.Errorf("later: %v", err)
	}
}
