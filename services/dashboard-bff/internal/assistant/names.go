package assistant

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/mlp-platform/platform/libs/service"
)

// SessionNames makes names of sessions at the assistant that nobody can guess: all people share the dashboard's keys
// there, so it is the name that keeps them apart.
type SessionNames struct{ key []byte }

// NewSessionNames derives its key from the secret; purpose keeps the names of two uses apart.
func NewSessionNames(secret service.Secret, purpose string) (SessionNames, error) {
	if secret.Reveal() == "" {
		return SessionNames{}, errors.New("the member Secret is empty: names of sessions are derived from it")
	}
	key, err := hkdf.Key(sha256.New, []byte(secret.Reveal()), nil, purpose, sha256.Size)
	if err != nil {
		return SessionNames{}, fmt.Errorf("derive the key of session names: %w", err)
	}
	return SessionNames{key}, nil
}

// Name is 32 hex that stand for the parts.
func (n SessionNames) Name(parts ...string) string {
	mac := hmac.New(sha256.New, n.key)
	for _, part := range parts {
		mac.Write([]byte(part))
		mac.Write([]byte{0}) // or a-b of tenant a would be b of tenant a-
	}
	return hex.EncodeToString(mac.Sum(nil)[:16])
}
