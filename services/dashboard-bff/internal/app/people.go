package app

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/inbox"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/notice"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/notify"
)

// noticesConsumer is the durable consumer of what people are told.
const noticesConsumer = "dashboard-notices"

// Subscriptions lists the events that the dashboard consumes; the event stream reads them besides, and keeps nothing.
var Subscriptions = []outbox.Subscription{{Consumer: noticesConsumer, Subjects: notice.Subjects}}

// wirePeople creates the inbox, the channels outside, and the consumer that fills both.
func (p *parts) wirePeople() (err error) {
	if p.inbox, err = inbox.New(inbox.Config{Pool: p.base.Pool, Log: p.log}); err != nil {
		return err
	}
	p.notifier, err = notify.New(notify.Config{
		Pool: p.base.Pool, Keys: p.keys, Log: p.log, PublicURL: p.cfg.PublicURL, Allow: p.cfg.NotifyAllow, Mail: p.cfg.mail(),
	})
	if err != nil {
		return err
	}
	p.base.Server.Go("notifications", p.notifier.Run)
	p.base.Server.Go("old notices", p.inbox.Sweep)
	if p.nats == nil {
		return nil // without a broker there are no events
	}
	p.base.Server.Go("notices", func(ctx context.Context) error {
		return outbox.Consume(ctx, outbox.ConsumerConfig{
			Conn: p.nats, Pool: p.base.Pool, Name: noticesConsumer, Subjects: notice.Subjects,
			Stream: outbox.StreamConfig{Replicas: p.cfg.NATSReplicas, MaxBytes: p.cfg.NATSMaxBytes},
			Handle: p.handleNotice,
		}, p.log)
	})
	return nil
}

// handleNotice puts an event into the inbox and before the channels, in one transaction with the record that it was
// handled.
func (p *parts) handleNotice(ctx context.Context, tx pgx.Tx, e outbox.Envelope) error {
	n, err := notice.Parse(e)
	if err != nil {
		return err
	}
	if err := inbox.Store(ctx, tx, n); err != nil {
		return err
	}
	return p.notifier.Enqueue(ctx, tx, n)
}
