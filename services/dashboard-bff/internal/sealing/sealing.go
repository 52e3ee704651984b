// Package sealing encrypts stored values: configured secrets and browser sessions.
//
// A sealed value reads v1.<kid>.<nonce>.<ciphertext>: kid names the key, the others are base64url. The cipher is
// AES-256-GCM with a random 96-bit nonce; the name of the value is associated data, so that an attacker who can write
// the table cannot move one value to another's place.
package sealing

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/mlp-platform/platform/libs/service"
)

// Errors of Open. Their texts hold neither key nor value.
var (
	// ErrMalformed means that the text was not made by Seal.
	ErrMalformed = errors.New("not a sealed value")
	// ErrUnknownKey means that the key that sealed the value is no longer configured.
	ErrUnknownKey = errors.New("sealed by a key that DASHBOARD_SECRET_KEY does not list")
	// ErrRefused means that key and value do not belong together: it was changed, or belongs to another name.
	ErrRefused = errors.New("the sealed value was changed, or belongs to another name")
)

const (
	version = "v1"
	keySize = 32
	kidSize = 4 // bytes of a key's SHA-256 that name it
)

// Keys are the configured keys: the first seals, all open. They do not change and are safe for concurrent use.
type Keys struct {
	keys []key
}

type key struct {
	id     string
	secret []byte
	aead   cipher.AEAD
}

// ParseKeys parses DASHBOARD_SECRET_KEY: base64 of 32 bytes in either alphabet, with or without padding, or a
// comma-separated list of such. Errors identify the entry by its number, never by its content.
func ParseKeys(secret service.Secret) (*Keys, error) {
	if strings.TrimSpace(secret.Reveal()) == "" {
		return nil, errors.New("DASHBOARD_SECRET_KEY is not set; set the output of openssl rand -base64 32")
	}
	k := &Keys{}
	for i, entry := range strings.Split(secret.Reveal(), ",") {
		raw, err := decodeKey(strings.TrimSpace(entry))
		if err != nil {
			return nil, fmt.Errorf("DASHBOARD_SECRET_KEY: entry %d %w", i+1, err)
		}
		next, err := newKey(keyID(raw), raw)
		if err != nil {
			return nil, err
		}
		for j, other := range k.keys {
			if other.id == next.id {
				return nil, fmt.Errorf("DASHBOARD_SECRET_KEY: entry %d repeats entry %d", i+1, j+1)
			}
		}
		k.keys = append(k.keys, next)
	}
	return k, nil
}

func decodeKey(text string) ([]byte, error) {
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	raw, err := base64.RawStdEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != keySize {
		return nil, errors.New("is not base64 of 32 bytes; make one with openssl rand -base64 32")
	}
	if bytes.Count(raw, raw[:1]) == keySize { // AAAA… from some documentation
		return nil, errors.New("is a placeholder; make a key with openssl rand -base64 32")
	}
	return raw, nil
}

func keyID(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:kidSize])
}

func newKey(id string, raw []byte) (key, error) {
	block, err := aes.NewCipher(raw)
	if err != nil {
		return key{}, fmt.Errorf("sealing: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return key{}, fmt.Errorf("sealing: %w", err)
	}
	return key{id, raw, aead}, nil
}

// Derive returns Keys derived from each configured key and secret by HKDF-SHA256, for values that must open only with
// both: the store and the configuration together do not suffice. The ids stay those of the configured keys. purpose
// keeps two uses of one secret apart.
func (k *Keys) Derive(purpose string, secret []byte) (*Keys, error) {
	out := &Keys{keys: make([]key, 0, len(k.keys))}
	for _, from := range k.keys {
		raw, err := hkdf.Key(sha256.New, from.secret, secret, purpose, keySize)
		if err != nil {
			return nil, fmt.Errorf("sealing: %w", err)
		}
		derived, err := newKey(from.id, raw)
		if err != nil {
			return nil, err
		}
		out.keys = append(out.keys, derived)
	}
	return out, nil
}

// Seal encrypts value under the first key. It opens under the same name only.
func (k *Keys) Seal(name, value string) (string, error) {
	first := k.keys[0]
	nonce := make([]byte, first.aead.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return "", fmt.Errorf("sealing: %w", err)
	}
	sealed := first.aead.Seal(nil, nonce, []byte(value), []byte(name))
	encode := base64.RawURLEncoding.EncodeToString
	return strings.Join([]string{version, first.id, encode(nonce), encode(sealed)}, "."), nil
}

// Open decrypts what Seal made under the same name: ErrMalformed, ErrUnknownKey or ErrRefused.
func (k *Keys) Open(name, sealed string) (string, error) {
	parts := strings.Split(sealed, ".")
	if len(parts) != 4 || parts[0] != version {
		return "", ErrMalformed
	}
	nonce, err := base64.RawURLEncoding.Strict().DecodeString(parts[2])
	if err != nil {
		return "", ErrMalformed
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(parts[3])
	if err != nil {
		return "", ErrMalformed
	}
	for _, candidate := range k.keys {
		if candidate.id != parts[1] {
			continue
		}
		if len(nonce) != candidate.aead.NonceSize() {
			return "", ErrMalformed
		}
		value, err := candidate.aead.Open(nil, nonce, text, []byte(name))
		if err != nil {
			return "", ErrRefused
		}
		return string(value), nil
	}
	return "", ErrUnknownKey
}

// Current reports whether the first key sealed the value, so that rotation need not rewrite it.
func (k *Keys) Current(sealed string) bool {
	return strings.HasPrefix(sealed, version+"."+k.keys[0].id+".")
}
