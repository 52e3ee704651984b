package route

import (
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/session"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

// Judge tells without the cluster what a role may do at most.
type Judge func(role guard.Role, ops []operation.Expanded) guard.Verdict

// page is one page of a list.
type page[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next_cursor"` // null: this is the last page
}

// maxDecision bounds the body of a decision, in bytes, and maxReason its reason, in characters.
const (
	maxDecision = 16 << 10
	maxReason   = 1000
)

func (a *API) listSessions(c echo.Context) error {
	most, err := service.PageLimit(c)
	if err != nil {
		return err
	}
	var at session.After
	from := &at
	if ok, err := service.Cursor(c, &at); err != nil {
		return err
	} else if !ok {
		from = nil
	}
	rows, err := a.Sessions.List(c.Request().Context(), callerOf(c), from, int32(most)+1)
	if err != nil {
		return err
	}
	p := page[session.Head]{Items: rows}
	if len(rows) > most {
		p.Items = rows[:most]
		last := p.Items[most-1]
		next := service.EncodeCursor(c.Path(), session.After{UsedAt: last.UsedAt, ID: last.ID})
		p.Next = &next
	}
	return c.JSON(http.StatusOK, p)
}

func (a *API) getSession(c echo.Context) error {
	d, err := a.Sessions.Get(c.Request().Context(), callerOf(c), store.Text(c.Param("session_id")))
	if err != nil {
		return err
	}
	if d.Messages == nil {
		d.Messages = []session.Message{}
	}
	if d.Pending == nil {
		d.Pending = []action.Action{}
	}
	return c.JSON(http.StatusOK, d)
}

func (a *API) deleteSession(c echo.Context) error {
	if err := a.Sessions.Delete(c.Request().Context(), callerOf(c), store.Text(c.Param("session_id"))); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// listActions shows to the session's owner and to admins all its actions, to others those that they may decide.
func (a *API) listActions(c echo.Context) error {
	most, err := service.PageLimit(c)
	if err != nil {
		return err
	}
	var at action.After
	from := &at
	if ok, err := service.Cursor(c, &at); err != nil {
		return err
	} else if !ok {
		from = nil
	}
	ctx, w := c.Request().Context(), callerOf(c)
	row, err := a.Store.GetSession(ctx, store.Text(c.Param("session_id")))
	if store.None(err) || err == nil && !ownsSession(w, row) && w.Role == guard.Readonly {
		return noSession()
	}
	if err != nil {
		return err
	}
	all, err := a.Actions.Page(ctx, row.ID, from, int32(most)+1)
	if err != nil {
		return err
	}
	p := page[action.Action]{Items: []action.Action{}}
	if len(all) > most {
		all = all[:most]
		next := service.EncodeCursor(c.Path(), action.After{ProposedAt: all[most-1].ProposedAt, ID: all[most-1].ID})
		p.Next = &next
	}
	for _, x := range all {
		if ownsSession(w, row) || a.mayDecide(w, x) {
			p.Items = append(p.Items, x)
		}
	}
	if len(p.Items) == 0 && p.Next == nil && !ownsSession(w, row) { // nothing in it is for this caller's eyes
		return noSession()
	}
	return c.JSON(http.StatusOK, p)
}

func noSession() error { return fault.SessionNotFound.New("There is no such session.") }

func ownsSession(w event.Who, row store.Session) bool {
	return w.Role == guard.Admin || row.Owner == w.Principal
}

func (a *API) mayDecide(w event.Who, x action.Action) bool {
	return a.Judge(w.Role, x.Operations).Answer != guard.Refuse
}

// actionOf finds the action of a request; to who may neither read nor decide it, it does not exist.
func (a *API) actionOf(c echo.Context, w event.Who) (action.Action, error) {
	missing := fault.ActionNotFound.New("There is no such action in this session.")
	id, err := uuid.Parse(c.Param("action_id"))
	if err != nil || len(c.Param("action_id")) != 36 || !chat.ValidSessionID(c.Param("session_id")) {
		return action.Action{}, missing
	}
	ctx := c.Request().Context()
	x, err := a.Actions.Get(ctx, id)
	if err != nil {
		return x, err
	}
	if x.Session != c.Param("session_id") {
		return x, missing
	}
	if a.mayDecide(w, x) {
		return x, nil
	}
	row, err := a.Store.GetSession(ctx, x.Session)
	if store.None(err) || err == nil && !ownsSession(w, row) {
		return x, missing
	}
	return x, err
}

func (a *API) getAction(c echo.Context) error {
	x, err := a.actionOf(c, callerOf(c))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, x)
}

// decide answers once the decision is durable; what was approved runs in the session's next turn.
func (a *API) decide(c echo.Context) error {
	w := callerOf(c)
	if w.Role == guard.Readonly {
		return fault.NotPermitted("Readonly callers decide nothing.")
	}
	d, err := readDecision(c)
	if err != nil {
		return err
	}
	x, err := a.actionOf(c, w)
	if err != nil {
		return err
	}
	done, err := a.Actions.Decide(c.Request().Context(), w, x.ID, d)
	if err != nil {
		if fault.Forbidden.Has(err) {
			c.Set(recordedKey, true) // by Decide, with the action
		}
		return a.clusterFault(err)
	}
	return c.JSON(http.StatusOK, done)
}

func readDecision(c echo.Context) (action.Decision, error) {
	var in struct {
		Decision string  `json:"decision"`
		Reason   *string `json:"reason"`
	}
	if err := limitBody(c, maxDecision); err != nil {
		return action.Decision{}, err
	}
	if err := service.DecodeJSON(c, &in, true); err != nil {
		return action.Decision{}, err
	}
	var faults []problem.Field
	if in.Decision != "approve" && in.Decision != "deny" {
		faults = append(faults, problem.Field{Loc: []string{"body", "decision"}, Msg: "must be approve or deny"})
	}
	d := action.Decision{Approve: in.Decision == "approve"}
	if in.Reason != nil {
		d.Reason = *in.Reason
		if len([]rune(d.Reason)) > maxReason {
			faults = append(faults, problem.Field{Loc: []string{"body", "reason"}, Msg: "must have at most 1000 characters"})
		}
	}
	if len(faults) > 0 {
		return action.Decision{}, fault.Invalid(faults...)
	}
	return d, nil
}
