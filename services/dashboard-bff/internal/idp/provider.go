package idp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/oauth2"

	"github.com/mlp-platform/platform/libs/trust"
)

// Provider is an entry of the trust file with the documents fetched for it. It does not change; a changed entry is a
// new Provider.
type Provider struct {
	trust    *trust.Provider
	client   *http.Client
	now      func() time.Time
	metadata *cached[metadata]
	keys     *keySet
	opaque   *introspector // nil: opaque tokens are refused
}

func newProvider(t *trust.Provider, client *http.Client, now func() time.Time) *Provider {
	p := &Provider{trust: t, client: client, now: now}
	p.metadata = &cached[metadata]{now: now, load: func(ctx context.Context) (metadata, error) { return loadMetadata(ctx, client, t) }}
	p.keys = &keySet{published: &cached[[]jose.JSONWebKey]{now: now, load: p.loadKeys}, now: now}
	for _, a := range t.Algorithms {
		p.keys.algorithms = append(p.keys.algorithms, jose.SignatureAlgorithm(a))
	}
	if t.Introspection != nil {
		p.opaque = &introspector{p: p, known: map[[32]byte]lookedUp{}}
	}
	return p
}

func (p *Provider) loadKeys(ctx context.Context) ([]jose.JSONWebKey, error) {
	if len(p.trust.JWKS) > 0 {
		var doc map[string]json.RawMessage
		if err := json.NewDecoder(bytes.NewReader(p.trust.JWKS)).Decode(&doc); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		return parseKeys(doc)
	}
	address := p.trust.JWKSURI
	if p.trust.Discovery {
		m, err := p.metadata.get(ctx)
		if err != nil {
			return nil, err
		}
		address = m.JWKSURI
	}
	doc, err := getJSON(ctx, p.client, address)
	if err != nil {
		return nil, err
	}
	return parseKeys(doc)
}

// Name returns the provider's name in the trust file.
func (p *Provider) Name() string { return p.trust.Name }

// DisplayName returns the provider's name on the login page.
func (p *Provider) DisplayName() string { return p.trust.DisplayName }

// Issuer identifies the provider in tokens and authorization responses.
func (p *Provider) Issuer() string { return p.trust.Issuer }

// CLI returns the registration of the command line; nil without one.
func (p *Provider) CLI() *trust.Client { return p.trust.CLI }

// StepUp returns the requirements for guarded actions by the provider's people; nil: none.
func (p *Provider) StepUp() *trust.StepUp { return p.trust.StepUp }

// Leeway returns by how much the provider's clock may differ.
func (p *Provider) Leeway() time.Duration { return p.trust.Leeway }

// Tenant returns the tenant of all the provider's people; empty if a claim names it.
func (p *Provider) Tenant() string { return p.trust.Tenant }

// Identify maps the claims of a sign-in to a person: trust.ErrDenied, trust.ErrNoRole or trust.ErrClaims.
func (p *Provider) Identify(claims map[string]any) (trust.Identity, error) {
	return p.trust.Identify(claims, false)
}

// AuthRequest holds the inputs of a sign-in.
type AuthRequest struct {
	RedirectURI string
	State       string
	Nonce       string
	Verifier    string // of PKCE
	StepUp      bool
}

// AuthCodeURL returns where the browser signs in. The error wraps ErrUnreachable.
func (p *Provider) AuthCodeURL(ctx context.Context, r AuthRequest) (string, error) {
	cfg, _, err := p.oauthConfig(ctx, r.RedirectURI)
	if err != nil {
		return "", err
	}
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(r.Verifier), oauth2.SetAuthURLParam("nonce", r.Nonce)}
	if r.StepUp {
		options = append(options, oauth2.SetAuthURLParam("max_age", "0"), oauth2.SetAuthURLParam("prompt", "login"))
		if s := p.trust.StepUp; s != nil && len(s.ACRValues) > 0 {
			options = append(options, oauth2.SetAuthURLParam("acr_values", strings.Join(s.ACRValues, " ")))
		}
	}
	return cfg.AuthCodeURL(r.State, options...), nil
}

// RequiresIssuer reports whether the provider has said that its authorization responses name it (RFC 9207); one that
// does not is then another's.
func (p *Provider) RequiresIssuer(ctx context.Context) (bool, error) {
	m, err := p.metadata.get(ctx)
	return m.IssParameterSupported, err
}

func (p *Provider) oauthConfig(ctx context.Context, redirectURI string) (*oauth2.Config, metadata, error) {
	m, err := p.metadata.get(ctx)
	if err != nil {
		return nil, m, err
	}
	if m.AuthorizationEndpoint == "" || m.TokenEndpoint == "" {
		return nil, m, fmt.Errorf("%w: its discovery document names no authorization_endpoint or token_endpoint", ErrUnreachable)
	}
	// The method is chosen from the provider's metadata. Trying both, as oauth2 does by default, would spend the code
	// on the first.
	style := oauth2.AuthStyleInHeader
	switch d := p.trust.Dashboard; {
	case d.ClientSecret == "":
		style = oauth2.AuthStyleInParams
	case len(m.TokenAuthMethods) > 0 && !slices.Contains(m.TokenAuthMethods, "client_secret_basic") && slices.Contains(m.TokenAuthMethods, "client_secret_post"):
		style = oauth2.AuthStyleInParams
	}
	return &oauth2.Config{
		ClientID: p.trust.Dashboard.ClientID, ClientSecret: p.trust.Dashboard.ClientSecret.Reveal(), RedirectURL: redirectURI,
		Scopes:   p.trust.Dashboard.Scopes,
		Endpoint: oauth2.Endpoint{AuthURL: m.AuthorizationEndpoint, TokenURL: m.TokenEndpoint, AuthStyle: style},
	}, m, nil
}

// SignIn is a verified answer to a sign-in.
type SignIn struct {
	IDToken  string
	Claims   map[string]any
	ACR      string
	AuthTime time.Time // zero: the provider did not say
}

// ExchangeRequest is the state of a sign-in when its code comes back.
type ExchangeRequest struct {
	Code, RedirectURI, Verifier, Nonce string
}

// Exchange redeems the code and verifies the ID token: an error wraps ErrUnreachable or ErrToken.
func (p *Provider) Exchange(ctx context.Context, r ExchangeRequest) (*SignIn, error) {
	cfg, _, err := p.oauthConfig(ctx, r.RedirectURI)
	if err != nil {
		return nil, err
	}
	// The provider may have spent the code already when the browser goes away, so the answer is waited for.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*p.client.Timeout)
	defer cancel()
	token, err := cfg.Exchange(context.WithValue(ctx, oauth2.HTTPClient, p.client), r.Code, oauth2.VerifierOption(r.Verifier))
	if err != nil {
		return nil, exchangeError(err)
	}
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return nil, tokenError("the provider sent no ID token")
	}
	claims, err := p.verifyIDToken(ctx, raw, token.AccessToken, r.Nonce)
	if err != nil {
		return nil, err
	}
	authTime, _ := claims.time("auth_time")
	return &SignIn{IDToken: raw, Claims: keptClaims(claims), ACR: claims.text("acr"), AuthTime: authTime}, nil
}

// exchangeError distinguishes an answer that refuses the code from a missing answer. oauth2's own text contains the
// whole body.
func exchangeError(err error) error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) {
		if status := refused.Response.StatusCode; status >= 500 || status >= 300 && status < 400 {
			return fmt.Errorf("%w: its token endpoint answered %d", ErrUnreachable, status)
		}
		return tokenError("the provider refused the code (%s)", ErrorCode(refused.ErrorCode))
	}
	var ue *url.Error
	if errors.As(err, &ue) {
		return fmt.Errorf("%w: its token endpoint: %w", ErrUnreachable, ue.Err)
	}
	return tokenError("the provider's answer to the code cannot be used: %s", err)
}

// maxErrorCode limits what of a provider's error code is shown.
const maxErrorCode = 40

// ErrorCode returns a provider's error code, limited to letters, digits and underscores, never empty.
func ErrorCode(code string) string {
	code = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return -1
	}, code)
	if code == "" {
		return "error"
	}
	return code[:min(len(code), maxErrorCode)]
}

// protocolClaims say nothing of the person.
var protocolClaims = []string{"nonce", "at_hash", "c_hash", "s_hash", "jti", "exp", "nbf", "iat", "aud", "azp", "sid", "session_state"}

// keptClaims returns the claims that a session keeps, for the rules of the trust file.
func keptClaims(claims claimSet) map[string]any {
	kept := make(map[string]any, len(claims))
	for name, value := range claims {
		if !slices.Contains(protocolClaims, name) {
			kept[name] = value
		}
	}
	return kept
}

// maxURL limits the address of a logout. Servers commonly take 8 KB of a request line, the real provider that the
// tests use 4 KB.
const maxURL = 4000

// EndSessionURL returns where the browser ends its session at the provider (OpenID Connect RP-Initiated Logout 1.0);
// empty if the provider has no such address or does not answer. An ID token that does not fit into an address is left
// out; the provider then asks the person.
func (p *Provider) EndSessionURL(ctx context.Context, idToken, redirectURI string) string {
	m, err := p.metadata.get(ctx)
	if err != nil || m.EndSessionEndpoint == "" {
		return ""
	}
	u, err := url.Parse(m.EndSessionEndpoint)
	if err != nil {
		return ""
	}
	q := u.Query()
	q.Set("client_id", p.trust.Dashboard.ClientID)
	q.Set("post_logout_redirect_uri", redirectURI)
	u.RawQuery = q.Encode()
	short := u.String()
	q.Set("id_token_hint", idToken)
	u.RawQuery = q.Encode()
	if full := u.String(); idToken != "" && len(full) <= maxURL {
		return full
	}
	return short
}
