package access

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/session"
)

// challenge is the WWW-Authenticate header of a 401.
const challenge = `Bearer realm="dashboard"`

// Unauthorized adds the header that every 401 must have; other errors are unchanged.
func Unauthorized(err error) error {
	var p *problem.Error
	if !errors.As(err, &p) || p.Status() != http.StatusUnauthorized || p.Header.Get("WWW-Authenticate") != "" {
		return err
	}
	return p.WithHeader("WWW-Authenticate", challenge)
}

// identify determines who sent the request. A bearer, valid or not, takes precedence over the cookie, because a client
// sends one deliberately.
func (g *Guard) identify(c echo.Context) (who caller.Caller, byCookie bool, err error) {
	bearer, err := bearerOf(c.Request())
	switch {
	case err == nil:
		who, err = g.verifyBearer(c, bearer)
	case errors.Is(err, errNoCredential):
		byCookie = true
		who, err = g.verifyCookie(c)
	}
	return who, byCookie, Unauthorized(err)
}

// maxBearer limits a bearer's text, in bytes; access tokens with many groups have some KiB.
const maxBearer = 16 << 10

// bearerOf returns the request's bearer, which may be empty; errNoCredential without one. Other schemes are ignored: a
// proxy in front of the dashboard may use its own password authentication.
func bearerOf(r *http.Request) (string, error) {
	values := r.Header.Values("Authorization")
	for _, v := range values {
		scheme, token, _ := strings.Cut(strings.TrimLeft(v, " \t"), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			continue
		}
		token = strings.TrimSpace(token)
		if len(values) > 1 || len(token) > maxBearer { // the intended one of two cannot be known
			return "", fault.InvalidToken.New("Send one Authorization header, with one bearer token of at most 16 KiB.")
		}
		return token, nil
	}
	return "", errNoCredential
}

func (g *Guard) verifyBearer(c echo.Context, token string) (caller.Caller, error) {
	ctx := c.Request().Context()
	if token == "" {
		return caller.Caller{}, fault.InvalidToken.New("The bearer token is empty; sign in again.")
	}
	if algorithmOf(token) == "HS256" {
		who, err := g.cfg.Tokens.Verify(ctx, token)
		who.BreakGlass = err == nil && g.federated()
		return who, err
	}
	if g.cfg.Federation == nil {
		return caller.Caller{}, fault.InvalidToken.New("This token is not a dashboard token, and no identity provider is configured here; sign in again.")
	}
	hint := c.Request().Header.Get("X-PLATFORM-IDP")
	basis := g.cfg.Federation.Basis() // read before the credential is judged, so that a stale mark can only refuse
	who, err := g.cfg.Federation.Bearer(ctx, token, hint, func() error {
		return g.cfg.Limits.checkAddress(ctx, Introspection, g.Address(c.Request()))
	})
	who.Basis = basis
	if err != nil {
		return caller.Caller{}, err
	}
	c.SetRequest(c.Request().WithContext(withCredential(ctx, credential{bearer: token, hint: hint})))
	return who, g.cfg.Tokens.CheckRevoked(ctx, who)
}

// algorithmOf reads alg of a JWT's header, unverified: it only picks who verifies, each with algorithms of their own.
func algorithmOf(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[0])
	if err != nil {
		return ""
	}
	var header struct {
		Algorithm string `json:"alg"`
	}
	if json.Unmarshal(raw, &header) != nil {
		return ""
	}
	return header.Algorithm
}

func (g *Guard) verifyCookie(c echo.Context) (caller.Caller, error) {
	d, id, err := g.cfg.Sessions.Current(c)
	switch {
	case errors.Is(err, session.ErrNoSession):
		return caller.Caller{}, fault.Unauthenticated.New("This needs a sign-in: send a bearer token or a session cookie.")
	case err != nil:
		return caller.Caller{}, err
	case g.cfg.Federation == nil:
		return caller.Caller{}, fault.ProviderUntrusted.New("The identity provider of this session is not configured any more; sign in again.")
	}
	r := c.Request()
	basis := g.cfg.Federation.Basis()
	if err := g.cfg.Federation.Admit(r.Context(), d); err != nil {
		return caller.Caller{}, err
	}
	c.SetRequest(r.WithContext(withCredential(r.Context(), credential{data: d})))
	return caller.Caller{
		Subject: d.Subject, Name: d.Name, Tenant: d.Tenant, Role: d.Role, Method: caller.SSO, Provider: d.Provider,
		ACR: d.ACR, AuthTime: d.AuthTime, SessionID: id, ExpiresAt: d.CreatedAt.Add(g.cfg.Sessions.Lifetime()),
		Basis: basis,
	}, nil
}
