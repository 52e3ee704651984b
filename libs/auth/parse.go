package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

type entry struct {
	secret, principal, tenant string
	scopes                    []string
}

// parse reads {"<secret>": {"principal": …, "tenant": …, "scopes": […]}, …}.
// It walks tokens, because decoding into a map would let a repeated key or
// member silently replace the first. Errors name entries by number, never by
// their secret.
func parse(text string) ([]entry, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("the credential map is not UTF-8")
	}
	d := json.NewDecoder(strings.NewReader(text))
	if err := delim(d, '{', "the credential map must be a JSON object"); err != nil {
		return nil, err
	}
	var entries []entry
	for d.More() {
		n := len(entries) + 1
		secret, err := key(d)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", n, err)
		}
		if strings.TrimSpace(secret) != secret || secret == "" {
			return nil, fmt.Errorf("entry %d: the secret is empty or begins or ends with space", n)
		}
		for i, other := range entries {
			if other.secret == secret {
				return nil, fmt.Errorf("entry %d repeats the secret of entry %d", n, i+1)
			}
		}
		e, err := member(d)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", n, err)
		}
		e.secret = secret
		entries = append(entries, e)
	}
	if err := delim(d, '}', "the credential map does not end"); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text follows the credential map")
	}
	return entries, nil
}

// member reads one value of the map: exactly principal, tenant and scopes.
func member(d *json.Decoder) (entry, error) {
	var e entry
	if err := delim(d, '{', "must be an object with principal, tenant and scopes"); err != nil {
		return e, err
	}
	var seen []string
	for d.More() {
		name, err := key(d)
		if err != nil {
			return e, err
		}
		if slices.Contains(seen, name) {
			return e, fmt.Errorf("member %q is there twice", name)
		}
		seen = append(seen, name)
		switch name {
		case "principal":
			e.principal, err = text(d)
		case "tenant":
			e.tenant, err = text(d)
		case "scopes":
			e.scopes, err = texts(d)
		default:
			return e, fmt.Errorf("unknown member %q; there are principal, tenant and scopes", name)
		}
		if err != nil {
			return e, fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := delim(d, '}', "the object does not end"); err != nil {
		return e, err
	}
	for _, name := range []string{"principal", "tenant", "scopes"} {
		if !slices.Contains(seen, name) {
			return e, fmt.Errorf("member %q is missing", name)
		}
	}
	return e, nil
}

func delim(d *json.Decoder, want json.Delim, otherwise string) error {
	if t, err := d.Token(); err != nil || t != want {
		return errors.New(otherwise)
	}
	return nil
}

// key reads an object's next key. Decoder errors quote the input, which may be
// a secret, so they are not passed on.
func key(d *json.Decoder) (string, error) {
	t, err := d.Token()
	s, ok := t.(string)
	if err != nil || !ok {
		return "", errors.New("not valid JSON")
	}
	return s, nil
}

func text(d *json.Decoder) (string, error) {
	t, err := d.Token()
	s, ok := t.(string)
	if err != nil || !ok || strings.TrimSpace(s) == "" {
		return "", errors.New("must be a non-empty string")
	}
	return s, nil
}

func texts(d *json.Decoder) ([]string, error) {
	const rule = "must be a list of at least one string"
	if err := delim(d, '[', rule); err != nil {
		return nil, err
	}
	var out []string
	for d.More() {
		s, err := text(d)
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
	return out, delim(d, ']', rule)
}
