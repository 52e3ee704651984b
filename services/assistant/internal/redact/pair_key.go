package redact

import (
	"regexp"
	"strings"
)

// keyBehindName redacts the value at at of an assignment with an innocuous name, if the value is a key by its shape.
func (p *pairing) keyBehindName(start, at int, name string) {
	if start > 0 && p.in[start-1] == '/' { // checksum/config
		from := start - 1
		for from > max(0, start-64) && p.in[from-1] < 0x80 && inName[p.in[from-1]] {
			from--
		}
		name = p.in[from:start] + name
	}
	for at < len(p.in) && (p.in[at] == ' ' || p.in[at] == '\t') {
		at++
	}
	// No key is longer: reading each word to its end would take quadratic time on a long one.
	near := pairing{in: p.in[:min(at+mostKey+64, len(p.in))]}
	from, to := near.extent(at, noBlock)
	value := strings.TrimRight(p.in[from:to], ",;)")
	if isKeyMaterial(value) && !namesPublic(name) {
		p.cut(from, from+len(value))
	}
}

// wordAhead matches the next word of a sentence, possibly in brackets or quotes.
var wordAhead = regexp.MustCompile("^[ \\t]+[(\"'`]?([A-Za-z0-9+/_=-]{22,})(?:[)\"'`.,;:!?]|\\s|$)")

// keyBehindWord redacts a key directly after a word for one, as in "auth token 0123…". The word key counts only with
// the word before it: a cache key is no secret.
func (p *pairing) keyBehindWord(start int, word string) {
	if !p.nameTells(word) && !strings.EqualFold(word, "key") || p.at == len(p.in) || p.in[p.at] != ' ' && p.in[p.at] != '\t' {
		return
	}
	if strings.EqualFold(word, "key") {
		before := strings.TrimRight(p.in[max(0, start-32):start], " ")
		before = before[strings.LastIndexAny(before, " \t\n\"'(")+1:]
		if !endsTelling(strings.ToLower(before + word)) {
			return
		}
	}
	m := wordAhead.FindStringSubmatchIndex(p.in[p.at:min(p.at+mostKey+64, len(p.in))])
	if m == nil {
		return
	}
	if from, to := p.at+m[2], p.at+m[3]; isKeyMaterial(p.in[from:to]) {
		p.cut(from, to)
	}
}
