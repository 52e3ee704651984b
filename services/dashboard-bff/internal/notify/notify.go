// Package notify carries notices outside: to webhooks, chats that take Slack's incoming webhooks, and mail.
//
// A notice becomes one row per channel that wants its type, in the transaction in which its event is handled
// (Enqueue), so that nothing is lost and nothing enqueued twice. One process at a time claims a channel and sends its rows,
// oldest due first:
//
//	waiting ──► delivered    the receiver accepted it
//	   ▲  └───► abandoned    not accepted within a day
//	   └── not accepted: later again, after 5 s doubling to 30 min
//
// A process that dies between the receiver's answer and the mark sends the same row again; a receiver drops the repeat by
// its id, which is the header webhook-id and the Message-ID of a mail. Slack's webhooks know no id: there a repeat shows.
package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/notice"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/outbound"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/sealing"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/store"
)

// Kind is how a channel sends.
type Kind string

// The kinds.
const (
	Webhook Kind = "webhook"
	Slack   Kind = "slack"
	Email   Kind = "email"
)

// Config of New.
type Config struct {
	Pool *pgxpool.Pool
	Keys *sealing.Keys
	Log  *slog.Logger
	// PublicURL is what the links of messages begin with.
	PublicURL string
	// Allow are the hosts that an address may name: host:port, or a host for the default ports of http and https.
	Allow []string
	Mail  Mail
}

// Notifier serves the routes under /api/v1/notifications and sends. Its methods are safe for concurrent use.
type Notifier struct {
	cfg    Config
	hosts  outbound.Hosts
	client *http.Client
	server mailServer
}

// New refuses missing parts.
func New(cfg Config) (*Notifier, error) {
	if err := service.RequireParts("notify", cfg); err != nil {
		return nil, err
	}
	server, err := cfg.Mail.parse()
	if err != nil {
		return nil, err
	}
	n := &Notifier{cfg: cfg, hosts: outbound.Hosts{}, client: newClient(), server: server}
	for _, h := range cfg.Allow {
		n.hosts.Add(h)
	}
	return n, nil
}

// maxAge is how long a message waits before it is abandoned; the SQL has it as well.
const maxAge = 24 * time.Hour

// Enqueue adds a notice to the channels that want it, in the transaction of its event.
func (n *Notifier) Enqueue(ctx context.Context, tx pgx.Tx, e notice.Notice) error {
	// An older event comes from the stream's past, as at the first start of this consumer.
	if e.Type == "" || time.Since(e.At) > maxAge {
		return nil
	}
	raw, err := json.Marshal(newMessage(e, n.cfg.PublicURL))
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	_, err = store.New(tx).EnqueueDeliveries(ctx, store.EnqueueDeliveriesParams{
		Tenant: e.Tenant, EventID: e.EventID, Message: raw, Event: string(e.Type),
	})
	return err
}

const (
	idle = time.Second // between two looks for work
	// lease is how long a claimed channel stays with a process that has died. turn, after which no further message is begun,
	// and one attempt fit into it.
	lease       = 30 * time.Second
	turn        = 15 * time.Second
	maxChannels = 8 // of one process at once
	firstWait   = 5 * time.Second
	longestWait = 30 * time.Minute
	sweepEvery  = time.Hour
)

// Run sends until ctx ends.
func (n *Notifier) Run(ctx context.Context) error {
	var swept time.Time
	for ctx.Err() == nil {
		if time.Since(swept) > sweepEvery {
			swept = time.Now()
			if err := store.New(n.cfg.Pool).ForgetDeliveries(ctx); err != nil && ctx.Err() == nil {
				n.cfg.Log.WarnContext(ctx, "deliveries not swept", slog.Any("err", err))
			}
		}
		worked, err := n.round(ctx)
		if err != nil && ctx.Err() == nil {
			n.cfg.Log.WarnContext(ctx, "notifications wait", slog.Any("err", err))
		}
		if !worked || err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(idle):
			}
		}
	}
	return nil
}

// round claims the channels that have something due and sends; worked reports whether there were any.
func (n *Notifier) round(ctx context.Context) (worked bool, err error) {
	rows, err := store.New(n.cfg.Pool).ClaimChannels(ctx, store.ClaimChannelsParams{LeaseSeconds: lease.Seconds(), MaxRows: maxChannels})
	if err != nil {
		return false, err
	}
	var g errgroup.Group
	for _, c := range rows {
		g.Go(func() error { return n.serve(ctx, c) })
	}
	return len(rows) > 0, g.Wait()
}

// serve sends what is due over one claimed channel.
func (n *Notifier) serve(ctx context.Context, c store.ClaimChannelsRow) error {
	q := store.New(n.cfg.Pool)
	defer func() {
		// At the end of the process too: another then goes on at once.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if err := q.ReleaseChannel(ctx, store.ReleaseChannelParams{Tenant: c.Tenant, ID: c.ID}); err != nil {
			n.cfg.Log.WarnContext(ctx, "a channel stays claimed until its lease ends", slog.String("channel_id", c.ID.String()), slog.Any("err", err))
		}
	}()
	to := target{id: c.ID, kind: Kind(c.Kind), recipients: c.Recipients}
	secrets, unreadable := open(n.cfg.Keys, c.ID, c.Sealed)
	to.secrets = secrets
	for began := time.Now(); time.Since(began) < turn && ctx.Err() == nil; {
		d, err := q.NextDelivery(ctx, store.NextDeliveryParams{Tenant: c.Tenant, ChannelID: c.ID})
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		fault := unreadable
		if fault == nil {
			var m message
			if fault = json.Unmarshal(d.Message, &m); fault == nil {
				fault = n.send(ctx, to, d.ID, m)
			}
		}
		if ctx.Err() != nil {
			return nil // the attempt was cut short by the end of the process, and is no fault of the receiver
		}
		if err := n.record(ctx, c, d, fault); err != nil {
			return err
		}
	}
	return nil
}

// record stores the outcome of an attempt, of the message and for the channel's page.
func (n *Notifier) record(ctx context.Context, c store.ClaimChannelsRow, d store.NextDeliveryRow, fault error) error {
	return postgres.InTx(ctx, n.cfg.Pool, func(tx pgx.Tx) error {
		q := store.New(tx)
		if fault == nil {
			if err := q.MarkDelivered(ctx, store.MarkDeliveredParams{Tenant: c.Tenant, ID: d.ID}); err != nil {
				return err
			}
			return q.RecordSuccess(ctx, store.RecordSuccessParams{Tenant: c.Tenant, ID: c.ID})
		}
		n.cfg.Log.WarnContext(ctx, "notification not accepted", slog.String("channel_id", c.ID.String()), slog.String("kind", c.Kind),
			slog.Int("attempt", int(d.Attempts)+1), slog.String("reason", fault.Error()))
		if err := q.MarkFailed(ctx, store.MarkFailedParams{Tenant: c.Tenant, ID: d.ID, WaitSeconds: waitAfter(int(d.Attempts)).Seconds()}); err != nil {
			return err
		}
		text := fault.Error()
		return q.RecordError(ctx, store.RecordErrorParams{Tenant: c.Tenant, ID: c.ID, LastError: &text})
	})
}

// waitAfter returns the wait after so many earlier failures, ± 20 %, so that the messages of a channel that comes back do not
// all arrive at once.
func waitAfter(failures int) time.Duration {
	wait := longestWait
	if failures < 9 {
		wait = min(firstWait<<failures, longestWait)
	}
	return time.Duration(float64(wait) * (0.8 + 0.4*rand.Float64()))
}
