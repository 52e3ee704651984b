package notify

import (
	"context"
	"net/http"
	"slices"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/store"
)

// List serves GET /api/v1/notifications/channels.
func (n *Notifier) List(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	rows, err := store.New(n.cfg.Pool).ListChannels(c.Request().Context(), store.ListChannelsParams{Tenant: caller.From(c).Tenant})
	if err != nil {
		return err
	}
	out := api.Channels{Channels: make([]api.Channel, 0, len(rows)), MailConfigured: n.cfg.Mail.Addr != "", AllowedHosts: n.allowed()}
	for _, r := range rows {
		out.Channels = append(out.Channels, viewChannel(r))
	}
	return c.JSON(http.StatusOK, out)
}

// allowed lists the hosts and ports that an address may name.
func (n *Notifier) allowed() []string {
	out := make([]string, 0, len(n.hosts))
	for h := range n.hosts {
		out = append(out, h)
	}
	slices.Sort(out)
	return out
}

func viewChannel(r store.ListChannelsRow) api.Channel {
	out := api.Channel{
		Id: r.ID, Name: r.Name, Kind: api.ChannelKind(r.Kind), Events: make([]api.NotificationEvent, 0, len(r.Events)), Enabled: r.Enabled,
		CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(), Waiting: int(r.Waiting), Abandoned: int(r.Abandoned),
		LastError: r.LastError,
	}
	for _, e := range r.Events {
		out.Events = append(out.Events, api.NotificationEvent(e))
	}
	if r.Host != "" {
		out.Host = &r.Host
	}
	if len(r.Recipients) > 0 {
		out.Recipients = &r.Recipients
	}
	if r.SucceededAt != nil {
		at := r.SucceededAt.UTC()
		out.LastSuccessAt = &at
	}
	if r.FailedAt != nil {
		at := r.FailedAt.UTC()
		out.LastErrorAt = &at
	}
	return out
}

// Create serves POST /api/v1/notifications/channels.
func (n *Notifier) Create(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	var body api.ChannelWrite
	if err := service.DecodeJSON(c, &body, true); err != nil {
		return err
	}
	ch, err := n.parse(body, nil)
	if err != nil {
		return err
	}
	who := caller.From(c)
	id, secret, err := n.create(c.Request().Context(), who, ch)
	if err != nil {
		return err
	}
	view, err := n.read(c.Request().Context(), who, id)
	if err != nil {
		return err
	}
	out := api.ChannelCreated{Channel: view}
	if secret != "" {
		out.Secret = &secret
	}
	return c.JSON(http.StatusCreated, out)
}

// read returns a stored channel.
func (n *Notifier) read(ctx context.Context, who caller.Caller, id uuid.UUID) (api.Channel, error) {
	rows, err := store.New(n.cfg.Pool).ListChannels(ctx, store.ListChannelsParams{Tenant: who.Tenant, ID: &id})
	if err != nil {
		return api.Channel{}, err
	}
	if len(rows) == 0 {
		return api.Channel{}, channelNotFound()
	}
	return viewChannel(rows[0]), nil
}

// Change serves PUT /api/v1/notifications/channels/:id.
func (n *Notifier) Change(c echo.Context) error {
	id, err := channelID(c)
	if err != nil {
		return err
	}
	var body api.ChannelWrite
	if err := service.DecodeJSON(c, &body, true); err != nil {
		return err
	}
	who := caller.From(c)
	if err := n.change(c.Request().Context(), who, id, body); err != nil {
		return err
	}
	view, err := n.read(c.Request().Context(), who, id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, view)
}

// Delete serves DELETE /api/v1/notifications/channels/:id.
func (n *Notifier) Delete(c echo.Context) error {
	id, err := channelID(c)
	if err != nil {
		return err
	}
	if err := n.remove(c.Request().Context(), caller.From(c), id); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// Test serves POST /api/v1/notifications/channels/:id/test. A receiver that refuses is an answer, not a fault.
func (n *Notifier) Test(c echo.Context) error {
	id, err := channelID(c)
	if err != nil {
		return err
	}
	failure, err := n.test(c.Request().Context(), caller.From(c), id)
	if err != nil {
		return err
	}
	out := api.ChannelTest{Delivered: failure == nil}
	if failure != nil {
		text := failure.Error()
		out.Error = &text
	}
	return c.JSON(http.StatusOK, out)
}

// channelID reads the path of a request without a query.
func channelID(c echo.Context) (uuid.UUID, error) {
	if err := input.CheckQuery(c); err != nil {
		return uuid.UUID{}, err
	}
	id, err := uuid.Parse(c.Param("id"))
	if err != nil {
		return uuid.UUID{}, channelNotFound()
	}
	return id, nil
}
