package ground

import (
	"regexp"
	"slices"
	"strings"
)

// Mark follows a claim that nothing in the session supports.
const Mark = "[not seen in the cluster]"

// maxHeld limits the text held back without the end of a sentence, in bytes.
const maxHeld = 1024

// maxShown limits the numbers of an answer from which others may be computed.
const maxShown = 64

// Checker checks one answer while it streams. It holds back incomplete sentences.
type Checker struct {
	record *Record
	held   string
	fence  string // the language of the open code block; its fence if it has none
	shown  []number
	// replaced means that an all-clear has already been replaced by the findings.
	replaced bool
	claims   bool
	advice   bool // below a heading that announces advice
}

// NewChecker returns a checker for a new answer.
func NewChecker(r *Record) *Checker { return &Checker{record: r} }

// ClaimedWrite reports whether the answer so far claims a write that was not executed.
func (c *Checker) ClaimedWrite() bool { return c.claims }

// Write adds a piece of the answer and returns the complete sentences, checked.
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

// Close returns the rest. Later text is a separate answer.
func (c *Checker) Close() string {
	rest := c.check(c.held)
	c.held, c.fence = "", ""
	return rest
}

// sentenceEnd returns the end of the first sentence of a text, including the blanks after it; 0: it may continue.
// Within a code block, and in a table, each line is one.
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

// isOrdinal reports whether the text is the number of a list item.
func isOrdinal(text string) bool {
	text = strings.TrimLeft(text, " #*>")
	return text != "" && len(text) <= 3 && strings.Trim(text, "0123456789") == ""
}

// insertion is a mark and its position.
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

// checkCode checks a line of a code block. A manifest to apply makes no claim; the objects of a command have to exist.
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

// fenceOf returns the fence of a line that begins or ends a code block; empty: it does not.
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

// sentence is a piece of an answer, with its code spans.
type sentence struct {
	text string
	code bool   // in a code block
	subs []span // code spans in prose
	// suggests is the start of a recommendation; the text's length: none.
	suggests int
}

// span is a code span: the text between the backticks, and the end of the closing one.
type span struct {
	start, end int // of the content
	after      int // after the closing backticks
}

func (s sentence) content(p span) string { return s.text[p.start:p.end] }

// inCode returns the code span that contains a position.
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

// behind returns the position for a mark: after the code span or emphasis that ends here.
func (s sentence) behind(end int) int {
	if p, ok := s.inCode(end - 1); ok {
		end = p.after
	}
	for end < len(s.text) && (s.text[end] == '*' || s.text[end] == '"') {
		end++
	}
	return end
}
