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

// SessionNames derives unguessable names for sessions at the assistant: all people share the dashboard's keys there,
// so only the name separates their sessions.
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

// Name derives 32 hex digits from the parts.
func (n SessionNames) Name(parts ...string) string {
	mac := hmac.New(sha256.New, n.key)
	for _, part := range parts {
		mac.Write([]byte(part))
		mac.Write([]byte{0}) // or a-b of tenant a would be b of tenant a-
	}
	return hex.EncodeToString(mac.Sum(nil)[:16])
}
