package redact

import (
	"regexp"
	"strings"
)

var (
	// documentExpr matches where a document of a stream, or an item of a list, begins.
	documentExpr = regexp.MustCompile(`(?m)^(?:---|[ \t]*- (?:apiVersion|kind|metadata|type|data|stringData):)`)
	// secretExpr matches what tells that a document, or a command, is about a Secret.
	secretExpr = regexp.MustCompile(`\bkind[\\"']*[ \t]*:[ \t]*[\\"']*Secret\b|\bkubectl\b[^\n]*\b[Ss]ecrets?\b`)
	// heldExpr matches the member that holds the values. Only a Secret has stringData.
	heldExpr = regexp.MustCompile(`\b(stringData|data)[\\"']*[ \t]*:[ \t]*`)
	// entryExpr matches a name and what stands behind it in a block of YAML.
	entryExpr = regexp.MustCompile(`^([ \t]*[^ \t#][^:]*:[ \t]*)(.*)$`)
)

// redactManifests takes the values out of Secrets that stand in a text as YAML or JSON, whole or as a patch. Names stay.
func redactManifests(s string) string {
	if !strings.Contains(s, "stringData") && (!strings.Contains(s, "ecret") || !strings.Contains(s, "data")) {
		return s
	}
	var out strings.Builder
	for s != "" {
		end := len(s)
		if next := documentExpr.FindStringIndex(s[1:]); next != nil {
			end = next[0] + 1
		}
		redactDocument(&out, s[:end])
		s = s[end:]
	}
	return out.String()
}

func redactDocument(out *strings.Builder, s string) {
	secret := secretExpr.MatchString(s)
	for {
		m := heldExpr.FindStringSubmatchIndex(s)
		if m == nil {
			break
		}
		out.WriteString(s[:m[1]])
		before, rest := s[:m[0]], s[m[1]:]
		n := 0
		switch {
		case !secret && s[m[2]:m[3]] == "data":
		case strings.HasPrefix(rest, "{"):
			n = redactFlow(out, rest)
		case strings.HasPrefix(rest, "\n") || strings.HasPrefix(rest, "\r\n") || strings.HasPrefix(rest, "#"):
			n = redactBlock(out, rest, indentColumn(before[strings.LastIndexByte(before, '\n')+1:]))
		}
		s = rest[n:]
	}
	out.WriteString(s)
}

// indentColumn is the column at which a line begins; the mark of a list item counts as a blank.
func indentColumn(line string) int {
	return len(line) - len(strings.TrimLeft(line, " \t-"))
}

// redactBlock redacts the lines that are deeper than column, and says how many bytes these are.
func redactBlock(out *strings.Builder, s string, column int) (n int) {
	n = strings.IndexByte(s, '\n') + 1
	if n == 0 {
		return 0 // a remark at the end
	}
	out.WriteString(s[:n])
	names := -1 // the column of names; what is deeper belongs to a value
	var entries []string
	var name, value string
	flush := func() {
		if name != "" {
			entries = append(entries, name+hideValue(value))
		}
		name, value = "", ""
	}
	for n < len(s) {
		line, _, _ := strings.Cut(s[n:], "\n")
		at := indentColumn(line)
		switch blank := strings.TrimSpace(line) == ""; {
		case blank || at > column && names >= 0 && at > names:
			value += "\n" + line
		case at > column:
			flush()
			names = at
			name, value = line[:at], line[at:]
			if m := entryExpr.FindStringSubmatch(line); m != nil {
				name, value = m[1], m[2]
			}
		default:
			flush()
			out.WriteString(strings.Join(append(entries, ""), "\n"))
			return n
		}
		n = min(n+len(line)+1, len(s))
	}
	flush()
	if strings.HasSuffix(s, "\n") {
		entries = append(entries, "")
	}
	out.WriteString(strings.Join(entries, "\n"))
	return n
}

// redactFlow redacts the values of an object in braces, and says how many bytes it is. What does not end is taken whole.
func redactFlow(out *strings.Builder, s string) int {
	var kept strings.Builder
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
			kept.WriteString(s[from : i+1])
			from, value = i+1, true
		case c == ',' && depth == 1, c == '}' || c == ']':
			if part := s[from:i]; value {
				kept.WriteString(part[:len(part)-len(strings.TrimLeft(part, " \t\r\n"))] + hideValue(part))
			} else {
				kept.WriteString(part)
			}
			from, value = i, false
			if c != ',' {
				out.WriteString(kept.String() + string(c))
				return i + 1
			}
		}
		if c != ' ' && c != '\t' && c != '\n' {
			opens = strings.IndexByte("{[,:", c) >= 0
		}
	}
	out.WriteString("{" + hideValue(s[1:]))
	return len(s)
}

// findClosingQuote is where a quoted text that begins at i ends.
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

// hideValue is a value without what it says; nothing, and what was redacted before, stay.
func hideValue(value string) string {
	value = strings.TrimSpace(value)
	if value == "" || hiddenExpr.MatchString(value) {
		return value
	}
	if quoted := strings.Trim(value, `"'`); len(quoted) == len(value)-2 {
		return value[:1] + redactWhole(quoted) + value[len(value)-1:]
	}
	return "'" + redactWhole(value) + "'"
}
