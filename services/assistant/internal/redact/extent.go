package redact

import "strings"

// mostTriple limits a triple-quoted value, in bytes.
const mostTriple = 4 << 10

// noBlock means that a value ends with its word, or where its quote closes.
const noBlock = -1

// indent returns the indentation of a name that is first on its line: in YAML its value continues in deeper lines.
func (p *pairing) indent(start int) int {
	if start > p.first {
		return noBlock
	}
	return start - p.line
}

// extent returns the start and end of a value, without quotes.
func (p *pairing) extent(at, indent int) (from, to int) {
	in := p.in
	if strings.HasPrefix(in[at:], `"""`) || strings.HasPrefix(in[at:], `'''`) { // of TOML
		most := min(len(in), at+3+mostTriple) // an opening quote must not hide all following text
		if i := strings.Index(in[at+3:most], in[at:at+3]); i >= 0 {
			return at + 3, at + 3 + i
		}
		return at + 3, most
	}
	quote := at
	for quote < len(in) && in[quote] == '\\' {
		quote++
	}
	if quote < len(in) && (in[quote] == '"' || in[quote] == '\'') {
		from, limit := quote+1, len(in)
		if indent != noBlock {
			limit = max(p.block(at, indent), from)
		}
		return from, from + findClose(in[from:limit], in[at:from], indent != noBlock)
	}
	if at < len(in) && strings.IndexByte("<{$", in[at]) >= 0 {
		if m := spacedPlaceholder.FindString(p.ahead(at)); m != "" {
			if end := at + len(m); end == len(in) || strings.IndexByte(" \t\r\n,;&)\"'`", in[end]) >= 0 {
				return at, end
			}
		}
	}
	if at < len(in) && (in[at] == '{' || p.opensList(at)) {
		return at, at // a container; the names in it are judged separately
	}
	if indent != noBlock {
		return at, p.block(at, indent)
	}
	to = p.word(at)
	if schemes[strings.ToLower(in[at:to])] && to < len(in) && in[to] == ' ' {
		to = p.word(to + 1)
	}
	return at, to
}

// opensList reports whether a list begins at at. A bracket attached to other text is part of a word.
func (p *pairing) opensList(at int) bool {
	if p.in[at] != '[' || markAhead.MatchString(p.ahead(at)) {
		return false
	}
	inside, _, closed := strings.Cut(p.ahead(at)[1:], "]")
	end := at + 1 + len(inside) + 1
	return !closed || strings.ContainsAny(inside, " \t\n\"'\\") || end == len(p.in) || p.in[end] >= 0x80 || !inName[p.in[end]]
}

// word returns the end of a word: a blank, a quote, or a separator of a query or list.
func (p *pairing) word(at int) int {
	for at < len(p.in) {
		switch p.in[at] {
		case '[':
			at += len(markAhead.FindString(p.ahead(at)))
			if at == len(p.in) || p.in[at] != '[' {
				continue
			}
		case ' ', '\t', '\n', '\r', '"', '\'', '&', '`':
			return at
		case ';':
			if nextSetting.MatchString(p.ahead(at)) {
				return at
			}
		case '\\':
			if at+1 < len(p.in) && strings.IndexByte(`nrt"'\`, p.in[at+1]) >= 0 {
				return at
			}
		}
		at++
	}
	return at
}

// findClose finds the closing quote, with as many backslashes as the opening one; without one, the value extends to the
// end of the line or, over several lines, of in.
func findClose(in, opening string, lines bool) int {
	slashes := len(opening) - 1
	for i := 0; i < len(in); i++ {
		switch in[i] {
		case '\n':
			if !lines {
				return i
			}
		case '\\':
			n := 1
			for i+n < len(in) && in[i+n] == '\\' {
				n++
			}
			if n == slashes && i+n < len(in) && in[i+n] == opening[slashes] {
				return i
			}
			i += n - 1
			if n%2 == 1 {
				i++ // an escaped character closes nothing
			}
		case opening[slashes]:
			if slashes == 0 {
				return i
			}
		}
	}
	return len(in)
}

// block returns the end of the line, or of the last of the deeper lines that follow.
func (p *pairing) block(at, indent int) int {
	in := p.in
	end := lineEnd(in, at)
	if strings.TrimSpace(in[at:end]) == "" {
		return at // members follow, or nothing
	}
	for end < len(in) {
		next := lineEnd(in, end+1)
		line := in[end+1 : next]
		deep := len(line) - len(strings.TrimLeft(line, " "))
		if strings.TrimSpace(line) != "" && deep <= indent {
			break
		}
		end = next
	}
	return at + len(strings.TrimRight(in[at:end], " \t\r\n"))
}

func lineEnd(in string, at int) int {
	if i := strings.IndexByte(in[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(in)
}
