// Package plain removes links and images from Markdown that a language model writes.
//
// A model may repeat text that the cluster's workloads wrote, and a chat client fetches an image without being asked:
// its address can leak what the model has read. So addresses become code, and the syntax of links, images and HTML is
// escaped. The text still reads the same. This happens while the text streams: only a construct that is not yet decided
// is held back.
package plain

import (
	"bytes"
	"strings"
)

// window limits the lookahead for a construct, and so the text held back.
const window = 2048

// Writer processes one text. The zero value is ready to use.
type Writer struct {
	held []byte // not decided yet
	out  []byte // output of the current call
	last byte   // the last byte written; 0 at the start of the text
	mid  bool   // not at the beginning of a line
	// fence is that of the open code block, empty: none. Text within it is unchanged.
	fence  []byte
	indent int // of the fence
}

// Write adds a piece and returns the text that is decided.
func (w *Writer) Write(piece string) string {
	w.held = append(w.held, piece...)
	return w.run(false)
}

// Close returns the rest. It ends a code block that the text left open, so that later text is not taken for code.
func (w *Writer) Close() string {
	rest := w.run(true)
	if w.fence == nil {
		return rest
	}
	end := strings.Repeat(" ", w.indent) + string(w.fence)
	if w.mid {
		end = "\n" + end
	}
	w.fence = nil
	return rest + end + "\n"
}

func (w *Writer) run(final bool) string {
	w.out = w.out[:0]
	for len(w.held) > 0 {
		var ok bool
		switch {
		case w.fence != nil:
			ok = w.code(final)
		case !w.mid:
			ok = w.lineStart(final)
		default:
			ok = w.text(final)
		}
		if !ok {
			break
		}
	}
	return string(w.out)
}

// emit writes n held bytes unchanged.
func (w *Writer) emit(n int) {
	w.put(w.held[:n]...)
	w.held = w.held[n:]
}

func (w *Writer) put(b ...byte) {
	if len(b) == 0 {
		return
	}
	w.out = append(w.out, b...)
	w.last = b[len(b)-1]
	w.mid = w.last != '\n'
}

// line returns the first held line without its end; ok means that it is complete.
func (w *Writer) line(final bool) (line []byte, ok bool) {
	if i := bytes.IndexByte(w.held[:min(len(w.held), window)], '\n'); i >= 0 {
		return w.held[:i], true
	}
	if len(w.held) >= window {
		return w.held[:window], true
	}
	return w.held, final
}

// lineStart finds out whether a line opens a code block. Only the plainest form counts; fences in any other place are
// escaped, so that no reader sees a block where this package sees text.
func (w *Writer) lineStart(final bool) bool {
	spaces := countLeading(w.held, ' ')
	switch {
	case spaces > 3:
		w.emit(spaces)
		return true
	case spaces == len(w.held) && !final:
		return false
	}
	rest := w.held[spaces:]
	if len(rest) == 0 || rest[0] != '`' && rest[0] != '~' {
		if spaces == 0 {
			return w.text(final)
		}
		w.emit(spaces)
		return true
	}
	line, ok := w.line(final)
	if !ok {
		return false
	}
	n := countLeading(line[spaces:], rest[0])
	info := line[min(spaces+n, len(line)):]
	if n < 3 || len(line) == window || bytes.ContainsAny(info, "`~\r\\<&") {
		if spaces == 0 {
			return w.text(final)
		}
		w.emit(spaces)
		return true
	}
	w.fence, w.indent = bytes.Clone(rest[:n]), spaces
	w.emit(len(line))
	if len(w.held) > 0 {
		w.emit(1)
	}
	return true
}

// code writes a line of a code block, and finds the block's end. Lines are indented at least as far as the block, and
// its end exactly as far: otherwise a list item around the block would end it for some readers and not for others.
func (w *Writer) code(final bool) bool {
	if w.mid {
		n := bytes.IndexByte(w.held, '\n') + 1
		if n == 0 {
			n = len(w.held)
		}
		w.emit(n)
		return true
	}
	spaces := 0
	for spaces < len(w.held) && (w.held[spaces] == ' ' || w.held[spaces] == '\t') {
		spaces++
	}
	if spaces >= window { // only blanks so far
		w.held = w.held[spaces:]
		return true
	}
	if spaces == len(w.held) && !final {
		return false
	}
	rest := w.held[spaces:]
	if len(rest) > 0 && rest[0] == w.fence[0] {
		line, ok := w.line(final)
		if !ok {
			return false
		}
		trimmed := bytes.TrimRight(line[spaces:], " \t\r")
		if n := countLeading(trimmed, w.fence[0]); n == len(trimmed) && n >= len(w.fence) {
			w.put(bytes.Repeat([]byte(" "), w.indent)...)
			w.put(w.fence...)
			w.fence = nil
			w.held = w.held[len(line):]
			if len(w.held) > 0 && w.held[0] == '\n' {
				w.emit(1)
			} else {
				w.put('\n')
			}
			return true
		}
	}
	if len(rest) > 0 && rest[0] != '\n' && rest[0] != '\r' {
		w.put(bytes.Repeat([]byte(" "), max(0, w.indent-countLeading(w.held, ' ')))...)
		w.mid = true
	}
	w.emit(min(spaces+1, len(w.held)))
	return true
}

// starts are the prefixes that make clients turn an address into a link.
var starts = []string{"http://", "https://", "ftp://", "www."}

// text writes text up to the next construct and handles that. It is called only if something is held.
func (w *Writer) text(final bool) bool {
	b := w.held
	n := 0
	for n < len(b) && !isSpecialByte(b[n]) {
		if b[n] == '\n' {
			w.emit(n + 1)
			return true
		}
		n++
	}
	if n > 0 {
		w.emit(n)
		w.mid = true
		return true
	}
	switch c := b[0]; c {
	case '`':
		return w.span(final)
	case '~':
		run := countLeading(b, '~')
		if run == len(b) && !final && run < window {
			return false
		}
		if run < 3 {
			w.emit(run)
		} else {
			w.escaped(run)
		}
		return true
	case '\\':
		if len(b) == 1 {
			if final {
				w.put('\\', '\\') // else it would escape the character after the text
				w.held = nil
			}
			return final
		}
		if isPunctuation(b[1]) {
			w.emit(2)
		} else {
			w.emit(1)
		}
		return true
	case ']', '<':
		if len(b) == 1 && !final {
			return false
		}
		w.emit(1)
		if len(b) > 1 && (c == ']' && (b[1] == '(' || b[1] == ':' || b[1] == '[') || c == '<' && opensMarkup(b[1])) {
			if c == '<' {
				w.out[len(w.out)-1] = '\\'
				w.put('<')
			} else {
				w.put('\\')
				w.emit(1)
			}
		}
		return true
	default:
		return w.address(final)
	}
}

// isSpecialByte are the bytes at which a construct may begin.
func isSpecialByte(c byte) bool {
	switch c {
	case '`', '~', '\\', ']', '<', 'h', 'H', 'f', 'F', 'w', 'W':
		return true
	}
	return false
}

// opensMarkup reports whether HTML or an address in angle brackets may begin with < and this byte.
func opensMarkup(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '/' || c == '!' || c == '?'
}

// span writes a code span. Backticks without their counterpart in the same line are escaped, and so are those around
// code with a bar and an address: in a table the bar ends the code.
func (w *Writer) span(final bool) bool {
	run := countLeading(w.held, '`')
	if run == len(w.held) && !final && run < window {
		return false
	}
	line, ok := w.line(final)
	end := findCounterpart(line, run, ok && len(line) < window)
	switch {
	case end < 0 && !ok:
		return false
	case end < 0, bytes.IndexByte(line[:end], '|') >= 0 && isSuspicious(line[run:end-run]):
		w.escaped(run)
		return true
	}
	if w.last == '`' {
		w.put(' ') // two adjacent runs of backticks would be one
	}
	w.emit(end)
	return true
}

// findCounterpart returns where the run of n marks that closes the first one ends; -1: nowhere. A run at the end of an
// incomplete line may continue, and closes nothing.
func findCounterpart(line []byte, n int, whole bool) int {
	for i := n; i < len(line); {
		if line[i] != '`' {
			i++
			continue
		}
		run := countLeading(line[i:], '`')
		if i+run == len(line) && !whole {
			return -1
		}
		if i += run; run == n {
			return i
		}
	}
	return -1
}

// isSuspicious reports whether text may contain anything that this package would change.
func isSuspicious(text []byte) bool {
	for i, c := range text {
		switch {
		case bytes.IndexByte([]byte("`~\\<]"), c) >= 0:
			return true
		case isSpecialByte(c):
			for _, s := range starts {
				if len(text)-i >= len(s) && strings.EqualFold(string(text[i:i+len(s)]), s) {
					return true
				}
			}
		}
	}
	return false
}

// escaped writes n marks as text.
func (w *Writer) escaped(n int) {
	for range n {
		w.put('\\', w.held[0])
	}
	w.held = w.held[n:]
}

// address writes an address as code.
func (w *Writer) address(final bool) bool {
	most := w.held[:min(len(w.held), window)]
	maybe, is := false, false
	for _, s := range starts {
		n := min(len(s), len(most))
		if strings.EqualFold(string(most[:n]), s[:n]) {
			maybe, is = true, is || n == len(s)
		}
	}
	if !is {
		if maybe && !final {
			return false
		}
		w.emit(1)
		return true
	}
	n := bytes.IndexFunc(most, func(r rune) bool { return r <= ' ' || strings.ContainsRune("`<>\"'()[]{}|\\", r) })
	if n < 0 {
		if len(most) < window && !final {
			return false
		}
		n = len(most)
		for n < len(w.held) && n > 0 && w.held[n]&0xc0 == 0x80 { // not within a character
			n--
		}
	}
	n = len(bytes.TrimRight(most[:n], ".,;:!?*_~"))
	if w.last == '`' {
		w.put(' ')
	}
	w.put('`')
	w.emit(n)
	w.put('`')
	return true
}

func countLeading(b []byte, c byte) int {
	n := 0
	for n < len(b) && b[n] == c {
		n++
	}
	return n
}

func isPunctuation(c byte) bool {
	return c >= '!' && c <= '/' || c >= ':' && c <= '@' || c >= '[' && c <= '`' || c >= '{' && c <= '~'
}

// Text processes a whole text.
func Text(s string) string {
	var w Writer
	return w.Write(s) + w.Close()
}
