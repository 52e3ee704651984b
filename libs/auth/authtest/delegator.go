// Package authtest mints delegations for tests of the services that accept them.
package authtest

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/mlp-platform/platform/libs/auth"
)

// Person is the person a service acts for.
type Person struct {
	Name   string // the principal
	Tenant string
	Scopes []string
}

// Delegator mints delegations in the name of one service.
type Delegator struct {
	issuer string
	key    ed25519.PrivateKey
}

// NewDelegator signs as issuer with the Ed25519 key of the seed: base64 of 32 bytes.
func NewDelegator(issuer, seed string) (*Delegator, error) {
	raw, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSpace(seed))
	if err != nil || len(raw) != ed25519.SeedSize {
		return nil, fmt.Errorf("the delegation key must be base64 of %d random bytes", ed25519.SeedSize)
	}
	return &Delegator{issuer: issuer, key: ed25519.NewKeyFromSeed(raw)}, nil
}

// PublicKey is the key that others put into DELEGATION_TRUST_JSON.
func (d *Delegator) PublicKey() string {
	return base64.StdEncoding.EncodeToString(d.key.Public().(ed25519.PublicKey))
}

// Mint makes a token with which audience does what the person requested: any number of reads and one
// write within auth.DelegationLife. It checks nothing: refusing is the part of whoever receives it.
func (d *Delegator) Mint(audience string, p Person) (string, error) {
	now := time.Now()
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{
		"tenant": p.Tenant, "scopes": p.Scopes,
		"iss": d.issuer, "sub": p.Name, "aud": []string{audience}, "jti": rand.Text(),
		// Whole seconds on the wire: rounded together, they stay DelegationLife apart.
		"iat": now.Unix(), "exp": now.Unix() + int64(auth.DelegationLife/time.Second),
	})
	t.Header["typ"] = "platform-act+jwt"
	return t.SignedString(d.key)
}
