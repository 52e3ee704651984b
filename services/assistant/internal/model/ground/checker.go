package ground

import (
	"regexp"
	"slices"
	"strings"
)

// Mark stands behind what nothing in the session shows.
const Mark = "[not seen in the cluster]"

// maxHeld is how much text without the end of a sentence is held back, in bytes.
const maxHeld = 1024

// maxShown is how many numbers of an answer others may be computed from.
const maxShown = 64

// Checker checks one answer while it streams. It holds back what is no whole sentence yet.
type Checker struct {
	record *Record
	held   string
	fence  string // the language of the code block that is open; its marks if it has none
	shown  []number
	// replaced says that an all-clear was replaced by the findings already.
	replaced bool
	claims   bool
	advice   bool // below a heading that says so
}

// NewChecker returns a checker of an answer that begins.
func NewChecker(r *Record) *Checker { return &Checker{record: r} }

// ClaimedWrite reports whether the answer so far claims a write that was not executed.
func (c *Checker) ClaimedWrite() bool { return c.claims }

// Write takes a piece of the answer and returns what is whole, checked.
func (c *Checker) Write(piece string) string {
	c.held += piece
	var out strings.Builder
	for {
		n := sentenceEnd(c.held, c.fence != "")
		if n == 0 && len(c.held) > maxHeld {
			if n = strings.LastIndexByte(c.held[:maxHeld], ' ') + 1; n == 0 {
				n = len(c.held)
			}
		}
		if n == 0 {
			return out.String()
		}
		out.WriteString(c.check(c.held[:n]))
		c.held = c.held[n:]
	}
}

// Close returns the rest. The next text is an answer of its own.
func (c *Checker) Close() string {
	rest := c.check(c.held)
	c.held, c.fence = "", ""
	return rest
}

// sentenceEnd is where the first sentence of a text ends, with the blanks behind it; 0: it
// may go on. Within a code block, and in a table, each line is one.
func sentenceEnd(text string, code bool) int {
	quoted := false
	for i := range len(text) {
		switch b := text[i]; {
		case b == '\n':
			return i + 1
		case code:
		case b == '`':
			quoted = !quoted
		case !quoted && i+1 < len(text) && (text[i+1] == ' ' || text[i+1] == '\n') && strings.IndexByte(".!?", b) >= 0 && !isOrdinal(text[:i]):
			end := i + 1
			for end < len(text) && text[end] == ' ' {
				end++
			}
			return end
		}
	}
	return 0
}

// isOrdinal reports whether the text is the number before an item of a list.
func isOrdinal(text string) bool {
	text = strings.TrimLeft(text, " #*>")
	return text != "" && len(text) <= 3 && strings.Trim(text, "0123456789") == ""
}

// insertion is a mark and its place.
type insertion struct {
	at   int
	text string
}

func (c *Checker) check(text string) string {
	if strings.TrimSpace(text) == "" {
		return text
	}
	trimmed := strings.TrimSpace(text)
	if fence := fenceOf(trimmed); fence != "" {
		if c.fence == "" {
			c.fence = fence
		} else {
			c.fence = ""
		}
		return text
	}
	if c.fence != "" {
		return c.checkCode(text)
	}
	if allClear(trimmed) && c.contradicted(trimmed) {
		return c.contradict(text)
	}
	c.readHeading(trimmed)
	s := read(text)
	var marks []insertion
	for _, at := range c.objects(s) {
		marks = append(marks, insertion{at, " " + Mark})
	}
	for _, at := range c.numbers(s) {
		marks = append(marks, insertion{at, " " + Mark})
	}
	for _, at := range c.commands(s) {
		marks = append(marks, insertion{at, " " + Mark})
	}
	for _, at := range c.writes(s) {
		c.claims = true
		marks = append(marks, insertion{at, " " + Mark})
	}
	return insert(text, marks)
}

// checkCode checks a line of a code block. What is to be applied is no claim; what a command
// is to act on has to be there.
func (c *Checker) checkCode(text string) string {
	line := strings.TrimSpace(text)
	switch strings.TrimLeft(c.fence, "`~") {
	case "yaml", "yml", "json":
		return text
	}
	body := strings.TrimRight(text, "\r\n")
	end := text[len(body):]
	if command := strings.TrimPrefix(line, "$ "); isCommand(command) {
		if !c.commandSeen(command) {
			return body + " # " + Mark + end
		}
		return text
	}
	s := read(body)
	s.code = true
	var marks []insertion
	for _, at := range slices.Concat(c.objects(s), c.numbers(s)) {
		marks = append(marks, insertion{at, " " + Mark})
	}
	return insert(body, marks) + end
}

// fenceOf is the mark of a line that begins or ends a code block; empty: it does not.
func fenceOf(line string) string {
	if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
		return strings.ToLower(line)
	}
	return ""
}

func insert(text string, marks []insertion) string {
	slices.SortFunc(marks, func(a, b insertion) int { return a.at - b.at })
	marks = slices.CompactFunc(marks, func(a, b insertion) bool { return a.at == b.at })
	var out strings.Builder
	from := 0
	for _, m := range marks {
		out.WriteString(text[from:m.at] + m.text)
		from = m.at
	}
	return out.String() + text[from:]
}

// sentence is a piece of an answer, with its code found.
type sentence struct {
	text string
	code bool   // of a code block
	subs []span // code within prose
	// suggests is where a recommendation begins; the text's length: nowhere.
	suggests int
}

// span is a piece of code: what stands between the backticks, and where the last one ends.
type span struct {
	start, end int // of the content
	after      int // behind the closing mark
}

func (s sentence) content(p span) string { return s.text[p.start:p.end] }

// inCode is the code that a place is in.
func (s sentence) inCode(at int) (span, bool) {
	for _, p := range s.subs {
		if at >= p.start-1 && at < p.after {
			return p, true
		}
	}
	return span{}, false
}

var codeExpr = regexp.MustCompile("`+([^`]+)`+")

func read(text string) sentence {
	s := sentence{text: text, suggests: suggestion(text)}
	for _, m := range codeExpr.FindAllStringSubmatchIndex(text, -1) {
		s.subs = append(s.subs, span{m[2], m[3], m[1]})
	}
	return s
}

// behind is where a mark for what ends here stands: behind the code or emphasis around it.
func (s sentence) behind(end int) int {
	if p, ok := s.inCode(end - 1); ok {
		end = p.after
	}
	for end < len(s.text) && (s.text[end] == '*' || s.text[end] == '"') {
		end++
	}
	return end
}
