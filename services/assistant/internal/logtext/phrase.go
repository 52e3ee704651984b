package logtext

import (
	_ "embed"
	"strings"
)

//go:embed phrases.txt
var phraseText string

// weight is how strongly a phrase indicates a problem.
type weight int

const (
	weak  weight = iota + 1 // alone, at a warning level or without a level
	fault                   // an error, whatever the level
	known                   // the wording of a common server or client for a fault, even at level INFO
	grave
)

// phrase is one word or several consecutive ones.
type phrase struct {
	rest   string // after the first word, with a blank before and after it; for one word, a blank
	weight weight
	level  bool // names a level: other phrases are more specific
}

// phrases are those of phrases.txt, by their first word.
var phrases = readPhrases(phraseText)

func readPhrases(text string) map[string][]phrase {
	byFirst := map[string][]phrase{}
	var at weight
	level := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case strings.HasPrefix(line, "["):
			at = map[string]weight{"[weak]": weak, "[level]": fault, "[fault]": fault, "[known]": known, "[grave]": grave}[line]
			level = line == "[level]"
			continue
		}
		for text := range strings.SplitSeq(line, ",") {
			first, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
			if rest = " " + rest; rest != " " {
				rest += " "
			}
			byFirst[first] = append(byFirst[first], phrase{rest, at, level})
		}
	}
	return byFirst
}

// normalize returns a line in lower case with one blank around each word. It drops paths and URLs, since their words
// mean nothing.
func normalize(line string) string {
	var b strings.Builder
	b.Grow(len(line) + 2)
	b.WriteByte(' ')
	blank, path := true, false
	for i := range len(line) {
		c := line[i]
		switch {
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		case c >= 0x80:
			continue
		case path && strings.IndexByte("/._-%~:?&=", c) >= 0:
			continue
		case c == '/' && i+1 < len(line) && line[i+1] != ' ' && (i == 0 || line[i-1] != 'i' || line[i+1] != 'o'):
			path = true
			fallthrough
		default:
			if c != '/' {
				path = false
			}
			if !blank {
				b.WriteByte(' ')
			}
			blank = true
			continue
		}
		if path {
			continue
		}
		b.WriteByte(c)
		blank = false
	}
	if !blank {
		b.WriteByte(' ')
	}
	return b.String()
}

// hits returns the highest weight of the phrases in a line, and whether it comes from more than a level.
func hits(line string) (most weight, beyondLevel bool) {
	text := normalize(line)
	previous := ""
	for at := 1; at < len(text); {
		end := at + strings.IndexByte(text[at:], ' ')
		word, rest := text[at:end], text[end:]
		for _, p := range phrases[word] {
			if !strings.HasPrefix(rest, p.rest) || isCalm(previous, rest[len(p.rest)-1:], p) {
				continue
			}
			most = max(most, p.weight)
			beyondLevel = beyondLevel || !p.level
		}
		if isException(word) {
			most, beyondLevel = max(most, fault), true
		}
		previous, at = word, end+1
	}
	return most, beyondLevel
}

// isException reports whether a word is the name of an error type.
func isException(word string) bool {
	return len(word) > len("exception") && strings.HasSuffix(word, "exception") || len(word) > len("error")+2 && strings.HasSuffix(word, "error")
}

// isCalm reports whether a phrase has a count of zero or names a setting: "timeout=30s", "no errors".
func isCalm(previous, rest string, p phrase) bool {
	next, _, _ := strings.Cut(strings.TrimPrefix(rest, " "), " ")
	if p.weight == weak {
		return next != "" && next[0] >= '0' && next[0] <= '9'
	}
	return p.weight == fault && (previous == "without" || previous == "no" && next == "found")
}
