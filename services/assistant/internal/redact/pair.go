package redact

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The parts of the expressions below: the end of one entry and the start of the next, and the sign after its name.
const (
	nextEntry = `\\*["']?[ \t]*,?\s*\\*["']?`
	entrySign = `\\*["']?[ \t]*[:=][ \t]*`
)

var (
	markAhead = regexp.MustCompile(`^\[redacted [0-9]+ bytes\]`)
	// The text between a name and its value in the list of an environment, in either order.
	thenValue = regexp.MustCompile(`^` + nextEntry + `(?i:value)` + entrySign)
	thenName  = regexp.MustCompile(`^` + nextEntry + `(?i:name)` + entrySign + `\\*["']?([A-Za-z0-9_.-]+)`)
	// The text between a flag and its value: blanks, or the next entry of a list.
	afterFlag = regexp.MustCompile(`^(?:\\*["'],\s*\\*["']|\\*["']?[ \t]*\r?\n[ \t]*- +|[ \t]*\r?\n[ \t]+|[ \t]+)`)
	// The separator between the settings of a connection string.
	nextSetting = regexp.MustCompile(`^;[ \t]*(?:[A-Za-z][\w .-]{0,40}=|$|[\s"'])`)
	schemes     = wordSet("basic bearer digest token negotiate apikey")
)

// findPairs finds the values next to telling names.
func findPairs(s string, spans []span) []span {
	p := &pairing{in: s, spans: spans}
	for p.at < len(s) {
		n := nameLength(s[p.at:])
		if n == 0 {
			p.at++
			continue
		}
		p.reach(p.at)
		start := p.at
		for n > 0 {
			p.at += n
			n = nameLength(s[p.at:])
		}
		p.name(start, s[start:p.at])
	}
	return p.spans
}

type telling struct{ variable, name, known bool }

// tells caches the verdicts on the names of a text: they are few, and recur.
func (p *pairing) tells(name string) telling {
	t := p.names[name]
	if !t.known && len(name) > 0 {
		t = telling{tellingVariable(name), isTellingName(name), true}
		if p.names == nil {
			p.names = map[string]telling{}
		}
		if len(p.names) < 4096 {
			p.names[name] = t
		}
	}
	return t
}

func (p *pairing) variableTells(name string) bool { t := p.tells(name); return t.variable || t.name }

func (p *pairing) nameTells(name string) bool { return p.tells(name).name }

type pairing struct {
	names  map[string]telling
	in     string
	spans  []span
	at     int // current position
	copied int // end of the last span
	// line is the start of the line with the last name. Before first there are only blanks, list dashes and a quote on it.
	// Both are updated on the way: looking back from each name would take quadratic time on a long line.
	line, first, seen int
	plural            bool // the name is a plural, whose number may follow
	secret            int  // whether the text is about a Secret; unknownText at first
}

// reach advances line and first to a name.
func (p *pairing) reach(name int) {
	if i := strings.LastIndexByte(p.in[p.seen:name], '\n'); i >= 0 {
		p.line = p.seen + i + 1
		p.first = p.line
	}
	for p.first < name && strings.IndexByte(" -\"'", p.in[p.first]) >= 0 {
		p.first++
	}
	p.seen = name
}

var inName = func() (set [utf8.RuneSelf]bool) {
	for c := range set {
		set[c] = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.'
	}
	return set
}()

// nameLength returns the length of the name character at the start of s, in any script, or 0.
func nameLength(s string) int {
	if s == "" {
		return 0
	}
	if s[0] < utf8.RuneSelf {
		if inName[s[0]] {
			return 1
		}
		return 0
	}
	if r, size := utf8.DecodeRuneInString(s); unicode.IsLetter(r) || unicode.IsMark(r) {
		return size
	}
	return 0
}

// name examines a name that ends at p.at, and the text after it.
func (p *pairing) name(start int, name string) {
	bare := strings.TrimLeft(name, "-.")
	if isEntry := strings.EqualFold(bare, "name") || strings.EqualFold(bare, "key") || bare == "path"; isEntry || strings.EqualFold(bare, "value") {
		p.entry(isEntry, start)
		return
	}
	if isServiceToken(name) {
		p.cut(start, start+len(name))
		return
	}
	at, sep, quoted := p.separator(p.at)
	if sep == "" {
		if name[0] != '-' || !p.variableTells(bare) {
			p.keyBehindWord(start, name)
			return
		}
		if gap := afterFlag.FindString(p.ahead(p.at)); gap != "" && !argumentSource.MatchString(p.ahead(p.at+len(gap))) && p.isNextArgument(gap, start) && p.at+len(gap) < len(p.in) && p.in[p.at+len(gap)] != '-' {
			p.value(p.at+len(gap), noBlock)
		}
		return
	}
	p.plural = strings.EqualFold(bare, "tokens") || strings.EqualFold(bare, "keys") || strings.HasSuffix(strings.ToLower(bare), "_tokens")
	variable := sep != ":" || name[0] == '-' || quoted || bare == strings.ToUpper(bare)
	if !(variable && p.variableTells(bare) || !variable && p.nameTells(bare)) {
		p.keyBehindName(start, at, bare)
		return
	}
	value := at
	for value < len(p.in) && (p.in[value] == ' ' || p.in[value] == '\t') {
		value++
	}
	if p.isProse(start, at, value, sep, quoted) {
		return
	}
	if sep == ":" && !quoted && value == at && (start > 0 && p.in[start-1] == '/' || strings.HasPrefix(p.in[at:], "//")) {
		return // an image and its tag, or a URL
	}
	if p.container(value, isPluralName(bare)) {
		return
	}
	indent := noBlock
	if sep == ":" {
		indent = p.indent(start)
	}
	if isPluralName(bare) && p.items(value) {
		return
	}
	if from, to, ok := p.nextLine(value, start, quoted); ok {
		p.cut(from, to)
		return
	}
	p.value(value, indent)
}

// container redacts the strings of a list or, if members is set, of an object, that begins at at. A value that is not a
// string ends it: the names in it are judged separately.
func (p *pairing) container(at int, members bool) bool {
	in := p.in
	if at >= len(in) || !p.opensList(at) && (in[at] != '{' || !members) {
		return false
	}
	isObject := in[at] == '{'
	key := isObject // the next string is a name
	at++
	for at < len(in) {
		if c := in[at]; c == ',' || c == ':' {
			key = isObject && c == ','
			at++
			continue
		} else if c == ' ' || c == '\t' || c == '\r' || c == '\n' {
			at++
			continue
		}
		quote := at
		for quote < len(in) && in[quote] == '\\' {
			quote++
		}
		if quote == len(in) || in[quote] != '"' && in[quote] != '\'' {
			break
		}
		from := quote + 1
		to := from + findClose(in[from:], in[at:from], false)
		if !key {
			p.cut(from, to)
		}
		if to == len(in) || in[to] == '\n' { // never closed
			at = to
			break
		}
		at = to + from - at
	}
	p.at = max(p.at, at)
	return true
}

// entry handles a name and a value next to each other under the keys name and value.
func (p *pairing) entry(nameFirst bool, start int) {
	at, sep, _ := p.separator(p.at)
	if sep == "" {
		p.keyBehindWord(start, p.in[start:p.at])
		return
	}
	for at < len(p.in) && (p.in[at] == ' ' || p.in[at] == '\t') {
		at++
	}
	if !nameFirst {
		from, to := p.extent(at, p.indent(start))
		if m := thenName.FindStringSubmatch(p.ahead(to)); m != nil && (tellingVariable(m[1]) || isKeyMaterial(p.in[from:to]) && !namesPublic(m[1])) {
			p.cut(from, to)
		}
		return
	}
	from, to := p.extent(at, noBlock)
	gap := thenValue.FindString(p.ahead(to))
	if gap == "" {
		return
	}
	named := p.in[from:to]
	if strings.HasPrefix(named, "/") { // the path of a JSON patch
		if p.ofSecret(named) && p.container(to+len(gap), true) {
			return
		}
		named = named[strings.LastIndexByte(named, '/')+1:]
	}
	if !tellingVariable(named) && !p.ofSecret(p.in[from:to]) {
		at := to + len(gap)
		if key, end := p.extent(at, noBlock); isKeyMaterial(p.in[key:end]) && !namesPublic(named) {
			p.cut(key, end)
		}
		return
	}
	indent := p.indent(start)
	if i := strings.LastIndexByte(gap, '\n'); i >= 0 {
		line := gap[i+1:]
		indent = len(line) - len(strings.TrimLeft(line, " "))
	}
	p.value(to+len(gap), indent)
}

// ofSecret reports whether a path of a JSON patch leads to values of a Secret.
func (p *pairing) ofSecret(path string) bool {
	member, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if !strings.HasPrefix(path, "/") || member != "data" && member != "stringData" {
		return false
	}
	if member == "data" && p.secret == unknownText { // searched once: there may be many paths
		p.secret = otherText
		if strings.Contains(p.in, "ecret") && secretExpr.MatchString(p.in) {
			p.secret = secretText
		}
	}
	return member == "stringData" || p.secret == secretText
}

// Whether a text is about a Secret.
const (
	unknownText = iota
	secretText
	otherText
)

// ahead returns a limited piece of the following text: expressions on all of it would take quadratic time on a long
// text.
func (p *pairing) ahead(at int) string {
	const enough = 320 // more than the longest name of an object
	return p.in[at:min(at+enough, len(p.in))]
}

// separator finds the separator between a name and its value; quoted reports that the name is in quotes.
func (p *pairing) separator(at int) (after int, sep string, quoted bool) {
	in := p.in
	i := at
	for i < len(in) && in[i] == '\\' {
		i++
	}
	if i < len(in) && (in[i] == '"' || in[i] == '\'') {
		quoted = true
		i++
		if i < len(in) && in[i] == ']' { // of an index
			i++
		}
	} else if i > at {
		return at, "", false
	}
	for i < len(in) && (in[i] == ' ' || in[i] == '\t') {
		i++
	}
	for _, sep = range [...]string{"=>", ":=", "=", ":", "：", "＝", ""} {
		if strings.HasPrefix(in[i:], sep) {
			break
		}
	}
	after = i + len(sep)
	if sep == "=" && after < len(in) && in[after] == '=' { // a comparison
		after++
	}
	switch sep {
	case "：":
		sep = ":"
	case "＝":
		sep = "="
	}
	return after, sep, quoted
}

// value redacts the value that begins at at.
func (p *pairing) value(at, indent int) {
	from, to := p.extent(at, indent)
	value := strings.TrimSpace(p.in[from:to])
	if isPlainValue(value) || p.plural && isCount(value) {
		p.at = max(p.at, to)
		return
	}
	p.cut(from, to)
}

// isCount reports whether a value is a count, or in a list of such: 120 of keys=120,expires=0.
func isCount(value string) bool {
	number, _, _ := strings.Cut(value, ",")
	return number != "" && len(number) <= 9 && strings.Trim(number, "0123456789") == ""
}

func (p *pairing) cut(from, to int) {
	if from < p.copied || isPlainValue(p.in[from:to]) {
		return
	}
	p.spans = append(p.spans, span{from: from, to: to})
	p.copied, p.at = to, max(p.at, to)
}
