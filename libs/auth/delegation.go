package auth

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"

	"github.com/mlp-platform/platform/libs/problem"
)

// CoordinatorUnavailable refuses a delegated write while it cannot be checked
// whether its token was used before.
var CoordinatorUnavailable = problem.Kind{Code: "coordinator_unavailable", Status: http.StatusServiceUnavailable, Title: "Coordinator unavailable"}

const (
	// delegationType keeps tokens that were made for another purpose, with the
	// same key, from being taken for a delegation (RFC 8725 section 3.11).
	delegationType = "platform-act+jwt"
	// DelegationLife is the lifetime of a delegation.
	DelegationLife = 60 * time.Second
	// leeway is the largest accepted clock difference between two services.
	leeway = 5 * time.Second
	// maxDelegation limits a token, in bytes; ours have about 500.
	maxDelegation = 8 << 10
	maxName       = 256 // bytes of a principal, an issuer or a jti
)

// Once limits each token to one write; libs/coord implements it.
type Once interface {
	// Once is true for the first caller with this key within ttl, in all replicas.
	Once(ctx context.Context, key string, ttl time.Duration) (bool, error)
}

// Delegation configures the issuers whose delegation tokens a service accepts.
type Delegation struct {
	// Audience is this service's name.
	Audience string
	// Trust is DELEGATION_TRUST_JSON: {"<issuer>": {"public_key": <base64 of an
	// Ed25519 key>, "tenants": […], "scopes": […]}}; empty trusts no issuer.
	// Scopes that this service does not know grant nothing.
	Trust string
	// Once remembers the tokens that were used for a write.
	Once Once
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

type issuer struct {
	key     ed25519.PublicKey
	tenants []string
	scopes  []string // the most it may pass on, with everything they imply
}

type delegation struct {
	audience string
	issuers  map[string]issuer
	fault    error // why no delegation is accepted
	once     Once
	now      func() time.Time
	parser   *jwt.Parser
}

// WithDelegation is the authenticator that also takes delegations. A faulty
// trust map refuses all of them, and only them: the service's own credentials do
// not depend on it.
func (a *Authenticator) WithDelegation(d Delegation) *Authenticator {
	with := *a
	if strings.TrimSpace(d.Trust) == "" {
		return &with
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	with.delegation = &delegation{audience: d.Audience, once: d.Once, now: d.Now, parser: jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithAudience(d.Audience), jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(), jwt.WithLeeway(leeway), jwt.WithTimeFunc(d.Now), jwt.WithStrictDecoding(),
	)}
	with.delegation.issuers, with.delegation.fault = parseTrust(d.Trust, a.rules)
	return &with
}

// DelegationState is the fault for which every delegation is refused, or nil.
func (a *Authenticator) DelegationState() error {
	if a.delegation == nil || a.delegation.fault == nil {
		return nil
	}
	return fmt.Errorf("delegation trust: %w", a.delegation.fault)
}

// parseTrust reads the trust map. Its errors name issuers: it holds no secret.
func parseTrust(text string, rules Rules) (map[string]issuer, error) {
	issuers := map[string]issuer{}
	err := parseObject(text, "the trust map", func(name string, m *members) error {
		if !validName(name) {
			return errors.New("the issuer's name is empty, too long or has characters that a name cannot have")
		}
		if _, twice := issuers[name]; twice {
			return errors.New("the issuer is there twice")
		}
		var is issuer
		var key string
		var scopes []string
		if err := m.read(map[string]any{"public_key": &key, "tenants": &is.tenants, "scopes": &scopes}); err != nil {
			return err
		}
		raw, err := base64.StdEncoding.Strict().DecodeString(key)
		if err != nil || len(raw) != ed25519.PublicKeySize {
			return fmt.Errorf("public_key: must be base64 of the %d bytes of an Ed25519 key", ed25519.PublicKeySize)
		}
		is.key = raw
		if slices.Contains(is.tenants, "*") {
			return errors.New("tenants: name each tenant; * is none")
		}
		if is.scopes, err = rules.expand(rules.known(scopes)); err != nil {
			return err
		}
		issuers[name] = is
		return nil
	})
	if err == nil && len(issuers) == 0 {
		err = errors.New("the trust map names no issuer")
	}
	return issuers, err
}

// known are the scopes that mean something here. Others grant nothing and are no
// fault: services may share a trust map, and issuers be of another version.
func (r Rules) known(scopes []string) []string {
	return slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { _, ok := r.Scopes[s]; return !ok })
}

// claims of a delegation.
type claims struct {
	Tenant string   `json:"tenant"`
	Scopes []string `json:"scopes"`
	jwt.RegisteredClaims
}

// looksDelegated reports whether a bearer claims to be a delegation, so that only
// such ones hear of a faulty trust map.
func looksDelegated(bearer string) bool {
	header, _, ok := strings.Cut(bearer, ".")
	if !ok || len(bearer) > maxDelegation || strings.Count(bearer, ".") != 2 {
		return false
	}
	raw, err := base64.RawURLEncoding.DecodeString(header)
	return err == nil && strings.Contains(string(raw), delegationType)
}

// verify verifies a token and returns the person it names. The error is for the
// log of the issuer's operator; it quotes nothing of the token's signature.
func (d *delegation) verify(token string, rules Rules) (Principal, *claims, error) {
	var c claims
	var from issuer
	t, err := d.parser.ParseWithClaims(token, &c, func(t *jwt.Token) (any, error) {
		if t.Header["typ"] != delegationType {
			return nil, fmt.Errorf("typ is not %s", delegationType)
		}
		for name := range t.Header { // any other is refused: crit would require extensions that this parser must understand
			if name != "typ" && name != "alg" && name != "kid" {
				return nil, fmt.Errorf("header member %q is not known", name)
			}
		}
		var known bool
		if from, known = d.issuers[c.Issuer]; !known {
			return nil, errors.New("the issuer is not trusted")
		}
		return from.key, nil
	})
	switch {
	case err != nil:
		return Principal{}, nil, err
	case !t.Valid:
		return Principal{}, nil, errors.New("not valid")
	case len(c.Audience) != 1: // or another service it names could use it here
		return Principal{}, nil, errors.New("aud names more than one service")
	case c.IssuedAt == nil:
		return Principal{}, nil, errors.New("iat is missing")
	case !c.ExpiresAt.After(c.IssuedAt.Time) || c.ExpiresAt.Sub(c.IssuedAt.Time) > DelegationLife:
		return Principal{}, nil, fmt.Errorf("exp is not within %v after iat", DelegationLife)
	case !validName(c.ID):
		return Principal{}, nil, errors.New("jti is missing or malformed")
	case !validName(c.Subject):
		return Principal{}, nil, errors.New("sub is missing or malformed")
	case Reserved(c.Subject):
		return Principal{}, nil, errors.New("sub is a name of the platform's own")
	case !slices.Contains(from.tenants, c.Tenant):
		return Principal{}, nil, errors.New("the issuer may not speak for this tenant")
	}
	given, err := rules.expand(rules.known(c.Scopes))
	if err != nil {
		return Principal{}, nil, err
	}
	granted := slices.DeleteFunc(given, func(s string) bool { return !slices.Contains(from.scopes, s) })
	return Principal{Name: NormalizeName(c.Subject), Tenant: c.Tenant, Scopes: granted, Via: c.Issuer}, &c, nil
}

// spend makes a token unusable for a further write, until it is too old anyway.
func (d *delegation) spend(ctx context.Context, c *claims) error {
	sum := sha256.Sum256([]byte(c.Issuer + "\x00" + c.ID))
	first, err := d.once.Once(ctx, "delegation:"+d.audience+":"+hex.EncodeToString(sum[:]), c.ExpiresAt.Sub(d.now())+2*leeway)
	switch {
	case err != nil:
		return CoordinatorUnavailable.New("Whether this delegation was used before cannot be checked now, so it cannot write; try again later.").
			WithCause(err).After(5 * time.Second)
	case !first:
		return invalidCredential("This delegation was used for a write before; make a new one for each.")
	}
	return nil
}

// validName reports whether a name is safe in log, audit ledger and database.
func validName(s string) bool {
	return s != "" && len(s) <= maxName && utf8.ValidString(s) && strings.TrimSpace(s) == s && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}
