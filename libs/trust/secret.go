package trust

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"unicode/utf8"
)

// Secret is a string that prints as [redacted] wherever it is formatted, logged or encoded.
type Secret string

// Reveal is the secret itself.
func (s Secret) Reveal() string { return string(s) }

func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "[redacted]"
}

// Format hides the secret from every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalJSON hides the secret.
func (s Secret) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", s.String()), nil }

// LogValue hides the secret from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// maxSecret limits a secret, in bytes.
const maxSecret = 4 << 10

// Environment is the source of the secrets that a trust file refers to. The zero value is that of the process.
type Environment struct {
	LookupEnv func(name string) (string, bool)
	ReadFile  func(path string, limit int64) ([]byte, error)
}

func (e Environment) lookupEnv(name string) (string, bool) {
	if e.LookupEnv != nil {
		return e.LookupEnv(name)
	}
	return os.LookupEnv(name)
}

func (e Environment) readFile(path string, limit int64) ([]byte, error) {
	if e.ReadFile != nil {
		return e.ReadFile(path, limit)
	}
	return ReadFile(path, limit)
}

// resolve reads the secret that ref names: env:NAME or file:/absolute/path. It also returns the path, so that the
// caller can watch it. No error contains the secret.
func (e Environment) resolve(ref string) (secret Secret, path string, err error) {
	var value string
	switch kind, rest, _ := strings.Cut(ref, ":"); kind {
	case "env":
		var ok bool
		if value, ok = e.lookupEnv(rest); !ok || rest == "" {
			return "", "", fmt.Errorf("the environment variable %q is not set", rest)
		}
	case "file":
		if !strings.HasPrefix(rest, "/") {
			return "", "", fmt.Errorf("%q is no absolute path", rest)
		}
		path = rest
		raw, err := e.readFile(rest, maxSecret)
		if err != nil {
			return "", path, fmt.Errorf("the file %s cannot be read: %w", rest, withoutPath(err))
		}
		value = string(raw)
	default:
		return "", "", errors.New("must be env:NAME or file:/path; a secret itself does not belong in this file")
	}
	// Editors and echo end a file with a line feed, which is not part of the secret.
	value = strings.TrimRight(value, "\r\n")
	switch {
	case value == "":
		return "", path, errors.New("the secret is empty")
	case len(value) > maxSecret:
		return "", path, fmt.Errorf("the secret is longer than %d bytes", maxSecret)
	case !utf8.ValidString(value) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "", path, errors.New("the secret has control characters or is not UTF-8")
	}
	return Secret(value), path, nil
}

// ReadFile reads a regular file of at most limit bytes.
func ReadFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a named pipe would wait for its writer
		return nil, errors.New("it is no regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(raw)) > limit {
		return nil, fmt.Errorf("it is larger than %d bytes", limit)
	}
	return raw, nil
}

// withoutPath leaves out of an error the path that the message names already.
func withoutPath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
