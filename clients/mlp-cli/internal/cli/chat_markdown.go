package cli

import (
	"bytes"
	"io"
	"strings"
)

// What an answer is shown with.
const (
	styleReset = "\x1b[0m"
	styleBold  = "\x1b[1m"
	styleCode  = "\x1b[36m"
	styleDim   = "\x1b[2m"
	styleAdded = "\x1b[32m"
	styleGone  = "\x1b[31m"
)

// codeIndent stands before the lines of a code block, which are then not wrapped.
const codeIndent = "    "

// longestFence is how many bytes of a line that may open or close a code block wait for its end.
const longestFence = 128

// markdownWriter renders the Markdown of an answer as it arrives: bold text, inline code, and code blocks. Only a
// marker waits for the byte that decides its kind, so a marker may be cut between two writes, and no text waits. Text
// that does not look like a marker is unchanged: a name such as a/**/b keeps its asterisks. Bold text and code end
// with their line.
//
// Without colour, the asterisks and the fences of code blocks are left out; the backticks stay, since only they mark
// where a name or a command ends.
type markdownWriter struct {
	out   io.Writer
	color bool

	line   bool   // the next byte is within a line, not at its start
	held   []byte // a marker, or at the start of a line a possible fence
	before byte   // the byte before held or, if nothing is held, before the next one
	bold   bool
	code   int  // backticks that end the code in this line; 0 outside
	styled bool // the whole line is styled

	fence  int // backticks that end the code block; 0 outside
	indent int // spaces before its fence
	diff   bool
}

func newMarkdownWriter(out io.Writer, color bool) *markdownWriter {
	return &markdownWriter{out: out, color: color}
}

func (w *markdownWriter) Write(p []byte) (int, error) {
	var b strings.Builder
	for _, c := range p {
		if w.line {
			w.addWithinLine(&b, c)
		} else {
			w.addAtLineStart(&b, c)
		}
	}
	if _, err := io.WriteString(w.out, b.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// addAtLineStart holds the line back while it may be a fence: spaces, backticks, and the language after them.
func (w *markdownWriter) addAtLineStart(b *strings.Builder, c byte) {
	spaces, ticks := measureFence(w.held)
	language := len(w.held) > spaces+ticks
	isFence := ticks >= 3 && (w.fence == 0 || ticks >= w.fence && spaces <= w.indent)
	switch {
	case c == '\n' && isFence:
		w.toggleFence(spaces, ticks)
		return
	case len(w.held) == longestFence:
	case c == ' ' && ticks == 0, c == '`' && !language, c != '\n' && c != '`' && isFence && (w.fence == 0 || c == ' ' || c == '\r'):
		w.held = append(w.held, c)
		return
	}
	held := w.held
	w.held, w.line, w.before = nil, true, '\n'
	if w.fence > 0 && (len(held) > 0 || c != '\n') {
		w.startCodeLine(b, append(bytes.Clone(held), c))
	}
	for _, h := range held {
		w.addWithinLine(b, h)
	}
	w.addWithinLine(b, c)
}

// measureFence counts the spaces and the backticks at the start of a line.
func measureFence(line []byte) (spaces, ticks int) {
	rest := bytes.TrimLeft(line, " ")
	return len(line) - len(rest), len(rest) - len(bytes.TrimLeft(rest, "`"))
}

// toggleFence begins or ends a code block. Its fence is not shown.
func (w *markdownWriter) toggleFence(spaces, ticks int) {
	language := strings.TrimSpace(string(w.held[spaces+ticks:]))
	w.held = nil
	if w.fence > 0 {
		w.fence = 0
		return
	}
	w.fence, w.indent, w.diff = ticks, spaces, language == "diff"
}

// startCodeLine indents a line of a code block; start is the beginning of the line read so far. A line of a diff is
// coloured by its kind.
func (w *markdownWriter) startCodeLine(b *strings.Builder, start []byte) {
	b.WriteString(codeIndent)
	style := ""
	if w.diff {
		style = map[byte]string{'+': styleAdded, '-': styleGone, '@': styleDim}[start[0]]
	}
	if w.color && style != "" {
		b.WriteString(style)
		w.styled = true
	}
}

func (w *markdownWriter) addWithinLine(b *strings.Builder, c byte) {
	if len(w.held) > 0 && c == w.held[0] {
		w.held = append(w.held, c)
		return
	}
	w.settleMarker(b, c)
	switch {
	case c == '\n':
		if w.bold || w.code > 0 || w.styled {
			w.bold, w.code, w.styled = false, 0, false
			w.writeStyle(b, styleReset)
		}
		w.line = false
		b.WriteByte(c)
	case w.fence == 0 && (c == '`' || c == '*' && w.code == 0):
		w.held = append(w.held, c)
		return // before stays that of the marker
	default:
		b.WriteByte(c)
	}
	w.before = c
}

// settleMarker decides, by the next byte, what the held asterisks or backticks are, and writes them if they are text.
func (w *markdownWriter) settleMarker(b *strings.Builder, next byte) {
	if len(w.held) == 0 {
		return
	}
	mark, count := w.held[0], len(w.held)
	text := string(w.held)
	w.held = nil
	switch {
	case mark == '`' && (w.code == 0 && next != '\n' || w.code == count):
		if w.code > 0 {
			w.code = 0
		} else {
			w.code = count
		}
		if w.color {
			text = ""
		}
	case mark == '*' && (count == 2 || count == 3) && (w.bold && !isBlank(w.before) || !w.bold && opensBold(w.before, next)):
		w.bold = !w.bold
		text = ""
	default:
		b.WriteString(text)
		w.before = mark
		return
	}
	b.WriteString(text)
	w.writeStyles(b)
	w.before = mark
}

// opensBold reports whether asterisks between these two bytes begin bold text. Those of globs and of powers do not.
func opensBold(before, next byte) bool {
	return !isBlank(next) && !strings.ContainsRune("/.,;:)*", rune(next)) && !isLetter(before) && before != '/' && before != '\\'
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }

// isLetter reports whether c is a letter or a digit of ASCII.
func isLetter(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_'
}

// writeStyles writes the styles that are in force now.
func (w *markdownWriter) writeStyles(b *strings.Builder) {
	w.writeStyle(b, styleReset)
	if w.bold {
		w.writeStyle(b, styleBold)
	}
	if w.code > 0 {
		w.writeStyle(b, styleCode)
	}
}

func (w *markdownWriter) writeStyle(b *strings.Builder, style string) {
	if w.color {
		b.WriteString(style)
	}
}
