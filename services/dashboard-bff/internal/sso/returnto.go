package sso

import (
	"net/url"
	"path"
	"strings"
	"unicode/utf8"
)

const maxReturnTo = 2048

// safeReturnTo returns where a browser goes after signing in: a page of this origin, else /. An address that browsers
// read as another host, or as a route of the API, would let the author of a link abuse the sign-in.
func safeReturnTo(raw string) string {
	const home = "/"
	if raw == "" || len(raw) > maxReturnTo || raw[0] != '/' || strings.HasPrefix(raw, "//") || isTreacherous(raw) {
		return home
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil {
		return home
	}
	// Text encoded once or twice may be decoded by the next program that reads the address.
	text, file := raw, u.EscapedPath()
	for range 2 {
		text, file = decode(text), decode(file)
		if isTreacherous(text) || strings.HasPrefix(file, "//") || hasDotSegment(file) {
			return home
		}
	}
	if clean := strings.ToLower(path.Clean(file)); clean == "/api" || strings.HasPrefix(clean, "/api/") {
		return home
	}
	return u.String()
}

// decode undoes percent-encoding where there is any.
func decode(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := url.PathUnescape(s[i : i+3]); err == nil {
				b.WriteString(c)
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// isTreacherous reports whether a string is not UTF-8 or contains backslashes, which browsers read as slashes, or
// control characters, which they drop.
func isTreacherous(s string) bool {
	return !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return r == '\\' || r < ' ' || r >= 0x7f && r < 0xa0 })
}

func hasDotSegment(p string) bool {
	for _, s := range strings.Split(p, "/") {
		if s == "." || s == ".." {
			return true
		}
	}
	return false
}
