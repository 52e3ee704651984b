// Package logtext parses the logs of programs: it joins the lines of one message, groups messages that differ only in
// their values, and finds those that report problems and the hosts that they name. It treats all of it as data.
package logtext

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Source is one log of a container.
type Source struct{ Pod, Container, Text string }

// Group collects the messages of one template.
type Group struct {
	Template string
	Line     string // the first line of the first one, as written
	Root     string // the line that gives the cause: the last "Caused by", the exception below a trace; may be empty
	Place    string // location in the program's own code, if a trace has it
	Before   string // the previous line of the same log
	Count    int
	First    time.Time // zero if lines have no time
	Last     time.Time
	Pods     []string
	// Hint means that its words suggest a problem but occur in healthy programs too.
	Hint bool
	// Since counts the messages of the logs after the last of these.
	Since int
	// Over means that these are warnings about attempts, and that each log later reports a success.
	Over bool

	score   int
	refusal bool // recognized only by a 4xx status
}

// Texts returns the parts of a group that may name hosts and files.
func (g Group) Texts() []string {
	if g.Root == "" {
		return []string{g.Line}
	}
	return []string{g.Root, g.Line}
}

const (
	// longest limits the part of a line that is examined.
	longest = 4 << 10
	// hintBelow is the score below which a group is a hint.
	hintBelow = 20
	// oldAfter is the number of later messages from which a group counts as past, provided they are four times as many as
	// its own.
	oldAfter = 20
	// pastPenalty ranks ongoing problems before past ones.
	pastPenalty = 30
	// calmPenalty applies to lines below an informational first line: most often a list of settings.
	calmPenalty = 20
	// mostLeveled limits the lines of one message whose levels are read.
	mostLeveled = 300
)

// Telling groups the messages that report problems: the most significant first, then the most frequent. lines is the
// total number of lines.
func Telling(sources []Source) (groups []Group, lines int) {
	at := map[string]int{}
	answers := 0
	scores := newScorer()
	for _, s := range sources {
		entries, n := splitEntries(scores, s.Text)
		lines += n
		last := map[int]int{} // group to its last entry in this log
		before := ""
		for j := range entries {
			e := &entries[j]
			score, best, refusal := e.score(scores)
			if hasStatus(e.lines[0]) && StatusOf(e.lines[0]) != 0 || strings.Contains(e.lines[0], " 200 ") {
				answers++
			}
			if score > 0 {
				i := scores.group(&groups, at, e, score, best)
				g := &groups[i]
				if g.Count == 0 {
					g.Before, g.refusal = before, refusal
				}
				g.add(e.lines[0], s.Pod)
				last[i] = j
			}
			before = e.lines[0]
		}
		for i, j := range last {
			since := len(entries) - 1 - j
			g := &groups[i]
			over := recovers(entries[j:])
			g.Over = over && (g.Over || g.Since < 0)
			if g.Since < 0 || since < g.Since {
				g.Since = since
			}
		}
	}
	// Some refused requests are normal.
	groups = slices.DeleteFunc(groups, func(g Group) bool { return g.refusal && 5*g.Count < answers })
	slices.SortStableFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.rank(), a.rank()), cmp.Compare(b.Count, a.Count))
	})
	return groups, lines
}

// Messages of a program that retries, and of one that has succeeded.
var (
	attemptExpr   = regexp.MustCompile(`(?i)\battempt \d|\bretry(ing)?\b|\bnot (yet )?(reachable|ready|available)( yet)?\b|\bwaiting (for|until)\b|\btry(ing)? again\b`)
	recoveredExpr = regexp.MustCompile(`(?i)\b((re)?connected to|connection (re-?)?established|recovered|(is|are) (now )?(ready|reachable|available)( now)?)\b`)
	deniedExpr    = regexp.MustCompile(`(?i)\b(not|never|no|fail\w*|unable|cannot|lost|before|until|dis\w+)\b`)
)

// settled is the minimum number of messages after the last attempt.
const settled = 5

// recovers reports whether a message is a failed attempt, at most a warning, and a later one reports success.
func recovers(entries []entry) bool {
	first := entries[0].lines[0]
	if level := levelOf(first); len(entries) <= settled || level > warnLevel || !attemptExpr.MatchString(first) {
		return false
	}
	return slices.ContainsFunc(entries[1:], func(e entry) bool {
		return recoveredExpr.MatchString(e.lines[0]) && !deniedExpr.MatchString(e.lines[0])
	})
}

// group returns the index of the group that an entry belongs to; best is the entry's most significant line.
func (s *scorer) group(groups *[]Group, at map[string]int, e *entry, score, best int) int {
	why, place := "", ""
	if len(e.lines) > 1 {
		if why, place = e.root(); why == "" && best > 0 {
			why = strings.TrimSpace(e.lines[best])
		}
	} else {
		why = quotedCause(e.lines[0])
	}
	template := s.template(e.lines[0]) + "\n" + s.template(why)
	if i, ok := at[template]; ok {
		(*groups)[i].score = max((*groups)[i].score, score)
		return i
	}
	at[template] = len(*groups)
	*groups = append(*groups, Group{Template: template, Line: strings.TrimSpace(e.lines[0]), Root: why, Place: place, Hint: score < hintBelow, Since: -1, score: score})
	return len(*groups) - 1
}

// quotedCause returns the last cause of a stack that a line contains as a string, as JSON logs do.
func quotedCause(line string) string {
	at := strings.LastIndex(line, "Caused by: ")
	if at < 0 {
		return ""
	}
	cause := line[at:]
	if end := strings.Index(cause, `\n`); end > 0 {
		cause = cause[:end]
	}
	return cause
}

// bareLevelExpr matches a line of a printed object that contains only its level: another line describes the event.
var bareLevelExpr = regexp.MustCompile(`(?i)^\s+"?(?:level|severity|lvl|levelname|status)"?\s*[:=]\s*"?\w+"?,?$`)

// score returns the highest score of an entry's lines, stack frames excluded, and the index of that line.
func (e *entry) score(s *scorer) (most, best int, refusal bool) {
	below := 0 // lines with a problem, except the first
	calm := false
	for i, line := range e.lines {
		if i > 0 && e.isStack(i) {
			continue
		}
		score := s.line(line)
		if i > 0 && score > 0 {
			if below++; below == 1 {
				declared := levelOf(ends(e.lines[0]))
				calm = declared == debugLevel || declared == infoLevel
			}
			if calm && (below > mostLeveled || levelOf(ends(line)) == unleveled) {
				score = max(0, score-calmPenalty)
			}
		}
		if score > most || score > 0 && bareLevelExpr.MatchString(e.lines[best]) {
			most, best = max(most, score), i
			refusal = score == refusalScore && i == 0
		}
	}
	if len(e.lines) > 2 && most > 0 {
		most += 3 // a trace is more significant than a sentence
	}
	return most, best, refusal
}

// Past reports whether the messages have stopped: many others follow the last one.
func (g Group) Past() bool { return g.Since >= oldAfter && g.Since >= 4*g.Count }

func (g Group) rank() int {
	if g.Past() {
		return g.score - pastPenalty
	}
	return g.score
}

func (g *Group) add(line, pod string) {
	g.Count++
	if at := timeOf(line); !at.IsZero() {
		if g.First.IsZero() || at.Before(g.First) {
			g.First = at
		}
		if at.After(g.Last) {
			g.Last = at
		}
	}
	if !slices.Contains(g.Pods, pod) {
		g.Pods = append(g.Pods, pod)
	}
}

// Frequent returns the most frequent groups of messages, whatever their content; single messages are left out.
func Frequent(sources []Source, most int) []Group {
	var groups []Group
	at := map[string]int{}
	scores := newScorer()
	for _, s := range sources {
		entries, _ := splitEntries(scores, s.Text)
		for j := range entries {
			i := scores.group(&groups, at, &entries[j], 1, 0)
			groups[i].add(entries[j].lines[0], s.Pod)
		}
	}
	slices.SortStableFunc(groups, func(a, b Group) int { return cmp.Compare(b.Count, a.Count) })
	return groups[:min(len(groups), most)]
}
