package redact

import "strings"

// mostTriple limits a value in three quotes, in bytes.
const mostTriple = 4 << 10

// noBlock says that a value ends with its word, or where its quote closes.
const noBlock = -1

// indent is how deep a name is that stands first on its line: its value goes on in deeper lines, as YAML has it.
func (p *pairing) indent(start int) int {
	if start > p.first {
		return noBlock
	}
	return start - p.line
}

// extent is where a value begins and ends, quotes left out.
func (p *pairing) extent(at, indent int) (from, to int) {
	in := p.in
	if strings.HasPrefix(in[at:], `"""`) || strings.HasPrefix(in[at:], `'''`) { // of TOML
		most := min(len(in), at+3+mostTriple) // whoever opens one must not hide all that follows
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
		return at, at // a container; the names in it speak for themselves
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

// opensList reports whether a list begins at at. A bracket that something is joined to is part of a word.
func (p *pairing) opensList(at int) bool {
	if p.in[at] != '[' || markAhead.MatchString(p.ahead(at)) {
		return false
	}
	inside, _, closed := strings.Cut(p.ahead(at)[1:], "]")
	end := at + 1 + len(inside) + 1
	return !closed || strings.ContainsAny(inside, " \t\n\"'\\") || end == len(p.in) || p.in[end] >= 0x80 || !inName[p.in[end]]
}

// word ends at a blank, a quote, or what parts the members of a query or list.
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

// findClose finds the closing quote, with as many backslashes as the opening one has; without one, the value is all of
// the line or, over several, all of in.
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
				i++ // what is escaped closes nothing
			}
		case opening[slashes]:
			if slashes == 0 {
				return i
			}
		}
	}
	return len(in)
}

// block ends with the line, or with the last of the deeper ones that follow.
func (p *pairing) block(at, indent int) int {
	in := p.in
	end := lineEnd(in, at)
	if strings.TrimSpace(in[at:end]) == "" {
		return at // what follows are members, or nothing
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
