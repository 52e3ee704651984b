package redact

import (
	"regexp"
	"strings"
)

// nextLine finds a value that begins in the line after its name, which ends at at: a deeper line that is no member, a
// quoted text after a quoted name, or a line that is one word of more than letters.
func (p *pairing) nextLine(at, start int, quoted bool) (from, to int, ok bool) {
	in := p.in
	rest := strings.TrimLeft(in[at:min(at+64, len(in))], " \t\\")
	line := in[p.line:start]
	switch {
	case strings.HasPrefix(rest, "\r\n"), strings.HasPrefix(rest, "\n"):
	default:
		return 0, 0, false
	}
	from = at + strings.IndexByte(in[at:], '\n') + 1
	for range 2 { // empty lines
		if n := strings.IndexByte(in[from:], '\n'); n >= 0 && strings.TrimSpace(in[from:from+n]) == "" {
			from += n + 1
		}
	}
	end := lineEnd(in, from)
	value := strings.TrimLeft(in[from:end], " \t")
	deeper := len(in[from:end])-len(value) > len(line)-len(strings.TrimLeft(line, " \t-"))
	from = end - len(value)
	value = strings.TrimRight(value, " \t\r,;")
	if value == "" || isPlainValue(value) || strings.IndexByte("[{}]-#<|>&!", value[0]) >= 0 || markAhead.MatchString(value) {
		return 0, 0, false
	}
	if value[0] == '"' || value[0] == '\'' {
		if !quoted && !deeper {
			return 0, 0, false
		}
		from, to = p.extent(from, noBlock)
		if _, sep, _ := p.separator(to); sep == ":" && to < len(in) && in[to] == value[0] { // the name of a member
			return 0, 0, false
		}
		return from, to, true
	}
	if strings.ContainsAny(value, " \t") || strings.HasSuffix(value, ":") || memberExpr.MatchString(value) {
		return 0, 0, false
	}
	return from, from + len(value), deeper || len(value) >= 6 && isMixedWord(value) && strings.ContainsAny(value, "0123456789")
}

// items redacts the entries of a list in the lines after a name.
func (p *pairing) items(at int) bool {
	in := p.in
	if at >= len(in) || in[at] != '\n' && in[at] != '\r' {
		return false
	}
	found := false
	for at = lineEnd(in, at); at < len(in); {
		end := lineEnd(in, at+1)
		line := in[at+1 : end]
		entry := strings.TrimLeft(line, " \t")
		value := strings.Trim(strings.TrimPrefix(entry, "- "), " \t\r\"'")
		if !strings.HasPrefix(entry, "- ") || value == "" || memberExpr.MatchString(value) || strings.HasSuffix(value, ":") {
			break
		}
		from := end - len(line) + strings.Index(line, value)
		p.cut(from, from+len(value))
		at, found = end, true
	}
	return found
}

// isNextArgument reports whether the gap after a flag separates arguments: a line break does if both are at the same
// column, as in a description.
func (p *pairing) isNextArgument(gap string, start int) bool {
	i := strings.IndexByte(gap, '\n')
	if i < 0 || strings.TrimSpace(gap) != "" {
		return true
	}
	return start <= p.first && gap[i+1:] == p.in[p.line:start]
}

// Words before a name in a message about it.
var messageWords = wordSet("invalid unexpected bad malformed missing expired unknown the wrong")

// isProse reports whether a name and a sign are part of a message about a secret, of the name of an object, or of code.
func (p *pairing) isProse(start, at, value int, sep string, quoted bool) bool {
	in := p.in
	ahead := p.ahead(value)
	before := in[max(0, start-80):start]
	name := in[start:p.at]
	if sep == ":" {
		switch {
		case strings.HasPrefix(ahead, `secret "`), strings.HasPrefix(ahead, `configmap "`), strings.HasSuffix(before, "checksum/"):
			return true
		case quoted:
			return strings.EqualFold(name, "keys") && strings.HasPrefix(ahead, "[")
		case strings.EqualFold(strings.TrimLeft(name, "-"), "pass") && resultExpr.MatchString(ahead):
			return true
		case value == at && (versionExpr.MatchString(ahead) || strings.HasSuffix(before, ":") && strings.Contains(before, "arn:")):
			return true
		}
		words := strings.Fields(before)
		return len(words) > 0 && strings.HasSuffix(before, " ") && messageWords[strings.ToLower(words[len(words)-1])] && wordsExpr.MatchString(ahead)
	}
	return strings.EqualFold(name, "pwd") && strings.HasPrefix(ahead, "/") || value > at && callExpr.MatchString(ahead)
}

var (
	versionExpr = regexp.MustCompile(`^v?[0-9]+(?:\.[0-9]+)+(?:[\s"',]|$)`)    // of an image
	resultExpr  = regexp.MustCompile(`^(?:[0-9]{1,3}(?:[,/ ]|$)|Test\w|ok\b)`) // of tests
	wordsExpr   = regexp.MustCompile(`^[a-z]+ [a-z]+`)
	callExpr    = regexp.MustCompile(`^[A-Za-z_]\w*(?:\.\w+)*\(`)
)

// memberExpr matches a name and its value in a line of YAML or of settings.
var memberExpr = regexp.MustCompile(`^[\pL\w."'-]+[ \t]*(?::[ \t]|=)`)
