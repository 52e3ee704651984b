package idp

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/trust"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/session"
)

// Enabled reports whether any provider is configured. Those of a faulty file are, only not believed.
func (r *Registry) Enabled() bool {
	s := r.state.Load()
	return s.fault != nil || len(s.providers) > 0
}

const challenge = `Bearer realm="dashboard", error="invalid_token"`

func untrusted(detail string, cause error) *problem.Error {
	return fault.ProviderUntrusted.New(detail).WithHeader("WWW-Authenticate", challenge).WithCause(cause)
}

func invalidToken(detail string, cause error) *problem.Error {
	return fault.InvalidToken.New(detail).WithHeader("WWW-Authenticate", challenge).WithCause(cause)
}

// faulty returns the 401 for every federated credential while the trust file has a fault.
func (s *state) faulty() error {
	return untrusted("The trust file of the identity providers has a fault, so none of them is believed; the operator finds its line in /readyz.", s.fault)
}

// Bearer verifies an access token. providerHint, the header X-PLATFORM-IDP, picks the provider of an opaque one, which
// is asked only if mayAsk agrees. The error is a problem: 401, 403 no_role, or mayAsk's.
func (r *Registry) Bearer(ctx context.Context, raw, providerHint string, mayAsk func() error) (caller.Caller, error) {
	s := r.state.Load()
	if s.fault != nil {
		return caller.Caller{}, s.faulty()
	}
	p, claims, err := s.verifyBearer(ctx, raw, providerHint, mayAsk)
	if err != nil {
		return caller.Caller{}, bearerProblem(err)
	}
	id, err := p.trust.Identify(claims, true)
	if err != nil {
		return caller.Caller{}, identityProblem(err)
	}
	who := caller.Caller{
		Subject: id.Principal, Name: id.Name, Tenant: id.Tenant, Role: caller.Role(id.Role), Method: caller.IDPBearer,
		Provider: p.Name(), ACR: claims.text("acr"), SessionID: sessionOf(raw),
	}
	who.AuthTime, _ = claims.time("auth_time")
	if exp, ok := claims.time("exp"); ok {
		who.ExpiresAt = exp
	} else { // an opaque token whose expiry the provider does not report: as long as its introspection is cached
		who.ExpiresAt = r.cfg.Now().Add(goodFor)
	}
	return who, nil
}

// sessionOf identifies the session of a verified bearer. For a JWT it is the digest of its claims, decoded: base64 and
// signatures have several spellings, and a logout would end only one of them.
func sessionOf(raw string) string {
	if parts := strings.Split(raw, "."); len(parts) == 3 {
		if claims, err := base64.RawURLEncoding.DecodeString(parts[1]); err == nil {
			raw = string(claims)
		}
	}
	sum := sha256.Sum256([]byte(raw))
	return hex.EncodeToString(sum[:16])
}

// verifyBearer finds the token's provider and verifies the token.
func (s *state) verifyBearer(ctx context.Context, raw, hint string, mayAsk func() error) (*Provider, claimSet, error) {
	if _, claims, ok := peek(raw); ok {
		// Unverified, iss only picks the provider; the signature check then proves or rejects that choice.
		p := s.find(func(t *trust.Provider) bool { return t.Issuer == claims.text("iss") })
		if p == nil {
			return nil, nil, untrusted("The issuer of this token is not an identity provider that the platform trusts.", nil)
		}
		verified, err := p.verifyAccessToken(ctx, raw)
		return p, verified, err
	}
	p, err := s.opaqueProvider(hint)
	if err != nil {
		return nil, nil, err
	}
	claims, err := p.opaque.look(ctx, raw, mayAsk)
	return p, claims, err
}

// opaqueProvider returns the provider that introspects an opaque token.
func (s *state) opaqueProvider(hint string) (*Provider, error) {
	var able []string
	for _, p := range s.providers {
		if p.opaque != nil {
			able = append(able, p.Name())
		}
	}
	name := hint
	switch {
	case len(able) == 0:
		return nil, invalidToken("This credential is neither a token of the dashboard nor one of a trusted identity provider.", nil)
	case hint == "" && len(able) > 1:
		return nil, invalidToken("This token does not say who issued it; name the identity provider in the header X-PLATFORM-IDP.", nil)
	case hint == "":
		name = able[0]
	}
	p := s.find(func(t *trust.Provider) bool { return t.Name == name && t.Introspection != nil })
	if p == nil {
		return nil, untrusted("The header X-PLATFORM-IDP names no identity provider that can be asked about tokens; use one of "+strings.Join(able, ", ")+".", nil)
	}
	return p, nil
}

// bearerProblem returns the answer to a bearer that could not be verified. The exact cause is for the log, except the
// text of ErrToken, which contains nothing of the token and helps its owner to correct it.
func bearerProblem(err error) error {
	var p *problem.Error
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, ErrToken):
		return invalidToken("The access token is refused: "+strings.TrimPrefix(err.Error(), ErrToken.Error()+": ")+".", err)
	case errors.Is(err, context.Canceled):
		return err
	}
	return invalidToken("The identity provider of this token does not answer, so the token cannot be verified; try again in a moment.", err)
}

func identityProblem(err error) error {
	switch {
	case errors.Is(err, trust.ErrNoRole):
		return fault.NoRole.New("The identity provider vouches for this account, but no rule of the trust file gives it a role; ask the platform's operator.").WithCause(err)
	case errors.Is(err, trust.ErrDenied):
		return invalidToken("This account is disabled on the platform; ask its operator.", err)
	}
	return invalidToken("The identity provider does not say who this is in the way that the trust file expects; ask the platform's operator.", err)
}

// Admit returns the 401 for a browser session that the current trust file would not allow, else nil. It answers from
// memory.
func (r *Registry) Admit(_ context.Context, d session.Data) error {
	s := r.state.Load()
	if s.fault != nil {
		return s.faulty()
	}
	p := s.find(func(t *trust.Provider) bool { return t.Name == d.Provider && t.Dashboard != nil })
	if p == nil {
		return untrusted("The identity provider of this session is not trusted any more; sign in again.", nil)
	}
	if iss, _ := d.Claims["iss"].(string); iss != p.Issuer() { // the name now refers to another provider
		return untrusted("The identity provider of this session is not the one of that name any more; sign in again.", nil)
	}
	id, err := p.Identify(d.Claims)
	switch {
	case errors.Is(err, trust.ErrNoRole):
		return invalidToken("No rule of the trust file gives this account a role any more; sign in again, or ask the platform's operator.", err)
	case err != nil:
		return identityProblem(err)
	case id.Principal != d.Subject || id.Tenant != d.Tenant:
		return invalidToken("The trust file now knows this account by another name or tenant; sign in again.", nil)
	case !caller.Role(id.Role).Covers(d.Role):
		return invalidToken("The trust file now gives this account a lesser role; sign in again.", nil)
	}
	return nil
}

// Basis returns a fingerprint of the trust file and its secrets; empty while it has a fault.
func (r *Registry) Basis() string {
	s := r.state.Load()
	if s.fault != nil {
		return ""
	}
	return hex.EncodeToString(s.digest[:16])
}

// loginPath returns where a browser begins to sign in at a provider.
func loginPath(name string) string { return "/api/auth/sso/" + name + "/login" }

// LoginPath returns where a browser begins to sign in at the provider.
func (p *Provider) LoginPath() string { return loginPath(p.Name()) }

// StepUp returns a provider's requirements for guarded actions. Those of a removed provider cannot be met.
func (r *Registry) StepUp(provider string) (acrValues []string, maxAge time.Duration, loginURL string, required bool) {
	p := r.state.Load().find(func(t *trust.Provider) bool { return t.Name == provider })
	if p == nil {
		return nil, 0, "", true
	}
	t := p.trust
	if t.StepUp == nil {
		return nil, 0, "", false
	}
	if t.Dashboard != nil {
		loginURL = p.LoginPath() + "?step_up=true"
	}
	return t.StepUp.ACRValues, t.StepUp.MaxAge, loginURL, true
}
