package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

type entry struct {
	secret, principal, tenant string
	scopes                    []string
}

// parseObject parses a JSON object of objects and passes each to fn with its key. It
// walks tokens, because decoding into a map would let a repeated key or member silently
// replace the first. Errors name entries by number, since a key may be a secret.
func parseObject(text, what string, fn func(key string, m *members) error) error {
	if !utf8.ValidString(text) {
		return fmt.Errorf("%s is not UTF-8", what)
	}
	d := json.NewDecoder(strings.NewReader(text))
	if err := readDelim(d, '{', what+" must be a JSON object"); err != nil {
		return err
	}
	for n := 1; d.More(); n++ {
		name, err := readKey(d)
		if err == nil {
			err = fn(name, &members{d})
		}
		if err != nil {
			return fmt.Errorf("entry %d: %w", n, err)
		}
	}
	if err := readDelim(d, '}', what+" does not end"); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("text follows %s", what)
	}
	return nil
}

// parseCredentials reads {"<secret>": {"principal": …, "tenant": …, "scopes": […]}, …}.
func parseCredentials(text string) ([]entry, error) {
	var entries []entry
	err := parseObject(text, "the credential map", func(secret string, m *members) error {
		if strings.TrimSpace(secret) != secret || secret == "" {
			return errors.New("the secret is empty or begins or ends with space")
		}
		for i, other := range entries {
			if other.secret == secret {
				return fmt.Errorf("repeats the secret of entry %d", i+1)
			}
		}
		e := entry{secret: secret}
		if err := m.read(map[string]any{"principal": &e.principal, "tenant": &e.tenant, "scopes": &e.scopes}); err != nil {
			return err
		}
		e.principal = NormalizeName(e.principal)
		entries = append(entries, e)
		return nil
	})
	return entries, err
}

// members reads one object of an outer one.
type members struct{ d *json.Decoder }

// read fills exactly the members of into, each a *string or *[]string.
func (m *members) read(into map[string]any) error {
	names := strings.Join(slices.Sorted(maps.Keys(into)), ", ")
	if err := readDelim(m.d, '{', "must be an object with "+names); err != nil {
		return err
	}
	var seen []string
	for m.d.More() {
		name, err := readKey(m.d)
		if err != nil {
			return err
		}
		if slices.Contains(seen, name) {
			return fmt.Errorf("member %q is there twice", name)
		}
		seen = append(seen, name)
		switch v := into[name].(type) {
		case *string:
			*v, err = readText(m.d)
		case *[]string:
			*v, err = readTexts(m.d)
		default:
			return fmt.Errorf("unknown member %q; there are %s", name, names)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := readDelim(m.d, '}', "the object does not end"); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(into)) {
		if !slices.Contains(seen, name) {
			return fmt.Errorf("member %q is missing", name)
		}
	}
	return nil
}

func readDelim(d *json.Decoder, want json.Delim, otherwise string) error {
	if t, err := d.Token(); err != nil || t != want {
		return errors.New(otherwise)
	}
	return nil
}

// readKey reads an object's next key. Decoder errors quote the input, which may be
// a secret, so they are not passed on.
func readKey(d *json.Decoder) (string, error) {
	t, err := d.Token()
	s, ok := t.(string)
	if err != nil || !ok {
		return "", errors.New("not valid JSON")
	}
	return s, nil
}

func readText(d *json.Decoder) (string, error) {
	t, err := d.Token()
	s, ok := t.(string)
	if err != nil || !ok || strings.TrimSpace(s) == "" {
		return "", errors.New("must be a non-empty string")
	}
	// Log and audit ledger show names: a line feed or a mark that changes the direction
	// of text would let one look like another.
	if strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) >= 0 {
		return "", errors.New("has characters that cannot be seen, such as a line feed")
	}
	return s, nil
}

func readTexts(d *json.Decoder) ([]string, error) {
	const rule = "must be a list of at least one string"
	if err := readDelim(d, '[', rule); err != nil {
		return nil, err
	}
	var out []string
	for d.More() {
		s, err := readText(d)
		if err != nil {
			return nil, errors.New(rule)
		}
		if slices.Contains(out, s) {
			return nil, fmt.Errorf("%q is there twice", s)
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		return nil, errors.New(rule)
	}
	return out, readDelim(d, ']', rule)
}
