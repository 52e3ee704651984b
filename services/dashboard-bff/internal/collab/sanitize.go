package collab

import (
	"html"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/microcosm-cc/bluemonday"
	"golang.org/x/text/unicode/norm"
)

// strict removes every tag and escapes the rest.
var strict = bluemonday.StrictPolicy()

// scriptSchemes are the schemes whose content a browser runs when it opens it as an address.
var scriptSchemes = []string{"javascript:", "vbscript:", "data:text/"}

// Sanitize makes untrusted text safe as innerHTML: no tags, everything else escaped, no script scheme even if it is
// written with entities, blanks or inside itself. It is idempotent.
func Sanitize(s string) string {
	for {
		next := sanitizeOnce(s)
		if next == s {
			return s
		}
		s = next
	}
}

// sanitizeOnce comes to an end when repeated: tags are gone after one pass, since what looks like one afterwards is
// escaped text, and every later pass that changes anything removes characters.
func sanitizeOnce(s string) string {
	s = strings.Map(dropControl, norm.NFC.String(strings.ToValidUTF8(s, "\uFFFD")))
	s = strict.Sanitize(s)
	plain := html.UnescapeString(s)
	cleaned := removeScriptSchemes(plain)
	if cleaned == plain {
		return s
	}
	return strict.Sanitize(html.EscapeString(cleaned))
}

// dropControl keeps line feeds and tabs; Postgres stores no U+0000.
func dropControl(r rune) rune {
	if r != '\n' && r != '\t' && unicode.Is(unicode.Cc, r) {
		return -1
	}
	return r
}

// unit is one character as seen by a reader of entities, with its position in the text.
type unit struct {
	r          rune
	start, end int
}

// removeScriptSchemes removes the script schemes of a plain text, also those that the removal of another one leaves.
func removeScriptSchemes(s string) string {
	var kept []unit // what has been read and not removed
	type span struct{ start, end int }
	var removed []span // in order, apart from each other
	for _, u := range readUnits(s) {
		kept = append(kept, u)
		n := endsInScheme(kept)
		if n == 0 {
			continue
		}
		next := span{kept[len(kept)-n].start, u.end}
		kept = kept[:len(kept)-n]
		for len(removed) > 0 && removed[len(removed)-1].start >= next.start {
			removed = removed[:len(removed)-1]
		}
		removed = append(removed, next)
	}
	var out strings.Builder
	from := 0
	for _, r := range removed {
		out.WriteString(s[from:max(from, r.start)])
		from = max(from, r.end)
	}
	out.WriteString(s[from:])
	return out.String()
}

// endsInScheme returns how many units at the end spell a script scheme, 0 for none.
func endsInScheme(units []unit) int {
	for _, scheme := range scriptSchemes {
		n := len(scheme)
		if len(units) < n {
			continue
		}
		tail, same := units[len(units)-n:], true
		for i := range tail {
			same = same && unicode.ToLower(tail[i].r) == rune(scheme[i])
		}
		if same {
			return n
		}
	}
	return 0
}

// reference is a character reference; browsers accept it without the semicolon.
var reference = regexp.MustCompile(`^&(?:#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,8}|[A-Za-z][A-Za-z0-9]{1,31});?`)

// maxEntity is the longest entity read, in characters.
const maxEntity = 36

// readUnits decodes the entities of a text, also entities of entities, and drops the blanks that browsers skip in an
// address.
func readUnits(s string) []unit {
	plain := make([]unit, 0, len(s))
	for i, r := range s {
		plain = append(plain, unit{r, i, i + utf8.RuneLen(r)})
	}
	// From the end, so that the text after an ampersand is decoded before the ampersand is examined: one pass suffices
	// for any depth.
	decoded := make([]unit, 0, len(plain)) // last character first
	for _, u := range slices.Backward(plain) {
		decoded = appendDecoded(decoded, u)
	}
	slices.Reverse(decoded)
	return slices.DeleteFunc(decoded, func(u unit) bool {
		return unicode.IsSpace(u.r) || unicode.Is(unicode.Cc, u.r) || unicode.Is(unicode.Cf, u.r)
	})
}

// appendDecoded adds a character before those of a text that is held last character first; an ampersand that makes
// an entity of them takes them away.
func appendDecoded(text []unit, u unit) []unit {
	for u.r == '&' {
		window := []rune{'&'}
		for _, next := range slices.Backward(text[max(0, len(text)-maxEntity):]) {
			window = append(window, next.r)
		}
		ref := reference.FindString(string(window))
		characters := []rune(html.UnescapeString(ref))
		if ref == "" || string(characters) == ref {
			break
		}
		taken := len(text) - (len(ref) - 1) // entities are ASCII
		end := text[taken].end
		text = text[:taken]
		for _, r := range slices.Backward(characters[1:]) {
			text = append(text, unit{r, u.start, end})
		}
		u = unit{characters[0], u.start, end}
	}
	return append(text, u)
}
