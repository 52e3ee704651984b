package ground

import (
	"regexp"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/kubectl"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

var (
	// wordExpr matches a word of the characters in names, paths and images.
	wordExpr = regexp.MustCompile(`[A-Za-z0-9][A-Za-z0-9._/:@-]*`)
	// imageExpr matches an image with its tag or digest.
	imageExpr = regexp.MustCompile(`^(?:[a-z0-9][a-z0-9.-]*(?::\d+)?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*(?::([A-Za-z0-9_][\w.-]*)|@sha256:[0-9a-f]{8,64})$`)
	imageWord = regexp.MustCompile(`(?i)\bimages?\b`)
	// absentExpr matches a sentence about something that does not exist.
	absentExpr = regexp.MustCompile(`(?i)\b` + wordlist.AnyOf(
		"no such", "there (?:is|are|was|were) no", "is no", "(?:does|do|did) not exist", "(?:does|do|did)n['’]t exist", "not found",
		"missing", "absent", "no longer exists?", "non-?existent", "cannot be found", "could not (?:be found|find)",
	) + `\b`)
	// makesExpr matches a sentence about something to be created.
	makesExpr = regexp.MustCompile(`(?i)\b` + wordlist.AnyOf("creat(?:e|es|ing)", "add(?:ing)?", "new", "defin(?:e|ing)", "install(?:ing)?", "generat(?:e|ing)", "nam(?:e it|ed) ") + `\b`)
)

// everywhere lists the namespaces that every cluster has.
var everywhere = []string{"default", "kube-system", "kube-public", "kube-node-lease"}

// objects returns the positions after objects and images that were not seen.
func (c *Checker) objects(s sentence) (marks []int) {
	absent := absentExpr.MatchString(s.text)
	makes := makesExpr.FindStringIndex(s.text)
	var before, kind string
	last := -1 // the end of the previous word
	for _, m := range wordExpr.FindAllStringIndex(s.text, -1) {
		start, end := m[0], m[1]
		word := strings.TrimRight(s.text[start:end], ".:-/@_")
		end = start + len(word)
		code, quoted := s.inCode(start)
		if quoted && isCommand(s.content(code)) {
			if start == code.start && !c.commandSeen(s.content(code)) {
				marks = append(marks, code.after)
			}
			before, kind = "", ""
			continue
		}
		previous := kind
		if last < 0 || strings.Trim(s.text[last:start], "`*\"' ") != "" {
			previous = "" // not directly after it
		}
		kind, last = "", end
		if k := question.KindOf(strings.ToLower(word)); k != "" && !(quoted && code.start == start && code.end == end && previous != "") {
			kind = k
		}
		switch {
		case strings.HasPrefix(s.text[end:], "://") || strings.Contains(word, "://"):
		case c.isImage(s, word, before, start):
			if !c.record.mentions(word) && !c.record.mentions(word[strings.LastIndexByte(word, '/')+1:]) {
				marks = append(marks, s.behind(end))
			}
		case absent, makes != nil && start > makes[0]:
		default:
			whole := quoted && code.start == start && code.end == end || emphasized(s.text, start, end)
			if name := nameIn(word, previous, c.nameBehind(s.text, end), whole); name != "" && !slices.Contains(everywhere, name) && !c.record.mentions(name) {
				marks = append(marks, s.behind(end))
			}
		}
		before = strings.ToLower(word)
	}
	return marks
}

// nameBehind returns the kind that follows a word: "the `api` deployment".
func (c *Checker) nameBehind(text string, end int) string {
	rest := strings.TrimLeft(text[end:], "`*\" ")
	return question.KindOf(strings.ToLower(firstWord(rest)))
}

// emphasized reports whether a word is between quotes or asterisks.
func emphasized(text string, start, end int) bool {
	return start > 0 && end < len(text) && (text[start-1] == '"' && text[end] == '"' || text[start-1] == '*' && text[end] == '*')
}

func (c *Checker) isImage(s sentence, word, before string, start int) bool {
	m := imageExpr.FindStringSubmatch(word)
	if m == nil || !strings.ContainsFunc(word, func(r rune) bool { return r >= 'a' && r <= 'z' }) {
		return false
	}
	if strings.Trim(m[1], "0123456789") != "" || m[1] == "" {
		return question.KindOf(before) == "" || before == "image"
	}
	// A tag of digits alone may be a port.
	at := imageWord.FindStringIndex(s.text)
	return at != nil && at[0] < start
}

// nameIn returns the object name in a word; empty: none. before and behind are the kinds next to it, and whole means
// that the word is set off as code or in quotes.
func nameIn(word, before, behind string, whole bool) string {
	low := strings.ToLower(word)
	if kind, name, ok := strings.Cut(word, "/"); ok {
		name, _, _ = strings.Cut(name, "/")
		if question.KindOf(strings.ToLower(kind)) != "" && operation.ValidName(name) && !generic(name) {
			return name
		}
		if operation.ValidName(name) && operation.ValidName(kind) && looksLikeName(name) && !strings.ContainsAny(word, ".:") && whole {
			return name
		}
		return ""
	}
	if !operation.ValidName(word) || word != low || strings.ContainsAny(word, ":@") || strings.Trim(word, "0123456789.") == "" {
		return ""
	}
	switch {
	case whole && (before != "" || behind != "") && !generic(word):
		return word
	case whole && looksLikeName(word) && !strings.Contains(word, "."):
		return word
	case before != "" && looksLikeName(word) && !question.IsOrdinary(word) && !allOrdinary(word) && unitOf(strings.TrimLeft(word, "0123456789"), false) == nil:
		return word
	}
	return ""
}

// generic reports whether a word is a placeholder for a name.
func generic(word string) bool { return question.KindOf(word) != "" || word == "name" || len(word) < 2 }

// looksLikeName reports whether a word has a form that is typical of names and not of words.
func looksLikeName(word string) bool {
	if !strings.ContainsFunc(word, func(r rune) bool { return r >= 'a' && r <= 'z' }) {
		return false
	}
	return strings.Contains(word, "-") || strings.ContainsAny(word, "0123456789") && word[0] > '9'
}

// allOrdinary reports whether a word consists of English words and those of the API: anti-affinity.
func allOrdinary(word string) bool {
	for part := range strings.SplitSeq(word, "-") {
		if !question.IsOrdinary(part) && !apiWords()[part] {
			return false
		}
	}
	return true
}

func isCommand(code string) bool { return kubectl.IsCommand(code) }

// commandSeen reports whether the objects of a command were seen. An object that it creates does not exist yet.
func (c *Checker) commandSeen(line string) bool {
	line, _, _ = strings.Cut(line, " | ")
	op, err := kubectl.Parse(line)
	if err != nil {
		for _, word := range strings.Fields(line)[1:] {
			if kind, name, ok := strings.Cut(word, "/"); ok && question.KindOf(kind) != "" && operation.ValidName(name) && !c.record.mentions(name) {
				return false
			}
		}
		return true
	}
	if op.Verb == operation.Create || op.Verb == operation.Apply {
		return true
	}
	names := []string{op.Namespace}
	for _, o := range op.Objects() {
		names = append(names, o.Name)
	}
	return !slices.ContainsFunc(names, func(name string) bool {
		return name != "" && !slices.Contains(everywhere, name) && !c.record.mentions(name)
	})
}
