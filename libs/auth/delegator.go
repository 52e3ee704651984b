package auth

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
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
	if !validName(issuer) {
		return nil, errors.New("the issuer's name is empty or malformed")
	}
	return &Delegator{issuer: issuer, key: ed25519.NewKeyFromSeed(raw)}, nil
}

// PublicKey is the key that others put into DELEGATION_TRUST_JSON.
func (d *Delegator) PublicKey() string {
	return base64.StdEncoding.EncodeToString(d.key.Public().(ed25519.PublicKey))
}

// Mint makes a token that lets the person make any number of reads and one write at audience within [DelegationLife].
// It refuses a name that no receiver would accept.
func (d *Delegator) Mint(audience string, p Person) (string, error) {
	if !validName(p.Name) || Reserved(p.Name) || p.Tenant == "" {
		return "", fmt.Errorf("no delegation can be minted for %q of tenant %q", p.Name, p.Tenant)
	}
	now := time.Now()
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims{Tenant: p.Tenant, Scopes: p.Scopes, RegisteredClaims: jwt.RegisteredClaims{
		Issuer: d.issuer, Subject: p.Name, Audience: jwt.ClaimStrings{audience}, ID: rand.Text(),
		// Whole seconds on the wire: rounded together, they stay DelegationLife apart.
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Truncate(time.Second).Add(DelegationLife)),
	}})
	t.Header["typ"] = delegationType
	return t.SignedString(d.key)
}

// LoadOrCreateDelegator reads the key of issuer from a file, or makes one there, mode 0600. Processes that start
// concurrently agree on one key: the first file stays.
func LoadOrCreateDelegator(issuer, path string) (*Delegator, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if err := createKeyFile(path); err != nil {
			return nil, fmt.Errorf("make the delegation key: %w", err)
		}
	}
	return LoadDelegator(issuer, path)
}

// LoadDelegator reads the key of issuer from a file.
func LoadDelegator(issuer, path string) (*Delegator, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read the delegation key: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%s may be read by others (mode %04o): chmod 600 it, and replace it if someone may have read it", path, mode)
	}
	if err := CheckSecretOwner(path, info); err != nil {
		return nil, fmt.Errorf("read the delegation key: %w", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the delegation key: %w", err)
	}
	d, err := NewDelegator(issuer, string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w; delete it, and a new one is made", path, err)
	}
	return d, nil
}

// createKeyFile writes a random seed to path unless a file appears there meanwhile. It links the name last, so that no
// reader sees half a key.
func createKeyFile(path string) error {
	seed := make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(seed)                                                    // never fails
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(base64.StdEncoding.EncodeToString(seed) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
