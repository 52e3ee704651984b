package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/config"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

// renewBefore is how long before its end a token is renewed, so that none expires on its way.
const renewBefore = 30 * time.Second

// renewLimit is how long a renewal may take, with the wait for another mlp that renews.
const renewLimit = 20 * time.Second

// identityProvider is the part of a discovery document that mlp reads.
type identityProvider struct {
	Issuer        string   `json:"issuer"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Device        string   `json:"device_authorization_endpoint"`
	Revocation    string   `json:"revocation_endpoint"`
	Scopes        []string `json:"scopes_supported"`
	SendsIssuer   bool     `json:"authorization_response_iss_parameter_supported"`
}

// client returns mlp's OAuth client: public, so it sends its id alone.
func (p identityProvider) client(id string, scopes []string) *oauth2.Config {
	return &oauth2.Config{ClientID: id, Scopes: scopesWith(scopes, p.Scopes), Endpoint: oauth2.Endpoint{
		AuthURL: p.Authorization, TokenURL: p.Token, DeviceAuthURL: p.Device, AuthStyle: oauth2.AuthStyleInParams,
	}}
}

// discover reads a provider's endpoints. Plain HTTP is for a provider on this machine, and for its endpoints there.
func (e *Env) discover(ctx context.Context, issuer string) (identityProvider, error) {
	p := identityProvider{}
	if !isProtected(issuer) {
		return p, fault.New("bad_issuer", "the issuer %.200q is no https address", issuer)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration", nil)
	if err != nil {
		return p, fault.New("bad_issuer", "the issuer %.200q is no https address", issuer)
	}
	resp, err := e.HTTP.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return p, ctx.Err()
		}
		f := fault.New("idp_unreachable", "the identity provider at %s cannot be reached", issuer)
		f.Cause = err
		return p, f
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	err = json.NewDecoder(io.LimitReader(resp.Body, maxDiscovery)).Decode(&p)
	if resp.StatusCode != http.StatusOK || err != nil || p.Issuer != issuer || p.Token == "" || p.Authorization == "" {
		return p, fault.New("idp_unusable", "%s has no discovery document that can be used", issuer).WithHint("check it with: mlp auth validate --file TRUSTFILE --check-discovery")
	}
	for name, endpoint := range map[string]string{
		"authorization_endpoint": p.Authorization, "token_endpoint": p.Token,
		"device_authorization_endpoint": p.Device, "revocation_endpoint": p.Revocation,
	} {
		if endpoint != "" && !isProtected(endpoint) {
			return p, fault.New("idp_unusable", "the %s of %s is no https address: %.200q", name, issuer, endpoint)
		}
	}
	return p, nil
}

// isProtected reports whether codes and tokens may be sent to an address: by https, or to this machine.
func isProtected(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "https" && u.Host != "" || u.Scheme == "http" && isLoopback(u.Hostname()))
}

func isLoopback(host string) bool { return host == "localhost" || host == "127.0.0.1" || host == "::1" }

// renewal returns the token of a sign-in, renewed once it has expired. The first request to need it renews it, within
// that request's timeout, and the others of this mlp share the result.
func (e *Env) renewal(session *config.Session, place, token string) func(context.Context) (string, error) {
	if session.ExpiresAt.IsZero() || e.Now().Before(session.ExpiresAt.Add(-renewBefore)) {
		return nil
	}
	var mu sync.Mutex
	var done bool
	var renewed string
	var failure error
	return func(ctx context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if !done {
			limited, cancel := context.WithTimeout(ctx, renewLimit)
			defer cancel()
			renewed, failure = e.renewToken(limited, place, token)
			done = ctx.Err() == nil // a result cancelled with one request does not hold for the next
		}
		return renewed, failure
	}
}

// renewToken exchanges the stored refresh token, one mlp process at a time: a provider that rotates refresh tokens no
// longer accepts the old one, and some end the whole sign-in if it is used twice.
func (e *Env) renewToken(ctx context.Context, place, expired string) (token string, err error) {
	err = config.Update(ctx, e.configPath(), func(f *config.File) error {
		token, err = e.renewIn(ctx, f, place, expired)
		return err
	})
	return token, err
}

// renewIn renews the session of f, unless another mlp has done it.
func (e *Env) renewIn(ctx context.Context, f *config.File, place, expired string) (string, error) {
	s := &f.Sections
	if place != "" {
		if s = f.Contexts[place]; s == nil {
			s = &config.Sections{}
		}
	}
	if s.Session == nil {
		return "", fault.New("session_expired", "you are signed out").WithHint("sign in again: mlp auth login")
	}
	session := *s.Session
	if token := s.Auth["dashboard_token"]; token != expired {
		return token, nil // another mlp has renewed it
	}
	token, err := e.exchangeRefresh(ctx, &session)
	if err != nil {
		return "", renewalFault(ctx, session.Provider, err)
	}
	return token, f.SetSession(place, token, session)
}

// renewalFault reports an interrupted or overdue renewal with a specific message.
func renewalFault(ctx context.Context, provider string, err error) error {
	var netErr net.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return fault.New("interrupted", "interrupted; the sign-in is not renewed")
	case ctx.Err() != nil, errors.As(err, &netErr) && netErr.Timeout():
		f := fault.New("renewal_timeout", "provider %s did not renew the sign-in in time", provider).
			WithHint("try again, or sign in again: mlp auth login --provider %s", provider)
		f.Cause = err
		return f
	}
	return err
}

// exchangeRefresh exchanges the refresh token of a session for a new token.
func (e *Env) exchangeRefresh(ctx context.Context, session *config.Session) (string, error) {
	again := fault.New("session_expired", "the sign-in at %s has ended", session.Provider).WithHint("sign in again: mlp auth login --provider %s", session.Provider)
	if session.RefreshToken == "" {
		return "", again
	}
	idp, err := e.discover(ctx, session.Issuer)
	if err != nil {
		return "", err
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, e.HTTP)
	token, err := idp.client(session.ClientID, nil).TokenSource(ctx, &oauth2.Token{RefreshToken: session.RefreshToken}).Token()
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.Response != nil && refused.Response.StatusCode/100 == 4 {
		again.Cause = err
		return "", again
	}
	if err != nil {
		return "", signInFault(ctx, session.Provider, err)
	}
	session.ExpiresAt = token.Expiry.UTC()
	if token.RefreshToken != "" {
		session.RefreshToken = token.RefreshToken
	}
	return token.AccessToken, nil
}

// revokeSession asks the provider to revoke the refresh token (RFC 7009). It reports whether that succeeded, and fails
// nothing: the token is forgotten here in any case.
func (e *Env) revokeSession(ctx context.Context, s *config.Session) bool {
	idp, err := e.discover(ctx, s.Issuer)
	if err != nil || idp.Revocation == "" || s.RefreshToken == "" {
		return false
	}
	form := url.Values{"token": {s.RefreshToken}, "token_type_hint": {"refresh_token"}, "client_id": {s.ClientID}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, idp.Revocation, strings.NewReader(form.Encode()))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := e.HTTP.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
