package action

import (
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant/internal/caller"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/limit"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

// maxDecision limits the body of a decision, in bytes, and maxReason its reason, in characters.
const (
	maxDecision = 16 << 10
	maxReason   = 1000
)

// listPage is one page of the actions of a session.
type listPage struct {
	Items []Action `json:"items"`
	Next  *string  `json:"next_cursor"` // null: this is the last page
}

// ServeList answers with all actions of a session for its owner and for admins, and for others with those they may
// decide.
func (s *Service) ServeList(c echo.Context) error {
	most, err := service.PageLimit(c)
	if err != nil {
		return err
	}
	var at After
	from := &at
	if ok, err := service.Cursor(c, &at); err != nil {
		return err
	} else if !ok {
		from = nil
	}
	ctx, w := c.Request().Context(), caller.Who(c)
	row, err := s.Store.GetSession(ctx, store.Text(c.Param("session_id")))
	if store.None(err) || err == nil && !ownsSession(w, row) && w.Role == guard.Readonly {
		return noSession()
	}
	if err != nil {
		return err
	}
	all, err := s.Page(ctx, row.ID, from, int32(most)+1)
	if err != nil {
		return err
	}
	p := listPage{Items: []Action{}}
	if len(all) > most {
		all = all[:most]
		next := service.EncodeCursor(c.Path(), After{ProposedAt: all[most-1].ProposedAt, ID: all[most-1].ID})
		p.Next = &next
	}
	for _, x := range all {
		if ownsSession(w, row) || s.mayDecide(w, x) {
			p.Items = append(p.Items, x)
		}
	}
	if len(p.Items) == 0 && p.Next == nil && !ownsSession(w, row) { // nothing in it is visible to this caller
		return noSession()
	}
	return c.JSON(http.StatusOK, p)
}

func (s *Service) mayDecide(w event.Who, x Action) bool {
	return s.Judge(w.Role, x.Operations).Answer != guard.Refuse
}

// actionOf returns the action of a request. For a caller who may neither read nor decide it, the action does not exist.
func (s *Service) actionOf(c echo.Context, w event.Who) (Action, error) {
	missing := fault.ActionNotFound.New("There is no such action in this session.")
	id, err := uuid.Parse(c.Param("action_id"))
	if err != nil || len(c.Param("action_id")) != 36 || !chat.ValidSessionID(c.Param("session_id")) {
		return Action{}, missing
	}
	ctx := c.Request().Context()
	x, err := s.Get(ctx, id)
	if err != nil {
		return x, err
	}
	if x.Session != c.Param("session_id") {
		return x, missing
	}
	if s.mayDecide(w, x) {
		return x, nil
	}
	row, err := s.Store.GetSession(ctx, x.Session)
	if store.None(err) || err == nil && !ownsSession(w, row) {
		return x, missing
	}
	return x, err
}

// ServeOne answers with one action.
func (s *Service) ServeOne(c echo.Context) error {
	x, err := s.actionOf(c, caller.Who(c))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, x)
}

// ServeDecision answers once the decision is durable; an approved action runs in the session's next turn.
func (s *Service) ServeDecision(c echo.Context) error {
	w := caller.Who(c)
	if w.Role == guard.Readonly {
		return fault.NotPermitted("Readonly callers decide nothing.")
	}
	d, err := readDecision(c)
	if err != nil {
		return err
	}
	x, err := s.actionOf(c, w)
	if err != nil {
		return err
	}
	done, err := s.Decide(c.Request().Context(), w, x.ID, d)
	if err != nil {
		if fault.Forbidden.Has(err) {
			caller.MarkRecorded(c) // by Decide, with the action
		}
		return clusterFault(err)
	}
	return c.JSON(http.StatusOK, done)
}

func readDecision(c echo.Context) (Decision, error) {
	var in struct {
		Decision string  `json:"decision"`
		Reason   *string `json:"reason"`
	}
	if err := limit.Body(c, maxDecision); err != nil {
		return Decision{}, err
	}
	if err := service.DecodeJSON(c, &in, true); err != nil {
		return Decision{}, err
	}
	var faults []problem.Field
	if in.Decision != "approve" && in.Decision != "deny" {
		faults = append(faults, problem.Field{Loc: []string{"body", "decision"}, Msg: "must be approve or deny"})
	}
	d := Decision{Approve: in.Decision == "approve"}
	if in.Reason != nil {
		d.Reason = *in.Reason
		if len([]rune(d.Reason)) > maxReason {
			faults = append(faults, problem.Field{Loc: []string{"body", "reason"}, Msg: "must have at most 1000 characters"})
		}
	}
	if len(faults) > 0 {
		return Decision{}, fault.Invalid(faults...)
	}
	return d, nil
}

// clusterFault maps the errors of a read from the cluster to their responses.
func clusterFault(err error) error {
	var known *problem.Error
	var refused *Refused
	var wrong *operation.Fault
	switch {
	case errors.As(err, &known), postgres.Unavailable(err):
		return err
	case errors.As(err, &refused):
		return fault.NotPermitted(refused.Reason)
	case errors.As(err, &wrong):
		return problem.Conflict.New("The cluster would not take this change now: " + wrong.Error()).WithCause(err)
	}
	return fault.ClusterUnavailable.New("The cluster could not be asked, so nothing was decided; try again.").WithCause(err).After(5 * time.Second)
}

func noSession() error { return fault.SessionNotFound.New("There is no such session.") }

func ownsSession(w event.Who, row store.Session) bool {
	return w.Role == guard.Admin || row.Owner == w.Principal
}
