package sso

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/trust"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/announce"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/idp"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/session"
)

// Reasons of sso_error, beside idp_<the provider's error>.
const (
	sessionExpired  = "session_expired"
	stateMismatch   = "state_mismatch"
	unknownProvider = "unknown_provider"
	idpUnreachable  = "idp_unreachable"
	loginRejected   = "login_rejected"
	stepUpNotMet    = "step_up_not_met"
	accountDisabled = "account_disabled"
	noRole          = "no_role"
)

// refusal is why a sign-in failed. cause is for the log.
type refusal struct {
	reason string
	cause  error
}

func (r *refusal) Error() string {
	if r.cause == nil {
		return r.reason
	}
	return r.reason + ": " + r.cause.Error()
}

func (r *refusal) Unwrap() error { return r.cause }

func refuse(reason string, cause error) error { return &refusal{reason, cause} }

// Callback takes the provider's answer: it begins a session and redirects to the requested page, or back to the login
// page with the reason. The route is public.
func (h *Handlers) Callback(c echo.Context) error {
	c.Response().Header().Set("Cache-Control", "no-store")
	r := c.Request()
	a, err := h.claimAnswer(r)
	if err == nil {
		err = h.signIn(c, a)
	}
	if err == nil {
		return c.Redirect(http.StatusFound, a.ReturnTo)
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	var why *refusal
	if !errors.As(err, &why) { // the session store or the ledger
		var p *problem.Error
		if !errors.As(err, &p) {
			p = problem.From(err)
		}
		why = &refusal{p.Kind.Code, err}
	}
	h.cfg.Log.WarnContext(r.Context(), "sign-in refused", slog.String("reason", why.reason), slog.String("provider", a.Provider), slog.Any("err", why.cause))
	return redirectError(c, why.reason)
}

// claimAnswer finds the attempt that this browser began and spends it.
func (h *Handlers) claimAnswer(r *http.Request) (attempt, error) {
	key := h.browserKey(r)
	if key == "" {
		return attempt{}, refuse(sessionExpired, errors.New("no browser key"))
	}
	state, ok := single(r.URL.Query(), "state")
	if !ok {
		return attempt{}, refuse(stateMismatch, errors.New("no state"))
	}
	a, err := h.claim(r.Context(), state, key)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return attempt{}, refuse(stateMismatch, err)
	case err != nil:
		return attempt{}, err
	case h.cfg.Now().Sub(a.StartedAt) > attemptFor:
		return a, refuse(sessionExpired, errors.New("the sign-in took too long"))
	}
	return a, nil
}

// single returns a parameter that occurs once.
func single(q url.Values, name string) (string, bool) {
	v := q[name]
	if len(v) != 1 {
		return "", false
	}
	return v[0], true
}

// signIn checks the answer to the attempt and begins the session.
func (h *Handlers) signIn(c echo.Context, a attempt) error {
	r := c.Request()
	ctx := r.Context()
	p, err := h.cfg.Providers.Provider(a.Provider)
	if err != nil || p.Issuer() != a.Issuer {
		return refuse(unknownProvider, err)
	}
	got, err := h.redeem(ctx, p, a, r.URL.Query())
	if err == nil {
		err = h.admit(c, p, a, got)
	}
	h.recordRefusal(ctx, p, a, got, err)
	return err
}

// redeem checks issuer and error of the answer, then exchanges its code.
func (h *Handlers) redeem(ctx context.Context, p *idp.Provider, a attempt, q url.Values) (*idp.SignIn, error) {
	required, err := p.RequiresIssuer(ctx)
	if err != nil {
		return nil, refuse(idpUnreachable, err)
	}
	// Without it an answer of one provider could pass for another's (the mix-up attack of RFC 9207).
	if iss, ok := single(q, "iss"); ok && iss != p.Issuer() || !ok && (required || q.Has("iss")) {
		return nil, refuse(loginRejected, errors.New("the answer does not name the provider's issuer (iss)"))
	}
	if q.Has("error") {
		return nil, refuse("idp_"+idp.ErrorCode(q.Get("error")), errors.New("the provider refused"))
	}
	code, ok := single(q, "code")
	if !ok || code == "" {
		return nil, refuse(loginRejected, errors.New("the answer has no code"))
	}
	got, err := p.Exchange(ctx, idp.ExchangeRequest{Code: code, RedirectURI: h.redirectURI(), Verifier: a.Verifier, Nonce: a.Nonce})
	switch {
	case errors.Is(err, idp.ErrUnreachable):
		return nil, refuse(idpUnreachable, err)
	case err != nil:
		return nil, refuse(loginRejected, err)
	}
	return got, nil
}

// admit maps the person by the trust file and begins the session, once it is written down.
func (h *Handlers) admit(c echo.Context, p *idp.Provider, a attempt, got *idp.SignIn) error {
	ctx := c.Request().Context()
	id, identityErr := p.Identify(got.Claims)
	if id.Principal == "" {
		return refuse(loginRejected, identityErr)
	}
	if a.StepUp {
		if err := h.checkStepUp(p, a, got, id.Principal); err != nil {
			return refuse(stepUpNotMet, err)
		}
	}
	switch {
	case errors.Is(identityErr, trust.ErrDenied):
		return refuse(accountDisabled, identityErr)
	case errors.Is(identityErr, trust.ErrNoRole):
		return refuse(noRole, identityErr)
	case identityErr != nil:
		return refuse(loginRejected, identityErr)
	}
	who := caller.Caller{Subject: id.Principal, Tenant: id.Tenant}
	action := "auth.login"
	if a.StepUp {
		action = "auth.step_up"
	}
	// Before the session begins: a sign-in that leaves no record must not happen.
	fact := announce.Audit(ctx, who, action, target(p.Name()), announce.OK, map[string]any{
		"provider": p.Name(), "role": string(id.Role), "acr": got.ACR, "rules": id.Reasons, "method": string(caller.SSO),
	})
	if err := h.cfg.Ledger.Record(ctx, fact); err != nil {
		return fault.StoreUnavailable.New("The sign-in could not be recorded, so it did not happen; try again shortly.").WithCause(err)
	}
	if err := h.cfg.Sessions.Begin(c, session.Data{
		Subject: id.Principal, Name: id.Name, Tenant: id.Tenant, Role: caller.Role(id.Role), Provider: p.Name(),
		ProviderSubject: id.Subject, ACR: got.ACR, AuthTime: got.AuthTime, IDToken: got.IDToken, Claims: got.Claims,
	}); err != nil {
		return err
	}
	if a.SessionID != "" {
		if err := h.cfg.Records.Delete(ctx, session.Key(a.SessionID)); err != nil {
			h.cfg.Log.WarnContext(ctx, "the session before this sign-in ends by its own time", slog.Any("err", err))
		}
	}
	return nil
}

// checkStepUp returns why the sign-in is not the stronger and fresher one that was required, of the same person.
func (h *Handlers) checkStepUp(p *idp.Provider, a attempt, got *idp.SignIn, principal string) error {
	if a.Principal != "" && a.Principal != principal {
		return errors.New("another person signed in")
	}
	// To the second, as the claim is.
	if earliest := a.StartedAt.Add(-p.Leeway()).Truncate(1e9); got.AuthTime.IsZero() || got.AuthTime.Before(earliest) {
		return errors.New("the provider did not ask the person again (auth_time)")
	}
	if s := p.StepUp(); s != nil && len(s.ACRValues) > 0 && !slices.Contains(s.ACRValues, got.ACR) {
		return errors.New("the provider did not reach the required level (acr)")
	}
	return nil
}

// recordRefusal records who was refused. An answer that identifies no one is a failed sign-in.
func (h *Handlers) recordRefusal(ctx context.Context, p *idp.Provider, a attempt, got *idp.SignIn, err error) {
	var why *refusal
	if !errors.As(err, &why) {
		return
	}
	who := caller.Caller{Subject: "anonymous", Tenant: p.Tenant()}
	action, details := "auth.login_failed", map[string]any{"provider": p.Name(), "reason": why.reason, "step_up": a.StepUp, "method": string(caller.SSO)}
	if got != nil {
		action, details["acr"] = "auth.login_denied", got.ACR
		if id, _ := p.Identify(got.Claims); id.Principal != "" {
			who.Subject, details["rules"] = id.Principal, id.Reasons
			if id.Tenant != "" {
				who.Tenant = id.Tenant
			}
		}
	}
	h.cfg.Ledger.RecordQuietly(ctx, announce.Audit(ctx, who, action, target(p.Name()), announce.Denied, details))
}
