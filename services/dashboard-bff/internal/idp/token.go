package idp

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// ErrToken means that a token is not valid here. Its text holds nothing of the token but names and times.
var ErrToken = errors.New("the token is not valid here")

func tokenError(format string, a ...any) error {
	return fmt.Errorf("%w: %s", ErrToken, fmt.Sprintf(format, a...))
}

// maxToken limits a token, in bytes: one with some hundred groups has 20 KB.
const maxToken = 64 << 10

// claimSet are the claims of a verified token.
type claimSet map[string]any

func (c claimSet) text(name string) string { s, _ := c[name].(string); return s }

func (c claimSet) has(name string) bool { _, ok := c[name]; return ok }

// texts returns a claim of one text or a list of them, such as aud.
func (c claimSet) texts(name string) []string {
	switch v := c[name].(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, e := range v {
			if s, ok := e.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}

// time returns a NumericDate; ok is false when the claim is absent or invalid.
func (c claimSet) time(name string) (t time.Time, ok bool) {
	f, ok := c[name].(float64)
	if !ok || math.IsNaN(f) || f < 0 || f > 1<<40 {
		return time.Time{}, false
	}
	return time.Unix(int64(f), 0).UTC(), true
}

// checkTimes requires exp and, where present, checks nbf and iat against the current time.
func (c claimSet) checkTimes(now time.Time, leeway time.Duration, expRequired bool) error {
	exp, ok := c.time("exp")
	switch {
	case !ok && (expRequired || c.has("exp")):
		return tokenError("exp is absent or no time")
	case ok && !now.Before(exp.Add(leeway)):
		return tokenError("it expired at %s", exp.Format(time.RFC3339))
	}
	for _, name := range []string{"nbf", "iat"} {
		t, ok := c.time(name)
		switch {
		case !ok && c.has(name):
			return tokenError("%s is no time", name)
		case ok && now.Add(leeway).Before(t):
			return tokenError("%s is %s, which is yet to come; compare the clocks", name, t.Format(time.RFC3339))
		}
	}
	return nil
}

// joseHeader holds the JWT header fields that are read.
type joseHeader struct {
	Alg string `json:"alg"`
	Typ string `json:"typ"`
}

// peek reads header and claims of a JWT without verifying anything; ok is false for any other text.
func peek(raw string) (h joseHeader, claims claimSet, ok bool) {
	parts := strings.Split(raw, ".")
	if len(parts) != 3 {
		return h, nil, false
	}
	decode := func(part string, dst any) bool {
		b, err := base64.RawURLEncoding.DecodeString(part)
		return err == nil && json.Unmarshal(b, dst) == nil
	}
	return h, claims, decode(parts[0], &h) && h.Alg != "" && decode(parts[1], &claims)
}

// verifyJWT checks signature, algorithm, issuer and times.
func (p *Provider) verifyJWT(ctx context.Context, raw string) (*oidc.IDToken, claimSet, error) {
	if len(raw) > maxToken {
		return nil, nil, tokenError("it has more than %d KiB", maxToken>>10)
	}
	// Audience and times are checked here: an access token has another audience than the client, and the leeway is
	// the trust file's.
	verifier := oidc.NewVerifier(p.trust.Issuer, p.keys, &oidc.Config{
		SupportedSigningAlgs: p.trust.Algorithms, SkipClientIDCheck: true, SkipExpiryCheck: true,
	})
	var cause error // go-oidc keeps only its text
	token, err := verifier.Verify(context.WithValue(ctx, causeKey{}, &cause), raw)
	switch {
	case err != nil && (errors.Is(cause, ErrUnreachable) || errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded)):
		return nil, nil, cause
	case err != nil:
		return nil, nil, tokenError("%s", err)
	}
	var claims claimSet
	if err := token.Claims(&claims); err != nil {
		return nil, nil, tokenError("its claims are no JSON object")
	}
	if got := claims.text("iss"); got != p.trust.Issuer { // go-oidc makes an exception for one provider
		return nil, nil, tokenError("its issuer is %.200q", got)
	}
	return token, claims, claims.checkTimes(p.now(), p.trust.Leeway, true)
}

// types of JOSE headers (RFC 9068 section 2.1); application/ may be left out.
const accessTokenType = "at+jwt"

func mediaType(typ string) string { return strings.TrimPrefix(strings.ToLower(typ), "application/") }

// verifyAccessToken checks a JWT that was sent as a bearer.
func (p *Provider) verifyAccessToken(ctx context.Context, raw string) (claimSet, error) {
	_, claims, err := p.verifyJWT(ctx, raw)
	if err != nil {
		return nil, err
	}
	header, _, _ := peek(raw)
	switch typ := mediaType(header.Typ); {
	case p.trust.RequireTyp && typ != accessTokenType:
		return nil, tokenError("its type is %.200q; the trust file requires %s", header.Typ, accessTokenType)
	case typ != "" && typ != "jwt" && typ != accessTokenType: // a logout token, a DPoP proof
		return nil, tokenError("its type is %.200q, which is no access token", header.Typ)
	}
	return claims, p.checkBearerClaims(claims)
}

// checkBearerClaims refuses a token that is not an access token for the platform.
func (p *Provider) checkBearerClaims(claims claimSet) error {
	// An ID token tells a client who signed in; if it were accepted as a bearer, every client that got one could act
	// here.
	if strings.EqualFold(claims.text("typ"), "ID") || claims.has("at_hash") || claims.has("c_hash") {
		return tokenError("it is an ID token; send the access token")
	}
	if typ := claims.text("typ"); strings.EqualFold(typ, "Refresh") || strings.EqualFold(typ, "Offline") || strings.EqualFold(typ, "Logout") {
		return tokenError("it is no access token but of the type %.200q", typ)
	}
	if claims.has("cnf") { // its binding cannot be checked here, and a stolen one would be worth as much as its owner's
		return tokenError("it is bound to a key of its sender (cnf); ask the provider for a bearer token")
	}
	if !slices.ContainsFunc(claims.texts("aud"), func(aud string) bool { return slices.Contains(p.trust.Audience, aud) }) {
		return tokenError("its audience is not %s", strings.Join(p.trust.Audience, " or "))
	}
	return nil
}

// verifyIDToken checks the token of a sign-in at the dashboard (OpenID Connect Core 3.1.3.7).
func (p *Provider) verifyIDToken(ctx context.Context, raw, accessToken, nonce string) (claimSet, error) {
	token, claims, err := p.verifyJWT(ctx, raw)
	if err != nil {
		return nil, err
	}
	clientID := p.trust.Dashboard.ClientID
	audience := claims.texts("aud")
	switch {
	case !slices.Contains(audience, clientID):
		return nil, tokenError("its audience is not the client %s", clientID)
	case len(audience) > 1 && !claims.has("azp"):
		return nil, tokenError("it has several audiences and no azp, so the client it was issued to is unknown")
	case claims.has("azp") && claims.text("azp") != clientID:
		return nil, tokenError("it was issued to another client (azp)")
	case subtle.ConstantTimeCompare([]byte(claims.text("nonce")), []byte(nonce)) != 1 || nonce == "":
		return nil, tokenError("its nonce is not that of this sign-in")
	}
	if header, _, _ := peek(raw); mediaType(header.Typ) == accessTokenType {
		return nil, tokenError("it is an access token")
	}
	if claims.has("at_hash") {
		if err := token.VerifyAccessToken(accessToken); err != nil || accessToken == "" {
			return nil, tokenError("at_hash does not fit the access token")
		}
	}
	return claims, nil
}
