package service

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/mlp-platform/platform/libs/auth"
)

// Secret is a string that prints as [redacted] wherever it is formatted, logged
// or encoded.
type Secret string

const redacted = "[redacted]"

// Reveal is the secret itself.
func (s Secret) Reveal() string { return string(s) }

// String hides the secret; an empty one stays empty, so that logs distinguish set from
// unset.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return fmt.Sprintf("service.Secret(%q)", s.String()) }

// Format hides the secret from every verb, also from those that do not suit a
// string and would otherwise quote it as a mistake.
func (s Secret) Format(f fmt.State, verb rune) {
	text := s.String()
	if verb == 'v' && f.Flag('#') {
		text = s.GoString()
	}
	_, _ = io.WriteString(f, text)
}

// MarshalJSON hides the secret.
func (s Secret) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", s.String()), nil }

// LogValue hides the secret from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// CheckSecret refuses placeholders; name is the variable to mention. An empty secret
// passes: the service decides whether it is needed.
func CheckSecret(name string, s Secret) error {
	if auth.Placeholder(s.Reveal()) {
		return fmt.Errorf("%s is a placeholder; set a random value of at least 16 characters, such as the output of openssl rand -hex 32", name)
	}
	return nil
}
