package session

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
)

// issuer is iss and aud of the tokens: they are made here for here.
const issuer = "mlp-dashboard"

// clockSkew is how far the clocks of replicas may differ: a token may be younger than the present by that much.
const clockSkew = time.Minute

// maxToken limits a token's text, in bytes.
const maxToken = 4096

// TokenConfig configures password sessions. All members are required.
type TokenConfig struct {
	Secret service.Secret // signs; at least 32 bytes
	TTL    time.Duration
	Tenant string
	// Viewer and Admin are the passwords. Tokens are bound to them: a new password ends the old sessions.
	Viewer, Admin service.Secret
	// LocalLogin false refuses also tokens that were issued before.
	LocalLogin bool
	Verdicts   *Verdicts
	Now        func() time.Time
}

// Tokens issues, verifies and revokes the tokens of password sessions.
type Tokens struct {
	cfg    TokenConfig
	parser *jwt.Parser
	bound  map[caller.Role]string // pv
}

// NewTokens refuses a missing part or a secret that could be guessed.
func NewTokens(cfg TokenConfig) (*Tokens, error) {
	if err := service.RequireParts("session.Tokens", cfg); err != nil {
		return nil, err
	}
	if len(cfg.Secret) < MinSecret || cfg.TTL < time.Second || cfg.Tenant == "" {
		return nil, fmt.Errorf("session.Tokens: needs a secret of %d bytes, a lifetime and a tenant", MinSecret)
	}
	t := &Tokens{cfg: cfg, bound: map[caller.Role]string{}}
	t.bound[caller.Viewer] = t.bind(caller.Viewer, cfg.Viewer)
	t.bound[caller.Admin] = t.bind(caller.Admin, cfg.Admin)
	t.parser = jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithIssuer(issuer), jwt.WithAudience(issuer),
		jwt.WithExpirationRequired(), jwt.WithStrictDecoding(), jwt.WithTimeFunc(cfg.Now))
	return t, nil
}

// MinSecret is the least length of the signing secret, in bytes: that of the HMAC's digest.
const MinSecret = 32

// bind returns 16 hex digits of HMAC-SHA256(secret, role ‖ 0x00 ‖ password).
func (t *Tokens) bind(role caller.Role, password service.Secret) string {
	mac := hmac.New(sha256.New, []byte(t.cfg.Secret.Reveal()))
	mac.Write([]byte(string(role) + "\x00" + password.Reveal()))
	return hex.EncodeToString(mac.Sum(nil))[:16]
}

// claims are all that a token says.
type claims struct {
	Issuer   string      `json:"iss"`
	Audience string      `json:"aud"`
	Subject  string      `json:"sub"`
	Role     caller.Role `json:"role"`
	Tenant   string      `json:"tenant"`
	ID       string      `json:"jti"`
	IssuedAt int64       `json:"iat"`
	Expires  int64       `json:"exp"`
	AuthTime int64       `json:"auth_time"`
	Methods  []string    `json:"amr"`
	Bound    string      `json:"pv"`
}

// The methods make claims a jwt.Claims.

func (c *claims) GetExpirationTime() (*jwt.NumericDate, error) { return numericDate(c.Expires), nil }
func (c *claims) GetIssuedAt() (*jwt.NumericDate, error)       { return numericDate(c.IssuedAt), nil }
func (*claims) GetNotBefore() (*jwt.NumericDate, error)        { return nil, nil }
func (c *claims) GetIssuer() (string, error)                   { return c.Issuer, nil }
func (c *claims) GetSubject() (string, error)                  { return c.Subject, nil }
func (c *claims) GetAudience() (jwt.ClaimStrings, error)       { return jwt.ClaimStrings{c.Audience}, nil }

func numericDate(seconds int64) *jwt.NumericDate {
	if seconds <= 0 {
		return nil
	}
	return jwt.NewNumericDate(time.Unix(seconds, 0))
}

// localPrefix begins the principals of passwords; no identity provider may be named so.
const localPrefix = "local:"

// Mint issues a token of a new session.
func (t *Tokens) Mint(role caller.Role) (token string, who caller.Caller, err error) {
	now := t.cfg.Now().Truncate(time.Second)
	c := claims{
		Issuer: issuer, Audience: issuer, Subject: localPrefix + string(role), Role: role, Tenant: t.cfg.Tenant,
		// Random in all parts: audit facts distinguish sessions by the first 8 hex digits, which in a UUIDv7 are the
		// time.
		ID:       uuid.NewString(),
		IssuedAt: now.Unix(), Expires: now.Add(t.cfg.TTL).Unix(), AuthTime: now.Unix(), Methods: []string{"pwd"}, Bound: t.bound[role],
	}
	token, err = jwt.NewWithClaims(jwt.SigningMethodHS256, &c).SignedString([]byte(t.cfg.Secret.Reveal()))
	if err != nil {
		return "", caller.Caller{}, fmt.Errorf("sign session token: %w", err)
	}
	return token, c.caller(), nil
}

func (c *claims) caller() caller.Caller {
	return caller.Caller{
		Subject: c.Subject, Tenant: c.Tenant, Role: c.Role, Method: caller.Password,
		AuthTime: time.Unix(c.AuthTime, 0).UTC(), SessionID: c.ID, ExpiresAt: time.Unix(c.Expires, 0).UTC(), Basis: c.Bound,
	}
}

// Verify returns the caller that a token authenticates: 401 invalid_token, or 503 session_store_unavailable when the
// store cannot report whether it was revoked.
func (t *Tokens) Verify(ctx context.Context, token string) (caller.Caller, error) {
	if !t.cfg.LocalLogin {
		return caller.Caller{}, fault.InvalidToken.New("Password sessions are switched off here; sign in with your organisation's account.")
	}
	c, err := t.parse(token)
	switch {
	case errors.Is(err, jwt.ErrTokenExpired):
		return caller.Caller{}, fault.InvalidToken.New("The session has expired; sign in again.").WithCause(err)
	case err != nil:
		return caller.Caller{}, fault.InvalidToken.New("The session token is not valid here; sign in again.").WithCause(err)
	}
	who := c.caller()
	return who, t.CheckRevoked(ctx, who)
}

func (t *Tokens) parse(token string) (*claims, error) {
	if len(token) > maxToken {
		return nil, errors.New("the token is too long")
	}
	var c claims
	_, err := t.parser.ParseWithClaims(token, &c, func(*jwt.Token) (any, error) { return []byte(t.cfg.Secret.Reveal()), nil })
	if err != nil {
		return nil, err
	}
	bound, known := t.bound[c.Role]
	switch {
	case !known || c.Subject != localPrefix+string(c.Role):
		return nil, errors.New("sub and role disagree")
	case subtle.ConstantTimeCompare([]byte(bound), []byte(c.Bound)) != 1:
		return nil, errors.New("the password was changed since")
	case c.Tenant != t.cfg.Tenant:
		return nil, errors.New("the tenant of password sessions was changed since")
	case c.ID == "" || c.AuthTime != c.IssuedAt || time.Unix(c.IssuedAt, 0).After(t.cfg.Now().Add(clockSkew)):
		return nil, errors.New("jti, iat or auth_time are not as they are issued")
	}
	return &c, nil
}

// Basis returns the basis that would admit a person of a password session now; empty if nothing does.
func (t *Tokens) Basis(who caller.Caller) string {
	if !t.cfg.LocalLogin || who.Tenant != t.cfg.Tenant {
		return ""
	}
	return t.bound[who.Role]
}

// revocationKey returns the key of a session's revocation. Bearers of identity providers have other ids, so the method
// is part of it.
func revocationKey(who caller.Caller) string {
	return Key(strings.Join([]string{"revoked", string(who.Method), who.SessionID}, ":"))
}

// Revoke ends the session of who on every replica within 2 s, until the credential itself expires.
func (t *Tokens) Revoke(ctx context.Context, who caller.Caller) error {
	left := who.ExpiresAt.Sub(t.cfg.Now()) + clockSkew // a replica whose clock is late must see it too
	if left <= 0 {
		return nil
	}
	return t.cfg.Verdicts.Put(ctx, revocationKey(who), []byte("1"), left)
}

// CheckRevoked returns a 401 if the session of who was ended, a 503 if the store does not answer.
func (t *Tokens) CheckRevoked(ctx context.Context, who caller.Caller) error {
	switch _, err := t.cfg.Verdicts.Get(ctx, revocationKey(who)); {
	case err == nil:
		return fault.InvalidToken.New("The session was ended by a logout; sign in again.")
	case !errors.Is(err, ErrNotFound):
		return err
	}
	return nil
}
