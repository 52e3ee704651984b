package redact

import (
	"regexp"
	"strings"
)

// The parts of the expressions below.
const (
	blank       = `[ \t]+`
	bareWord    = `[^\s"']+`
	settingName = `(?:requirepass|masterauth|bindpw|rootpw|login` + blank + bareWord + `[ \t\r\n]+password)`
	sqlName     = `(?:identified` + blank + `(?:with` + blank + bareWord + blank + `)?by|password)`
	userFlag    = `(?:^|[\s"'])(?:-u|--user|--proxy-user)`
	proseName   = `(?:password|passwd|passphrase|passcode|token|api[ -]?key)`
	verb        = `(?:is|was|to|to be)`
	owner       = `(?:` + blank + `(?:for|of|on)` + blank + bareWord + `)?`
)

// What names a secret without a sign between name and value: settings of servers, SQL, tags, arguments, prose.
var (
	// A name of its own kind, a blank, the value.
	setting = regexp.MustCompile(`(?i)\b(` + settingName + blank + `)("[^"\n]*"|'[^'\n]*'|` + bareWord + `)`)
	sql     = regexp.MustCompile(`(?i)\b(` + sqlName + blank + `)('[^'\n]+'|"[^"\n]+")`)
	element = regexp.MustCompile(`<([A-Za-z][\w.:-]*)(?:[ \t][^<>]*)?>([^<>]+)</`)
	// A user with a password, as curl takes it.
	basic = regexp.MustCompile(`(` + userFlag + `(?:=|[ \t]+|["'],[ \t]*["']))([^\s:"'/]+):([^\s"'/][^\s"']*)`)
	// A password that is one word with its flag, as clients of MySQL take it.
	glued = regexp.MustCompile(`([\s"']-p)([^\s"'=-][^\s"']*)`)
	prose = regexp.MustCompile(`(?i)\b(` + proseName + owner + blank + `` + verb + blank + `["']?)([^\s"'<>]+)`)
	// A user alone in the address of a web page is a token.
	alone = regexp.MustCompile(`(?i)\b(https?://)([^\s/:@"'<>?#]+)@`)
)

// redactPhrases redacts what the notations above hold.
func redactPhrases(s string) string {
	lower := strings.ToLower(s)
	has := func(any ...string) bool {
		for _, word := range any {
			if strings.Contains(lower, word) {
				return true
			}
		}
		return false
	}
	if has("requirepass", "masterauth", "bindpw", "rootpw", "password") {
		s = replaceGroups(setting, s, redactBehind)
	}
	if has("identified", "password") {
		s = replaceGroups(sql, s, redactBehind)
	}
	if strings.Contains(s, "</") {
		s = replaceGroups(element, s, redactContent)
	}
	if has("-u", "--user", "--proxy-user") {
		s = replaceGroups(basic, s, redactAccount)
	}
	if has("mysql", "mariadb", "sshpass") && strings.Contains(s, "-p") {
		s = redactClients(s)
	}
	if has("pass", "token", "key") {
		s = replaceGroups(prose, s, redactSaid)
	}
	if has("http://", "https://") {
		s = replaceGroups(alone, s, redactUser)
	}
	return s
}

// redactBehind redacts the second group, without its quotes.
func redactBehind(m []string) string {
	value := strings.Trim(m[2], `"'`)
	if isPlainValue(value) || strings.HasPrefix(value, "[redacted") {
		return m[0]
	}
	quote := ""
	if strings.HasPrefix(m[2], `"`) || strings.HasPrefix(m[2], "'") {
		quote = m[2][:1]
	}
	return m[1] + quote + redactionMark(len(value)) + quote
}

func redactContent(m []string) string {
	value := strings.TrimSpace(m[2])
	if isPlainValue(value) || !isTellingName(m[1]) {
		return m[0]
	}
	return strings.TrimSuffix(m[0], m[2]+"</") + redactionMark(len(m[2])) + "</"
}

// redactAccount leaves a user with a group alone: both are numbers, or the same word.
func redactAccount(m []string) string {
	if m[2] == m[3] || strings.Trim(m[3], "0123456789") == "" || strings.HasPrefix(m[3], "[redacted") {
		return m[0]
	}
	return m[1] + m[2] + ":" + redactionMark(len(m[3]))
}

// redactClients redacts in the lines that call a client of MySQL.
func redactClients(s string) string {
	var out strings.Builder
	for line := range strings.Lines(s) {
		lower := strings.ToLower(line)
		at := -1
		for _, name := range [...]string{"mysql", "mariadb", "sshpass"} {
			if i := strings.Index(lower, name); i >= 0 && (at < 0 || i < at) {
				at = i
			}
		}
		if at < 0 || len(lower) != len(line) { // letters whose case has another length: no command line
			out.WriteString(line)
			continue
		}
		out.WriteString(line[:at])
		out.WriteString(replaceGroups(glued, line[at:], func(m []string) string {
			if strings.HasPrefix(m[2], "[redacted") {
				return m[0]
			}
			return m[1] + redactionMark(len(m[2]))
		}))
	}
	return out.String()
}

// redactSaid redacts what prose says a password is. Words such as "wrong" and "required" are none.
func redactSaid(m []string) string {
	value := strings.TrimRight(m[2], ".,;:!?)")
	rest := m[2][len(value):]
	if len(value) < 6 || strings.HasPrefix(value, "[redacted") || strings.ContainsAny(value, "/(") || !isMixedWord(value) {
		return m[0]
	}
	return m[1] + redactionMark(len(value)) + rest
}

// isMixedWord reports whether a word has more in it than a word has: digits, signs, capitals inside.
func isMixedWord(value string) bool {
	return strings.ContainsAny(value, "0123456789!@#$%^&*_=+~") || strings.ToLower(value[1:]) != value[1:] && strings.ToUpper(value) != value
}

func redactUser(m []string) string {
	if m[2] == "git" {
		return m[0]
	}
	return m[1] + redactionMark(len(m[2])) + "@"
}
