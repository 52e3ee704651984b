package logtext

import (
	"regexp"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// entry is one message of a program: a line, or several, such as a stack trace.
type entry struct {
	lines []string
	trace traceKind
}

// traceKind is the kind of trace that an entry is in the middle of.
type traceKind int

const (
	noTrace traceKind = iota
	pythonTrace
	goTrace
)

// stackHead and stackTail limit the lines of an entry that are searched for its root cause; deep stacks repeat
// themselves.
const stackHead, stackTail = 200, 100

// exceptionExpr matches an exception on a separate line, below the message of a logger.
var exceptionExpr = regexp.MustCompile(`^(?:[\w$]+\.)+[\w$]*(?:Exception|Error)(?:: |$)`)

var (
	// frameExpr matches a stack frame, after time and level: JVM and Node, Ruby, PHP, .NET, Go, Rust.
	frameExpr = regexp.MustCompile(`^` + wordlist.AnyOf(
		`at [\w$.<>/@\[\]`+"`"+`]+ ?\(.*\)?$`, `at .+:\d+(:\d+)?\)?$`, `at [\w.<>`+"`"+`]+\(.*\) in .+`, `\.\.\. \d+ (more|common frames omitted)`,
		`#\d+ +\S`, `from \S+:\d+:in `, `\S+\.rb:\d+:in `, `goroutine \d+ \[`, `created by \S`, `\[signal \S`, `File ".+", line \d+`,
	))
	// joinedExpr matches a line that continues the previous message.
	joinedExpr = regexp.MustCompile(`^` + wordlist.AnyOf(
		`Caused by: `, `Suppressed: `, `--->`, `--- End of `, `Stack ?trace:`, `stack backtrace:`, `note: (run with|Some details)`, `During handling of the above exception`,
		`The above exception was the direct cause`, `thrown in /`, `(DETAIL|HINT|STATEMENT|CONTEXT|QUERY|LOCATION): `, `exit status \d`,
	))
	// headExpr matches the text before the message: times, levels, process and thread numbers.
	headExpr  = regexp.MustCompile(`^(?:[\[(]?(?:\d[\d\-/:.,TZ+ ]{5,}|[EFWID], )\]?\s*|UTC\s*|\[[^\]]{1,40}\]\s*|(?:FATAL|ERROR|WARN|INFO)\s+(?:-- : )?|\d+:\s+)*`)
	timedExpr = regexp.MustCompile(`^[\[(]?(?:\d{4}[-/]\d\d|\d\d:\d\d:\d\d|\d\d-[A-Z][a-z]{2}-\d{4}|[A-Z][a-z]{2} +\d|\{")`)
	goFrame   = regexp.MustCompile(`^[\w./*()\[\]{}·-]+\(.*\)$`)
)

// splitEntries splits a log into entries. lines counts its non-empty lines.
func splitEntries(s *scorer, text string) (entries []entry, lines int) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \r\n")
		if strings.TrimSpace(line) == "" {
			continue
		}
		line = line[:min(len(line), longest)]
		lines++
		if n := len(entries); n > 0 && entries[n-1].continues(s, line) {
			entries[n-1].add(line)
			continue
		}
		e := entry{}
		e.add(line)
		entries = append(entries, e)
	}
	return entries, lines
}

func (e *entry) add(line string) {
	switch {
	case strings.HasPrefix(line, "Traceback (most recent call last)"):
		e.trace = pythonTrace
	case strings.HasPrefix(line, "panic: "), strings.HasPrefix(line, "fatal error: "), strings.HasPrefix(line, "goroutine "):
		e.trace = goTrace
	case e.trace == pythonTrace && !indented(line):
		e.trace = noTrace // the exception line ends it
	}
	e.lines = append(e.lines, line)
}

func indented(line string) bool {
	return strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "  ")
}

// continues reports whether a line belongs to the previous entry.
func (e *entry) continues(s *scorer, line string) bool {
	last := e.lines[len(e.lines)-1]
	trimmed := strings.TrimLeft(line, " \t")
	timed := timedExpr.MatchString(trimmed)
	body := trimmed
	if timed || strings.HasPrefix(trimmed, "[") {
		body = trimmed[len(headExpr.FindString(trimmed)):]
	}
	switch {
	case indented(line) && !timed, isFrame(body), isJoined(body):
		return true
	case timed:
		return false
	case e.trace == pythonTrace:
		return indented(last) || strings.HasPrefix(last, "Traceback")
	case e.trace == goTrace:
		return goFrame.MatchString(line)
	case strings.HasPrefix(line, "Traceback (most recent call last)"):
		return len(e.lines) == 1 && s.line(last) > 0 || strings.Contains(last, "exception was") || strings.Contains(last, "another exception occurred")
	}
	if exceptionExpr.MatchString(line) && len(e.lines) == 1 {
		return s.line(last) > 0
	}
	return strings.Contains(last, "' panicked at ") && strings.HasSuffix(last, ":")
}

// libraryExpr matches a frame of library code, as opposed to the program's own.
var libraryExpr = regexp.MustCompile(wordlist.AnyOf(
	`site-packages`, `dist-packages`, `/lib/python`, `node_modules`, `node:internal`, `\bat (java|javax|jdk|sun|jakarta|kotlin|scala|io\.netty|org\.(springframework|apache|hibernate|postgresql|eclipse)|com\.(zaxxer|mysql|sun|fasterxml|google))\.`,
	`/usr/local/go/`, `/gems/`, `\bat (System|Microsoft)\.`, `/vendor/`, `/go/pkg/mod/`, `\bruntime[./]`,
))

// placeExpr matches the source location of a frame.
var placeExpr = regexp.MustCompile(wordlist.AnyOf(
	`File "([^"]+)", line (\d+)`, `\(([^()\s]+:\d+(?::\d+)?)\)`, `\bin (\S+:line \d+)`, `at (?:async )?((?:file:/)?/[^\s()]+:\d+(?::\d+)?)`, `(\S+\.rb:\d+)`, `(/[^\s()]+\.(?:go|php):\d+)`, `(/[^\s()]+\.php\(\d+\))`,
))

// root returns the line of an entry that gives the cause, and the location in the program's own code; both are empty if
// there is none beyond the first line.
func (e *entry) root() (why, place string) {
	lines := e.lines
	if len(lines) > stackHead+stackTail {
		lines = slices.Concat(lines[:stackHead], lines[len(lines)-stackTail:])
	}
	from := 0
	for i, line := range lines[1:] {
		body := strings.TrimLeft(line, " \t")
		switch {
		case strings.HasPrefix(body, "Caused by: "), strings.HasPrefix(body, "---> "):
			why, from = body, i+1
		case joinedDetail(body):
			if why == "" {
				why = strings.TrimSpace(body[len(headExpr.FindString(body)):])
			}
		case exceptionExpr.MatchString(body):
			why, from = body, i+1
		case !indented(line) && !isFrame(body) && !isJoined(body) && !strings.HasPrefix(body, "Traceback") && pythonException.MatchString(body):
			why, from = body, 0
		case i == 0 && strings.Contains(e.lines[0], "' panicked at "):
			why = body
		}
	}
	return why, ownPlace(lines[from:])
}

// pythonException matches the last line of a trace.
var pythonException = regexp.MustCompile(`^[A-Za-z_][\w.]*(?:: |$)`)

// joinedDetail reports whether a line of PostgreSQL explains the one before it.
func joinedDetail(body string) bool {
	rest := body[len(headExpr.FindString(body)):]
	return strings.HasPrefix(rest, "DETAIL: ") || strings.HasPrefix(rest, "STATEMENT: ")
}

// ownPlace returns the location of the first frame of a stack that is in the program's own code; Python writes the
// innermost frame last.
func ownPlace(stack []string) string {
	first, own := "", ""
	for _, line := range stack {
		m := placeExpr.FindStringSubmatch(line)
		if m == nil || !frameLike(line) {
			continue
		}
		at := ""
		for _, part := range m[1:] {
			if part != "" && at != "" {
				at += ":"
			}
			at += part
		}
		if first == "" {
			first = at
		}
		if libraryExpr.MatchString(line) {
			continue
		}
		if python := strings.Contains(line, `File "`); own == "" || python {
			own = at
		}
	}
	if own == "" {
		return first
	}
	return own
}

// frameLike keeps a first line that contains a host or a file from being taken for a frame.
func frameLike(line string) bool {
	body := strings.TrimLeft(line, " \t")
	return indented(line) || isFrame(body) || isFrame(body[len(headExpr.FindString(body)):])
}

// rustFrameExpr matches a frame of Rust; its location follows on the next line.
var rustFrameExpr = regexp.MustCompile(`^\d+: +(?:0x[0-9a-f]+ - )?[\w<].*::`)

// isStack reports whether line i of an entry, which is not its first, is part of a stack and carries no message: a
// frame, the source line below a Python frame, or any line of a Go stack.
func (e *entry) isStack(i int) bool {
	body := strings.TrimLeft(e.lines[i], " \t")
	timed := timedExpr.MatchString(body) || strings.HasPrefix(body, "[")
	if timed {
		body = body[len(headExpr.FindString(body)):]
	}
	switch {
	case isJoined(body):
		return false
	case isFrame(body), rustFrameExpr.MatchString(body):
		return true
	case timed || !indented(e.lines[i]):
		return e.trace == goTrace && goFrame.MatchString(e.lines[i])
	}
	before := strings.TrimLeft(e.lines[i-1], " \t")
	return e.trace == goTrace || strings.HasPrefix(before, `File "`) || i > 1 && strings.HasPrefix(strings.TrimLeft(e.lines[i-2], " \t"), `File "`)
}

// frameStarts and joinedStarts are the prefixes of lines that frameExpr and joinedExpr match, except for Ruby's frames.
// Most lines have none of them, and comparing prefixes costs less than an expression.
var (
	frameStarts  = []string{"at ", "... ", "#", "from ", "goroutine ", "created by ", "[signal ", `File "`}
	joinedStarts = []string{"Caused by", "Suppressed", "---", "Stack", "stack", "note: ", "During ", "The above", "thrown in", "DETAIL", "HINT", "STATEMENT", "CONTEXT", "QUERY", "LOCATION", "exit status"}
)

func isFrame(body string) bool {
	return (startsWithAny(body, frameStarts) || strings.Contains(body, ".rb:")) && frameExpr.MatchString(body)
}

func isJoined(body string) bool {
	return startsWithAny(body, joinedStarts) && joinedExpr.MatchString(body)
}

func startsWithAny(text string, starts []string) bool {
	return slices.ContainsFunc(starts, func(start string) bool { return strings.HasPrefix(text, start) })
}
