package redact

import (
	"regexp"
	"strings"
	"unicode"
)

var (
	// documentExpr matches the start of a document of a stream, or of an item of a list.
	documentExpr = regexp.MustCompile(`(?m)^(?:---|[ \t]*- (?:apiVersion|kind|metadata|type|data|stringData):)`)
	// secretExpr matches the evidence that a document, or a command, is about a Secret.
	secretExpr = regexp.MustCompile(`\bkind[\\"']*[ \t]{0,16}:[ \t]{0,16}[\\"']*Secret\b|\bkubectl\b[^\n]*\b[Ss]ecrets?\b`)
	// heldExpr matches the member that holds the values. Only a Secret has stringData.
	heldExpr = regexp.MustCompile(`\b(stringData|data)[\\"']*[ \t]*:[ \t]*`)
	// entryExpr matches a name and the text after it in a block of YAML.
	entryExpr = regexp.MustCompile(`^([ \t]*[^ \t#][^:]*:[ \t]*)(.*)$`)
)

// findInManifests finds the values of Secrets in a text that is YAML or JSON, whole or as a patch. Names stay.
func findInManifests(s string, spans []span) []span {
	if !strings.Contains(s, "stringData") && !mayTellOfSecret(s) {
		return spans
	}
	m := &manifests{s, spans}
	for at := 0; at < len(s); {
		end := len(s)
		if next := documentExpr.FindStringIndex(s[at+1:]); next != nil {
			end = at + next[0] + 1
		}
		m.findInDocument(at, end)
		at = end
	}
	return m.spans
}

// mayTellOfSecret is a cheap check that saves running the expressions on most texts: it accepts all that secretExpr
// matches, and more.
func mayTellOfSecret(s string) bool {
	if !strings.Contains(s, "data") {
		return false
	}
	if strings.Contains(s, "kubectl") && strings.Contains(s, "ecret") {
		return true
	}
	for at := 0; ; {
		i := strings.Index(s[at:], "Secret")
		if i < 0 {
			return false
		}
		if strings.Contains(s[max(0, at+i-64):at+i], "kind") {
			return true
		}
		at += i + len("Secret")
	}
}

type manifests struct {
	in    string
	spans []span
}

func (d *manifests) findInDocument(at, end int) {
	secret := secretExpr.MatchString(d.in[at:end])
	for {
		s := d.in[at:end]
		m := heldExpr.FindStringSubmatchIndex(s)
		if m == nil {
			return
		}
		before, rest := s[:m[0]], s[m[1]:]
		n := 0
		switch {
		case !secret && s[m[2]:m[3]] == "data":
		case strings.HasPrefix(rest, "{"):
			n = d.findInFlow(at+m[1], end)
		case strings.HasPrefix(rest, "\n") || strings.HasPrefix(rest, "\r\n") || strings.HasPrefix(rest, "#"):
			n = d.findInBlock(at+m[1], end, indentColumn(before[strings.LastIndexByte(before, '\n')+1:]))
		}
		at += m[1] + n
	}
}

// indentColumn returns the column at which a line begins; the mark of a list item counts as a blank.
func indentColumn(line string) int {
	return len(line) - len(strings.TrimLeft(line, " \t-"))
}

// findInBlock finds the values in the lines that are deeper than column, and returns their length in bytes.
func (d *manifests) findInBlock(start, end, column int) (n int) {
	s := d.in[start:end]
	n = strings.IndexByte(s, '\n') + 1
	if n == 0 {
		return 0 // a comment at the end
	}
	names := -1 // the column of names; deeper lines belong to a value
	value, valueEnd := -1, -1
	flush := func() {
		if value >= 0 {
			d.hide(start+value, start+valueEnd)
		}
		value = -1
	}
	for n < len(s) {
		line, _, _ := strings.Cut(s[n:], "\n")
		at := indentColumn(line)
		switch blank := strings.TrimSpace(line) == ""; {
		case blank || at > column && names >= 0 && at > names:
			valueEnd = n + len(line)
		case at > column:
			flush()
			names = at
			value, valueEnd = n+at, n+len(line)
			if m := entryExpr.FindStringSubmatchIndex(line); m != nil {
				value = n + m[4]
			}
		default:
			flush()
			return n
		}
		n = min(n+len(line)+1, len(s))
	}
	flush()
	return n
}

// findInFlow finds the values of an object in braces, and returns its length in bytes. An object without an end is
// hidden whole.
func (d *manifests) findInFlow(start, end int) int {
	s := d.in[start:end]
	found := len(d.spans)
	depth, from, value, opens := 0, 0, false, true
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case opens && (c == '"' || c == '\''):
			i = findClosingQuote(s, i, c)
		case c == '\\' && strings.HasPrefix(s[i:], `\"`):
			if end := strings.Index(s[i+2:], `\"`); end >= 0 {
				i += end + 3
			}
		case c == '{' || c == '[':
			depth++
		case (c == '}' || c == ']') && depth > 1:
			depth--
		case c == ':' && depth == 1 && !value:
			from, value = i+1, true
		case c == ',' && depth == 1, c == '}' || c == ']':
			if value {
				d.hide(start+from, start+i)
			}
			from, value = i, false
			if c != ',' {
				return i + 1
			}
		}
		if c != ' ' && c != '\t' && c != '\n' {
			opens = strings.IndexByte("{[,:", c) >= 0
		}
	}
	d.spans = d.spans[:found]
	d.hide(start+1, end)
	return len(s)
}

// findClosingQuote returns the end of a quoted text that begins at i.
func findClosingQuote(s string, i int, quote byte) int {
	for i++; i < len(s); i++ {
		switch {
		case s[i] == '\\' && quote == '"':
			i++
		case s[i] == quote:
			return i
		}
	}
	return len(s)
}

var hiddenExpr = regexp.MustCompile(`^[\\"']*\[redacted \d+ bytes\][\\"']*$`)

// hide records the value between from and to without its quotes; an empty or already redacted value stays.
func (d *manifests) hide(from, to int) {
	value := d.in[from:to]
	from += len(value) - len(strings.TrimLeftFunc(value, unicode.IsSpace))
	value = strings.TrimSpace(value)
	to = from + len(value)
	if value == "" || hiddenExpr.MatchString(value) {
		return
	}
	if quoted := strings.Trim(value, `"'`); len(quoted) == len(value)-2 {
		d.spans = append(d.spans, span{from: from + 1, to: to - 1})
		return
	}
	d.spans = append(d.spans, span{from: from, to: to, quoted: true})
}
