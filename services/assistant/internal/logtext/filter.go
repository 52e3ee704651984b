package logtext

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Filter selects messages of a log; its zero value selects all.
type Filter struct {
	// Term is a text that a message contains, ignoring case.
	Term string
	// Errors and Warnings select by level, or by the text of a message without a level.
	Errors, Warnings bool
	// Status is an HTTP status, or 4 or 5 for that class. A message with its number, which is no count of anything else,
	// is chosen even if it is not known to be a status: "upstream 503".
	Status int
}

// IsZero reports whether all messages are selected.
func (f Filter) IsZero() bool { return f == Filter{} }

// Chosen holds the selected messages of a log and the size of the whole.
type Chosen struct {
	Messages    []string // with the zero filter: lines
	All         int      // number of non-empty lines
	First, Last time.Time
}

// Choose returns the messages that a filter selects, in order; long ones are shortened. The zero filter selects every
// line.
func (f Filter) Choose(text string) Chosen {
	s := newScorer()
	entries, all := splitEntries(s, text)
	found := Chosen{All: all}
	for i := range entries {
		e := &entries[i]
		if at := timeOf(e.lines[0]); !at.IsZero() {
			if found.First.IsZero() {
				found.First = at
			}
			found.Last = at
		}
		switch {
		case f.IsZero():
			found.Messages = append(found.Messages, e.lines...)
		case f.chooses(s, e):
			found.Messages = append(found.Messages, f.shorten(s, e))
		}
	}
	return found
}

// wholeMessage is the maximum length in lines of a message shown in full; a longer one is reduced to the first lines
// and the relevant ones.
const wholeMessage = 6

// shorten returns a message without most of its stack: its start, its cause, and the lines with the search term.
func (f Filter) shorten(s *scorer, e *entry) string {
	if len(e.lines) <= wholeMessage {
		return strings.Join(e.lines, "\n")
	}
	why, _ := e.root()
	_, best, _ := e.score(s)
	var shown []string
	left, matches := 0, 0
	for i, line := range e.lines {
		matched := f.Term != "" && matches < wholeMessage && f.hasTerm(line)
		if matched {
			matches++
		}
		if i >= wholeMessage-2 && i != best && !matched && (why == "" || !strings.HasSuffix(line, why)) {
			left++
			continue
		}
		if left > 0 {
			shown = append(shown, leftOut(left))
		}
		shown, left = append(shown, line), 0
	}
	if left > 0 {
		shown = append(shown, leftOut(left))
	}
	return strings.Join(shown, "\n")
}

func leftOut(lines int) string {
	if lines == 1 {
		return "    [1 line left out]"
	}
	return fmt.Sprintf("    [%d lines left out]", lines)
}

func (f Filter) hasTerm(line string) bool {
	return strings.Contains(strings.ToLower(line), strings.ToLower(f.Term))
}

// hasNumber reports whether a word of a line is a number of three digits, and no amount.
func hasNumber(line string, number int) bool {
	if number < 100 {
		return false
	}
	digits := strconv.Itoa(number)
	words := strings.Fields(line)
	for i, word := range words {
		if strings.Trim(word, `"'()[],;:`) == digits && !(i+1 < len(words) && countedExpr.MatchString(" "+words[i+1])) {
			return true
		}
	}
	return false
}

// errorMemberExpr matches a member that holds an error, whatever the level of its line.
var errorMemberExpr = regexp.MustCompile(`(?i)\berr(or)?"?[:=]"?[^",\s]`)

func (f Filter) chooses(s *scorer, e *entry) bool {
	if f.Term != "" && !slices.ContainsFunc(e.lines, f.hasTerm) {
		return false
	}
	if f.Status != 0 {
		if status := StatusOf(e.lines[0]); status != f.Status && status/100 != f.Status && !(status == 0 && hasNumber(e.lines[0], f.Status)) {
			return false
		}
	}
	if !f.Errors && !f.Warnings {
		return true
	}
	score, _, _ := e.score(s)
	switch at := levelOf(e.lines[0]); {
	case score == 0:
		return false
	case at == warnLevel:
		return f.Warnings || f.Errors && errorMemberExpr.MatchString(e.lines[0])
	case at >= errorLevel:
		return f.Errors
	}
	return f.Errors && score >= hintBelow
}
