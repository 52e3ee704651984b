package trust

import (
	"encoding/hex"
	"net/url"
	"strings"
	"unicode/utf8"
)

// firstRDN is the value of a distinguished name's first part (RFC 4514): ops of CN=ops,OU=groups. A first part of
// several values names no one thing.
func firstRDN(dn string) (string, bool) {
	kind, rest, ok := strings.Cut(dn, "=")
	if !ok || !isAttributeType(strings.TrimSpace(kind)) {
		return "", false
	}
	rest = strings.TrimLeft(rest, " ")
	if strings.HasPrefix(rest, "#") { // BER in hexadecimal
		return "", false
	}
	var value []byte
	kept := 0 // up to here no space is trailing
	for i := 0; i < len(rest); {
		switch c := rest[i]; c {
		case ',', ';':
			return rdnValue(value[:kept])
		case '+', '"', '<', '>', 0:
			return "", false
		case '\\':
			n := 0
			if i+2 < len(rest) {
				if raw, err := hex.DecodeString(rest[i+1 : i+3]); err == nil {
					value, n = append(value, raw...), 3
				}
			}
			if n == 0 {
				if i+1 >= len(rest) || !strings.ContainsRune(` "#+,;<=>\`, rune(rest[i+1])) {
					return "", false
				}
				value, n = append(value, rest[i+1]), 2
			}
			i += n
			kept = len(value)
		default:
			value = append(value, c)
			i++
			if c != ' ' {
				kept = len(value)
			}
		}
	}
	return rdnValue(value[:kept])
}

func rdnValue(value []byte) (string, bool) {
	return string(value), len(value) > 0 && utf8.Valid(value)
}

// isAttributeType reports whether s is a name such as CN, or an object identifier.
func isAttributeType(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.')
	})
}

// entitlementGroups are the names of the group in an entitlement of AARC-G069:
//
//	<namespace>:group:<group>[:<subgroup>…][:role=<role>][#<authority>]
//
// A role is part of the name. The role member adds nothing to the group itself, so both names are returned.
func entitlementGroups(value string) []string {
	if len(value) < 4 || !strings.EqualFold(value[:4], "urn:") {
		return nil
	}
	value, _, _ = strings.Cut(value, "#")
	namespace, group, ok := strings.Cut(value, ":group:")
	if !ok || strings.Count(namespace, ":") < 1 {
		return nil
	}
	parts := strings.Split(group, ":")
	for i, part := range parts {
		decoded, err := url.PathUnescape(part)
		if err != nil || decoded == "" || !utf8.ValidString(decoded) {
			return nil
		}
		// An escaped colon would make one group's name look like another's subgroup.
		if strings.Contains(decoded, ":") {
			return nil
		}
		parts[i] = decoded
	}
	names := []string{strings.Join(parts, ":")}
	if last := len(parts) - 1; last > 0 && parts[last] == "role=member" {
		names = append(names, strings.Join(parts[:last], ":"))
	}
	return names
}

// lookUp finds a claim by a dot path: realm_access.roles. A claim whose name itself has the dots, such as
// https://example.org/groups, takes precedence.
func lookUp(claims map[string]any, path string) any {
	if v, ok := claims[path]; ok {
		return v
	}
	for i := range len(path) {
		if path[i] != '.' {
			continue
		}
		if inner, ok := claims[path[:i]].(map[string]any); ok {
			if v := lookUp(inner, path[i+1:]); v != nil {
				return v
			}
		}
	}
	return nil
}

// textsOf are the texts of a claim: itself, its entries, or their member value where they are the objects of SCIM,
// as RFC 9068 has them.
func textsOf(v any) []string {
	switch v := v.(type) {
	case string:
		if v != "" {
			return []string{v}
		}
	case []any:
		var out []string
		for _, e := range v {
			switch e := e.(type) {
			case string:
				if e != "" {
					out = append(out, e)
				}
			case map[string]any:
				if s, ok := e["value"].(string); ok && s != "" {
					out = append(out, s)
				}
			}
		}
		return out
	}
	return nil
}

// textOf is a claim that is one text.
func textOf(v any) string {
	s, _ := v.(string)
	return s
}
