package loopback

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"

	"github.com/mlp-platform/platform/libs/loopback/httpd"
)

// TokenHeader is the only place where a token is looked for.
const TokenHeader = "X-SVC-UI-Token"

// Limits of a token, in characters.
const (
	MinToken = 32
	MaxToken = 4096
)

// ValidToken reports whether s may be a token: 32 to 4096 letters, digits and "-._~".
func ValidToken(s string) bool {
	if len(s) < MinToken || len(s) > MaxToken {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.', c == '_', c == '~':
		default:
			return false
		}
	}
	return true
}

// NewToken makes a token of 32 characters from 24 random bytes.
func NewToken() string { return newSecret() }

// TokenMatches reports whether the request has the token in exactly one field, unchanged.
// The comparison takes constant time. The connection of one that has it is kept when the port is full.
func TokenMatches(r *httpd.Request, token string) bool {
	given, ok := r.Header.Sole(TokenHeader)
	if !ok || token == "" || subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
		return false
	}
	r.Keep()
	return true
}

// newSecret returns 32 URL-safe characters that encode 192 random bits.
func newSecret() string {
	var raw [24]byte
	_, _ = rand.Read(raw[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(raw[:])
}
