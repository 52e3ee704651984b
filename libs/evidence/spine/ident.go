package spine

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// SchemaVersion is the schema_version of every document of the product.
const SchemaVersion = "0.1"

// MaxIdentifier limits the characters of an identifier.
const MaxIdentifier = 192

// IsIdentifier reports whether s names a run, work unit, project, attempt or connector:
// a letter or digit, then up to 191 of letters, digits and ._:/-
func IsIdentifier(s string) bool { return isName(s, MaxIdentifier, "._:/-") }

// IsConnectionID reports whether s names a connection or a driver: a letter or digit,
// then up to 127 of letters, digits and ._-
func IsConnectionID(s string) bool { return isName(s, 128, "._-") }

func isName(s string, most int, punctuation string) bool {
	if s == "" || len(s) > most || !isAlnum(s[0]) {
		return false
	}
	for i := 1; i < len(s); i++ {
		if !isAlnum(s[i]) && strings.IndexByte(punctuation, s[i]) < 0 {
			return false
		}
	}
	return true
}

func isAlnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// IsDigest reports whether s is "sha256:" and 64 lower-case hex digits.
func IsDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(hex) == 64 && isLowerHex(hex)
}

// IsRevision reports whether s is 40 or 64 lower-case hex digits.
func IsRevision(s string) bool { return (len(s) == 40 || len(s) == 64) && isLowerHex(s) }

func isLowerHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// Prefixes of the keys under which a store keeps callers' keys, so that the two ways to
// create a run cannot collide in one key.
const (
	CreateKeyPrefix = "product-spine-cli:create:"
	ImportKeyPrefix = "product-spine-cli:import:"
)

// IdempotencyKey trims a caller's key and refuses one that is empty, longer than
// 256 characters or holds a control character, with the fault
// invalid_idempotency_key.
func IdempotencyKey(raw string) (string, error) {
	key := strings.TrimSpace(raw)
	n := utf8.RuneCountInString(key)
	if !utf8.ValidString(key) || n < 1 || n > 256 || strings.ContainsFunc(key, unicode.IsControl) {
		return "", &Fault{Code: "invalid_idempotency_key", Detail: "an idempotency key has 1 to 256 characters and no control character"}
	}
	return key, nil
}
