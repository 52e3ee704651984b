// Package inbox is what waits for one person: mentions of them, approvals that others requested and they may decide, and
// alerts.
//
// A notice is stored once for all; whom it concerns is decided where it is read, by the role that the person has then.
// Only the mark that a person has read it is theirs. It ends with what it is about, such as a decided approval, for
// everybody; the end is a row of its own, so that the order in which events arrive does not matter.
package inbox

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/announce"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/notice"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/store"
)

// Config of New.
type Config struct {
	Pool *pgxpool.Pool
	Log  *slog.Logger
}

// Inbox serves the routes under /api/v1/inbox.
type Inbox struct{ cfg Config }

// New refuses missing parts.
func New(cfg Config) (*Inbox, error) {
	if err := service.RequireParts("inbox", cfg); err != nil {
		return nil, err
	}
	return &Inbox{cfg}, nil
}

// Store keeps a notice in the transaction of its event, and tells the browsers once it is there: they have heard of the
// event itself too early.
func Store(ctx context.Context, tx pgx.Tx, n notice.Notice) error {
	q := store.New(tx)
	if n.Outcome != "" {
		if err := End(ctx, tx, n.Tenant, n.Kind, n.Object, n.Outcome, n.At); err != nil {
			return err
		}
	} else if err := q.InsertNotice(ctx, store.InsertNoticeParams{
		ID: n.EventID, Tenant: n.Tenant, Kind: string(n.Kind), Object: n.Object, Recipient: recipientOf(n), Author: n.Author,
		Title: n.Title, Path: n.Path, HappenedAt: n.At,
	}); err != nil {
		return err
	}
	return announce.Insert(ctx, tx, outbox.Event{
		Tenant: n.Tenant, Namespace: "event", Name: "notice", SubjectID: n.Object, Actor: "system:inbox",
		Payload: announce.Notice{Kind: string(n.Kind), Object: n.Object},
	})
}

func recipientOf(n notice.Notice) *string {
	if n.Kind != notice.Mention {
		return nil
	}
	return &n.Recipient
}

// End ends the notices of an object that happened until then.
func End(ctx context.Context, tx pgx.Tx, tenant string, kind notice.Kind, object, outcome string, at time.Time) error {
	return store.New(tx).EndNotices(ctx, store.EndNoticesParams{Tenant: tenant, Kind: string(kind), Object: object, Outcome: outcome, EndedAt: at})
}

// namesOf returns what a mention of the person may call them: the principal, its subject without the provider, and the
// name that the provider gave, all in lower case.
func namesOf(who caller.Caller) []string {
	names := []string{strings.ToLower(who.Subject)}
	if _, subject, ok := strings.Cut(who.Subject, ":"); ok {
		names = append(names, strings.ToLower(subject))
	}
	if who.Name != "" {
		names = append(names, strings.ToLower(who.Name))
	}
	return names
}

// sweepEvery is how often old notices are forgotten.
const sweepEvery = time.Hour

// Sweep forgets old notices until ctx ends.
func (i *Inbox) Sweep(ctx context.Context) error {
	for {
		q := store.New(i.cfg.Pool)
		if err := errors.Join(q.ForgetNotices(ctx), q.ForgetNoticeEndings(ctx)); err != nil && ctx.Err() == nil {
			i.cfg.Log.WarnContext(ctx, "old notices not forgotten", slog.Any("err", err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(sweepEvery):
		}
	}
}
