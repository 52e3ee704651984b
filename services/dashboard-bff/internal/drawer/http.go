package drawer

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	wire "github.com/mlp-platform/platform/clients/go/assistant"
	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/announce"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/assistant"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
)

// maxDocument limits a document of the assistant, in bytes: 50 actions with diffs of 64 KiB.
const maxDocument = 8 << 20

// StreamAnswer serves POST /api/v1/assistant/chat.
func (d *Drawer) StreamAnswer(c echo.Context) error {
	who := caller.From(c)
	if !d.Enabled(c.Request().Context(), who) {
		return fault.FeatureOff.New("The assistant is switched off; an admin can switch the flag copilotDrawer on again.")
	}
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	var body api.AssistantQuestion
	if err := service.DecodeJSON(c, &body, true); err != nil {
		return err
	}
	m, err := assistant.NewMessage(body.Question, body.Context)
	if err != nil {
		return err
	}
	session := d.newSession(who)
	if body.Session != nil && *body.Session != "" {
		session = *body.Session
		if err := d.checkSession(who, session); err != nil {
			return err
		}
	}
	cluster, err := readCluster(body.Cluster)
	if err != nil {
		return err
	}
	ask, err := assistant.Ask(m.Text(), who.Subject)
	if err != nil {
		return err
	}
	ids := "true"
	params := &wire.ChatParams{XSessionID: &session, XCluster: cluster, XStreamIds: &ids, LastEventID: lastEventID(c)}
	return locateCluster(d.relayStream(c, stream{session: session, do: func(ctx context.Context, client *wire.Client) (*http.Response, error) {
		return client.Chat(ctx, params, ask)
	}}))
}

// ReplaySession serves GET /api/v1/assistant/sessions/:session/replay: past answers, and the one in progress.
func (d *Drawer) ReplaySession(c echo.Context) error {
	session, err := d.ownSession(c)
	if err != nil {
		return err
	}
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	yes := true
	params := &wire.ReplayParams{Follow: &yes, Ids: &yes, LastEventID: lastEventID(c)}
	return d.relayStream(c, stream{session: session, replay: true, do: func(ctx context.Context, client *wire.Client) (*http.Response, error) {
		return client.Replay(ctx, session, params)
	}})
}

// lastEventID returns the frame after which a browser wants to resume; the assistant validates it.
func lastEventID(c echo.Context) *string {
	id := c.Request().Header.Get("Last-Event-ID")
	if id == "" || len(id) > 128 {
		return nil
	}
	return &id
}

// GetSession serves GET /api/v1/assistant/sessions/:session.
func (d *Drawer) GetSession(c echo.Context) error {
	session, err := d.ownSession(c)
	if err != nil {
		return err
	}
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	return d.relayDocument(c, func(ctx context.Context, client *wire.Client) (*http.Response, error) {
		return client.GetSession(ctx, session)
	})
}

// ListActions serves GET /api/v1/assistant/sessions/:session/actions.
func (d *Drawer) ListActions(c echo.Context) error {
	session, err := d.ownSession(c)
	if err != nil {
		return err
	}
	if err := input.CheckQuery(c, "limit", "cursor"); err != nil {
		return err
	}
	limit, err := service.PageLimit(c)
	if err != nil {
		return err
	}
	params := &wire.ListActionsParams{Limit: &limit}
	if cursor := c.QueryParam("cursor"); cursor != "" {
		params.Cursor = &cursor
	}
	return d.relayDocument(c, func(ctx context.Context, client *wire.Client) (*http.Response, error) {
		return client.ListActions(ctx, session, params)
	})
}

// DecideAction serves POST /api/v1/assistant/sessions/:session/actions/:action_id. The route requires a step-up.
func (d *Drawer) DecideAction(c echo.Context) error {
	ctx, who := c.Request().Context(), caller.From(c)
	if !who.Role.Covers(caller.Admin) {
		return fault.RoleRequired.New("Only an admin decides about a change.")
	}
	var body wire.DecisionRequest
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	if err := service.DecodeJSON(c, &body, true); err != nil {
		return err
	}
	if !body.Decision.Valid() {
		return input.Invalid("must be approve or deny", "body", "decision")
	}
	if body.Reason != nil && len([]rune(*body.Reason)) > maxReason {
		return input.Invalid("must have at most "+strconv.Itoa(maxReason)+" characters", "body", "reason")
	}
	session, err := d.ownSession(c)
	if err != nil {
		return err
	}
	action, err := uuid.Parse(c.Param("action_id"))
	if err != nil {
		return fault.NotFound.New("There is no such change in this conversation; list its changes with GET …/actions.")
	}
	// The assistant knows the dashboard's key only, so the person's name is on record before it can act.
	fact := announce.Fact{Action: "assistant.decide", Target: "action:" + action.String(), Outcome: announce.OK, Details: map[string]any{
		"decision": string(body.Decision), "session": session,
	}}
	if body.Reason != nil {
		fact.Details["reason"] = *body.Reason
	}
	if err := d.Recorder.Record(ctx, who, fact); err != nil {
		return fault.StoreUnavailable.New("The decision cannot be recorded, so it was not made; try again.").WithCause(err)
	}
	err = d.relayDocument(c, func(ctx context.Context, client *wire.Client) (*http.Response, error) {
		return client.DecideAction(ctx, session, action, body)
	})
	if err != nil {
		d.recordFailure(ctx, who, fact, err)
	}
	return err
}

// maxReason limits the reason of a decision, in characters; the assistant has the same limit.
const maxReason = 1000

// ownSession returns the path's session if it is the caller's.
func (d *Drawer) ownSession(c echo.Context) (string, error) {
	session := c.Param("session")
	return session, d.checkSession(caller.From(c), session)
}

type call func(context.Context, *wire.Client) (*http.Response, error)

// relayDocument passes on a JSON document.
func (d *Drawer) relayDocument(c echo.Context, do call) error {
	resp, body, err := d.fetch(c, do)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return assistant.ExplainRefusal(resp, keyOf(caller.From(c)))
	}
	return c.Blob(resp.StatusCode, echo.MIMEApplicationJSON, body)
}

// fetch returns the assistant's response, refusals too, and its whole body, which the response still has.
func (d *Drawer) fetch(c echo.Context, do call) (*http.Response, []byte, error) {
	who := caller.From(c)
	client, err := d.Assistant.With(keyOf(who), who)
	if err != nil {
		return nil, nil, assistant.ExplainCall(err)
	}
	ctx, stop := context.WithTimeout(c.Request().Context(), d.Limits.Answer)
	defer stop()
	resp, err := do(ctx, client)
	if err != nil {
		return nil, nil, assistant.ExplainCall(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err != nil {
		return nil, nil, assistant.ExplainCall(err)
	}
	if len(body) > maxDocument {
		return nil, nil, fault.UpstreamUnavailable.New("The assistant's document is too large to pass on; request fewer entries with limit.")
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, body, nil
}
