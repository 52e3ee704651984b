package cli

import (
	"io"
	"strings"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
)

// mostHeld is how many bytes of a word wait for its end.
const mostHeld = 1 << 10

// longestHeld is how long an unfinished word is held: a person who reads along sees everything received.
const longestHeld = 200 * time.Millisecond

// wordWrapper breaks text between words while it comes. Lines of code and of tables stay as they are.
type wordWrapper struct {
	out    io.Writer
	width  int
	mu     sync.Mutex  // guards the fields below and out
	timer  *time.Timer // flushes a word that waits
	column int
	hang   int    // spaces before a continuation line
	gap    string // blanks since the last word
	word   []byte // the word that has not ended
	whole  bool   // the line is not wrapped
	broken bool   // breakLine ended the line, so a newline that follows adds none
}

func (w *wordWrapper) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	for _, c := range p {
		switch {
		case c == '\n':
			w.end(&b)
			if !w.broken {
				b.WriteByte('\n')
			}
			w.broken = false
			w.column, w.hang, w.gap, w.whole = 0, 0, "", false
		case c == ' ' && !w.whole:
			w.end(&b)
			if w.broken {
				continue // the line went on with a blank, and is a new one now
			}
			if w.gap += " "; w.column == 0 && len(w.gap) == 4 {
				w.startWhole(&b)
			}
		case w.whole:
			b.WriteByte(c)
			w.broken = false
		case c == '|' && w.column == 0 && len(w.word) == 0:
			w.startWhole(&b)
			b.WriteByte(c)
		default:
			if w.word = append(w.word, c); len(w.word) >= mostHeld {
				w.end(&b)
				w.whole = true // such a word is not held until its end
			}
		}
	}
	if _, err := io.WriteString(w.out, b.String()); err != nil {
		return 0, err
	}
	switch {
	case len(w.word) == 0:
	case w.timer == nil:
		w.timer = time.AfterFunc(longestHeld, w.flush)
	default:
		w.timer.Reset(longestHeld)
	}
	return len(p), nil
}

// startWhole passes on the rest of the line as it comes.
func (w *wordWrapper) startWhole(b *strings.Builder) {
	b.WriteString(w.gap)
	w.gap, w.whole, w.broken = "", true, false
}

// end writes the word, on a new line if it does not fit. Continuation lines of a list item are indented to its text.
func (w *wordWrapper) end(b *strings.Builder) {
	if len(w.word) == 0 {
		return
	}
	length := text.StringWidthWithoutEscSequences(string(w.word))
	switch {
	case w.column == 0:
		w.hang = len(w.gap)
		if mark := string(w.word); mark == "-" || mark == "*" {
			w.hang += 2
		}
	case w.column+len(w.gap)+length > w.width:
		b.WriteByte('\n')
		w.gap, w.column = strings.Repeat(" ", w.hang), 0
	}
	b.WriteString(w.gap)
	b.Write(w.word)
	w.broken = false
	w.column += len(w.gap) + length
	w.gap, w.word = "", w.word[:0]
}

// breakLine ends a line that has begun, so that other output on the same terminal starts on a new line.
func (w *wordWrapper) breakLine() {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	w.end(&b)
	if !w.broken && (w.column > 0 || w.whole) {
		b.WriteByte('\n')
		w.column, w.gap, w.broken = 0, "", true
	}
	_, _ = io.WriteString(w.out, b.String()) // a closed pipe is reported by the writes before or after
}

// flush writes the part of the last word received so far.
func (w *wordWrapper) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	w.end(&b)
	_, _ = io.WriteString(w.out, b.String()) // a closed pipe is reported by the writes before or after
}
