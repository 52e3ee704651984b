// Package sso signs people in at identity providers: OpenID Connect's code flow with PKCE, RFC 9207 and RFC 9470.
//
// A sign-in leaves with a state that one browser can redeem once within ten minutes, and comes back to Callback, which
// checks in this order: the browser's key, the attempt, the issuer, the provider's error, the code, the ID token, the
// level of a step-up, the deny list, the role. Only then is there a session.
package sso

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/oauth2"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/announce"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/idp"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/sealing"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/session"
)

// Records keep sign-ins under way; session.Store is one.
type Records interface {
	Put(ctx context.Context, key string, value []byte, ttl time.Duration) error
	// Take gives the value to exactly one of several callers, the others session.ErrNotFound.
	Take(ctx context.Context, key string) ([]byte, error)
	Delete(ctx context.Context, key string) error
}

// Sessions begin and end browser sessions; *session.Manager does.
type Sessions interface {
	Begin(c echo.Context, d session.Data) error
	Current(c echo.Context) (session.Data, string, error)
	End(c echo.Context) (session.Data, error)
}

// Ledger writes audit facts; *access.Guard does.
type Ledger interface {
	Record(ctx context.Context, facts ...outbox.Event) error
	// RecordQuietly is for facts of acts that stand even if the fact cannot be written.
	RecordQuietly(ctx context.Context, facts ...outbox.Event)
}

// Config of New.
type Config struct {
	Providers *idp.Registry
	Records   Records
	Sessions  Sessions
	Ledger    Ledger
	Keys      *sealing.Keys
	Cookies   session.Cookies
	// PublicURL is the dashboard's origin, as browsers and providers know it.
	PublicURL string
	// LocalLogin reports whether the login page offers a password too.
	LocalLogin bool
	Log        *slog.Logger
	Now        func() time.Time
}

// Handlers serve /api/auth/sso.
type Handlers struct{ cfg Config }

// CallbackPath is the redirect URI's, as it is registered at providers.
const CallbackPath = "/api/auth/sso/callback"

// New refuses a missing part.
func New(cfg Config) (*Handlers, error) {
	if err := service.RequireParts("sso", cfg); err != nil {
		return nil, err
	}
	u, err := url.Parse(cfg.PublicURL)
	if err != nil || u.Host == "" || u.Path != "" {
		return nil, errors.New("sso: PublicURL must be an origin such as https://dashboard.example.org")
	}
	return &Handlers{cfg}, nil
}

// Providers lists the providers that people can sign in with; none while the trust file has a fault. The route is
// public.
func (h *Handlers) Providers(c echo.Context) error {
	if _, err := readQuery(c); err != nil {
		return err
	}
	list := api.Providers{Providers: []api.Provider{}, LocalLogin: h.cfg.LocalLogin}
	for _, p := range h.cfg.Providers.Providers() {
		shown := api.Provider{Name: p.Name(), DisplayName: p.DisplayName(), LoginUrl: p.LoginPath(), StepUp: p.StepUp() != nil}
		if cli := p.CLI(); cli != nil {
			shown.Cli = &api.ProviderCLI{Issuer: p.Issuer(), ClientId: cli.ClientID, Scopes: cli.Scopes}
		}
		list.Providers = append(list.Providers, shown)
	}
	return c.JSON(http.StatusOK, list)
}

// readQuery refuses parameters that the route does not have or that are repeated.
func readQuery(c echo.Context, known ...string) (url.Values, error) {
	q := c.QueryParams()
	var fields []problem.Field
	for _, name := range slices.Sorted(maps.Keys(q)) {
		switch {
		case !slices.Contains(known, name):
			msg := "unknown parameter; this route has none"
			if len(known) > 0 {
				msg = "unknown parameter; this route has " + strings.Join(known, ", ")
			}
			fields = append(fields, problem.Field{Loc: []string{"query", name}, Msg: msg})
		case len(q[name]) > 1:
			fields = append(fields, problem.Field{Loc: []string{"query", name}, Msg: "is there twice"})
		}
	}
	if fields != nil {
		return nil, fault.ValidationFailed.Errorf("query.%s: %s.", fields[0].Loc[1], fields[0].Msg).WithErrors(fields...)
	}
	return q, nil
}

// Login sends the browser to the provider, to sign in or to step up. The route is public.
func (h *Handlers) Login(c echo.Context) error {
	c.Response().Header().Set("Cache-Control", "no-store")
	q, err := readQuery(c, "return_to", "step_up")
	if err != nil {
		return err
	}
	stepUp := q.Get("step_up")
	if stepUp != "" && stepUp != "true" && stepUp != "false" {
		return fault.ValidationFailed.New("query.step_up: must be true or false.").
			WithErrors(problem.Field{Loc: []string{"query", "step_up"}, Msg: "must be true or false"})
	}
	address, err := h.begin(c, safeReturnTo(q.Get("return_to")), stepUp == "true")
	if err != nil {
		return h.refuseLogin(c, err)
	}
	return c.Redirect(http.StatusFound, address)
}

func (h *Handlers) begin(c echo.Context, returnTo string, stepUp bool) (address string, err error) {
	ctx := c.Request().Context()
	p, err := h.cfg.Providers.Provider(c.Param("provider"))
	if err != nil {
		return "", err
	}
	a := attempt{
		Provider: p.Name(), Issuer: p.Issuer(), Verifier: oauth2.GenerateVerifier(), ReturnTo: returnTo,
		StartedAt: h.cfg.Now().UTC(), StepUp: stepUp,
	}
	if a.Nonce, err = newRandom(); err != nil {
		return "", err
	}
	// The request comes from our own page, so it has the session cookie, unlike the provider's answer.
	switch d, id, err := h.cfg.Sessions.Current(c); {
	case err == nil:
		a.SessionID = id
		if stepUp {
			a.Principal = d.Subject
		}
	case fault.SessionStoreUnavailable.Has(err):
		return "", err
	}
	key := h.browserKey(c.Request())
	if key == "" {
		if key, err = newRandom(); err != nil {
			return "", err
		}
	}
	// Before the attempt is stored: a provider that does not answer leaves nothing behind.
	if _, err := p.RequiresIssuer(ctx); err != nil {
		return "", err
	}
	state, err := h.put(ctx, a, key)
	if err != nil {
		return "", err
	}
	address, err = p.AuthCodeURL(ctx, idp.AuthRequest{
		RedirectURI: h.redirectURI(), State: state, Nonce: a.Nonce, Verifier: a.Verifier, StepUp: stepUp,
	})
	if err == nil {
		h.setBrowserKey(c, key)
	}
	return address, err
}

func (h *Handlers) redirectURI() string { return h.cfg.PublicURL + CallbackPath }

// refuseLogin answers a problem to programs and the login page with its code to browsers.
func (h *Handlers) refuseLogin(c echo.Context, err error) error {
	var p *problem.Error
	switch {
	case errors.As(err, &p):
	case errors.Is(err, idp.ErrUnknownProvider):
		p = fault.UnknownProvider.New("There is no identity provider of this name to sign in at; /api/auth/sso/providers lists them.")
	case errors.Is(err, idp.ErrFaultyFile):
		p = fault.TrustFileInvalid.New("The trust file of the identity providers has a fault; the operator finds its line in /readyz.").WithCause(err)
	case errors.Is(err, idp.ErrUnreachable):
		p = fault.IDPUnreachable.New("The identity provider does not answer as it must; try again, or ask its operator.").WithCause(err)
	default:
		return err
	}
	if !isNavigation(c.Request()) {
		return p
	}
	h.cfg.Log.WarnContext(c.Request().Context(), "sign-in not begun", slog.String("code", p.Kind.Code), slog.Any("err", p))
	return redirectError(c, p.Kind.Code)
}

// isNavigation reports whether a request is a browser navigation, whose response a person sees.
func isNavigation(r *http.Request) bool {
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}

// redirectError shows the login page with the reason.
func redirectError(c echo.Context, reason string) error {
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.Redirect(http.StatusFound, "/?sso_error="+url.QueryEscape(reason))
}

// Logout ends the browser session here and returns where it can be ended at the provider. Any caller may.
func (h *Handlers) Logout(c echo.Context) error {
	if _, err := readQuery(c); err != nil {
		return err
	}
	ctx := c.Request().Context()
	d, err := h.cfg.Sessions.End(c)
	if fault.SessionStoreUnavailable.Has(err) {
		return err
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	answer := api.SSOLogout{Ok: true}
	if err != nil || d.Subject == "" { // a bearer, or a session that had ended already
		return c.JSON(http.StatusOK, answer)
	}
	who := caller.Caller{Subject: d.Subject, Tenant: d.Tenant}
	h.cfg.Ledger.RecordQuietly(ctx, announce.Audit(ctx, who, "auth.logout", target(d.Provider), announce.OK, map[string]any{
		"provider": d.Provider, "role": string(d.Role), "acr": d.ACR, "method": string(caller.SSO),
	}))
	if p, err := h.cfg.Providers.Provider(d.Provider); err == nil {
		if end := p.EndSessionURL(ctx, d.IDToken, h.cfg.PublicURL+"/"); end != "" {
			answer.EndSessionUrl = &end
		}
	}
	return c.JSON(http.StatusOK, answer)
}

// target returns the target of this package's audit facts.
func target(provider string) string { return "provider:" + provider }
