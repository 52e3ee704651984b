package route

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/assistant/internal/caller"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// slotRetry is when a caller with too many streams may try again: answers end within seconds as a rule.
const slotRetry = 5 * time.Second

const manyStreams = "Too many streams of this caller are open; read one to its end or close it."

// slot takes one of the caller's streams.
func (a *API) slot(principal string) (release func(), err error) {
	release, ok := a.Streams.Take(principal)
	if !ok {
		return nil, tooMany(manyStreams)
	}
	return release, nil
}

// bodiesPerStream is how many bodies a caller may be sending for each stream that it may have. They are no streams: a
// body that never ends would hold one for as long as bodies may take.
const bodiesPerStream = 4

// read takes the request's body. A caller without a stream left is told so before, as the order of refusals is.
func (a *API) read(c echo.Context, principal string) (chat.Request, chat.SessionHint, error) {
	if a.Streams.Full(principal) {
		return chat.Request{}, chat.SessionHint{}, tooMany(manyStreams)
	}
	read, ok := a.bodies.Take(principal)
	if !ok {
		return chat.Request{}, chat.SessionHint{}, tooMany("Too many requests of this caller are still being sent; send one to its end or close it.")
	}
	defer read()
	return chat.Read(c, a.MaxBody)
}

func tooMany(detail string) error { return problem.RateLimited.New(detail).After(slotRetry) }

// chat answers POST /v1/chat/completions.
func (a *API) chat(c echo.Context) error {
	began := time.Now()
	w := caller.Who(c)
	q, hint, err := a.read(c, w.Principal)
	if err != nil {
		return err
	}
	release, err := a.slot(w.Principal)
	if err != nil {
		return err
	}
	defer release()
	ctx, h := c.Request().Context(), c.Request().Header
	id, err := a.sessionOf(ctx, w.Principal, hint)
	if err != nil {
		return err
	}
	w.User = q.User
	after, seq, _ := chat.LastEventID(h)
	reader, err := a.Turns.Begin(ctx, turn.Request{
		Session: id, Who: w, RequestID: chat.CallerRequestID(h), Chat: q, After: turn.Place{Turn: after, Seq: seq},
	})
	if err != nil {
		return err
	}
	defer reader.Close()
	return a.stream(c, reader, chat.ProfileOf(h, a.Model, q.Model), chat.WantsIDs(h), func() { a.Metrics.FirstEvent(time.Since(began)) })
}

// sessionOf finds the session that a request belongs to.
func (a *API) sessionOf(ctx context.Context, principal string, hint chat.SessionHint) (string, error) {
	if hint.ID != "" {
		return hint.ID, nil
	}
	var ids []uuid.UUID
	for _, text := range hint.Quoted {
		if id, err := uuid.Parse(text); err == nil {
			ids = append(ids, id)
		}
	}
	if len(ids) > 0 {
		if id, err := a.Actions.Quoted(ctx, principal, ids); err != nil || id != "" {
			return id, err
		}
	}
	id, err := uuid.NewV7()
	return id.String(), err
}

// replay answers GET /v1/events/replay/{session_id}.
func (a *API) replay(c echo.Context) error {
	w := caller.Who(c)
	release, err := a.slot(w.Principal)
	if err != nil {
		return err
	}
	defer release()
	id := c.Param("session_id")
	if !chat.ValidSessionID(id) {
		return fault.SessionNotFound.New("There is no such session.")
	}
	h := c.Request().Header
	row, err := a.Sessions.Readable(c.Request().Context(), w, id)
	if err != nil {
		return err
	}
	number, seq, _ := chat.LastEventID(h)
	reader := a.Turns.Replay(row, turn.Place{Turn: number, Seq: seq}, c.QueryParam("follow") == "true")
	defer reader.Close()
	ids := chat.WantsIDs(h) || c.QueryParam("ids") == "true"
	return a.stream(c, reader, chat.ProfileOf(h, a.Model, ""), ids, func() {})
}
