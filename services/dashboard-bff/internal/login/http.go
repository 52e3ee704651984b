package login

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/announce"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/session"
)

// Config of New.
type Config struct {
	Guard      *access.Guard
	Limits     *access.Limits
	Tokens     *session.Tokens
	Sessions   *session.Manager
	Federation access.Federation `part:"optional"` // nil: no identity provider

	Viewer, Admin service.Secret // passwords
	LocalLogin    bool
	Tenant        string // of password sessions
}

// Handlers serve /api/auth.
type Handlers struct{ cfg Config }

// New refuses a missing part.
func New(cfg Config) (*Handlers, error) {
	if err := service.RequireParts("login", cfg); err != nil {
		return nil, err
	}
	if cfg.LocalLogin && (cfg.Viewer == "" || cfg.Admin == "") {
		return nil, errors.New("login: both passwords must be given")
	}
	return &Handlers{cfg}, nil
}

// Login exchanges a password for a token. The route is public, behind Guard.Public(access.Login).
func (h *Handlers) Login(c echo.Context) error {
	c.Response().Header().Set("Cache-Control", "no-store")
	if !h.cfg.LocalLogin {
		return fault.LocalLoginDisabled.New("Password login is switched off here; sign in with your organisation's account, see /api/auth/sso/providers.")
	}
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	var body struct {
		Password *string `json:"password"`
	}
	if err := service.DecodeJSON(c, &body, true); err != nil {
		return renameValidation(err)
	}
	if body.Password == nil {
		return fault.ValidationFailed.New("body.password: is missing; send the password as a string.").
			WithErrors(problem.Field{Loc: []string{"body", "password"}, Msg: "is missing"})
	}
	role, known := h.roleOf(service.Secret(*body.Password))
	if !known {
		return h.refuse(c)
	}
	token, who, err := h.cfg.Tokens.Mint(role)
	if err != nil {
		return err
	}
	if err := h.recordLogin(c, who); err != nil {
		return fault.StoreUnavailable.New("The login could not be recorded, so it did not happen; try again shortly.").WithCause(err)
	}
	return c.JSON(http.StatusOK, api.Login{Token: token, Role: api.Role(who.Role), ExpiresAt: who.ExpiresAt, Tenant: who.Tenant})
}

// renameValidation gives faults of bodies the dashboard's own code.
func renameValidation(err error) error {
	var p *problem.Error
	if !errors.As(err, &p) || p.Kind.Code != problem.Validation.Code {
		return err
	}
	renamed := *p
	renamed.Kind = fault.ValidationFailed
	return &renamed
}

// roleOf compares with both passwords whatever the first says. Neither is empty, see New.
func (h *Handlers) roleOf(password service.Secret) (caller.Role, bool) {
	viewer, admin := equalSecrets(password, h.cfg.Viewer), equalSecrets(password, h.cfg.Admin)
	switch {
	case admin:
		return caller.Admin, true
	case viewer:
		return caller.Viewer, true
	}
	return "", false
}

func (h *Handlers) refuse(c echo.Context) error {
	ctx := c.Request().Context()
	address := h.cfg.Guard.Address(c.Request())
	h.cfg.Limits.NoteBadLogin(ctx, address)
	nobody := caller.Caller{Subject: "anonymous", Tenant: h.cfg.Tenant}
	h.cfg.Guard.RecordQuietly(ctx, announce.Audit(ctx, nobody, "auth.login_failed", target, announce.Denied, map[string]any{"address": address.String()}))
	return h.cfg.Guard.Count(access.Unauthorized(fault.InvalidPassword.New("The password is wrong; it must be that of the viewers or of the admins.")))
}

// recordLogin writes the fact before the token is issued: a login that leaves no record must not happen.
func (h *Handlers) recordLogin(c echo.Context, who caller.Caller) error {
	ctx := c.Request().Context()
	details := map[string]any{"role": string(who.Role), "method": string(who.Method), "address": h.cfg.Guard.Address(c.Request()).String()}
	facts := []string{"auth.login"}
	if h.federated() {
		facts = append(facts, "auth.break_glass")
	}
	return h.cfg.Guard.Record(ctx, describe(ctx, who, details, facts...)...)
}

// target is the target of this package's audit facts.
const target = "auth:password"

// describe returns one audit fact for each action.
func describe(ctx context.Context, who caller.Caller, details map[string]any, actions ...string) []outbox.Event {
	facts := make([]outbox.Event, len(actions))
	for i, action := range actions {
		facts[i] = announce.Audit(ctx, who, action, target, announce.OK, details)
	}
	return facts
}

func (h *Handlers) federated() bool { return h.cfg.Federation != nil && h.cfg.Federation.Enabled() }

// Logout ends the caller's session on every replica, and that of a cookie beside a bearer.
func (h *Handlers) Logout(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	ctx := c.Request().Context()
	who := caller.From(c)
	if who.Method != caller.SSO { // a bearer has no state that could be deleted
		if err := h.cfg.Tokens.Revoke(ctx, who); err != nil {
			return err
		}
	}
	_, err := h.cfg.Sessions.End(c)
	if fault.SessionStoreUnavailable.Has(err) {
		return err
	}
	details := map[string]any{"method": string(who.Method)}
	h.cfg.Guard.RecordQuietly(ctx, announce.Audit(ctx, who, "auth.logout", "auth:"+string(who.Method), announce.OK, details))
	return c.NoContent(http.StatusNoContent)
}

// Me returns the caller's identity.
func (h *Handlers) Me(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	who := caller.From(c)
	return c.JSON(http.StatusOK, api.Identity{
		Sub: who.Subject, Name: optional(who.Name), Idp: optional(who.Provider), Role: api.Role(who.Role), Tenant: who.Tenant,
		Capabilities: who.Capabilities(), AuthMethod: api.IdentityAuthMethod(who.Method), Acr: optional(who.ACR),
		AuthTime: who.AuthTime, ExpiresAt: who.ExpiresAt, BreakGlass: who.BreakGlass,
	})
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
