package notify

import (
	"context"
	"errors"
	"fmt"
	netmail "net/mail"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/announce"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/notice"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/outbound"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/sealing"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/store"
)

// Limits of a tenant's channels.
const (
	maxPerTenant  = 20
	maxName       = 80 // characters
	maxURL        = 2048
	maxRecipients = 20
)

// Reasons that an address or a mail is refused; also shown on the channel's page.
const (
	notAllowed = "the address names a host and port that DASHBOARD_NOTIFY_ALLOW does not list; the operator adds them there"
	noMail     = "no mail server is configured; the operator sets DASHBOARD_SMTP_ADDR and DASHBOARD_SMTP_FROM"
)

// channel is a body that was checked.
type channel struct {
	kind       Kind
	name       string
	events     []string
	enabled    bool
	url        string // empty: as it was
	host       string
	recipients []string
}

// parse checks the body of a channel. The error names every fault; none of them holds the address. was is the channel that
// is changed, nil for a new one.
func (n *Notifier) parse(b api.ChannelWrite, was *store.GetChannelRow) (channel, error) {
	c := channel{kind: Kind(b.Kind), name: strings.TrimSpace(b.Name), enabled: b.Enabled == nil || *b.Enabled, recipients: []string{}, events: []string{}}
	var faults []problem.Field
	refuse := func(member, msg string) {
		faults = append(faults, problem.Field{Loc: []string{"body", member}, Msg: msg})
	}
	if c.name == "" || utf8.RuneCountInString(c.name) > maxName || strings.IndexFunc(c.name, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }) >= 0 {
		refuse("name", "must be 1 to 80 printable characters")
	}
	if len(b.Events) == 0 {
		refuse("events", "must name at least one event")
	}
	for _, e := range b.Events {
		if !slices.Contains(notice.Types, notice.Type(e)) {
			refuse("events", "must be among approval.requested, approval.decided, alert and mention")
			break
		}
	}
	for _, t := range notice.Types { // in one order, each once
		if slices.Contains(b.Events, api.NotificationEvent(t)) {
			c.events = append(c.events, string(t))
		}
	}
	switch c.kind {
	case Webhook, Slack:
		n.parseURL(&c, b, was, refuse)
	case Email:
		n.parseRecipients(&c, b, refuse)
	default:
		refuse("kind", "must be webhook, slack or email")
	}
	if was != nil && was.Kind != string(c.kind) {
		refuse("kind", "cannot change; add another channel")
	}
	return c, input.InvalidFields(faults...)
}

func (n *Notifier) parseURL(c *channel, b api.ChannelWrite, was *store.GetChannelRow, refuse func(member, msg string)) {
	if b.Recipients != nil {
		refuse("recipients", "is for mail only")
	}
	if b.Url == nil {
		if was == nil {
			refuse("url", "must be the address to send to")
			return
		}
		c.host = was.Host
		return
	}
	u, msg := outbound.ParseURL(*b.Url)
	switch {
	case len(*b.Url) > maxURL:
		msg = "must be at most 2,048 bytes"
	case msg == "" && u.Fragment != "":
		msg = "must have no fragment"
	case msg == "" && !n.hosts.Allow(u):
		msg = notAllowed
	}
	if msg != "" {
		refuse("url", msg)
		return
	}
	c.url, c.host = *b.Url, u.Host
}

func (n *Notifier) parseRecipients(c *channel, b api.ChannelWrite, refuse func(member, msg string)) {
	if b.Url != nil {
		refuse("url", "is for webhook and slack only")
	}
	if n.cfg.Mail.Addr == "" {
		refuse("kind", noMail)
	}
	if b.Recipients == nil || len(*b.Recipients) == 0 || len(*b.Recipients) > maxRecipients {
		refuse("recipients", "must be 1 to 20 mail addresses")
		return
	}
	for _, r := range *b.Recipients {
		a, err := netmail.ParseAddress(r)
		if err != nil || a.Name != "" || a.Address != r || len(r) > 254 {
			refuse("recipients", "must be mail addresses such as ann@example.com, without names")
			return
		}
		if !slices.Contains(c.recipients, r) {
			c.recipients = append(c.recipients, r)
		}
	}
}

func channelNotFound() error { return fault.NotFound.New("There is no such notification channel.") }

// create stores a channel with its audit fact. secret signs the bodies of a webhook; it is shown this once.
func (n *Notifier) create(ctx context.Context, who caller.Caller, c channel) (id uuid.UUID, secret string, err error) {
	if id, err = uuid.NewV7(); err != nil {
		return id, "", err
	}
	sealed := ""
	if c.kind == Webhook {
		secret = newSecret()
	}
	if c.url != "" {
		if sealed, err = seal(n.cfg.Keys, id, secrets{URL: c.url, Secret: secret}); err != nil {
			return id, "", err
		}
	}
	err = postgres.InTx(ctx, n.cfg.Pool, func(tx pgx.Tx) error {
		q := store.New(tx)
		if err := q.LockChannels(ctx, who.Tenant); err != nil {
			return err
		}
		all, err := q.ListChannels(ctx, store.ListChannelsParams{Tenant: who.Tenant})
		if err != nil {
			return err
		}
		if len(all) >= maxPerTenant {
			return problem.Conflict.Errorf("The tenant has %d notification channels, which is the limit; delete one first.", maxPerTenant)
		}
		if err := q.InsertChannel(ctx, store.InsertChannelParams{
			ID: id, Tenant: who.Tenant, Name: c.name, Kind: string(c.kind), Events: c.events, Enabled: c.enabled, Host: c.host,
			Recipients: c.recipients, Sealed: sealed, CreatedBy: who.Subject,
		}); err != nil {
			return explainName(err, c.name)
		}
		return announce.Insert(ctx, tx, auditChannel(ctx, who, "channel.add", id, c))
	})
	return id, secret, err
}

// change replaces what people enter; the address stays if none is given, the signing secret always.
func (n *Notifier) change(ctx context.Context, who caller.Caller, id uuid.UUID, b api.ChannelWrite) error {
	return postgres.InTx(ctx, n.cfg.Pool, func(tx pgx.Tx) error {
		q := store.New(tx)
		if err := q.LockChannels(ctx, who.Tenant); err != nil {
			return err
		}
		was, err := q.GetChannel(ctx, store.GetChannelParams{Tenant: who.Tenant, ID: id})
		if errors.Is(err, pgx.ErrNoRows) {
			return channelNotFound()
		}
		if err != nil {
			return err
		}
		c, err := n.parse(b, &was)
		if err != nil {
			return err
		}
		sealed := was.Sealed
		if c.url != "" {
			s, err := open(n.cfg.Keys, id, was.Sealed)
			if err != nil && c.kind == Webhook {
				return problem.Conflict.New("The signing secret of this channel cannot be opened; delete the channel and add it again.").WithCause(err)
			}
			if s.URL != c.url {
				s.URL = c.url
				if sealed, err = seal(n.cfg.Keys, id, s); err != nil {
					return err
				}
			}
		}
		if err := q.UpdateChannel(ctx, store.UpdateChannelParams{
			Tenant: who.Tenant, ID: id, Name: c.name, Events: c.events, Enabled: c.enabled, Host: c.host, Recipients: c.recipients, Sealed: sealed,
		}); err != nil {
			return explainName(err, c.name)
		}
		return announce.Insert(ctx, tx, auditChannel(ctx, who, "channel.change", id, c))
	})
}

// remove deletes a channel with what waits for it.
func (n *Notifier) remove(ctx context.Context, who caller.Caller, id uuid.UUID) error {
	return postgres.InTx(ctx, n.cfg.Pool, func(tx pgx.Tx) error {
		q := store.New(tx)
		was, err := q.GetChannel(ctx, store.GetChannelParams{Tenant: who.Tenant, ID: id})
		if errors.Is(err, pgx.ErrNoRows) {
			return channelNotFound()
		}
		if err != nil {
			return err
		}
		if err := q.DeleteChannel(ctx, store.DeleteChannelParams{Tenant: who.Tenant, ID: id}); err != nil {
			return err
		}
		return announce.Insert(ctx, tx, auditChannel(ctx, who, "channel.delete", id, channel{kind: Kind(was.Kind), name: was.Name, host: was.Host, events: was.Events, enabled: was.Enabled, recipients: was.Recipients}))
	})
}

// test sends one message now. The outcome is recorded on the channel.
func (n *Notifier) test(ctx context.Context, who caller.Caller, id uuid.UUID) (failure error, err error) {
	q := store.New(n.cfg.Pool)
	c, err := q.GetChannel(ctx, store.GetChannelParams{Tenant: who.Tenant, ID: id})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, channelNotFound()
	}
	if err != nil {
		return nil, err
	}
	once, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	s, failure := open(n.cfg.Keys, id, c.Sealed)
	if failure == nil {
		failure = n.send(ctx, target{id: id, kind: Kind(c.Kind), recipients: c.Recipients, secrets: s}, once, message{
			Type: testType, Timestamp: time.Now().UTC(), Data: messageData{
				EventID: once, Tenant: who.Tenant, Actor: who.Subject, URL: n.cfg.PublicURL + "/notifications",
				Title: notice.Name(who.Subject) + " tests the notification channel " + c.Name,
			},
		})
	}
	if ctx.Err() != nil {
		return nil, ctx.Err() // who asked has gone; the channel is not at fault
	}
	if failure == nil {
		return nil, q.RecordSuccess(ctx, store.RecordSuccessParams{Tenant: who.Tenant, ID: id})
	}
	text := failure.Error()
	return failure, q.RecordError(ctx, store.RecordErrorParams{Tenant: who.Tenant, ID: id, LastError: &text})
}

func explainName(err error, name string) error {
	if postgres.IsUnique(err, "notification_channels_tenant_name_key") {
		return problem.Conflict.Errorf("There is a notification channel named %q already; choose another name.", name).WithCause(err)
	}
	return err
}

// auditChannel returns the fact of an act on a channel: where it sends, but not the address.
func auditChannel(ctx context.Context, who caller.Caller, action string, id uuid.UUID, c channel) outbox.Event {
	details := map[string]any{"name": c.name, "kind": string(c.kind), "events": c.events, "enabled": c.enabled}
	if c.host != "" {
		details["host"] = c.host
	}
	if len(c.recipients) > 0 {
		details["recipients"] = c.recipients
	}
	return announce.Audit(ctx, who, action, "channel:"+id.String(), announce.OK, details)
}

// RotateSecrets seals every stored address by the first of the keys and names those that it rewrote.
func RotateSecrets(ctx context.Context, tx pgx.Tx, keys *sealing.Keys) ([]string, error) {
	q := store.New(tx)
	rows, err := q.ListSealedChannels(ctx)
	if err != nil {
		return nil, err
	}
	var rotated []string
	for _, r := range rows {
		if keys.Current(r.Sealed) {
			continue
		}
		name := "channel:" + r.ID.String()
		s, err := open(keys, r.ID, r.Sealed)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		sealed, err := seal(keys, r.ID, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := q.ReplaceSealedChannel(ctx, store.ReplaceSealedChannelParams{ID: r.ID, Sealed: sealed}); err != nil {
			return nil, err
		}
		rotated = append(rotated, name)
	}
	return rotated, nil
}
